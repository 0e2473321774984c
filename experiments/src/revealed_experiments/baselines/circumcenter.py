"""The direction that is least wrong in the worst case, among all that explain the decisions.

What decisions say of coefficients w is a cone: <w, F_i^T (x - x_i)> >= 0 for every alternative x,
with F_i (n, p) the features of the entries. Of its unit vectors the circumcenter has the smallest
largest angle to the others, and deciding by it has the least worst-case regret. For small problems:
the extreme rays of the cone are enumerated, so p is at most about 5 and alternatives are listed.

Letters: B samples, n entries, p coefficients, V alternatives, K rows.

Source: Besbes, Fonseca and Lobel, *Contextual Inverse Optimization: Offline and Online Learning*
(Operations Research, 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linprog, nnls

from revealed.errors import InputError

TOL = 1e-9
MOST_RAYS = 200_000
"""Sets of rows that are tried at most."""


@dataclass(frozen=True, eq=False)
class Center:
    """The circumcenter of a cone."""

    direction: np.ndarray
    """(p,) of length 1."""
    angle: float
    """The largest angle to a direction of the cone, in radians; below a right angle."""
    rays: np.ndarray
    """(R, p) the extreme rays, of length 1."""


def circumcenter_costs(features: Any, decisions: Any, alternatives: Any) -> Center:
    """The circumcenter of the coefficients that explain `decisions` (B, n), given `features`
    (B, n, p) of each entry and all `alternatives` (V, n) that could have been decided."""
    F, X, V = (np.asarray(part, float) for part in (features, decisions, alternatives))
    if F.ndim != 3 or X.shape != F.shape[:2] or V.ndim != 2 or V.shape[1] != X.shape[1]:
        raise InputError(
            "`features` must be (B, n, p), `decisions` (B, n) and `alternatives` (V, n); got "
            f"{F.shape}, {X.shape} and {V.shape}."
        )
    rows = np.einsum("bvn,bnp->bvp", V[None] - X[:, None], F).reshape(-1, F.shape[2])
    return circumcenter(rows)


def circumcenter(rows: Any) -> Center:
    """The circumcenter of the cone {w : rows w >= 0}, rows (K, p)."""
    G = _facets(_distinct(np.asarray(rows, float)))
    rays = extreme_rays(G)
    if not len(rays):
        raise InputError(
            "The cone has no extreme ray: it is {0}, or contains a whole line. No direction "
            "explains all decisions, or they leave some direction without any limit."
        )
    # Largest t with <ray, w> >= t for all rays and |w| <= 1; that is w / |w| for the shortest w
    # with <ray, w> >= 1, a least-distance problem (Lawson and Hanson).
    stacked = np.vstack([rays.T, np.ones(len(rays))])
    target = np.r_[np.zeros(rays.shape[1]), 1.0]
    weights, residual = nnls(stacked, target)
    if residual <= 1e-10:
        raise InputError(
            "The cone is no narrower than a half-space, so its center decides nothing."
        )
    gap = stacked @ weights - target
    shortest = -gap[:-1] / gap[-1]
    direction = shortest / np.linalg.norm(shortest)
    angle = float(np.arccos(np.clip((rays @ direction).min(), -1.0, 1.0)))
    return Center(direction, angle, rays)


def extreme_rays(G: np.ndarray) -> np.ndarray:
    """(R, p): directions of length 1 at which p - 1 independent rows of G are 0 and no row is
    negative; none where the cone holds a line."""
    p = G.shape[1]
    if np.linalg.matrix_rank(G) < p:
        return np.zeros((0, p))
    found = []
    for count, chosen in enumerate(combinations(range(len(G)), p - 1)):
        if count == MOST_RAYS:
            raise InputError(
                f"The cone has {len(G)} facets in {p} coefficients: too many rays to enumerate. "
                "Give fewer samples or coefficients."
            )
        part = G[list(chosen)]
        if p > 1 and np.linalg.matrix_rank(part) < p - 1:
            continue
        ray = np.linalg.svd(part)[2][-1] if p > 1 else np.ones(1)
        found += [way for way in (ray, -ray) if (G @ way >= -TOL).all()]
    return _distinct(np.array(found).reshape(-1, p))


def _distinct(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1, each once, without those that are 0."""
    if rows.ndim != 2 or not rows.shape[1]:
        raise InputError(f"`rows` must be (K, p); got {rows.shape}.")
    lengths = np.linalg.norm(rows, axis=1)
    unit = rows[lengths > TOL] / lengths[lengths > TOL, None]
    _, first = np.unique(unit.round(9), axis=0, return_index=True)
    return unit[np.sort(first)]


def _facets(G: np.ndarray) -> np.ndarray:
    """The rows that the others do not imply, found one by one."""
    kept = list(range(len(G)))
    for k in range(len(G)):
        others = [j for j in kept if j != k]
        if not others:
            break
        least = linprog(
            G[k],
            A_ub=-np.vstack([G[others], G[k]]),
            b_ub=np.r_[np.zeros(len(others)), 1.0],
            bounds=(None, None),
        )
        if least.status == 0 and least.fun > -TOL:
            kept.remove(k)
    return G[kept]
