"""The two quadratic programs that a general solver can be given for one projection.

Letters: B batch, n cost entries, m_eq and m_ub rows, k = m_eq + m_ub multipliers w = (v, mu).
The projection is min 1/2 |c - q|^2 with c = A_eq^T v - A_ub^T mu + s, mu and s bounded by state.

Both forms are bounds away from being the same for every instance, so a solver that keeps its
symbolic work needs to see new vectors only. A third form, with c, w and s all as variables, is
what one writes first; OSQP needs 1.5 times as long for it as for the compact one (12x12 grid,
equal accuracy), so it is kept for the paper's route alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from revealed.optimality.sets import EntryState

from .cases import Case


@dataclass(frozen=True)
class DualForm:
    """In the step r = c - q alone: its Hessian is the identity, and v is the row multiplier.

    min 1/2 |r|^2 + <linear, r>   s.t.  A_eq r = 0,  A_ub r <= row_upper,  lower <= r <= upper
    """

    linear: np.ndarray
    """(B, n), and `lower`, `upper` likewise."""
    lower: np.ndarray
    upper: np.ndarray
    row_upper: np.ndarray
    """(B, m_ub): 0 for an active row, inf for an inactive one."""


@dataclass(frozen=True)
class CompactForm:
    """In the step r and the multipliers w: the rows say that the reduced cost fits its state.

    min 1/2 |r|^2   s.t.  row_lower <= r - A_eq^T v + A_ub^T mu <= row_upper,  w_lower <= w,
                           w <= w_upper
    """

    matrix: sparse.csc_matrix
    """(n, n + k): [I, -A_eq^T, A_ub^T]."""
    row_lower: np.ndarray
    """(B, n), and `row_upper` likewise."""
    row_upper: np.ndarray
    w_lower: np.ndarray
    """(B, k), and `w_upper` likewise: free for v, at least the margin for an active mu."""
    w_upper: np.ndarray


def dual_form(case: Case, costs: np.ndarray | None = None) -> DualForm:
    """The dual form of a case, for its own costs or for others (B, n)."""
    costs = case.costs if costs is None else costs
    state, active = case.entry_state, case.row_active
    at_lower, at_upper = state == EntryState.AT_LOWER, state == EntryState.AT_UPPER
    fixed = state == EntryState.FIXED
    toward = at_lower.astype(float) - at_upper - active.astype(float) @ case.A_ub
    return DualForm(
        linear=np.ascontiguousarray(costs - case.margin * toward),
        lower=np.where(at_lower | fixed, 0.0, -np.inf),
        upper=np.where(at_upper | fixed, 0.0, np.inf),
        row_upper=np.where(active, 0.0, np.inf),
    )


def compact_form(case: Case, costs: np.ndarray | None = None) -> CompactForm:
    """The compact form of a case, for its own costs or for others (B, n)."""
    costs = case.costs if costs is None else costs
    low, high = reduced_cost_bounds(case.entry_state, case.margin)
    free = np.full((len(costs), case.m_eq), np.inf)
    blocks = [sparse.eye_array(case.n), -case.A_eq.T, case.A_ub.T]
    return CompactForm(
        matrix=sparse.csc_matrix(sparse.hstack(blocks)),
        row_lower=low - costs,
        row_upper=high - costs,
        w_lower=np.hstack([-free, np.where(case.row_active, case.margin, 0.0)]),
        w_upper=np.hstack([free, np.where(case.row_active, np.inf, 0.0)]),
    )


def reduced_cost_bounds(state: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of s for every entry, in the shape of `state`."""
    low = np.full(state.shape, -np.inf)
    high = np.full(state.shape, np.inf)
    low[state == EntryState.FREE] = high[state == EntryState.FREE] = 0.0
    low[state == EntryState.AT_LOWER] = margin
    high[state == EntryState.AT_UPPER] = -margin
    return low, high


def hessian(n: int, n_multipliers: int = 0) -> sparse.csc_matrix:
    """The identity on r and nothing, not even stored zeros, on the multipliers."""
    ones = np.ones(n)
    size = n + n_multipliers
    return sparse.csc_matrix((ones, (np.arange(n), np.arange(n))), shape=(size, size))
