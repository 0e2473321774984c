"""Seconds of one epoch on the paper's own route, CVXPY one sample at a time, beside ours.

    python experiments/scripts/paper_route_epochs.py     by dimension and by samples, one thread

An epoch is a projection of every sample and a least-squares step. CVXPY is compiled once and its
parameters are filled in; it is timed on the first samples and scaled, since each takes the same
time. Its solvers run at their default tolerances, as published. Ours is one thread, to 1e-8. All
times are the processor's, so that other work on the machine does not count.
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np

from revealed import OptimalitySet
from revealed.datasets import paper_paths
from revealed.fit import LinearModel, pocs
from revealed_experiments.bench.projection.cases import Case
from revealed_experiments.bench.projection.paper_route import PaperRoute
from revealed_experiments.bench.record import surroundings, write_json

SIDES, SAMPLES = (3, 5, 8, 12), (10, 100, 1_000)
SOLVERS = ("ECOS", "OSQP")
TIMED, ROUNDS = 10, 3
OUT = Path("experiments/results/synthetic/paper_route.json")
"""Beside the runs, whose page shows it."""
USUAL_SIDE, USUAL_SAMPLES = 5, 100


def ours(data, sets, epochs: int = 12) -> float:
    """Median seconds of an epoch of POCS, without the first two."""
    model, times = LinearModel(fit_intercept=False), []

    def clock(_) -> dict:
        times.append(time.process_time())
        return {}

    given = (model, data.train.contexts, sets)
    pocs(*given, max_iter=epochs, tol=0.0, threads=1, monitor=clock)
    return float(np.median(np.diff(times)[2:]))


def theirs(solver: str, data, sets) -> float:
    """Seconds of an epoch through CVXPY: the first samples, scaled to all of them."""
    problem, few = data.problem, min(TIMED, len(sets))
    costs = np.random.default_rng(0).standard_normal((len(sets), problem.n_variables))
    rows = (problem.A_eq, problem.ub_rows.matrix(0).tocsr())
    case = Case("paths", "cold", costs, *rows, sets.entry_state, sets.row_active, 1.0, sets=sets)
    route = PaperRoute(solver)
    route.prepare(case)
    began = time.process_time()
    for i in range(few):
        route.solve(i)
    return (time.process_time() - began) / few * len(sets)


def measured(side: int, samples: int) -> dict[str, float]:
    data = paper_paths((samples, 0, 0), side=side, seed=0)
    sets = OptimalitySet(data.problem, data.train.decisions)
    ours(data, sets, epochs=4)  # compile, or load what was compiled
    rounds: dict[str, list[float]] = {"ours": [], **{solver: [] for solver in SOLVERS}}
    for _ in range(ROUNDS):
        rounds["ours"].append(ours(data, sets))
        for solver in SOLVERS:
            rounds[solver].append(theirs(solver, data, sets))
    seconds = {name: statistics.median(values) for name, values in rounds.items()}
    return {"side": side, "n": data.problem.n_variables, "samples": samples, **seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    command = "python experiments/scripts/paper_route_epochs.py"
    content = surroundings(command, {"timed": TIMED, "rounds": ROUNDS})
    content |= {"benchmark": "paper_route", "targets": []}
    content["rows"] = [measured(side, USUAL_SAMPLES) for side in SIDES]
    content["rows"] += [measured(USUAL_SIDE, n) for n in SAMPLES if n != USUAL_SAMPLES]
    write_json(args.out, content)
    for row in content["rows"]:
        print(row)


if __name__ == "__main__":
    main()
