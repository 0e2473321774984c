"""Does an installed `revealed` work? The analyst's tour and the data scientist's five lines, timed.

Run by the interpreter of the environment to be tried, in a folder that is not the repository's.
"""

import importlib.util
import os
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


def tour() -> None:
    shutil.rmtree("tour", ignore_errors=True)
    revealed = str(Path(sys.executable).with_name("revealed"))
    for line in TOUR.strip().splitlines():
        begin, before = time.perf_counter(), processor_seconds()
        subprocess.run([revealed, *line.split()], check=True, stdout=subprocess.DEVNULL)
        spent, after = time.perf_counter() - begin, processor_seconds()
        told = f"{spent:6.1f} s, {after - before:6.1f} s of processor time"
        print(f"  revealed {line.split()[0]:8} {told}", flush=True)
    assert len(Path("tour/next.csv").read_text("utf-8").splitlines()) == 15


def five_lines() -> None:
    import numpy as np

    import revealed as rv

    begin = time.perf_counter()
    rng = np.random.default_rng(0)
    problem = rv.problems.grid_shortest_path(5, 5, directed="right-down")
    Z = rng.standard_normal((300, 4))
    X = problem.solve(np.maximum(1 + Z @ rng.random((4, problem.n_variables)), 0.1)).x
    model = rv.InverseRegressor(problem).fit(Z[:200], X[:200])
    again = rv.load(model.save("model"))
    assert np.array_equal(again.predict(Z), model.predict(Z))
    assert rv.metrics.accuracy(problem, costs=model.predict_cost(Z), decisions=X).mean() > 0.5
    print(f"  five lines of Python {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    assert importlib.util.find_spec("torch") is None, "this environment has torch"
    begin = time.perf_counter()
    import revealed

    assert Path(revealed.__file__).is_relative_to(Path(sys.prefix)), revealed.__file__
    print(f"  import revealed {revealed.__version__}: {time.perf_counter() - begin:.3f} s")
    tour()
    print("  ... again, compiled:")
    tour()
    five_lines()
