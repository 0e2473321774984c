"""Multi-commodity flows on the Nguyen-Dupuis network, after Tan, Terekhov and Delong (2020).

    cost of an arc      length + w1 toll + w2 length (sin(w3 + w4 t + w5 length) + 1)
    capacity of an arc  1 + w6 + w7 length

for four unit demands, with w unknown and t the context; what w, lengths, tolls and contexts are
drawn from is ours. That w1, w2, w6 and w7 are not negative is taken as known.

The library learns right-hand sides as functions of the context, one by one; here 19 of them share
two numbers, so capacities are found apart. No flow of an arc exceeds its capacity, and those that
are full lie on one line over length, so that the line is an edge of the upper hull of the largest
flows: of the edges on which most arcs lie each is tried. Costs are then learned by descending the
distance to the sets of costs that explain the flows, which has a gradient in all of w1 to w5, from
several starts: the sine makes local optima. Which demand uses which part of a full arc is a tie
under any costs, so flows are compared by their sums over demands. Letters: B samples, n = 76.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.optimize import minimize
from scipy.spatial import ConvexHull

import revealed as rv

from .gradient import STARTS, Layer, descend
from .programs import SAMPLES, SOLVED, summary

ARCS = (
    "1-2 2-7 1-4 2-5 3-4 4-5 5-6 6-7 3-8 4-8 5-9 6-10 7-11 8-9 9-10 10-11 8-12 10-13 12-13".split()
)
DEMANDS = ((1, 11), (1, 13), (3, 11), (3, 13))
NODES = 13
MARGIN = 1e-3
"""Of the explained costs, in which an arc of length 1 costs 1 or more."""
TRIES, FOUND = 40, 1e-12
"""Most starts, and the loss at which the search for w1 to w5 ends."""
CLOSE = {"maxiter": 200, "ftol": 1e-14, "gtol": 1e-10}


@dataclass(frozen=True, eq=False)
class Network:
    """Flows of known lengths and tolls under an unknown w, in contexts t."""

    length: np.ndarray
    """(19,)"""
    toll: np.ndarray
    w: np.ndarray
    """(7,) the truth."""
    t: np.ndarray
    """(2 B,): the first half is learned from."""
    X: np.ndarray
    """(2 B, n)"""

    def costs(self, w: Any, t: Any, sin: Any = np.sin) -> Any:
        """(B, 19) of arcs."""
        wave = sin(w[2] + w[3] * t[:, None] + w[4] * self.length) + 1.0
        return self.length + w[0] * self.toll + w[1] * self.length * wave

    def problem(self, capacity: np.ndarray) -> rv.LinearProgram:
        """The flows of all demands under these capacities of arcs."""
        A_eq, b_eq, A_ub = _constraints()
        return rv.LinearProgram(A_eq, b_eq, A_ub=A_ub, b_ub=capacity)


def flows(instances: int, rival: int, seed: int) -> dict[str, Any]:
    """Shares of instances solved and processor seconds, of ours and of the rival."""
    found: dict[str, list[Any]] = {"ours": [], "gradient": []}
    for k in range(instances):
        one = network(np.random.default_rng([seed, k]))
        found["ours"].append(judged(one, ours))
        if k < rival:
            found["gradient"].append(judged(one, _rival))
    return {who: summary(results) for who, results in found.items()}


def network(rng: np.random.Generator) -> Network:
    """One instance; another is drawn where fewer than two arcs are ever full."""
    while True:
        length = rng.uniform(0.3, 1.0, len(ARCS))
        toll = rng.uniform(0.0, 1.0, len(ARCS)) * (rng.random(len(ARCS)) < 0.5)
        t = rng.uniform(0.0, 1.0, 2 * SAMPLES)
        w = rng.uniform([0, 0, -1, -5, -5, 0, 0], [1, 1, 1, 5, 5, 0.5, 0.5])
        one = Network(length, toll, w, t, np.zeros((0, 0)))
        capacity = 1.0 + w[5] + w[6] * length
        X = np.asarray(one.problem(capacity).solve(_each(one.costs(w, t))).x)
        full = (_totals(X[:SAMPLES]) > capacity - 1e-7).any(axis=0)
        if full.sum() >= 2:
            return Network(length, toll, w, t, X)


def judged(one: Network, learn: Any) -> dict[str, float]:
    """How the learner's w does: errors of flows seen and unseen, and of capacities."""
    began = time.process_time()
    w = learn(one)
    seconds = time.process_time() - began
    capacity, truth = (1.0 + v[5] + v[6] * one.length for v in (w, one.w))
    found = np.asarray(one.problem(capacity).solve(_each(one.costs(w, one.t))).x)
    error = np.nan_to_num(((_totals(found) - _totals(one.X)) ** 2).sum(axis=1), nan=np.inf)
    return {
        "seen": float(error[:SAMPLES].mean()),
        "unseen": float((error[SAMPLES:] <= SOLVED).mean()),
        "limits": float(np.abs(capacity - truth).max()),
        "seconds": seconds,
    }


def ours(one: Network) -> np.ndarray:
    """Capacities from edges of the hull, then costs by projection."""
    t, X = one.t[:SAMPLES], one.X[:SAMPLES]
    best, kept = np.inf, np.zeros(7)
    for w6, w7 in _edges(one.length, _totals(X).max(axis=0)):
        sets = rv.OptimalitySet(one.problem(1.0 + w6 + w7 * one.length), X, MARGIN)
        loss, w = _descended(one, t, sets)
        if loss < best:
            best, kept = loss, np.array([*w, w6, w7])
    return kept


def _descended(one: Network, t: np.ndarray, sets: Any) -> tuple[float, np.ndarray]:
    """The least loss found and its w1 to w5."""

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        v = torch.as_tensor(w).requires_grad_()
        c = _for_demands(one, v, t)
        q = c.detach().numpy()
        away = q - rv.project(q, sets).point
        c.backward(torch.as_tensor(away / len(t)))
        assert v.grad is not None
        return 0.5 * float((away**2).sum()) / len(t), v.grad.numpy()

    rng, best, kept = np.random.default_rng(0), np.inf, np.zeros(5)
    bounds = [(0.0, None), (0.0, None), (None, None), (None, None), (None, None)]
    for _ in range(TRIES):
        start = rng.uniform([0, 0, -3, -5, -5], [1, 1, 3, 5, 5])
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=CLOSE)
        if found.fun < best:
            best, kept = float(found.fun), found.x
        if best <= FOUND:
            break
    return best, kept


def _for_demands(one: Network, w: torch.Tensor, t: np.ndarray) -> torch.Tensor:
    """(B, n) costs, those of arcs for every demand."""
    length, toll = torch.as_tensor(one.length), torch.as_tensor(one.toll)
    arcs = Network(length, toll, one.w, t, one.X).costs(w, torch.as_tensor(t), torch.sin)  # type: ignore
    return arcs.repeat(1, len(DEMANDS))


def _edges(length: np.ndarray, most: np.ndarray) -> list[tuple[float, float]]:
    """(w6, w7), neither negative, of the edges of the upper hull that most arcs lie on."""
    points = np.column_stack([length, most])
    found: dict[tuple[float, float], int] = {}
    for normal_x, normal_y, offset in ConvexHull(points).equations:
        w7, one = -normal_x / max(normal_y, 1e-9), -offset / max(normal_y, 1e-9)
        if normal_y > 1e-9 and one >= 1.0 - 1e-9 and w7 >= -1e-9:
            on = np.abs(one + w7 * length - most) < 1e-6
            found[round(one - 1.0, 9), round(w7, 9)] = int(on.sum())
    return [line for line, count in found.items() if count == max(found.values())]


def _rival(one: Network) -> np.ndarray:
    """All of w by gradients through the smoothed flows, from random starts; capacities from just
    above the largest flow."""
    A_eq, b_eq, A_ub = _constraints()
    n, t = A_ub.shape[1], one.t[:SAMPLES]
    layer = Layer(np.vstack([A_ub.toarray(), -np.eye(n)]), A_eq.toarray(), b_eq)
    length, zero = torch.as_tensor(one.length), torch.zeros(n, dtype=torch.float64)

    def guess(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        limits = torch.cat([1.0 + w[5] + w[6] * length, zero]).repeat(SAMPLES, 1)
        return _for_demands(one, w, t), limits

    rng, top = np.random.default_rng(0), float(_totals(one.X[:SAMPLES]).max()) - 1.0
    draws = [rng.uniform([0, 0, -3, -5, -5], [1, 1, 3, 5, 5]) for _ in range(STARTS)]
    starts = [np.array([*draw, top, 0.0]) for draw in draws]
    return descend(layer, _totals(one.X[:SAMPLES]), guess, starts, A_ub.toarray().T)


def _each(arcs: np.ndarray) -> np.ndarray:
    return np.tile(arcs, (1, len(DEMANDS)))


def _totals(X: np.ndarray) -> np.ndarray:
    """(B, 19) flows of arcs, over all demands."""
    return X.reshape(len(X), len(DEMANDS), len(ARCS)).sum(axis=1)


def _constraints() -> tuple[Any, np.ndarray, Any]:
    """What is known: flows leave the origin of each demand and arrive; and which share an arc."""
    ends = np.array([[int(node) - 1 for node in arc.split("-")] for arc in ARCS])
    conserve = np.zeros((NODES, len(ARCS)))
    conserve[ends[:, 0], np.arange(len(ARCS))] = 1.0
    conserve[ends[:, 1], np.arange(len(ARCS))] = -1.0
    b_eq = np.zeros((len(DEMANDS), NODES))
    for k, (origin, goal) in enumerate(DEMANDS):
        b_eq[k, origin - 1], b_eq[k, goal - 1] = 1.0, -1.0
    A_eq = sparse.csr_array(np.kron(np.eye(len(DEMANDS)), conserve[1:]))
    A_ub = sparse.csr_array(np.tile(np.eye(len(ARCS)), (1, len(DEMANDS))))
    return A_eq, b_eq[:, 1:].ravel(), A_ub
