"""The shortest cost that explains a decision: exactly, bounded by the basis, and what follows for
Gamma.

Letters: B samples, n cost entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from .._common.arrays import to_float64
from .._common.checks import check_number
from .._common.words import shapes
from ..errors import InputError, ShapeError
from ..optimality.sets import EntryState, OptimalitySet
from ..projection import project


def delta(sets: OptimalitySet) -> np.ndarray:
    """(B,): the smallest norm of a cost that explains each decision, exactly: |P(0)|.

    Parameters
    ----------
    sets : OptimalitySet
        Of plain costs of a LinearProgram.

    Returns
    -------
    (B,) array
        0 only if the margin is 0 or the decision is at no bound. NaN where the projection is not
        certain; none has been seen.
    """
    _check_sets(sets)
    p = project(np.zeros((len(sets), sets.problem.n_variables)), sets)
    return np.where(p.solved, p.distance, np.nan)


class LemmaStatus(IntEnum):
    """Whether a decision gives the lemma ground to stand on; `sentence` says why not."""

    HOLDS = 0
    DEGENERATE = 1
    NOT_A_VERTEX = 2

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    LemmaStatus.HOLDS: "The decision is a nondegenerate vertex: its basis is unique.",
    LemmaStatus.DEGENERATE: "The decision is degenerate: fewer entries are free than rows bind, "
    "so several bases, and many multipliers, go with one cost. `delta` is exact all the same.",
    LemmaStatus.NOT_A_VERTEX: "The decision is no vertex: the columns of its free entries depend "
    "on one another, so there is no basis. `delta` is exact all the same.",
}


@dataclass(frozen=True, eq=False, repr=False)
class LemmaBound:
    """Lower bounds on `delta` by the margin through the basis."""

    value: np.ndarray
    """(B,) NaN where the lemma has no ground."""
    status: np.ndarray
    """(B,) int8 codes of LemmaStatus; `LemmaStatus(code).sentence` gives the reason."""

    def __repr__(self) -> str:
        return shapes(self)

    @property
    def reason(self) -> np.ndarray:
        """(B,) the sentences."""
        return np.array([LemmaStatus(int(code)).sentence for code in self.status], dtype=object)


def delta_lemma(sets: OptimalitySet) -> LemmaBound:
    """A lower bound on `delta` from the basis of each decision, without any projection.

    Standard form first: a nondegenerate vertex of A x = b, x >= 0 has basis B (columns of the
    positive entries) and rest N. s_B = 0 in c = A^T v + s gives v = B^-T c_B, hence

        s_N = c_N - N^T B^-T c_B = M c,      M = [-(B^-1 N)^T, I],

    and the margin asks s_N >= margin in each of its k entries. From s_j = M_j c <= |M_j| |c|
    and from sqrt(k) margin <= |M c| <= sigma_max(M) |c|,

        |c| >= margin max( max_j 1/|M_j|,  sqrt(k)/sigma_max(M) ).

    In general form an entry at its upper bound has its row of M negated, a fixed entry has none,
    and a binding row adds a row of its own: its slack is not in the basis, costs nothing, and its
    reduced cost mu_i is the i-th entry of -B^-T c_B. Dependent equality rows (a flow problem has
    one) are left out of the count.

    All rests on the basis being unique. A path, a matching or an assignment is nearly always
    degenerate; `status` says so and the value is NaN. One dense decomposition for each instance.

    Parameters
    ----------
    sets : OptimalitySet
        Of plain costs of a LinearProgram.

    Returns
    -------
    LemmaBound
    """
    _check_sets(sets)
    ranks = _equality_ranks(sets)
    results = [_lemma_of(sets, b, int(ranks[b])) for b in range(len(sets))]
    return LemmaBound(
        np.array([value for value, _ in results], dtype=np.float64),
        np.array([status for _, status in results], dtype=np.int8),
    )


def gamma_bound(
    h: Any, sets: OptimalitySet, *, deltas: np.ndarray | None = None, diameter: float | None = None
) -> Any:
    """sqrt(2 n h) / delta: an upper bound on Gamma for decisions in [0, 1].

    x(c) is optimal under c, so with p = P(c)

        Gamma = <p, x(c) - x*>/|p| <= <p - c, x(c) - x*>/|p| <= dist |x(c) - x*| / delta,

    and |x(c) - x*| <= sqrt(n) in [0, 1]^n.

    Parameters
    ----------
    h : float or (B,) array
        As one number, the mean of 1/2 dist^2, it bounds the mean of Gamma with the smallest
        delta; as (B,) numbers 1/2 dist_i^2 it bounds each.
    sets : OptimalitySet
    deltas : (B,) array, optional
        Those of `delta(sets)` if they are at hand.
    diameter : float, optional
        The largest |x - x'| between feasible decisions, which takes the place of sqrt(n). Needed
        where observed decisions leave [0, 1]; that the predicted ones stay inside too is for the
        problem to see to.

    Returns
    -------
    float or (B,) array

    Raises
    ------
    InputError
        If observed decisions leave [0, 1] and there is no `diameter`.
    """
    smallest = delta(sets) if deltas is None else to_float64(deltas, "deltas")
    if smallest.shape != (len(sets),):
        raise ShapeError(
            f"`deltas` must be ({len(sets)},), one for each set; got {smallest.shape}."
        )
    if diameter is None:
        _refuse_outside_unit_box(sets)
    else:
        check_number(diameter, "diameter")
    width = np.sqrt(sets.problem.n_variables) if diameter is None else diameter
    value = to_float64(h, "h")
    if not (value >= 0).all():
        raise InputError(f"`h` must be at least 0; got {value.min()}.")
    if value.ndim == 0:
        smallest = smallest.min(initial=np.inf)
    elif value.shape != smallest.shape:
        raise ShapeError(
            f"`h` must be one number or ({len(sets)},), one for each set; got {value.shape}."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = width * np.sqrt(2.0 * value) / smallest
    bound = np.where(value == 0, 0.0, bound)
    return float(bound) if value.ndim == 0 else bound


def _check_sets(sets: OptimalitySet) -> None:
    """Refuse all but sets of plain costs of a linear program."""
    if not isinstance(sets, OptimalitySet) or not sets.is_plain:
        got = sets if isinstance(sets, OptimalitySet) else type(sets).__name__
        raise InputError(
            "The theory is of linear programs with a cost for each entry: `sets` must be an "
            f"OptimalitySet of a LinearProgram, without a form; got {got}."
        )


def outside_unit_box(sets: OptimalitySet) -> tuple[int, int] | None:
    """The first entry of a decision outside [0, 1] by more than the sets' tolerance."""
    X, tol = sets.decisions, 2.0 * sets.tol
    outside = np.argwhere((X < -tol) | (X > 1.0 + tol))
    return (int(outside[0][0]), int(outside[0][1])) if len(outside) else None


def _refuse_outside_unit_box(sets: OptimalitySet) -> None:
    place = outside_unit_box(sets)
    if place is not None:
        raise InputError(
            f"The bound sqrt(2 n h)/delta is for decisions in [0, 1]; decision {place[0]} has "
            f"{sets.decisions[place]:.6g} in entry {place[1]}. Give `diameter`, the largest "
            "distance between two feasible decisions, instead."
        )


def _equality_ranks(sets: OptimalitySet) -> np.ndarray:
    """(B,): how many equality rows are independent."""
    rows = sets.rows.eq_rows
    if rows.shape[0] == 0:
        return np.zeros(len(sets), int)
    count = len(sets) if rows.per_instance else 1
    ranks = [np.linalg.matrix_rank(rows.matrix(i).toarray()) for i in range(count)]
    return np.broadcast_to(np.array(ranks, int), (len(sets),)) if count else np.zeros(0, int)


def _lemma_of(sets: OptimalitySet, b: int, equality_rank: int) -> tuple[float, LemmaStatus]:
    """The bound of one decision, or the reason why there is none."""
    one = sets.rows[np.array([b])]
    state, active = sets.entry_state[b], sets.row_active[b]
    E = np.vstack([one.eq_rows.matrix(0).toarray(), one.ub_rows.matrix(0).toarray()[active]])
    free = state == EntryState.FREE
    basis = E[:, free]
    if np.linalg.matrix_rank(basis) < free.sum() if basis.size else free.any():
        return np.nan, LemmaStatus.NOT_A_VERTEX
    if free.sum() < equality_rank + active.sum():
        return np.nan, LemmaStatus.DEGENERATE
    M = _reduced_cost_matrix(E, free, state, int(active.sum()))
    if len(M) == 0:
        return 0.0, LemmaStatus.HOLDS
    lengths = np.linalg.norm(M, axis=1)
    largest = np.linalg.norm(M, 2)
    return sets.margins[b] * max(1.0 / lengths.min(), np.sqrt(len(M)) / largest), LemmaStatus.HOLDS


def _reduced_cost_matrix(
    E: np.ndarray, free: np.ndarray, state: np.ndarray, n_active: int
) -> np.ndarray:
    """(k, n): M with M c the signed reduced costs of entries at a bound and of binding rows."""
    multipliers = np.zeros((len(E), len(free)))  # c -> y with E_F^T y = c_F
    multipliers[:, free] = np.linalg.pinv(E[:, free].T) if free.any() else 0.0
    sign = np.select([state == EntryState.AT_LOWER, state == EntryState.AT_UPPER], [1.0, -1.0], 0.0)
    reduced = sign[:, None] * (np.eye(len(free)) - E.T @ multipliers)
    # y = (v, -mu): the multipliers of binding rows, which stand last in E.
    return np.vstack([reduced[sign != 0], -multipliers[len(E) - n_active :]])
