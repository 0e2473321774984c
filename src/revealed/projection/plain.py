"""Sets of plain costs: the compiled kernel, and for what it cannot finish slower solvers; then what
was reached is judged."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .._common.arrays import as_costs, to_float64
from .._common.device import is_cuda
from ..errors import InputError, ShapeError
from ..optimality.protocol import ProjectionOptions
from ..optimality.sets import OptimalitySet
from .cpu.analysis import Analysis, analyze
from .cpu.exact import exact_projection
from .cpu.fallback import FALLBACKS, available_fallbacks
from .cpu.group import Job
from .cpu.kernel import Work, recertify, run_kernel
from .cpu.spread import HARMLESS, HOPELESS
from .cpu.verify import prove
from .project import check_options, projected
from .result import Projection, ProjectionStatus, as_given

_SOLVED = int(ProjectionStatus.SOLVED)
METHODS = ("auto", "kernel", *FALLBACKS, "exact")


def project_plain(costs: Any, sets: OptimalitySet, options: ProjectionOptions) -> Projection:
    """`project` for sets of plain costs: on the device that the costs are on, or on the CPU."""
    # A solver asked for by name, and a clock, are for the CPU.
    stays = options.method in ("auto", "kernel") and options.time_limit is None
    if is_cuda(costs) and stays:
        return projected(costs, sets.to(costs.device), options)
    return project_rows(costs, sets, options)


def project_rows(
    costs: Any, sets: OptimalitySet, options: ProjectionOptions, *, proof: bool = True
) -> Projection:
    """`project` for sets of plain costs on the CPU; without `proof`, for callers who judge the
    answer themselves, residuals are cosines alone."""
    q, restore = as_costs(costs, sets.n_parameters, "costs")
    # A read-only array has a type of its own, for which the kernels would be compiled anew.
    q = np.require(q, requirements=["C", "A", "W"])
    check_options(len(q), len(sets), options, METHODS)
    method, tol = options.method, options.tol
    limit = options.time_limit
    deadline = None if limit is None else time.monotonic() + limit
    analysis = analyze(sets)
    job = Job(q, sets.entry_state, sets.row_active, sets.margins)
    n_rows = sets.rows.eq_rows.shape[0] + sets.rows.ub_rows.shape[0]
    work = Work.empty(len(q), q.shape[1], n_rows)
    warm = _read_warm_start(options.warm_start, sets, work.multipliers)
    if warm and analysis.whole is not None:
        analysis.whole.basis.fold(work.multipliers)
    late = False
    spread = analysis.spread if proof else np.ones(1)
    if len(q) and method in ("auto", "kernel"):
        late = run_kernel(
            analysis,
            job,
            work,
            warm=warm,
            tol=tol,
            max_iter=int(options.max_iter),
            time_limit=options.time_limit,
            threads=options.threads,
        )
    plain = work.answer.residual
    if spread.max(initial=1.0) > HARMLESS:
        plain = plain.copy()
        _prove_doubtful(analysis, job, work, spread, tol)
    if len(q) and method != "kernel":
        late |= _hand_on(analysis, job, work, sets, method, tol, deadline, spread, plain)
    _certify_the_rest(analysis, job, work, sets)
    return _result(work, restore, tol, options.max_iter, late)


def _certify_the_rest(analysis: Analysis, job: Job, work: Work, sets: OptimalitySet) -> None:
    """Instances that no solver came to, or gave up on, get the point of the least multipliers."""
    for b in np.flatnonzero(~np.isfinite(work.answer.residual)):
        least = np.zeros(work.multipliers.shape[1])
        least[sets.rows.eq_rows.shape[0] :][sets.row_active[b]] = sets.margins[b]
        recertify(analysis, job, work, int(b), least, polish=False)


def _hand_on(
    analysis: Analysis,
    job: Job,
    work: Work,
    sets: OptimalitySet,
    method: str,
    tol: float,
    deadline: float | None,
    spread: np.ndarray,
    plain: np.ndarray,
) -> bool:
    """Give instances still above `tol` to the slower solvers; keep whatever has the smaller
    residual."""
    if (work.answer.residual <= tol).all():
        return False
    names = available_fallbacks(job.cost.shape[1]) if method == "auto" else [method]
    for name in (name for name in names if name in FALLBACKS):
        for b in np.flatnonzero(~(work.answer.residual <= tol)):
            if deadline is not None and time.monotonic() > deadline:
                return True
            multipliers, steps = FALLBACKS[name](sets, job.cost, int(b), tol)
            work.steps[b] += steps
            if multipliers is not None:
                polish = method == "auto"  # a solver asked for by name is shown as it is
                take = _Candidate(work, int(b), plain)
                recertify(analysis, job, work, int(b), multipliers, polish=polish)
                take.judge(lambda ids: _prove_doubtful(analysis, job, work, spread, tol, ids), tol)
    if method in ("auto", "exact"):
        for b in np.flatnonzero(~(work.answer.residual <= tol)):
            if deadline is not None and time.monotonic() > deadline:
                return True
            _enter_exact(job, work, sets, int(b))
    return False


class _Candidate:
    """Another solver's answer for instance b, which may replace one that nothing was proved of."""

    def __init__(self, work: Work, b: int, plain: np.ndarray) -> None:
        self.work, self.b, self.plain = work, b, plain
        self.arrays = (work.multipliers, *work.answer)
        self.before = [np.array(array[b]) for array in self.arrays]
        if work.answer.residual[b] > plain[b]:
            work.answer.residual[b] = np.inf  # so that a larger cosine gets its chance

    def judge(self, prove: Callable[[np.ndarray], None], tol: float) -> None:
        """Prove the answer if it needs proof; put back what was there if neither is proved and the
        new one has the larger cosine."""
        b, residual = self.b, self.work.answer.residual
        found = residual[b]
        prove(np.array([b]))
        if residual[b] <= tol or not self.plain[b] < found:
            self.plain[b] = found
            return
        for array, value in zip(self.arrays, self.before, strict=True):
            array[b] = value


def _prove_doubtful(
    analysis: Analysis,
    job: Job,
    work: Work,
    spread: np.ndarray,
    tol: float,
    ids: np.ndarray | None = None,
) -> None:
    """Replace residuals within `tol` by a proved bound where the scales of rows and columns say
    that they may mislead; see `verify`."""
    if not spread.max(initial=1.0) > HARMLESS:
        return
    residual = work.answer.residual
    ids = np.arange(len(residual)) if ids is None else ids
    factor = spread[ids] if len(spread) > 1 else spread
    hidden = residual[ids] > HARMLESS * tol / factor
    hidden |= factor > HOPELESS
    doubtful = ids[(residual[ids] <= tol) & hidden]
    if doubtful.size:
        prove(analysis, job, work, doubtful)


def _enter_exact(job: Job, work: Work, sets: OptimalitySet, b: int) -> None:
    """The answer in exact arithmetic, if the instance is small enough."""
    found = exact_projection(sets, job.cost[b], b)
    if found is None:
        return
    work.answer.point[b], work.multipliers[b] = found.point, found.multipliers
    work.answer.distance[b] = found.distance
    work.answer.residual[b] = found.rounding
    work.steps[b] += found.steps


def _result(work: Work, restore: Any, tol: float, max_iter: int, late: bool) -> Projection:
    # A distance of inf: the answer is beyond float64.
    solved = (work.answer.residual <= tol) & np.isfinite(work.answer.distance)
    status = np.full(len(solved), _SOLVED, np.int8)
    if not solved.all():
        status[:] = ProjectionStatus.INACCURATE
        status[work.steps >= max_iter] = ProjectionStatus.MAX_ITER
        if late:
            status[:] = ProjectionStatus.TIME_LIMIT
        status[solved] = _SOLVED
    answer = Projection(*work.answer, solved, status, work.steps, work.multipliers)
    return as_given(answer, restore)


def _read_warm_start(warm_start: Any, sets: OptimalitySet, multipliers: np.ndarray) -> bool:
    """Copy the multipliers of an earlier projection into `multipliers`; False if there are none."""
    if warm_start is None:
        return False
    given = getattr(warm_start, "multipliers", warm_start)
    array = to_float64(given, "warm_start")
    if array.shape != multipliers.shape:
        raise ShapeError(
            "`warm_start` must be a Projection of the same sets, or its multipliers of shape "
            f"{multipliers.shape}; got shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise InputError("`warm_start` must be finite; drop it to start afresh.")
    multipliers[:] = array
    multipliers[:, sets.rows.eq_rows.shape[0] :][~sets.row_active] = 0.0
    return True
