"""Which directions of cost the decisions of a data set identify, and which they cannot.

With shared matrices, the costs that explain every decision at once are the cone of the constraints
that all of them reach: the normal cone at the mean decision. Whatever is added along its span
changes no verdict about a decision, once enough of it is there:

    equality rows, entries without a choice      lines: any amount, of either sign
    rows of A_ub that every decision reaches     rays: any amount that makes the row matter more
    entries at the same bound in every decision  rays: any cost beyond, on the side of the bound

So costs are known modulo this span. Of costs that differ by an element of it one is chosen as the
canonical one: that orthogonal to it, the shortest. Letters: B decisions, n entries, d features,
m rows, r directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import qr

from .._common.rows import Rows
from .._common.words import shapes
from ..errors import InputError
from .sets import EntryState, OptimalitySet

LARGEST = 4_000
"""Entries with a choice up to which directions are computed."""
RANK = 1e-9
"""Share of the largest row below which a row follows from others."""
LITTLE = 1e-6
"""Share of a coefficient below which what is left of it is rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Identified:
    """The directions of cost that no decision identifies; only the rest can be learned."""

    n: int
    """Entries of a cost."""
    moving: np.ndarray
    """(k,) entries that are not directions by themselves."""
    basis: np.ndarray
    """(k, r) orthonormal: the directions among the entries in `moving`."""
    n_lines: int
    """Dimension of the directions that are free both ways."""
    fixed: np.ndarray
    """Entries whose bounds leave no choice."""
    still: np.ndarray
    """Entries at the same bound in every decision: known from one side at most."""
    reached: np.ndarray
    """Rows of A_ub that every decision reaches."""
    features: np.ndarray
    """(d,) whether each feature, the others given, has an identifiable effect; empty without
    contexts."""

    def __repr__(self) -> str:
        return shapes(self)

    @property
    def n_unknown(self) -> int:
        """Dimension of all directions that no decision identifies."""
        return self.n - len(self.moving) + self.basis.shape[1]

    @property
    def n_one_sided(self) -> int:
        """Dimension that limits and bounds reached in every decision add to the lines."""
        return self.n_unknown - self.n_lines

    @property
    def n_identified(self) -> int:
        """Dimension of what decisions identify."""
        return self.n - self.n_unknown

    def canonical(self, costs: Any) -> np.ndarray:
        """Costs or coefficients less their part along the directions that no decision identifies:
        the shortest of all that decide alike.

        Parameters
        ----------
        costs : (n,) or (n, k) array
            A row for each entry.

        Returns
        -------
        (n,) or (n, k) array
        """
        values = np.asarray(costs, float)
        if values.shape[:1] != (self.n,):
            raise InputError(
                f"`costs` must be ({self.n},) or ({self.n}, k), a row for each entry; got shape "
                f"{values.shape}."
            )
        result, part = np.zeros_like(values), values[self.moving]
        result[self.moving] = part - self.basis @ (self.basis.T @ part)
        return result

    @cached_property
    def entries(self) -> np.ndarray:
        """(n,) whether anything of an entry is left in canonical costs."""
        left = np.zeros(self.n)
        left[self.moving] = 1.0 - (self.basis**2).sum(axis=1)
        return left > LITTLE


def identified(sets: OptimalitySet, contexts: Any = None, *, exceptions: int = 0) -> Identified:
    """What decisions identify of costs, and which features have separable effects.

    Parameters
    ----------
    sets : OptimalitySet
        Of plain costs of a LinearProgram. Where matrices differ by instance, only rows that are
        the same in all are looked at.
    contexts : (B, d) array, optional
        Features of each decision.
    exceptions : int
        A row or bound counts as reached in every decision if at most so many do not reach it.

    Returns
    -------
    Identified

    Raises
    ------
    InputError
        For other sets, and for more than 4,000 entries whose bounds leave a choice.
    """
    if not (isinstance(sets, OptimalitySet) and sets.is_plain):
        raise InputError(
            "What decisions identify is known for plain costs of a LinearProgram: give "
            "OptimalitySet(problem, decisions) without `form` or `soft`."
        )
    fixed, still = _unmoved(sets.entry_state, exceptions)
    moving = np.flatnonzero(~(fixed | still))
    free = np.flatnonzero(~fixed)
    if len(free) > LARGEST:
        raise InputError(
            f"Directions of cost are computed for up to {LARGEST:,} entries; got {len(free):,}."
        )
    problem = sets.rows
    reached = (~sets.row_active).sum(axis=0) <= exceptions
    reached &= _common(problem.ub_rows)
    lines = problem.eq_rows.matrix()[np.flatnonzero(_common(problem.eq_rows))]
    rays = problem.ub_rows.matrix()[np.flatnonzero(reached)]
    basis = _span(sparse.vstack([lines, rays]).tocsc()[:, moving].toarray())
    return Identified(
        n=problem.n_variables,
        moving=moving,
        basis=basis,
        n_lines=int(fixed.sum()) + _span(lines.tocsc()[:, free].toarray()).shape[1],
        fixed=np.flatnonzero(fixed),
        still=np.flatnonzero(still),
        reached=np.flatnonzero(reached),
        features=np.zeros(0, bool) if contexts is None else told_features(contexts),
    )


def told_features(contexts: Any) -> np.ndarray:
    """(d,) whether each of the features (B, d) is neither constant nor made of the others."""
    Z = np.asarray(contexts, float)
    Z = Z - Z.mean(axis=0)
    size = np.linalg.norm(Z, axis=0)
    live = size > 1e-12 * np.sqrt(max(len(Z), 1)) * (1.0 + np.abs(contexts).max(axis=0, initial=0))
    identifiable = np.zeros(Z.shape[1], bool)
    if live.any():
        _, s, vt = np.linalg.svd(Z[:, live] / size[live], full_matrices=True)
        s = np.concatenate([s, np.zeros(len(vt) - len(s))])
        identifiable[live] = np.linalg.norm(vt[s <= 1e-8 * s.max()], axis=0) <= LITTLE
    return identifiable


def _unmoved(state: np.ndarray, exceptions: int) -> tuple[np.ndarray, np.ndarray]:
    """(n,) entries without a choice, and entries at one bound, in all but some decisions."""
    size = len(state)
    fixed, lower, upper = (
        (state == kind).sum(axis=0)
        for kind in (EntryState.FIXED, EntryState.AT_LOWER, EntryState.AT_UPPER)
    )
    without = fixed == size
    return without, ~without & (fixed + np.maximum(lower, upper) >= size - exceptions)


def _common(rows: Rows) -> np.ndarray:
    """(m,) whether each row is the same in all instances, but for its length."""
    if not (rows.per_instance and len(rows.data)):
        return np.ones(rows.shape[0], bool)
    line = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    size = np.where(rows.largest > 0, rows.largest, 1.0)[:, line]
    differs = np.ptp(rows.data / size, axis=0) > RANK
    return np.bincount(line, differs, minlength=rows.shape[0]) == 0


def _span(rows: np.ndarray) -> np.ndarray:
    """(k, r) orthonormal basis of the span of rows (m, k), whatever their scales."""
    size = np.linalg.norm(rows, axis=1)
    rows = rows[size > 0] / size[size > 0, None]
    if not rows.size:
        return np.zeros((rows.shape[1], 0))
    found: Any = qr(rows.T, mode="economic", pivoting=True, check_finite=False)
    Q, R, _ = found
    return Q[:, np.abs(np.diag(R)) > RANK]
