"""Parametric linear programs on random polytopes, after Tan, Terekhov and Delong (2020).

Their code does not run today; instances are made anew from the description: the convex hull of
normal points, kept if it has the wanted number of facets. Costs are affine in one context, and so
are the right-hand sides of three facets; both are learned from 20 decisions. Their experiment 1b
adds two equalities, here through the middle of the polytope, and known. Their 1c learns all
coefficients of one program, also those of its matrix, which nothing here represents. The rival
descends the squared error of decisions (`gradient`).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.spatial import ConvexHull

import revealed as rv

from .gradient import STARTS, Layer, descend

SHAPES = ((2, 4, 5), (2, 8, 8), (2, 16, 150), (10, 20, 12), (10, 36, 12), (10, 80, 13))
"""Variables, facets, points."""
UNKNOWN, SAMPLES, VARIES = 3, 20, 0.2
SOLVED = 1e-5
"""Mean squared error of decisions, entries of order 1."""
RIGHT = 1e-4
"""Error of limits that were active in training."""
EQUALITIES = 2
"""Of experiment 1b, in 10 variables: in 2 they would leave one point."""


@dataclass(frozen=True, eq=False)
class Instance:
    """A polytope A x <= b(t), costs and decisions in contexts t."""

    A: np.ndarray
    b: np.ndarray
    """(2 B, m)"""
    A_eq: np.ndarray | None
    """Equalities with right-hand side 0, if any."""
    rows: np.ndarray
    t: np.ndarray
    """(2 B, 1): the first half is learned from."""
    costs: np.ndarray
    X: np.ndarray

    def problem(self, b: np.ndarray) -> rv.LinearProgram:
        """With these right-hand sides."""
        if self.A_eq is None:
            return rv.LinearProgram(A_ub=self.A, b_ub=b, lb=None)
        b_eq = np.zeros(len(self.A_eq))
        return rv.LinearProgram(self.A_eq, b_eq, A_ub=self.A, b_ub=b, lb=None)


def programs(sizes: list[int], instances: int, rival: int, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each shape: the share of instances solved and processor seconds, with as many of
    them given to the rival as said."""
    shapes = [(*shape, 0) for shape in SHAPES]
    shapes += [(*shape, EQUALITIES) for shape in SHAPES if shape[0] > 2]
    for n, facets, points, equalities in shapes:
        if n not in sizes:
            continue
        found: dict[str, list[Any]] = {"ours": [], "gradient": []}
        for k in range(instances):
            rng = np.random.default_rng([seed, n, facets, k])
            one = _instance(rng, n, facets, points, equalities)
            found["ours"].append(_judged(one, _ours))
            if k < rival:
                found["gradient"].append(_judged(one, _rival))
        row: dict[str, Any] = {"variables": n, "facets": facets, "equalities": equalities}
        yield row | {who: summary(results) for who, results in found.items()}


def summary(results: list[dict[str, float]]) -> dict[str, float]:
    """Shares of instances, and the median of their seconds."""
    return {
        "instances": len(results),
        "solved": float(np.mean([r["seen"] <= SOLVED for r in results])),
        "unseen": float(np.mean([r["unseen"] for r in results])),
        "limits_right": float(np.mean([r["limits"] <= RIGHT for r in results])),
        "seconds": float(np.median([r["seconds"] for r in results])),
    }


def _instance(
    rng: np.random.Generator, n: int, facets: int, points: int, equalities: int = 0
) -> Instance:
    while True:
        hull = ConvexHull(rng.standard_normal((points, n)))
        if len(hull.equations) == facets:
            break
    center = hull.points[hull.vertices].mean(axis=0)
    A, b0 = hull.equations[:, :-1], -hull.equations[:, -1] - hull.equations[:, :-1] @ center
    t = rng.uniform(-1.0, 1.0, (2 * SAMPLES, 1))
    rows = np.sort(rng.permutation(facets)[:UNKNOWN])
    b = np.tile(b0, (len(t), 1))
    b[:, rows] *= 1.0 + VARIES * t * rng.uniform(-1.0, 1.0, UNKNOWN)
    costs = rng.standard_normal(n) + t * rng.standard_normal(n)
    A_eq = rng.standard_normal((equalities, n)) if equalities else None
    one = Instance(A, b, A_eq, rows, t, costs, np.zeros((0, n)))
    return replace(one, X=np.asarray(one.problem(b).solve(costs).x))


def _judged(one: Instance, learn: Any) -> dict[str, float]:
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        costs, limits = learn(one)
    seconds = time.process_time() - began
    b = one.b.copy()
    active = (np.abs(one.X @ one.A[one.rows].T - one.b[:, one.rows]) < 1e-7)[:SAMPLES].any(axis=0)
    b[:, one.rows] = limits
    found = np.asarray(one.problem(b).solve(costs).x)
    error = np.nan_to_num(((found - one.X) ** 2).sum(axis=1), nan=np.inf)
    off = np.abs(limits - one.b[:, one.rows])[:, active]
    return {
        "seen": float(error[:SAMPLES].mean()),
        "unseen": float((error[SAMPLES:] <= SOLVED).mean()),
        "limits": float(off.max(initial=0.0)),
        "seconds": seconds,
    }


def _ours(one: Instance) -> tuple[np.ndarray, np.ndarray]:
    known = one.b[0].copy()
    known[one.rows] = np.inf
    est = rv.InverseRegressor(
        one.problem(known),
        unknown_limits={"ub": one.rows.tolist()},
        noise=0.0,
        ridge=0.0,
        decision_tol=0.0,
    )
    est.fit(one.t[:SAMPLES], one.X[:SAMPLES])
    return est.predict_cost(one.t), est.predict_limits(one.t)


def _rival(one: Instance) -> tuple[np.ndarray, np.ndarray]:
    """Costs from random numbers, limits from just above all that decisions reached."""
    n, K, place = one.A.shape[1], len(one.rows), torch.as_tensor(one.rows)
    b_eq = None if one.A_eq is None else np.zeros(len(one.A_eq))
    layer, seen = Layer(one.A, one.A_eq, b_eq), slice(0, SAMPLES)
    t, base = torch.as_tensor(one.t), torch.as_tensor(one.b[0])
    F = torch.cat([torch.ones_like(t), t], dim=1)

    def parts(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        limits = (F @ w[2 * n :].reshape(2, K)).clamp_min(1e-3)  # 0 is in the middle
        return F @ w[: 2 * n].reshape(2, n), limits

    def guess(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        costs, limits = (part[seen] for part in parts(w))
        return costs, base.repeat(SAMPLES, 1).index_copy(1, place, limits)

    reached = (one.X[seen] @ one.A[one.rows].T).max(axis=0)
    rng = np.random.default_rng(0)
    starts = [
        np.concatenate([rng.standard_normal(2 * n), reached, np.zeros(K)]) for _ in range(STARTS)
    ]
    costs, limits = parts(torch.as_tensor(descend(layer, one.X[seen], guess, starts)))
    return costs.numpy(), limits.numpy()
