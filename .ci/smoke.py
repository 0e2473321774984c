"""Does an installed `revealed` work? The analyst's tour, the data scientist's five lines and, where
torch is installed, the researcher's loop, timed.

Run by the interpreter of the environment to be tried, in a folder that is not the repository's.
"""

import argparse
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

TABLES = "--contexts tour/contexts.csv --decisions tour/decisions.csv"
TOUR = f"""
tour --out tour
doctor --problem tour/plan.mps {TABLES}
fit --problem tour/plan.mps {TABLES} --out tour/model
predict tour/model --contexts tour/next_days.csv --out tour/next.csv
explain tour/model {TABLES}
report tour/model --out tour/report.html
"""


def processor_seconds() -> float:
    """Of all processes that have ended, so that a busy machine can be told from a slow program."""
    used = os.times()
    return used.children_user + used.children_system


def tour() -> dict[str, dict[str, float]]:
    shutil.rmtree("tour", ignore_errors=True)
    revealed, told = str(Path(sys.executable).with_name("revealed")), {}
    for line in TOUR.strip().splitlines():
        begin, before = time.perf_counter(), processor_seconds()
        subprocess.run([revealed, *line.split()], check=True, stdout=subprocess.DEVNULL)
        spent, used = time.perf_counter() - begin, processor_seconds() - before
        print(f"  revealed {line.split()[0]:8} {spent:6.1f} s, {used:6.1f} s of processor time")
        sys.stdout.flush()
        told[line.split()[0]] = {"seconds": spent, "processor_seconds": used}
    assert len(Path("tour/next.csv").read_text("utf-8").splitlines()) == 15
    return told


def python(name: str, code: str) -> dict[str, float]:
    """Run a program in a process of its own: it imports and compiles what a first user does."""
    begin, before = time.perf_counter(), processor_seconds()
    subprocess.run([sys.executable, "-c", code], check=True)
    spent, used = time.perf_counter() - begin, processor_seconds() - before
    print(f"  {name:17} {spent:6.1f} s, {used:6.1f} s of processor time", flush=True)
    return {"seconds": spent, "processor_seconds": used}


DATA = """
import numpy as np
import revealed as rv
rng = np.random.default_rng(0)
problem = rv.problems.grid_shortest_path(5, 5, directed="right-down")
Z = rng.standard_normal((300, 4))
X = problem.solve(np.maximum(1 + Z @ rng.random((4, problem.n_variables)), 0.1)).x
"""
FIVE_LINES = f"""{DATA}
model = rv.InverseRegressor(problem).fit(Z[:200], X[:200])
again = rv.load(model.save("model"))
assert np.array_equal(again.predict(Z), model.predict(Z))
assert rv.metrics.accuracy(problem, costs=model.predict_cost(Z), decisions=X).mean() > 0.5
"""
LOOP = f"""{DATA}
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
net, loss_fn = torch.nn.Linear(4, problem.n_variables), rv.ProjectionLoss(problem)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
data = rv.losses.DecisionDataset(Z[:200], rv.OptimalitySet(problem, X[:200]))
values = []
for epoch in range(20):
    for z, sets, index in data.loader(batch_size=32, shuffle=True):
        loss = loss_fn(net(z), sets, index=index)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
assert np.mean(values[-7:]) < 0.7 * np.mean(values[:7])  # it learns; noise keeps it from 0
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--installed", type=int, help="megabytes of the environment, for --json")
    args = parser.parse_args()
    has_torch = importlib.util.find_spec("torch") is not None
    begin = time.perf_counter()
    import revealed

    loaded = time.perf_counter() - begin
    assert Path(revealed.__file__).is_relative_to(Path(sys.prefix)), revealed.__file__
    print(f"  import revealed {revealed.__version__}: {loaded:.3f} s")
    told = {"version": revealed.__version__, "python": platform.python_version()}
    told |= {"installed_mb": args.installed, "import_seconds": loaded}
    if has_torch:
        told["loop"] = python("training loop", LOOP)
    else:
        told["tour"] = tour()
        print("  ... again, compiled:")
        told["tour_again"] = tour()
    told["five_lines"] = python("five lines", FIVE_LINES)
    if args.json:
        args.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
