"""How often confidence intervals of limits hold the limits."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import revealed as rv
from revealed.fit import learn_limits

from .data import FEATURES, TASKS, Task

SIZE, NOISE, PLACES = 300, 0.1, 10
LEVEL = 0.95
ENOUGH = 2 * (FEATURES + 1) + 5
"""Active samples: with fewer a limit may be a constant, which is another model."""
CASES = ((1, "not needed"), (2, "known"), (2, "learned"))
"""Unknown limits, and costs: vertices tell the labels of one limit, costs have a say in those of
two."""


def coverages(tasks: list[str], runs: int, learned: int, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each problem and case: the share of runs and contexts in which intervals hold the
    limit. Where costs are learned too there are fewer runs, `learned`."""
    for name in tasks:
        for K, costs in CASES:
            yield _cover(name, K, costs, learned if costs == "learned" else runs, seed)


def _cover(name: str, K: int, costs: str, runs: int, seed: int) -> dict[str, Any]:
    held: dict[str, list[Any]] = {"both": [], "low": [], "high": []}
    never = below = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run, K, list(TASKS).index(name)])
        task = TASKS[name](rng, SIZE + PLACES, K)
        model, places = _learned(task, rng, K, costs), slice(SIZE, None)
        truth = task.limits[places]
        for side, found in held.items():
            between = model.intervals(task.Z[places], LEVEL, side)
            inside = (between.low <= truth + 1e-9) & (truth <= between.high + 1e-9)
            found.append(inside[:, model.active >= ENOUGH].ravel())
            if side == "both":
                never += int((~between.identified).sum())
                below += int(inside[:, ~between.identified].all(axis=0).sum())
    shares = {side: np.concatenate(found) for side, found in held.items()}
    return {
        "problem": name,
        "unknown": K,
        "costs": costs,
        "runs": runs,
        "held": {side: float(share.mean()) for side, share in shares.items()},
        "intervals": len(shares["both"]),
        "never_active": never,
        "one_sided_held": below,
    }


def _learned(task: Task, rng: np.random.Generator, K: int, costs: str) -> Any:
    """The limits learned from the first `SIZE` decisions, each limit off by noise in each."""
    seen = slice(0, SIZE)
    limits = task.limits[seen] * (1.0 + NOISE * rng.standard_normal((SIZE, K)))
    X = np.asarray(task.problem(limits, seen).solve(task.costs[seen]).x)
    problem, unknown = task.problem(None, seen), {"ub": task.rows}
    if costs == "learned":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits cut short
            return rv.InverseRegressor(problem, unknown_limits=unknown).fit(task.Z[seen], X).limits_
    given = task.costs[seen] if costs == "known" else None
    return learn_limits(problem, unknown, task.Z[seen], X, costs=given)[0]
