"""Proofs that a linear program has no best decision, checked in the problem's own numbers.

    A x = b for the first rows,  A x <= b for the others,  lb <= x <= ub

*No decision at all* (Farkas): multipliers w of the rows, at least 0 for inequalities, add the rows
up to one inequality g x <= w b with g = A^T w, and the least value of g x over the bounds is above
w b. *No best one*: a ray r with A r = 0 or <= 0, in no direction in which a bound ends, along which
the cost falls.

Where g_j or A_i r must be 0 exactly, floating-point numbers seldom are. They count as 0 if a change
in the last digit of the entries that were added up would make them so. A claim therefore says: the
problem is infeasible (or unbounded), or changes of its coefficients by a few units in their last
place make it so. For infeasibility, right-hand sides and bounds may also change by `CLEAR` of their
own size and by `DUST` of the size that x has (so that what rounding has left of 0 proves nothing),
and no decision of up to `REACH` times the numbers in the contradiction is overlooked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsmr

from ..problems.linear import LinearProgram, unit_of
from .units import size_in_box

ROUNDING = float(np.finfo(np.float64).eps)
CLEAR = 1e-9
"""What the rows must contradict each other by, as a share of the terms that are added up."""
DUST = 1e-12
"""Right-hand sides this small, beside the terms of a row for an x of the size that the constraints
ask for, may be rounding, and may be otherwise. With 1e-13 a program whose decision misses a row by
2.9e-13 of a unit was called infeasible: 0.25 x = 7.3e-14 beside an x fixed at 0, in units of which
other rows allow 5,000."""
REACH = 1e8
"""How many times larger than the data a decision may be before rounding hides it."""
FALL = 1e-7
"""What the cost must fall by along a ray, as a share of the terms that are added up."""
DENSE = 300_000
"""Entries of a matrix up to which least squares are solved densely."""
ROUNDS = 4


class Polyhedron(NamedTuple):
    """The constraints of one instance."""

    A: Any
    """(m, n) csr_array, equalities first."""
    b: np.ndarray
    n_eq: int
    lb: np.ndarray
    ub: np.ndarray
    unit: float = 1.0
    """What is small against this is nothing, in decisions (`problem.unit_of`)."""
    columns: np.ndarray | None = None
    """(n,) sizes of the variables that make the entries of A alike, if they are known."""

    @property
    def sizes(self) -> np.ndarray:
        return np.ones(len(self.lb)) if self.columns is None else self.columns

    @classmethod
    def of(cls, problem: LinearProgram, instance: int) -> Polyhedron:
        b_eq, b_ub, lb, ub = (
            part[instance] if part.ndim == 2 else part
            for part in (problem.b_eq, problem.b_ub, problem.lb, problem.ub)
        )
        rows = (problem.eq_rows.matrix(instance), problem.ub_rows.matrix(instance))
        A = sparse.csr_array(sparse.vstack(rows, format="csr"))
        one = problem[np.array([instance])]
        unit = float(unit_of(one, np.zeros((1, problem.n_variables)))[0, 0])
        return cls(A, np.concatenate([b_eq, b_ub]), len(b_eq), lb, ub, unit)


def contradiction(at: Polyhedron, w: np.ndarray) -> float:
    """How clearly multipliers prove that no x obeys the constraints, as a share of the terms added
    up; 0 where they do not. What is not 0 holds as the head of this file says."""
    if not np.isfinite(w).all():
        return 0.0
    w = _signed(at, w)
    best = 0.0
    for _ in range(ROUNDS):
        g, rounding = _sums(at.A.T, w)
        best = max(best, _clearness(at, w, g, rounding))
        wrong = _unsupported(at, g) & (np.abs(g) > 0)
        if best > 0 or not wrong.any():
            break
        w = _signed(at, _into_kernel(at.A.T[wrong], w))
    return best


def is_ray(at: Polyhedron, cost: np.ndarray, r: np.ndarray, flat: Any = None) -> bool:
    """Whether the cost is unbounded along r, or along a direction next to it. `flat` is a matrix
    whose product with r must be 0 as well (the curvature of a quadratic objective)."""
    if not np.isfinite(r).all():
        return False
    still = at if flat is None else _with_rows(at, flat)
    r = beyond_rounding(still, cost, _inside(at, r))
    for _ in range(ROUNDS):
        moved, rounding = _sums(still.A, r)
        over = np.where(np.arange(len(moved)) < still.n_eq, np.abs(moved), moved)
        over[np.isposinf(still.b)] = 0.0  # a row without a limit ends nothing
        falls = float(cost @ r) < -FALL * float(np.abs(cost) @ np.abs(r))
        if not falls or (over <= rounding).all():
            return falls
        ends = over > -np.sqrt(ROUNDING) * (abs(still.A) @ np.abs(r))
        r = beyond_rounding(still, cost, _inside(at, _into_kernel(still.A[ends], r)))
    return False


def beyond_rounding(at: Polyhedron, cost: np.ndarray, r: np.ndarray) -> np.ndarray:
    """r in the parts of the problem in which the cost falls by more than rounding; 0 elsewhere.

    The entries of a projected cost were rounded beside the largest one, so a fall of that size
    proves nothing. A part is what rows link: the costs of another program that merely stands beside
    this one were rounded by themselves, and the part of a ray in each of them is a ray.
    """
    part, size = _parts(at.A), at.sizes
    count = int(part.max(initial=-1)) + 1
    falls = np.bincount(part, cost * r, minlength=count)
    largest_cost, largest_move = np.zeros(count), np.zeros(count)
    np.maximum.at(largest_cost, part, np.abs(cost * size))
    np.maximum.at(largest_move, part, np.abs(r / size))
    clear = falls < -16.0 * ROUNDING * largest_cost * largest_move
    return np.where(clear[part], r, 0.0)


def _parts(A: Any) -> np.ndarray:
    """(n,): the number of the part of the problem to which each entry belongs; entries that share a
    row belong to one part."""
    m, n = A.shape
    rows: Any = sparse.csr_array(A, copy=True)
    rows.eliminate_zeros()
    owner = np.repeat(np.arange(m), np.diff(rows.indptr))
    links = sparse.coo_array((np.ones(rows.nnz), (owner, m + rows.indices)), (m + n, m + n))
    return connected_components(links, directed=False)[1][m:]


def is_bounded(at: Polyhedron) -> bool:
    """Whether bounds, and rows that turn bounds of some entries into bounds of others, end every
    direction. False where that is not plain to see."""
    low, high = np.isfinite(at.lb), np.isfinite(at.ub)
    positive: Any = sparse.csr_array(at.A > 0).astype(np.int64)
    negative: Any = sparse.csr_array(at.A < 0).astype(np.int64)
    equal, ends = np.arange(len(at.b)) < at.n_eq, np.isfinite(at.b)
    for _ in range(ROUNDS):
        # a x <= b bounds each entry from one side, if the others cannot offset it: a_j x_j is
        # bounded below where a_j > 0 and x_j has a lower bound, or a_j < 0 and it has an upper one.
        for up, down, rows in ((positive, negative, ends), (negative, positive, ends & equal)):
            held = rows & (up @ ~low + down @ ~high == 0)
            high |= (up.T @ held) > 0
            low |= (down.T @ held) > 0
    return bool((low & high).all())


def _clearness(at: Polyhedron, w: np.ndarray, g: np.ndarray, rounding: np.ndarray) -> float:
    zero = np.abs(g) <= rounding
    bound = np.where(g > 0, at.lb, at.ub)  # where g x is least
    if np.isinf(bound[~zero]).any():
        return 0.0
    used = w != 0
    if np.isinf(at.b[used]).any():
        return 0.0
    least = np.where(zero, 0.0, g * np.where(zero, 0.0, bound))
    total, sides = at.b[used] * w[used], np.where(zero, 0.0, np.abs(np.where(zero, 0.0, bound)))
    size = at.sizes
    row_size = _row_largest(at.A @ sparse.diags_array(size))
    b = at.b / row_size
    whole = size_in_box(b[: at.n_eq], b[at.n_eq :], at.lb / size, at.ub / size)
    asked = max(np.abs(b[used]).max(initial=0.0), (sides / size).max(initial=0.0))
    largest = np.maximum(np.abs(at.lb), np.abs(at.ub))
    lost = np.where(zero, np.abs(g) + rounding, 0.0) @ np.minimum(largest, REACH * asked * size)
    lost = lost + rounding @ sides
    terms = float(np.abs(total).sum() + np.abs(least).sum())
    terms_of_rows = np.maximum(whole * row_size, at.unit * _row_largest(at.A))
    dust = float(np.abs(w) @ (np.where(used, np.abs(at.b), 0.0) + terms_of_rows))
    gap = float(least.sum() - total.sum() - lost)
    clear = np.isfinite(terms) and gap > max(CLEAR * terms, DUST * dust)
    return gap / terms if clear else 0.0


def _row_largest(A: Any) -> np.ndarray:
    """(m,): the largest entry of each row; 1 for an empty one."""
    rows: Any = sparse.csr_array(A)
    largest = np.zeros(rows.shape[0])
    np.maximum.at(largest, np.repeat(np.arange(len(largest)), np.diff(rows.indptr)), abs(rows.data))
    return np.where(largest > 0, largest, 1.0)


def _signed(at: Polyhedron, w: np.ndarray) -> np.ndarray:
    return np.concatenate([w[: at.n_eq], np.maximum(w[at.n_eq :], 0.0)])


def _unsupported(at: Polyhedron, g: np.ndarray) -> np.ndarray:
    """Where g x has no least value over the bounds unless g is 0."""
    return np.where(g > 0, np.isinf(at.lb), np.isinf(at.ub))


def _inside(at: Polyhedron, r: np.ndarray) -> np.ndarray:
    """Without what leads across a bound."""
    ends = ((r < 0) & np.isfinite(at.lb)) | ((r > 0) & np.isfinite(at.ub))
    return np.where(ends, 0.0, r)


def _with_rows(at: Polyhedron, flat: Any) -> Polyhedron:
    rows: Any = sparse.csr_array(flat)
    A = sparse.csr_array(sparse.vstack([rows, at.A], format="csr"))
    b = np.concatenate([np.zeros(rows.shape[0]), at.b])
    return at._replace(A=A, b=b, n_eq=rows.shape[0] + at.n_eq)


def _sums(A: Any, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A v, and how far rounding in its entries and terms may move each sum from 0."""
    A = sparse.csr_array(A)
    terms = abs(A) @ np.abs(v)
    return A @ v, ROUNDING * (np.diff(A.indptr) + 4) * terms


def _into_kernel(A: Any, v: np.ndarray) -> np.ndarray:
    """Next to v, with A v = 0 as nearly as may be; entries change in proportion, so that signs and
    zeros stay."""
    used = np.flatnonzero(v)
    W: Any = sparse.csr_array(sparse.csr_array(A)[:, used] @ sparse.diags_array(v[used]))
    size = abs(W) @ np.ones(len(used))
    W = sparse.csr_array(sparse.diags_array(1.0 / np.where(size > 0, size, 1.0)) @ W)
    off = -(W @ np.ones(len(used)))
    if not np.isfinite(size).all():
        return v
    if W.shape[0] * W.shape[1] <= DENSE:
        change = np.linalg.lstsq(W.toarray(), off, rcond=1e-12)[0]
    else:
        change = lsmr(W, off, atol=1e-15, btol=1e-15, conlim=1e12, maxiter=500)[0]
    result = v.copy()
    result[used] *= 1.0 + change
    return result
