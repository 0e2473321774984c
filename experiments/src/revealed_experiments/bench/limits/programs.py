"""Parametric linear programs on random polytopes, after Tan, Terekhov and Delong (2020).

Their code does not run today; instances are made anew from the description: the convex hull of
normal points, kept if it has the wanted number of facets. Costs are affine in one context, and so
are the right-hand sides of three facets; both are learned from 20 decisions. The rival descends the
squared error of decisions through cvxpylayers, by Adam; a linear program has no gradient in its
costs, so a term 1/2 smooth |x|^2 is added to what is differentiated.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

import revealed as rv

SHAPES = ((2, 4, 5), (2, 8, 8), (2, 16, 150), (10, 20, 12), (10, 36, 12), (10, 80, 13))
"""Variables, facets, points."""
UNKNOWN, SAMPLES, VARIES = 3, 20, 0.2
SOLVED = 1e-5
"""Mean squared error of decisions, entries of order 1."""
RIGHT = 1e-4
"""Error of limits that were active in training."""
STEPS, RATE, SMOOTH = 200, 0.1, 0.1


@dataclass(frozen=True, eq=False)
class Instance:
    """A polytope A x <= b(t), costs and decisions in contexts t."""

    A: np.ndarray
    b: np.ndarray
    """(2 B, m)"""
    rows: np.ndarray
    t: np.ndarray
    """(2 B, 1): the first half is learned from."""
    costs: np.ndarray
    X: np.ndarray


def programs(sizes: list[int], instances: int, rival: int, seed: int) -> Iterator[dict[str, Any]]:
    """A row for each shape: the share of instances solved and processor seconds, with as many of
    them given to the rival as said."""
    for n, facets, points in (shape for shape in SHAPES if shape[0] in sizes):
        found: dict[str, list[Any]] = {"ours": [], "cvxpylayers": []}
        for k in range(instances):
            one = _instance(np.random.default_rng([seed, n, facets, k]), n, facets, points)
            found["ours"].append(_judged(one, _ours))
            if k < rival:
                found["cvxpylayers"].append(_judged(one, _rival))
        row: dict[str, Any] = {"variables": n, "facets": facets}
        for who, results in found.items():
            row[who] = {
                "instances": len(results),
                "solved": float(np.mean([r["seen"] <= SOLVED for r in results])),
                "unseen": float(np.mean([r["unseen"] for r in results])),
                "limits_right": float(np.mean([r["limits"] <= RIGHT for r in results])),
                "seconds": float(np.median([r["seconds"] for r in results])),
            }
        yield row


def _instance(rng: np.random.Generator, n: int, facets: int, points: int) -> Instance:
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
    X = rv.LinearProgram(A_ub=A, b_ub=b, lb=None).solve(costs).x
    return Instance(A, b, rows, t, costs, np.asarray(X))


def _judged(one: Instance, learn: Any) -> dict[str, float]:
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        costs, limits = learn(one)
    seconds = time.process_time() - began
    b = one.b.copy()
    active = (np.abs(one.X @ one.A[one.rows].T - one.b[:, one.rows]) < 1e-7)[:SAMPLES].any(axis=0)
    b[:, one.rows] = limits
    found = np.asarray(rv.LinearProgram(A_ub=one.A, b_ub=b, lb=None).solve(costs).x)
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
    problem = rv.LinearProgram(A_ub=one.A, b_ub=known, lb=None)
    est = rv.InverseRegressor(
        problem, unknown_limits={"ub": one.rows.tolist()}, noise=0.0, ridge=0.0, decision_tol=0.0
    )
    est.fit(one.t[:SAMPLES], one.X[:SAMPLES])
    return est.predict_cost(one.t), est.predict_limits(one.t)


def _rival(one: Instance) -> tuple[np.ndarray, np.ndarray]:
    import cvxpy as cp
    import torch
    from cvxpylayers.torch import CvxpyLayer  # pyright: ignore

    (m, n), K = one.A.shape, len(one.rows)
    x, c, b = cp.Variable(n), cp.Parameter(n), cp.Parameter(m)
    program = cp.Problem(cp.Minimize(c @ x + 0.5 * SMOOTH * cp.sum_squares(x)), [one.A @ x <= b])
    layer = CvxpyLayer(program, parameters=[c, b], variables=[x])
    t, X = torch.as_tensor(one.t), torch.as_tensor(one.X)
    seen = slice(0, SAMPLES)
    F = torch.cat([torch.ones_like(t), t], dim=1)
    generator = torch.Generator().manual_seed(0)
    theta = torch.randn(2, n, generator=generator, dtype=torch.float64).requires_grad_()
    # Limits begin just above all that decisions reached.
    reached = torch.as_tensor((one.X[seen] @ one.A[one.rows].T).max(axis=0))
    start = torch.stack([reached, torch.zeros(K, dtype=torch.float64)])
    phi = start.clone().requires_grad_()
    base, place = torch.as_tensor(one.b[0]), torch.as_tensor(one.rows)
    optimizer = torch.optim.Adam([theta, phi], lr=RATE)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    best, kept = np.inf, (theta.detach().clone(), phi.detach().clone())
    for _ in range(STEPS):
        optimizer.zero_grad()
        limits = base.repeat(SAMPLES, 1).index_copy(1, place, (F[seen] @ phi).clamp_min(1e-3))
        (found,) = layer(F[seen] @ theta, limits)
        loss = ((found - X[seen]) ** 2).sum(dim=1).mean()
        if float(loss) < best:
            best, kept = float(loss), (theta.detach().clone(), phi.detach().clone())
        loss.backward()
        optimizer.step()
        slower.step()
    return (F @ kept[0]).numpy(), (F @ kept[1]).numpy()
