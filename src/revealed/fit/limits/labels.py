"""Which unknown limits can be active at a decision: the vertex test.

A solver's decision is a vertex: constraints that hold with equality there have rank n. Where known
ones have less, unknown limits must make up for it. With one unknown limit this tells whether it is
active, with several how many are, and which sets of them would do. Letters: B decisions, n entries,
K unknown limits, C guesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ...optimality.active_set import EntryState
from ...optimality.limit_sets import UnknownLimitSet

SMALL = 1e-7
"""Relative: singular values and determinants below this are 0."""


@dataclass(frozen=True, eq=False)
class Guesses:
    """For each decision the sets of unknown limits that can be active there."""

    active: np.ndarray
    """(B, C, K) bool; decisions with fewer guesses repeat their first."""
    count: np.ndarray
    """(B,) how many are different."""
    missing: np.ndarray
    """(B,) how many unknown limits must be active for the decision to be a vertex."""
    vertex: np.ndarray
    """(B,) whether known and unknown limits can make it one; if not, every set is a guess."""

    @property
    def sure(self) -> np.ndarray:
        """(B,) decisions with one guess."""
        return self.count == 1

    def take(self, index: np.ndarray) -> Guesses:
        """Those of the chosen decisions."""
        return Guesses(
            self.active[index], self.count[index], self.missing[index], self.vertex[index]
        )


def find_guesses(sets: UnknownLimitSet) -> Guesses:
    """The vertex test for each decision."""
    K, base = len(sets.unknown), sets.base
    normals = sets.unknown.normals(sets.problem)
    pattern = np.hstack([base.entry_state, base.row_active])
    own = sets.problem.eq_rows.per_instance or sets.problem.ub_rows.per_instance
    if own:
        first = which = np.arange(len(sets))
    else:
        _, first, which = np.unique(pattern, axis=0, return_index=True, return_inverse=True)
    found = [_guesses_of(sets, int(b), normals if normals.ndim == 2 else normals[b]) for b in first]
    widest = max((len(guesses) for guesses, _, _ in found), default=1)
    active = np.zeros((len(found), widest, K), bool)
    for i, (guesses, _, _) in enumerate(found):
        active[i] = guesses[0]
        active[i, : len(guesses)] = guesses
    which = which.ravel()
    counts = np.array([len(guesses) for guesses, _, _ in found], int)
    missing = np.array([lack for _, lack, _ in found], int)
    vertex = np.array([is_vertex for _, _, is_vertex in found], bool)
    return Guesses(active[which], counts[which], missing[which], vertex[which])


def _guesses_of(sets: UnknownLimitSet, b: int, normals: np.ndarray) -> tuple[np.ndarray, int, bool]:
    """Guesses (C, K) for decision b, how many limits must be active, and whether that makes a
    vertex."""
    K, free = len(normals), sets.base.entry_state[b] == EntryState.FREE
    if not free.any():
        return np.zeros((1, K), bool), 0, True
    at = b if sets.problem.eq_rows.per_instance or sets.problem.ub_rows.per_instance else 0
    eq = sets.problem.eq_rows.matrix(at).toarray()[:, free]
    ub = sets.problem.ub_rows.matrix(at).toarray()[sets.base.row_active[b]][:, free]
    space = _null_space(np.vstack([eq, ub]))
    lack = space.shape[1]
    if lack == 0:
        return np.zeros((1, K), bool), 0, True
    sizes = np.linalg.norm(normals, axis=1)
    moves = (normals[:, free] @ space) / np.where(sizes > 0, sizes, 1.0)[:, None]
    found = [A for A in combinations(range(K), lack) if _spans(moves[list(A)])]
    if not found:
        return (np.arange(2**K)[:, None] >> np.arange(K) & 1).astype(bool), lack, False
    active = np.zeros((len(found), K), bool)
    for row, A in zip(active, found, strict=True):
        row[list(A)] = True
    return active, lack, True


def _null_space(matrix: np.ndarray) -> np.ndarray:
    if not len(matrix):
        return np.eye(matrix.shape[1])
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    _, sizes, V = np.linalg.svd(matrix / np.where(lengths > 0, lengths, 1.0))
    return V[int((sizes > SMALL).sum()) :].T


def _spans(moves: np.ndarray) -> bool:
    return bool(np.linalg.svd(moves, compute_uv=False)[-1] > SMALL)
