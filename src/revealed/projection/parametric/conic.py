"""Nearest parameters under any form, limits and cones, one instance at a time, by Clarabel.

    min 1/2 |w - q|^2 + soft/2 |e|^2   subject to   S w + c0 + e = A_eq^T v - A_ub^T mu + N l + s,

signs of s and mu as in `OptimalitySet`, l - margin * unit in its cones, w and costs within their
limits, a block of w positive semidefinite. The answer is judged by the first-order conditions of
this very problem, computed here from points and multipliers. Letters: n entries,
p parameters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..._common.conic import Cone, ConicAnswer, conditions_left, onto_cones, rows_of, solve_best
from ..._common.curved_polish import polished_curved
from ..._common.polish import polished
from ...optimality.active_set import EntryState
from ...optimality.sets import OptimalitySet
from ..constants import SHORT
from .conditions import EMPTY_PROOF, NOTHING

GOAL = 1e-11
"""A residual with which no further attempt is made."""
CURVED = ("second-order", "semidefinite")


class ConicProgram(NamedTuple):
    """min 1/2 x^T diag(weight) x - weight q x  subject to  right - A x in a product of cones."""

    weight: np.ndarray
    """(variables,) 1 for w, `soft` for e, 0 for multipliers."""
    target: np.ndarray
    """(variables,) q for w, 0 for the rest."""
    A: Any
    right: np.ndarray
    cones: list[Cone]


class NearestParameters(NamedTuple):
    """The answer for one instance."""

    point: np.ndarray
    """(p,)"""
    distance: float
    residual: float
    multipliers: np.ndarray
    """(m_eq + m_ub,)"""
    empty: bool
    late: bool
    iterations: int


def nearest_parameters(
    sets: OptimalitySet, q: np.ndarray, b: int, seconds: float
) -> NearestParameters:
    """The nearest parameters to q (p,) that explain decision b."""
    one = sets[np.array([b])]
    # What is known of the gradient sets a unit too, where parameters and margin are (nearly) 0.
    known = 0.0 if one.gradient is None else float(np.abs(one.gradient.offset).max(initial=0.0))
    scale = max(np.abs(q).max(initial=0.0), one.margins[0], known) or 1.0
    scale = float(np.ldexp(1.0, int(np.frexp(scale)[1])))
    program = build_program(one, q / scale, scale)
    size = max(float(np.linalg.norm(q)), one.margins[0], known) / scale
    answer, residual = _best_answer(program, size, seconds)
    p, m_eq = len(q), one.rows.eq_rows.shape[0]
    active = np.flatnonzero(one.row_active[0])
    multipliers = np.zeros(m_eq + one.row_active.shape[1])
    empty = answer.infeasible and _proves_empty(program, answer.z)
    if empty or not np.isfinite(residual):
        nothing = np.full(p, np.nan)
        found = (nothing, np.inf, np.inf, multipliers, empty, answer.late, answer.iterations)
        return NearestParameters(*found)
    x = answer.x
    multipliers[:m_eq] = x[p : p + m_eq] * scale
    multipliers[m_eq + active] = x[p + m_eq : p + m_eq + len(active)] * scale
    move = np.sqrt(float(program.weight @ (x - program.target) ** 2))
    found = (x[:p] * scale, move * scale, residual, multipliers, False, answer.late)
    return NearestParameters(*found, answer.iterations)


def _best_answer(program: ConicProgram, size: float, seconds: float) -> tuple[ConicAnswer, float]:
    quadratic = (
        sparse.diags_array(program.weight),
        -program.weight * program.target,
        program.A,
        program.right,
        program.cones,
    )

    curved = any(kind in CURVED for kind, _ in program.cones)

    def judge(answer: ConicAnswer) -> tuple[ConicAnswer, float]:
        residual = residual_of(program, answer, size)
        if curved:
            return _polished_curved(program, answer, residual, size)
        exact = None if residual <= GOAL else polished(*quadratic, answer)
        again = np.inf if exact is None else residual_of(program, exact, size)
        return (answer, residual) if exact is None or again > residual else (exact, again)

    what = "Projection under this form"
    return solve_best(*quadratic, what=what, judge=judge, goal=GOAL, seconds=seconds)


def _polished_curved(
    program: ConicProgram, answer: ConicAnswer, residual: float, size: float
) -> tuple[ConicAnswer, float]:
    """The better of an answer and what Newton's method makes of it; its residual is no less than
    the error that the last step shows."""
    quadratic = sparse.diags_array(program.weight), -program.weight * program.target
    found = polished_curved(*quadratic, program.A, program.right, program.cones, answer)
    if found is None:
        return answer, residual
    exact, step = found
    denominator = _denominator(program, exact, size)
    again = max(residual_of(program, exact, size), _length(program, step) / denominator)
    if again <= residual:
        return exact, again
    return answer, max(residual, _length(program, answer.x - exact.x) / denominator)


def residual_of(program: ConicProgram, answer: ConicAnswer, size: float) -> float:
    """Relative, 0 at the exact answer: the largest of four misses.

    Conditions unmet and gradient left over, against the length of the move (as everywhere, no less
    than 1e-3 of the parameters); the products of slacks and multipliers against its square; and
    what slacks s and multipliers z miss of s = proj(s - z), which is the smaller of both in each
    row that is an inequality by itself, since a product of 1e-8 leaves room for an error of 1e-4. A
    move that is nothing leaves nothing to gain, whatever the last three say.
    """
    weight, target = program.weight, program.target
    unmet, left, gap = conditions_left(
        sparse.diags_array(weight),
        -weight * target,
        program.A,
        program.right,
        program.cones,
        answer,
    )
    move, denominator = _length(program, answer.x - target), _denominator(program, answer, size)
    both = _largest_of_both(program, answer)
    return max(
        unmet / denominator,
        min(max(left / denominator, both / denominator, gap / denominator**2), move / denominator),
    )


def _denominator(program: ConicProgram, answer: ConicAnswer, size: float) -> float:
    """What errors of this answer are held against."""
    return max(_length(program, answer.x - program.target), SHORT * size, NOTHING)


def _length(program: ConicProgram, step: np.ndarray) -> float:
    """Of a change of w and e; multipliers have none."""
    return np.sqrt(float(program.weight @ step**2))


def _largest_of_both(program: ConicProgram, answer: ConicAnswer) -> float:
    """The largest entry of s - proj(s - z) in all cones but those of equations."""
    slack = program.right - program.A @ answer.x
    missed = np.abs(slack - onto_cones(slack - answer.z, program.cones))
    sizes = [rows_of(cone) for cone in program.cones]
    equal = np.repeat([kind == "zero" for kind, _ in program.cones], sizes)
    return float(missed[~equal].max(initial=0.0))


def _proves_empty(program: ConicProgram, z: np.ndarray) -> bool:
    """Whether z is in the dual cone with A^T z = 0 and right . z < 0, all to rounding."""
    z = onto_cones(z, program.cones, dual=True)
    below = -float(program.right @ z)
    return below > 0 and np.abs(program.A.T @ z).max(initial=0.0) <= EMPTY_PROOF * below


# --- the program ---------------------------------------------------------------------------------


def build_program(one: OptimalitySet, q: np.ndarray, scale: float) -> ConicProgram:
    """The program of one instance in units of `scale`; variables (w, v, mu, l, e)."""
    S, offset = _gradient(one, scale)
    n, p = S.shape
    margin = one.margins[0] / scale
    active = one.row_active[0]
    eq, ub = one.rows.eq_rows.matrix(0), one.rows.ub_rows.matrix(0)[active]
    corners = one.normals.of(0) if one.normals is not None else []
    normals = [corner.matrix for corner in corners]
    blocks = [S, -eq.T, ub.T, *(-N for N in normals)]
    if one.soft is not None:
        blocks.append(sparse.eye_array(n))
    left = sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr")
    sizes = [block.shape[1] for block in blocks]
    zero, signed = _entry_rows(left, offset, one.entry_state[0], margin)
    parts = [zero, signed, _least(sizes, 2, margin), *_limits(one, sizes, scale)]
    parts += [_corner(sizes, 3 + i, c, margin) for i, c in enumerate(corners)]
    if one.semidefinite_block is not None:
        parts.append(_semidefinite(one, sizes, scale))
    parts = [part for part in parts if len(part[1])]
    weight = np.zeros(sum(sizes))
    weight[:p] = 1.0
    if one.soft is not None:
        weight[-n:] = one.soft
    target = np.zeros(sum(sizes))
    target[:p] = q
    return ConicProgram(
        weight,
        target,
        sparse.vstack([A for A, _, _ in parts], format="csc"),
        np.concatenate([right for _, right, _ in parts]),
        [cone for _, _, cone in parts],
    )


Part = tuple[Any, np.ndarray, Cone]
"""Rows A, right-hand sides, and the cone in which right - A x must lie."""


def _gradient(one: OptimalitySet, scale: float) -> tuple[Any, np.ndarray]:
    if one.gradient is None:
        n = one.problem.n_variables
        return sparse.eye_array(n, format="csr"), np.zeros(n)
    offset = np.atleast_2d(one.gradient.offset)[0]
    return one.gradient.rows.matrix(0), offset / scale


def _entry_rows(
    left: Any, offset: np.ndarray, state: np.ndarray, margin: float
) -> tuple[Part, Part]:
    free, low, high = (
        np.flatnonzero(state == kind)
        for kind in (EntryState.FREE, EntryState.AT_LOWER, EntryState.AT_UPPER)
    )
    zero = (left[free], -offset[free], ("zero", len(free)))
    signed = sparse.vstack([-left[low], left[high]])
    right = np.concatenate([offset[low], -offset[high]]) - margin
    return zero, (signed, right, ("nonnegative", len(right)))


def _choose(sizes: list[int], block: int) -> Any:
    """Rows that pick out the variables of one block."""
    before, own = sum(sizes[:block]), sizes[block]
    after = sum(sizes) - before - own
    eye = sparse.eye_array(own)
    return sparse.hstack([sparse.csr_array((own, before)), eye, sparse.csr_array((own, after))])


def _least(sizes: list[int], block: int, margin: float) -> Part:
    own = sizes[block]
    return -_choose(sizes, block), np.full(own, -margin), ("nonnegative", own)


def _corner(sizes: list[int], block: int, corner: Any, margin: float) -> Part:
    """l - margin * unit in the cone."""
    return -_choose(sizes, block), -margin * corner.unit, corner.cone


def _limits(one: OptimalitySet, sizes: list[int], scale: float) -> list[Part]:
    form = one.form
    if form is None or not form.is_limited:
        return []
    pick = sparse.csr_array(_choose(sizes, 0))
    c0 = np.atleast_2d(form.map.offset)[0]
    costs = sparse.csr_array(form.map.rows.matrix(0) @ pick)
    parts = []
    for rows, base, low, high in (
        (pick, np.zeros(sizes[0]), form.lower, form.upper),
        (costs, c0, form.cost_lower, form.cost_upper),
    ):
        low, high = np.atleast_2d(low)[0] - base, np.atleast_2d(high)[0] - base
        at_least, at_most = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
        A = sparse.vstack([-rows[at_least], rows[at_most]])
        right = np.concatenate([-low[at_least], high[at_most]]) / scale
        parts.append((A, right, ("nonnegative", len(right))))
    return parts


def _semidefinite(one: OptimalitySet, sizes: list[int], scale: float) -> Part:
    """A block of the problem's parameters as a positive semidefinite matrix."""
    assert one.semidefinite_block is not None
    start, order = one.semidefinite_block
    cone = ("semidefinite", order)
    stop = start + rows_of(cone)
    pick, base = sparse.csr_array(_choose(sizes, 0)), np.zeros(one.problem.n_parameters)
    if one.form is not None:
        pick = sparse.csr_array(one.form.map.rows.matrix(0) @ pick)
        base = np.atleast_2d(one.form.map.offset)[0] / scale
    return -pick[start:stop], base[start:stop], cone
