"""The kernel between limits: nearest parameters in the intersection of rows with boxes and cones.

With L the parameters whose gradient fits rows and signs, and K those within the limits, the answer
is w = P_L(q + T^T f) for forces f of the limits that are a fixed point of

    f  ->  (1/s) (P_K(v) - v),   v = T w + t - s f,   s = |T|^2,

the gradient step of the dual problem, in which every evaluation is one call of the kernel for the
whole batch. Anderson's acceleration, over the last few steps of each instance by itself, makes some
ten of them reach twelve digits (18 projections of (c, Q) with Q semidefinite: 7 to 18 evaluations,
where interior points stalled at residuals of up to 6e-9). What does not settle, as where
the intersection is empty, is left to the conic solver. Letters: B instances, k rows of T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..constants import SHORT
from ..result import Projection
from .conditions import NOTHING
from .limits import Limits

MOST_ROUNDS = 80
MEMORY = 8
"""Steps that Anderson's acceleration looks back."""
EXACT = 1e-12
"""What each call of the kernel is asked for: its error is what the rounds cannot get below."""
GOOD = 1e-11
"""A residual with which an instance is done."""
SETTLED = 1e-13
"""A change of the forces this small, relative to the parameters, is rounding."""
WORSE = 10.0
"""A change this much larger than the smallest so far makes the acceleration start over."""

Nearest = tuple[np.ndarray, np.ndarray, Projection]
Kernel = Callable[[np.ndarray, np.ndarray, "np.ndarray | None"], Nearest]
"""Targets (B', p), which instances they are, multipliers to start from -> nearest points; what soft
conditions cost there (B',), 0 for hard ones; and the projection behind them."""


class Settled(NamedTuple):
    """The result."""

    point: np.ndarray
    """(B, p)"""
    distance: np.ndarray
    """(B,)"""
    residual: np.ndarray
    """(B,)"""
    multipliers: np.ndarray
    rounds: np.ndarray
    """(B,) calls of the kernel."""


def between_limits(
    q: np.ndarray, limits: Limits, kernel: Kernel, size: np.ndarray, start: np.ndarray
) -> Settled:
    """Nearest parameters to q (B, p) in rows and limits; `size` (B,) is what moves are short
    against, `start` multipliers for the kernel."""
    count = len(q)
    begin = limits.values(q)
    forces = limits.step * (limits.onto(begin) - begin)  # so that the first target obeys already
    point, multipliers = q.copy(), start.copy()
    distance, residual = np.full(count, np.inf), np.full(count, np.inf)
    rounds = np.zeros(count, np.int64)
    histories = [_History() for _ in range(count)]
    live = np.arange(count)
    for _ in range(MOST_ROUNDS):
        if not live.size:
            break
        own = forces[live]
        target = q[live] + limits.adjoint(own)
        w, miss, near = kernel(target, live, multipliers[live])
        moved = np.sqrt(((w - q[live]) ** 2).sum(axis=1) + miss)
        values = limits.values(w) - own / limits.step
        after = limits.step * (limits.onto(values) - values)
        found = _residual(w, moved, target, near, limits, own, size[live])
        better = found < residual[live]
        point[live[better]], residual[live[better]] = w[better], found[better]
        distance[live[better]] = moved[better]
        multipliers[live], rounds[live] = near.multipliers, rounds[live] + 1
        change = np.linalg.norm(after - own, axis=1)
        done = (change <= SETTLED * np.maximum(size[live], 1e-300)) | (found <= GOOD)
        for i, b in enumerate(live):
            forces[b] = histories[b].next(own[i], after[i])
        live = live[~done]
    return Settled(point, distance, residual, multipliers, rounds)


def _residual(
    w: np.ndarray,
    moved: np.ndarray,
    target: np.ndarray,
    near: Projection,
    limits: Limits,
    forces: np.ndarray,
    size: np.ndarray,
) -> np.ndarray:
    """(B,), relative and 0 at the answer: the kernel's own, and how far T w + t is from where its
    forces push it, both against the length of the move."""
    denominator = np.maximum(np.maximum(moved, SHORT * size), NOTHING)
    inner = np.maximum(near.distance, SHORT * np.linalg.norm(target, axis=1)) / denominator
    values = limits.values(w)
    natural = np.abs(limits.onto(values - forces) - values).max(axis=1, initial=0.0)
    return np.maximum(near.residual * np.maximum(inner, inner**2), natural / denominator)


class _History:
    """The last steps of one instance, for Anderson's acceleration."""

    def __init__(self) -> None:
        self._changes: list[np.ndarray] = []
        self._images: list[np.ndarray] = []
        self._least = np.inf

    def next(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Where to evaluate next: the combination of past steps that changes least."""
        change = after - before
        length = float(np.linalg.norm(change))
        if length > WORSE * self._least:
            self._changes, self._images = [], []
        self._least = min(self._least, length)
        self._changes = [*self._changes, change][-MEMORY:]
        self._images = [*self._images, after][-MEMORY:]
        if len(self._changes) == 1:
            return after
        steps = np.diff(np.stack(self._changes), axis=0)
        lengths = np.sqrt(np.einsum("ij,ij->i", steps, steps))
        steps = steps / np.where(lengths > 0, lengths, 1.0)[:, None]
        # Normal equations: a few products of short and long, where a decomposition of the long
        # matrix would wake every thread of the linear algebra for each instance.
        gram, right = np.einsum("ik,jk->ij", steps, steps), np.einsum("ik,k->i", steps, change)
        share = np.linalg.lstsq(gram, right, rcond=1e-13)[0] / np.where(lengths > 0, lengths, 1.0)
        return after - share @ np.diff(np.stack(self._images), axis=0)
