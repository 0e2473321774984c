"""How often confidence intervals of limits hold the limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from revealed.fit import learn_limits

from .data import FEATURES, TASKS

SIZE, NOISE, PLACES = 300, 0.1, 10
LEVEL = 0.95


def coverages(tasks: list[str], runs: int, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each problem and number of unknown limits: the share of runs and contexts in which
    intervals hold the limit. Costs are known where several limits are unknown, so that labels are
    told; without them see the guide."""
    for name in tasks:
        for K in (1, 2):
            yield _cover(name, K, runs, seed)


def _cover(name: str, K: int, runs: int, seed: int) -> dict[str, Any]:
    held: dict[str, list[Any]] = {"both": [], "low": [], "high": []}
    never = below = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run, K, list(TASKS).index(name)])
        task = TASKS[name](rng, SIZE + PLACES, K)
        seen, places = slice(0, SIZE), slice(SIZE, None)
        limits = task.limits[seen] * (1.0 + NOISE * rng.standard_normal((SIZE, K)))
        X = np.asarray(task.problem(limits, seen).solve(task.costs[seen]).x)
        costs = task.costs[seen] if K > 1 else None
        unknown = {"ub": task.rows}
        model, _ = learn_limits(task.problem(None, seen), unknown, task.Z[seen], X, costs=costs)
        truth = task.limits[places]
        for side, found in held.items():
            between = model.intervals(task.Z[places], LEVEL, side)
            inside = (between.low <= truth + 1e-9) & (truth <= between.high + 1e-9)
            # Runs in which nearly nothing is active have a constant limit, which is another model.
            enough = model.active >= 2 * (FEATURES + 1) + 5
            found.append(inside[:, enough].ravel())
            if side == "both":
                never += int((~between.identified).sum())
                below += int(inside[:, ~between.identified].all(axis=0).sum())
    shares = {side: np.concatenate(found) for side, found in held.items()}
    return {
        "problem": name,
        "unknown": K,
        "runs": runs,
        "held": {side: float(share.mean()) for side, share in shares.items()},
        "intervals": len(shares["both"]),
        "never_active": never,
        "one_sided_held": below,
    }
