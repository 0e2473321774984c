"""Projection of parameters: by the kernel where it can, by a conic solver where it must.

The kernel knows rows and signs, not limits and semidefinite blocks. But a nearest point of a larger
set that happens to lie in the smaller one is nearest there too, so it is asked first and its answer
kept wherever it obeys the limits. Limits that are broken, and forms with a metric of their own, are
penalties in a larger problem of the kernel's (see `augmented_lagrangian`); between rows and
semidefinite blocks it goes back and forth (see `alternating`). Corners of cones and all that has
not settled go to the conic solver. Letters: B instances, p parameters.
"""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ..._common.arrays import as_costs, to_float64
from ..._common.conic import has_clarabel, in_threads, load_clarabel, smat
from ...errors import InputError, ShapeError
from ...optimality.protocol import ProjectionOptions
from ...optimality.sets import OptimalitySet
from ..constants import SHORT
from ..cpu.spread import HARMLESS
from ..lifting import Metric, lifting_of
from ..plain import project_rows
from ..project import check_options
from ..result import Projection, ProjectionStatus, as_given
from .alternating import EXACT, Nearest, between_limits
from .augmented_lagrangian import MOST_KEPT, by_augmented_lagrangian
from .conditions import NOTHING, Conditions, is_shared, matrix_of
from .conic import nearest_parameters
from .limits import Limits, is_limited, is_semidefinite
from .verify import BEYOND_FLOATS, Doubt, confirm, doubt_of, settle_exactly

METHODS = ("auto", "kernel", "clarabel")
WITHIN = 1e-9
"""How far beyond a limit, relative to its size, an answer of the kernel may be."""
ROUNDING = float(np.finfo(np.float64).eps)
MANY = 100
"""From so many instances for the conic solver in one call, a warning says why it takes long."""


def project_parameters(
    parameters: Any, sets: OptimalitySet, options: ProjectionOptions
) -> Projection:
    """Nearest parameters (B, p) under which the decisions are optimal; see `project`."""
    q, restore = as_costs(parameters, sets.n_parameters, "costs")
    check_options(len(q), len(sets), options, METHODS)
    method, tol, time_limit = options.method, options.tol, options.time_limit
    started = time.monotonic()
    liftable = lifting_of(sets) is not None
    only_cones = not liftable and (sets.normals is not None or is_semidefinite(sets))
    if method == "kernel" and only_cones:
        raise InputError(
            'method="kernel" cannot serve sets of this form with cones. Use method="auto".'
        )
    answer = _Answer(q, sets)
    deadline = np.inf if time_limit is None else started + time_limit
    if method != "clarabel":
        warm = _warm(options.warm_start, answer.multipliers.shape)
        if liftable:
            answer.by_kernel(warm, options)
        if not is_semidefinite(sets):
            answer.by_augmented_lagrangian(warm, options, deadline)
    if method == "clarabel" or (method == "auto" and (has_clarabel() or only_cones)):
        answer.by_cones(tol, deadline, options.threads)
    answer.prove(tol, deadline, exactly=method == "auto")
    return answer.result(restore, tol)


class _KernelCall:
    """Nearest parameters of chosen instances in rows and signs alone, by the kernel."""

    def __init__(self, sets: OptimalitySet, options: ProjectionOptions) -> None:
        self._sets, self._options = sets, options

    def __call__(self, q: np.ndarray, chosen: np.ndarray, start: np.ndarray | None) -> Nearest:
        sets = self._sets if len(chosen) == len(self._sets) else self._sets[chosen]
        lifting = lifting_of(sets)
        assert lifting is not None
        metric = lifting.metric
        begin = q if sets.gradient is None else sets.gradient(q)
        wide = np.zeros((len(q), lifting.sets.n_parameters))
        wide[:, : begin.shape[1]] = begin
        near = project_rows(wide, lifting.sets, replace(self._options, warm_start=start))
        move = (near.point[:, : begin.shape[1]] - begin) / metric.alpha[:, None]
        point = q + (move if sets.gradient is None else sets.gradient.adjoint(move))
        miss = 0.0 if sets.soft is None else 1.0 / sets.soft
        residual = _in_parameters(near, wide, q, sets, metric)
        doubtful = (near.status == ProjectionStatus.SOLVED) & ~(residual <= self._options.tol)
        near = replace(
            near,
            distance=near.distance / np.sqrt(metric.alpha),
            residual=residual,
            solved=near.solved & ~doubtful,
            status=np.where(doubtful, ProjectionStatus.INACCURATE, near.status),
        )
        return point, miss * (move**2).sum(axis=1), near


def _in_parameters(
    near: Projection, wide: np.ndarray, q: np.ndarray, sets: OptimalitySet, metric: Metric
) -> np.ndarray:
    """(B,): the kernel's residuals, held against moves of parameters instead of costs.

    An error of the lifted costs is one of the parameters over sqrt(alpha). Both are relative to the
    move, but a short one counts as 1e-3 of the costs there and of the parameters here: beside costs
    of 8,000 that are known, the former may be a thousand times as long. And moves of parameters are
    differences of costs, times S^T / alpha, so that the rounding of the costs grows as much.
    """
    known, slope = 0.0, 1.0
    if sets.gradient is not None:
        known = np.abs(np.atleast_2d(sets.gradient.offset)).max(axis=1, initial=0.0)
        slope = np.linalg.norm(sets.gradient.rows.data, axis=1)
    size = np.maximum(np.linalg.norm(q, axis=1), np.maximum(sets.margins, known))
    length = np.maximum(np.linalg.norm(wide, axis=1), sets.margins)
    alpha, scale = metric.alpha, np.sqrt(metric.alpha)
    there = np.maximum(near.distance, SHORT * length) / scale
    here = np.maximum(np.maximum(near.distance / scale, SHORT * size), NOTHING)
    rounding = ROUNDING * (length + near.distance) * slope / alpha / here
    return near.residual * np.maximum(1.0, there / here) + rounding


class _Answer:
    """The arrays of a Projection in the making."""

    def __init__(self, q: np.ndarray, sets: OptimalitySet) -> None:
        size = len(q)
        self.q, self.sets = q, sets
        lifting = lifting_of(sets)
        base = sets.rows if lifting is None else lifting.sets.rows
        m = base.eq_rows.shape[0] + base.ub_rows.shape[0]
        self.point = np.full(q.shape, np.nan)
        self.distance, self.residual = np.full(size, np.inf), np.full(size, np.inf)
        self.multipliers = np.zeros((size, m))
        self.steps = np.zeros(size, np.int64)
        self.status = np.full(size, ProjectionStatus.INACCURATE, np.int8)
        self.is_proved = np.zeros(size, bool)
        """Whether the kernel's own proof for plain sets covers the answer."""

    def by_kernel(self, warm: np.ndarray | None, options: ProjectionOptions) -> None:
        """Fill in the instances that rows and signs describe; go between them and semidefinite
        blocks."""
        sets, ready = self.sets, self._of_rows()
        call = _KernelCall(sets, options)
        point, _, near = call(self.q[ready], ready, None if warm is None else warm[ready])
        self._enter_all(ready, point, near)
        if not is_limited(sets):
            return
        outside = ready[~_obeys(sets[ready], point)]
        self.status[outside], self.residual[outside] = ProjectionStatus.INACCURATE, np.inf
        self.is_proved[outside] = False
        if outside.size and is_semidefinite(sets):
            exact = _KernelCall(sets, replace(options, tol=EXACT, method="kernel"))
            self._between_limits(outside, exact, options.tol)

    def _between_limits(self, rest: np.ndarray, call: _KernelCall, tol: float) -> None:
        q, own = self.q[rest], self.sets[rest]
        size = np.maximum(np.linalg.norm(q, axis=1), own.margins)
        settled = between_limits(
            q,
            Limits(own),
            lambda target, live, start: call(target, rest[live], start),
            size,
            self.multipliers[rest],
        )
        self.point[rest], self.residual[rest] = settled.point, settled.residual
        self.distance[rest] = settled.distance
        self.multipliers[rest] = settled.multipliers
        self.steps[rest] += settled.rounds
        self.status[rest[settled.residual <= tol]] = ProjectionStatus.SOLVED

    def by_augmented_lagrangian(
        self, warm: np.ndarray | None, options: ProjectionOptions, deadline: float
    ) -> None:
        """Fill in instances of rows, signs and boxes that are not solved yet."""
        rest = self._of_rows()
        rest = rest[self.status[rest] != ProjectionStatus.SOLVED]
        if not rest.size:
            return
        own = self.sets if len(rest) == len(self.q) else self.sets[rest]
        start = None if warm is None else self._rows_only(warm[rest])
        found = by_augmented_lagrangian(
            self.q[rest],
            own,
            start,
            tol=options.tol,
            deadline=deadline,
            max_iter=options.max_iter,
            threads=options.threads,
        )
        better = found.residual < self.residual[rest]
        kept = rest[better]
        self.point[kept], self.distance[kept] = found.point[better], found.distance[better]
        self.residual[kept] = found.residual[better]
        self.multipliers[kept] = self._placed(found.multipliers[better])
        self.steps[rest] += found.steps
        self.status[kept[self.residual[kept] <= options.tol]] = ProjectionStatus.SOLVED
        self._enter_empty(rest[found.empty])

    def _of_rows(self) -> np.ndarray:
        """The instances without corners of cones."""
        normals = self.sets.normals
        return np.flatnonzero(np.ones(len(self.q), bool) if normals is None else ~normals.present)

    def _enter_empty(self, proven: np.ndarray) -> None:
        self.point[proven], self.multipliers[proven] = np.nan, 0.0
        self.distance[proven], self.residual[proven] = np.inf, np.inf
        self.status[proven] = ProjectionStatus.EMPTY

    def _enter_all(self, ready: np.ndarray, point: np.ndarray, near: Projection) -> None:
        self.point[ready], self.distance[ready] = point, near.distance
        self.residual[ready], self.multipliers[ready] = near.residual, near.multipliers
        self.steps[ready], self.status[ready] = near.iterations, near.status
        # With directions in between, the kernel's costs are not those that its proof is about.
        lifting = lifting_of(self.sets)
        is_direct = lifting is not None and lifting.metric.directions is None
        self.is_proved[ready] = near.solved & is_direct

    def by_cones(self, tol: float, deadline: float, threads: int | None) -> None:
        """Fill in the others, one by one."""
        known = (ProjectionStatus.SOLVED, ProjectionStatus.EMPTY)
        rest = np.flatnonzero(~np.isin(self.status, known))
        if not rest.size:
            return
        load_clarabel("Projection under this form")
        if len(rest) >= MANY:
            _tell_once(len(self._of_rows()) < len(self.q))

        def work(i: int) -> None:
            b = int(rest[i])
            left = deadline - time.monotonic()
            if left <= 0:
                self.status[b] = ProjectionStatus.TIME_LIMIT
                return
            self._enter(b, nearest_parameters(self.sets, self.q[b], b, left), tol)

        in_threads(work, len(rest), threads or _cores())

    def _enter(self, b: int, near: Any, tol: float) -> None:
        self.point[b], self.distance[b], self.residual[b] = near[:3]
        self.multipliers[b] = self._placed(near.multipliers[None])[0]
        self.steps[b] += near.iterations
        if near.empty:
            self.status[b] = ProjectionStatus.EMPTY
        elif near.residual <= tol:
            self.status[b] = ProjectionStatus.SOLVED
        elif near.late:
            self.status[b] = ProjectionStatus.TIME_LIMIT

    def prove(self, tol: float, deadline: float, *, exactly: bool) -> None:
        """Take back what neither residuals nor the system of what binds proves (see `verify`), and
        settle small sets exactly where that is asked for or all else fails."""
        if not len(self.q):
            return
        settled = (ProjectionStatus.SOLVED, ProjectionStatus.EMPTY)
        claimed, empty = np.isin(self.status, settled), self.status == ProjectionStatus.EMPTY
        doubt = _doubt(self.sets)
        hidden = np.where(empty, doubt.factor > HARMLESS, doubt.hides(self.residual, tol))
        hidden &= claimed & ~self.is_proved
        rest = hidden | (~claimed if exactly else False)
        if not rest.any():
            return
        conditions = Conditions.of(self.sets, matrix_of(self.sets))
        is_plain = np.zeros(len(self.q), bool)  # of rows and signs, which `verify` knows
        if not is_semidefinite(self.sets):
            is_plain[self._of_rows()] = True
        sound = doubt.factor <= BEYOND_FLOATS
        for b in np.flatnonzero(rest):
            own = conditions.take(np.array([b])) if is_plain[b] else None
            if time.monotonic() > deadline:
                self.status[b] = ProjectionStatus.TIME_LIMIT
                continue
            if hidden[b]:  # a hundred times faster than exact arithmetic
                self._enter_confirmed(int(b), own if sound[b] else None, tol)
            if own is not None and self.status[b] != ProjectionStatus.SOLVED:
                self._enter_exact(int(b), own, tol)

    def _enter_exact(self, b: int, own: Conditions, tol: float) -> None:
        """Settle an instance in exact arithmetic, if it is small enough for that."""
        found = settle_exactly(own, self.q[b])
        if found is None:
            return
        if found.empty:
            self._enter_empty(np.array([b]))
            return
        self.point[b], self.distance[b] = found.point, found.distance
        self.residual[b] = found.rounding
        self.multipliers[b] = self._placed(found.multipliers[None])[0]
        exact = found.rounding <= tol
        self.status[b] = ProjectionStatus.SOLVED if exact else ProjectionStatus.INACCURATE

    def _enter_confirmed(self, b: int, own: Conditions | None, tol: float) -> None:
        """Leave an instance solved if the system of what binds confirms it; nothing confirms that
        a set is empty, nor what `own` conditions leave out."""
        is_empty = self.status[b] == ProjectionStatus.EMPTY
        self.status[b] = ProjectionStatus.INACCURATE
        if own is None or is_empty:
            return
        multipliers = self._rows_only(self.multipliers[b : b + 1])[0]
        residual = confirm(own, self.q[b], self.point[b], multipliers, tol)
        self.residual[b] = max(self.residual[b], min(residual, 1.0))
        if residual <= tol:
            self.status[b] = ProjectionStatus.SOLVED

    def _placed(self, multipliers: np.ndarray) -> np.ndarray:
        """Multipliers of the rows among those of the lifted rows, whose own are not known."""
        own = self.sets.rows.eq_rows.shape[0]
        result = np.zeros((len(multipliers), self.multipliers.shape[1]))
        result[:, :own] = multipliers[:, :own]
        after = multipliers.shape[1] - own
        if after:
            result[:, -after:] = multipliers[:, own:]
        return result

    def _rows_only(self, multipliers: np.ndarray) -> np.ndarray:
        """Those of the rows, without the ones of directions in between."""
        own, after = self.sets.rows.eq_rows.shape[0], self.sets.rows.ub_rows.shape[0]
        last = multipliers[:, multipliers.shape[1] - after :]
        return np.hstack([multipliers[:, :own], last])

    def result(self, restore: Any, tol: float) -> Projection:
        self._doubt_unqualified(tol)
        solved = self.status == ProjectionStatus.SOLVED
        arrays = (self.point, self.distance, self.residual, solved, self.status, self.steps)
        return as_given(Projection(*arrays, self.multipliers), restore)

    def _doubt_unqualified(self, tol: float) -> None:
        """Multipliers prove that a cost explains a decision; that another does not is certain only
        under a constraint qualification. So a move to the nearest explained cost is in doubt."""
        moved = self.distance > tol * np.maximum(np.linalg.norm(self.q, axis=1), self.sets.margins)
        doubtful = ~self.sets.qualified & moved & (self.status == ProjectionStatus.SOLVED)
        self.status[doubtful] = ProjectionStatus.UNQUALIFIED


def _doubt(sets: OptimalitySet) -> Doubt:
    """By how much errors may exceed residuals; found once where all instances share a matrix."""
    p, n = sets.n_parameters, sets.rows.n_variables

    def found() -> Doubt:
        return doubt_of(matrix_of(sets), n, 0.0 if sets.soft is None else 1.0 / sets.soft, p)

    if not is_shared(sets):
        return found().over(len(sets))
    kept: dict[Any, Doubt] = sets.rows.cached("projection.doubt", dict)
    form, maps = sets.form, (sets.gradient, sets.form and sets.form.map)
    limits = () if form is None else tuple(part.tobytes() for part in form.is_finite)
    key = (*(None if own is None else own.rows for own in maps), limits, sets.soft)
    if key not in kept:
        if len(kept) >= MOST_KEPT:
            kept.clear()
        kept[key] = found()
    return kept[key].over(len(sets))


def _obeys(sets: OptimalitySet, point: np.ndarray) -> np.ndarray:
    """(B,): whether parameters are within the limits, and the set one of rows and signs alone."""
    good = np.ones(len(point), bool)
    if sets.normals is not None:
        good &= ~sets.normals.present
    parameters, form = point, sets.form
    if form is not None:
        parameters = form.map(point)
        for value, low, high in (
            (point, form.lower, form.upper),
            (parameters, form.cost_lower, form.cost_upper),
        ):
            size = WITHIN * np.maximum(np.abs(value).max(axis=1, initial=0.0), 1e-300)[:, None]
            good &= ((value >= low - size) & (value <= high + size)).all(axis=1)
    if sets.semidefinite_block is not None:
        good &= _has_no_negative_eigenvalue(parameters, *sets.semidefinite_block)
    return good


def _has_no_negative_eigenvalue(parameters: np.ndarray, start: int, order: int) -> np.ndarray:
    block = parameters[:, start : start + order * (order + 1) // 2]
    values = np.linalg.eigvalsh(smat(block))
    return values[:, 0] >= -WITHIN * np.abs(values).max(axis=1, initial=0.0)


def _warm(warm_start: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    if warm_start is None:
        return None
    given = to_float64(getattr(warm_start, "multipliers", warm_start), "warm_start")
    if given.shape != shape:
        raise ShapeError(
            f"`warm_start` must be a Projection of the same sets, or its multipliers of shape "
            f"{shape}; got shape {given.shape}."
        )
    return given


@cache
def _tell_once(corners: bool) -> None:
    """Say, once for each reason, why a call takes long and what would help."""
    if corners:
        why = "decisions are at corners of cones, which"
        what = "Use a smaller batch, or constraints without corners."
    else:
        why = (
            "sets nearly contradict themselves or their limits, so that the kernel does not settle "
        )
        why += "and they"
        what = "Build the sets with soft=100, wider limits or a smaller margin."
    warnings.warn(
        f"{MANY} or more {why} go to a conic solver one by one, some 10 ms and more each. {what} "
        "`time_limit` bounds the wait.",
        stacklevel=6,
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
