"""How well limits are recovered, and how well decisions in unseen contexts are met.

The rivals get the costs that were learned with the limits known, so that they differ in limits
alone: constant ones (the mean of the true ones), and the largest value seen in training. Letters: B
samples, K unknown limits.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import revealed as rv
from revealed.metrics.sameness import same_decision

from .data import DECIMALS, KINDS, TASKS, Task, observe

UNSEEN = 500
LEARNERS = ("limits known", "ours", "constant limits", "largest value seen")


def recoveries(tasks: list[str], sizes: list[int], seeds: range) -> Iterator[dict[str, Any]]:
    """A row for each problem, number of unknown limits, kind of decisions, size and seed."""
    for name in tasks:
        for K in (1, 2, 3):
            for kind in KINDS:
                for size in sizes:
                    for seed in seeds:
                        yield _recover(name, K, kind, size, seed)


def _recover(name: str, K: int, kind: str, size: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, K, size, list(TASKS).index(name)])
    task = TASKS[name](rng, size + UNSEEN, K)
    X, in_force, active = observe(task, rng, kind, size)
    seen, unseen = slice(0, size), slice(size, None)
    truth = np.asarray(task.problem(task.limits[unseen], unseen).solve(task.costs[unseen]).x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rounding that is noticed, and of fits cut short
        began = time.process_time()
        ours = rv.InverseRegressor(
            task.problem(None, seen), unknown_limits={"ub": task.rows}, decision_tol=_half(kind)
        )
        ours.fit(task.Z[seen], X)
        seconds = time.process_time() - began
        informed = _informed(task, X, in_force, seen, kind)
    limits = ours.predict_limits(task.Z[unseen])
    known = np.isfinite(limits).all(axis=0)
    error = np.abs(limits - task.limits[unseen])[:, known] / task.limits[unseen][:, known]
    values = X @ task.A_ub[task.rows].T
    guesses = {
        "limits known": task.limits[unseen],
        "constant limits": np.tile(task.limits[seen].mean(axis=0), (UNSEEN, 1)),
        "largest value seen": np.tile(values.max(axis=0), (UNSEEN, 1)),
    }
    decided = {
        k: informed.predict(task.Z[unseen], task.problem(b, unseen)) for k, b in guesses.items()
    }
    decided["ours"] = ours.predict(task.Z[unseen], task.problem(task.limits[unseen], unseen))
    told: Any = ours.certificate_ and ours.certificate_.limits
    return {
        "problem": name,
        "unknown": K,
        "kind": kind,
        "size": size,
        "seed": seed,
        "active": active.mean(axis=0).tolist(),
        "sure": told.sure / told.samples,
        "limit_error": float(error.mean()) if error.size else np.nan,
        "never_active": int((~known).sum()),
        "seconds": seconds,
        "rounds": told.rounds,
        **{learner: _scores(decided[learner], truth) for learner in LEARNERS},
    }


def _informed(task: Task, X: np.ndarray, in_force: np.ndarray, seen: slice, kind: str) -> Any:
    """An estimator that knows the limits in force."""
    problem = task.problem(in_force, seen)
    est = rv.InverseRegressor(problem, decision_tol=_half(kind), infeasible="repair")
    return est.fit(task.Z[seen], X)


def _half(kind: str) -> Any:
    """How far entries of decisions may be off, which both are told."""
    return 0.5 * 10.0**-DECIMALS if kind == "rounded" else "auto"


def _scores(X: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Share of decisions that are the same, share with the same entries at 0, and the mean error of
    an entry relative to the mean entry."""
    X = np.nan_to_num(X, nan=np.inf)
    support = ((X > 1e-6) == (truth > 1e-6)).all(axis=1)
    error = np.minimum(np.abs(X - truth), np.abs(truth).max()).mean() / np.abs(truth).mean()
    return {
        "same": float(np.mean(same_decision(X, truth))),
        "support": float(support.mean()),
        "error": float(error),
    }
