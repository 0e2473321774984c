"""Nearest parameters by the method of multipliers: conditions as penalties whose multipliers are
updated until the conditions hold.

    min over x = (w, v, mu)   1/2 |w - q|^2 + 1/2 sum_j clip(r_j - s_j h_j(x))^2

is a sum of squares of clipped affine functions, which is what the kernel minimizes: parameters are
rows like v and mu, and both w - q and the conditions h (see `conditions`) are columns. Each round
sets r to the clipped values of the one before; in the end s r are the multipliers of the
conditions. High penalties s need few rounds and cost digits: with 30 times the length of a
condition's gradient some five rounds, of 20 to 40 Newton steps together, leave residuals of 1e-10.
Conditions of a soft set have s^2 = soft and stay where they are. Where no parameters obey hard
conditions, r grows without end in a direction that proves it.

Letters: B instances, k conditions, p parameters, N entries of x.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from ..._common.rows import Rows
from ...optimality.active_set import EntryState
from ...optimality.protocol import ProjectionOptions
from ...optimality.sets import OptimalitySet
from ...problems.linear import LinearProgram
from ..lifting import plain_sets
from ..plain import project_rows
from .conditions import Conditions, is_shared, matrix_of, rows_from

PENALTY = 30.0
"""s for conditions whose gradient in w has length 1."""
MOST_ROUNDS = 60
EARLY = 3
"""Rounds in which active sets are still being found, and the kernel need not be exact."""
EARLY_TOL, LATE_TOL = 1e-9, 1e-12
LATE_STEPS = 40
"""Steps of the kernel in a late round: what has the right active set needs one or two."""
BEYOND = 0.01
"""Rounds go on until the residual is this share of the tolerance, where it can get there."""
FINEST = 1e-12
STALLED, CONTENT = 8, 2
"""Rounds without a smaller residual after which an instance is left as it is: where that is above
the tolerance, and where it is below."""
MOST_KEPT = 4
"""Structures that are kept with a problem."""


class Settled(NamedTuple):
    """The result, one row per instance."""

    point: np.ndarray
    """(B, p)"""
    distance: np.ndarray
    residual: np.ndarray
    multipliers: np.ndarray
    """(B, m_eq + m_ub)"""
    empty: np.ndarray
    """(B,) bool: proven to have no parameters that explain the decision."""
    steps: np.ndarray


def by_augmented_lagrangian(
    q: np.ndarray,
    sets: OptimalitySet,
    start: np.ndarray | None,
    *,
    tol: float,
    deadline: float = np.inf,
    max_iter: int = 500,
    threads: int | None = None,
) -> Settled:
    """Nearest parameters to q (B, p) in sets of rows, signs and boxes; `start` is multipliers to
    begin with."""
    at = _Rounds(q, sets, start, tol)
    for k in range(MOST_ROUNDS):
        left = deadline - time.monotonic()
        if not at.live.size or left <= 0:
            break
        options = {"time_limit": None if np.isinf(left) else left, "threads": threads}
        if k < EARLY:
            at.round(tol=EARLY_TOL, max_iter=max_iter, **options)
        else:
            at.round(tol=LATE_TOL, max_iter=min(max_iter, LATE_STEPS), **options)
    return at.settled()


class _Rounds:
    """Where a batch stands."""

    def __init__(
        self, q: np.ndarray, sets: OptimalitySet, start: np.ndarray | None, tol: float
    ) -> None:
        structure = structure_of(sets)
        self.q, self.tol, self.penalty = q, tol, structure.penalty
        self.goal = max(BEYOND * tol, FINEST)
        self.conditions = Conditions.of(sets, structure.matrix)
        self.plain = _plain(sets, self.conditions, structure.problem)
        self.least = sets.margins[:, None] * sets.row_active
        size, p, m = len(q), q.shape[1], self.conditions.n_equalities
        self.x = np.zeros((size, structure.matrix.shape[1]))
        self.warm = start is not None
        if start is not None:
            self.x[:, p:] = start
            self.x[:, p + m :] = (start[:, m:] - self.least).clip(min=0)
        self.x[:, :p] = q
        self.best = self.x.copy()
        self.rest = np.zeros((size, structure.matrix.shape[0]))
        """(B, k): r."""
        self.residual, self.distance = np.full(size, np.inf), np.full(size, np.inf)
        self.empty = np.zeros(size, bool)
        self.steps, self.waited = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.live = np.arange(size)
        self._settle_inside()

    def _settle_inside(self) -> None:
        """Parameters that explain with the multipliers there are, as 0 does where nothing is asked
        of it, are their own answer."""
        self._judge(self.conditions, np.zeros(self.rest.shape))
        self.live = np.flatnonzero(self.residual > self.goal)
        self.residual[self.live], self.distance[self.live] = np.inf, np.inf

    def round(self, **options: Any) -> None:
        """One call of the kernel for all that are still on their way."""
        live, penalty, p = self.live, self.penalty, self.q.shape[1]
        own, q = self.conditions.take(live), self.q[live]
        before = self.rest[live] * (own.give == 0)
        cost = np.hstack([q, penalty * own.offset - before])
        start = self.x[live] if self.warm else None
        asked = ProjectionOptions(method="kernel", warm_start=start, **options)
        near = project_rows(cost, self.plain[live], asked, proof=False)
        rest = near.point[:, p:] - cost[:, p:]
        self.x[live], self.rest[live], self.warm = near.multipliers, rest, True
        self.steps[live] += near.iterations
        self._judge(own, penalty * rest)
        self.empty[live] = own.prove_empty(q, penalty * (rest - before))
        residual = self.residual[live]
        patience = np.where(residual <= self.tol, CONTENT, STALLED)
        done = (residual <= self.goal) | self.empty[live]
        self.live = live[~done & (self.waited[live] < patience)]

    def _judge(self, own: Conditions, forces: np.ndarray) -> None:
        """Keep the points that are better than what there was."""
        live = self.live
        residual, distance = own.residual(self.q[live], self.x[live], forces)
        better = residual < self.residual[live]
        self.waited[live] = np.where(better, 0, self.waited[live] + 1)
        kept = live[better]
        self.residual[kept], self.distance[kept] = residual[better], distance[better]
        self.best[kept] = self.x[kept]

    def settled(self) -> Settled:
        p, m = self.q.shape[1], self.conditions.n_equalities
        point, multipliers = self.best[:, :p].copy(), self.best[:, p:].copy()
        multipliers[:, m:] += self.least
        return Settled(point, self.distance, self.residual, multipliers, self.empty, self.steps)


# --- the problem of the kernel -------------------------------------------------------------------


class Structure(NamedTuple):
    """What all batches of sets with one matrix share."""

    matrix: Rows
    """G, (k, N); see `conditions`."""
    penalty: np.ndarray
    """(k,): s."""
    problem: LinearProgram
    """A row for each entry of x, a column for each parameter and condition."""


def structure_of(sets: OptimalitySet) -> Structure:
    """The structure of the sets, kept with their rows where all instances share it."""
    if not is_shared(sets):
        return _structure(sets)
    kept: dict[Any, Structure] = sets.rows.cached("projection.augmented_lagrangian", dict)
    form, gradient = sets.form, sets.gradient
    limits = () if form is None else tuple(part.tobytes() for part in form.is_finite)
    rows = tuple(None if map_ is None else map_.rows for map_ in (gradient, form and form.map))
    key = (*rows, limits, sets.soft)
    if key not in kept:
        if len(kept) >= MOST_KEPT:
            kept.clear()
        kept[key] = _structure(sets)
    return kept[key]


def _structure(sets: OptimalitySet) -> Structure:
    matrix = matrix_of(sets)
    penalty = _penalties(matrix, sets)
    return Structure(matrix, penalty, _problem(matrix, penalty, sets))


def _penalties(rows: Rows, sets: OptimalitySet) -> np.ndarray:
    """s: for soft conditions what their price says, for hard ones by the length of their
    gradient in w."""
    square = (rows.data**2).mean(axis=0) * (rows.indices < sets.n_parameters)
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    length = np.sqrt(np.bincount(owner, square, minlength=rows.shape[0]))
    usual = np.median(length[length > 0]) if (length > 0).any() else 1.0
    penalty = PENALTY / np.where(length > 1e-3 * usual, length, usual)
    if sets.soft is not None:
        penalty[: sets.rows.n_variables] = np.sqrt(sets.soft)
    return penalty


def _problem(G: Rows, penalty: np.ndarray, sets: OptimalitySet) -> LinearProgram:
    (k, N), p = G.shape, sets.n_parameters
    equalities = p + sets.rows.eq_rows.shape[0]
    owner = np.repeat(np.arange(k), np.diff(G.indptr))
    scaled, first = penalty[owner] * G.data, G.indices < equalities
    stay = (np.arange(p), np.arange(p), np.ones((1, p)))
    held = (G.indices[first], p + owner[first], -scaled[:, first])
    # The kernel turns the sign of inequalities by itself.
    rest = (G.indices[~first] - equalities, p + owner[~first], scaled[:, ~first])
    return LinearProgram(
        A_eq=rows_from([stay, held], (equalities, p + k)),
        b_eq=np.zeros(equalities),
        A_ub=rows_from([rest], (N - equalities, p + k)),
        b_ub=np.zeros(N - equalities),
        lb=None,
        ub=None,
    )


def _plain(sets: OptimalitySet, own: Conditions, problem: LinearProgram) -> OptimalitySet:
    """The batch as sets of plain costs (q, s d - r); margins are in d."""
    size = len(sets)
    stay = np.full((size, own.n_parameters), EntryState.FREE, np.int8)
    states = np.hstack([stay, own.state])
    nothing = np.zeros((size, problem.n_variables))
    return plain_sets(sets, problem, nothing, states, margins=np.zeros(size))
