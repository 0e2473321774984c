"""What knowing some costs beforehand is worth: writes `results/given_costs.json`.

Noisy 5x5 paths. Half of the edges have a cost that never changes, which may be given. Ways to use
it are compared by the regret of their decisions in new contexts, on seeds on which nothing was
chosen.

    python experiments/scripts/given_costs.py [--seeds 10] [--first 100]
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import revealed as rv
from revealed.cli.plans import GivenCosts

OUT = Path(__file__).parents[1] / "results" / "given_costs.json"
SAMPLES, TEST, DEGREE, NOISE = (50,), 1000, 4, 0.5
SHARES = (0.0, 0.05, 0.2, 0.8)
"""Of noise, in the size of the given costs; 0.2 is what `revealed fit` uses."""


def data(seed: int, size: int):
    """Contexts, true costs, decisions of the first `size`, and the costs that never change."""
    rng = np.random.default_rng(seed)
    problem = rv.problems.grid_shortest_path(5, 5, directed="right-down")
    n = problem.n_variables
    B = rng.integers(0, 2, (n, 5))
    Z = rng.standard_normal((size + TEST, 5))
    C = (Z @ B.T / np.sqrt(5) + 3) ** DEGREE / 3.5**DEGREE + 1
    seen = C * rng.uniform(1 - NOISE, 1 + NOISE, C.shape)
    fixed = np.where(rng.random(n) < 0.5, rng.uniform(1.0, 3.0, n), np.nan)
    C, seen = (np.where(np.isnan(fixed), each, fixed) for each in (C, seen))
    return problem, Z, C, problem.solve(seen[:size]).x, fixed


def regret(problem, costs, truth) -> float:
    """In percent of the cost of the best decisions."""
    mine, best = problem.solve(costs).x, problem.solve(truth).x
    return float(100 * ((truth * mine).sum() / (truth * best).sum() - 1))


def trial(seed: int, size: int) -> dict[str, float]:
    """Regret of each way."""
    problem, Z, C, X, fixed = data(seed, size)
    n = problem.n_variables
    free, none = np.full(n, np.nan), np.full(n, np.inf)
    ways: dict[str, tuple[GivenCosts | None, float | None]] = {"nothing": (None, None)}
    ways["signs"] = (GivenCosts(free, np.zeros(n), none, np.arange(n)), None)
    known = GivenCosts(fixed, np.where(np.isnan(fixed), 0.0, -none), none, np.arange(n))
    ways |= {f"known, noise {share:g}": (known, share) for share in SHARES}
    found = {}
    for name, (given, share) in ways.items():
        settings: dict = {"model": "linear", "random_state": 0}
        if given is not None:
            settings["cost_map"] = given.form
        if given is not None and share is not None:
            settings |= {"margin": 0.0, "noise": share * given.usual_noise / 0.2}
        est = rv.InverseRegressorCV(problem, **settings).fit(Z[:size], X)
        costs = est.predict_cost(Z[size:])
        costs = costs if given is None else given.within(costs)
        found[name] = regret(problem, costs, C[size:])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=100)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    result: dict = {"first": args.first, "seeds": args.seeds, "test": TEST, "regret": {}}
    for size in SAMPLES:
        trials = [trial(seed, size) for seed in range(args.first, args.first + args.seeds)]
        for name in trials[0]:
            own = np.array([each[name] for each in trials])
            beside = own - [each["nothing"] for each in trials]
            result["regret"].setdefault(name, {})[str(size)] = {
                "mean": float(own.mean()),
                "se": float(own.std(ddof=1) / np.sqrt(len(own))),
                "beside_nothing": float(beside.mean()),
                "beside_nothing_se": float(beside.std(ddof=1) / np.sqrt(len(own))),
            }
            print(size, name, result["regret"][name][str(size)], flush=True)
    OUT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
