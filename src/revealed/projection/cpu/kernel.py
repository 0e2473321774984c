"""The compiled route: Newton, soft steps where it does not settle, an interior point where these do
not help, and the certificate.

One call works through a list of instances without the interpreter, W of them in SIMD lanes at a
time, and threads share a batch by taking pieces of it. Python only cuts the batch and watches the
clock.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ..constants import (
    INTERIOR_STEPS,
    PATIENCE,
    QUICK_STEPS,
    SOFT_STEPS,
    STILL,
    plan_stages,
)
from .analysis import Analysis
from .certificate import Answer, certify
from .group import Job
from .interior import interior
from .newton import Pace, newton
from .simd import token

LANES = 8
"""Instances computed side by side: one cache line, one AVX-512 register or two AVX2 ones."""
PIECE = 256
"""Largest number of instances one thread takes at a time."""
POLISH_STEPS = 30
"""Newton steps on an answer that came from elsewhere."""
LONELY = 100_000
"""Multiply-adds of a step from which one or two instances are better off without lanes."""
WORTH_THREADS = 500_000
"""Multiply-adds below which starting a second thread costs more than it saves."""


class Work(NamedTuple):
    """Arrays that the kernel fills, one line for each of B instances."""

    multipliers: np.ndarray
    """(B, m_eq + m_ub)"""
    steps: np.ndarray
    """(B,)"""
    answer: Answer

    @classmethod
    def empty(cls, size: int, n: int, m: int) -> "Work":
        """For `size` instances of n entries and m rows, multipliers 0."""
        return cls(
            np.zeros((size, m)),
            np.zeros(size, np.int64),
            Answer(np.empty((size, n)), np.full(size, np.inf), np.full(size, np.inf)),
        )


def run_kernel(
    analysis: Analysis,
    job: Job,
    work: Work,
    *,
    warm: bool,
    tol: float,
    max_iter: int,
    time_limit: float | None,
    threads: int | None,
) -> bool:
    """Fill `work`; `work.multipliers` is the start where `warm`. Returns whether the time ran
    out."""
    size = len(job.cost)
    w = token(_lanes(analysis, size))
    count = _thread_count(threads, size * analysis.operations)
    piece = min(PIECE, -(-size // (count * LANES)) * LANES)
    ids = np.arange(size)
    pieces = [ids[k : k + piece] for k in range(0, size, piece)]
    stop = np.zeros(1, np.uint8)

    def one(part: np.ndarray) -> None:
        _work_through(
            analysis, job, work, part, warm=warm, tol=tol, max_iter=max_iter, stop=stop, w=w
        )

    with _alarm(stop, time_limit):
        if count == 1 or len(pieces) == 1:
            for part in pieces:
                one(part)
        else:
            list(_pool(count).map(one, pieces))
    return bool(stop[0])


def _work_through(
    analysis: Analysis,
    job: Job,
    work: Work,
    ids: np.ndarray,
    *,
    warm: bool,
    tol: float,
    max_iter: int,
    stop: np.ndarray,
    w: tuple[int, ...],
) -> None:
    """Newton on all, then stage by stage on what is left; an instance keeps the best it has had."""
    columns, pattern, first, _, whole = analysis[:5]
    multipliers, steps, answer = work.multipliers, work.steps, work.answer
    # Rows that are left out add up what the others miss.
    fine = STILL * tol / (1.0 if whole is None else whole.basis.growth)

    def run_newton(ids: np.ndarray, pace: Pace, fresh: bool = False) -> None:
        newton(columns, pattern, first, job, ids, pace, fresh, work, stop, w)
        if whole is not None:
            _certify(analysis, job, work, ids, w)

    def steps_left(ids: np.ndarray) -> int:
        return max_iter - int(steps[ids].max(initial=0))

    # A warm start that is within the tolerance already is an answer; a fresh one aims higher.
    still = tol if warm and whole is None else fine
    overshoot, stages = plan_stages(bounds=columns.n_equalities < columns.norm.shape[1])
    run_newton(ids, Pace(min(QUICK_STEPS, max_iter), 0, PATIENCE, overshoot, still), not warm)
    for goal, polish in stages:
        ids = ids[~(answer.residual[ids] <= tol)]
        if len(ids) == 0 or steps_left(ids) <= 0 or stop[0]:
            return
        before, reached = multipliers[ids], answer.residual[ids]
        soft = SOFT_STEPS if goal is None else 0
        if goal is not None:
            cap = min(INTERIOR_STEPS, steps_left(ids))
            interior(columns, pattern, job, ids, cap, goal, work, stop, w)
        cap = min(soft + polish, steps_left(ids))
        run_newton(ids, Pace(cap, soft, cap + 1, np.inf, fine))
        worse = ~(answer.residual[ids] <= reached)
        if worse.any():
            multipliers[ids[worse]] = before[worse]
            _certify(analysis, job, work, ids[worse], token(1))


def _certify(analysis: Analysis, job: Job, work: Work, ids: np.ndarray, w: tuple[int, ...]) -> None:
    """Judge the multipliers of instances `ids` by all rows, also those that are left out."""
    judged = analysis if analysis.whole is None else analysis.whole
    certify(judged.columns, judged.pattern, job, ids, work.multipliers, work.answer, w)


class _alarm:
    """Sets stop[0] when the time is up or the caller is interrupted; the kernels look at it once a
    step."""

    def __init__(self, stop: np.ndarray, seconds: float | None):
        self.timer, self.stop = None, stop
        if seconds == 0:  # a timer might come too late
            stop.fill(1)
        elif seconds is not None and seconds < threading.TIMEOUT_MAX:
            self.timer = threading.Timer(float(seconds), stop.fill, (1,))
            self.timer.daemon = True

    def __enter__(self) -> None:
        if self.timer is not None:
            self.timer.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if kind is not None:  # threads that still run would work for nothing
            self.stop.fill(1)


def _lanes(analysis: Analysis, size: int) -> int:
    """One lane where lanes cannot share (matrices of their own) or would mostly run empty on a
    large problem."""
    shared = len(analysis.columns.value) == 1
    empty = size <= 2 and analysis.operations > LONELY
    return LANES if shared and not empty else 1


def _thread_count(threads: int | None, operations: int) -> int:
    if threads is not None:
        return threads
    if operations < WORTH_THREADS:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_pools: dict[int, ThreadPoolExecutor] = {}


def _pool(count: int) -> ThreadPoolExecutor:
    # Plain threads over nogil kernels: no OpenMP or TBB layer that could clash with torch or
    # break after a fork.
    if count not in _pools:
        _pools[count] = ThreadPoolExecutor(count, thread_name_prefix="revealed-project")
    return _pools[count]


if hasattr(
    os, "register_at_fork"
):  # the threads of a pool do not survive a fork, so the child makes its own
    os.register_at_fork(after_in_child=_pools.clear)


def recertify(
    analysis: Analysis, job: Job, work: Work, b: int, multipliers: np.ndarray, *, polish: bool
) -> None:
    """Judge other multipliers of instance b, polished by Newton if asked; keep the best."""
    columns, pattern, first, _, whole = analysis[:5]
    residual = work.answer.residual
    before, reached = work.multipliers[b].copy(), residual[b]
    reached = np.inf if np.isnan(reached) else reached
    ids, w = np.array([b]), token(1)
    work.multipliers[b] = multipliers
    if polish:
        if whole is not None:
            whole.basis.fold(work.multipliers[b : b + 1])
        stop = np.zeros(1, np.uint8)
        pace = Pace(POLISH_STEPS, 0, POLISH_STEPS, np.inf, 0.0)
        newton(columns, pattern, first, job, ids, pace, False, work, stop, w)
    if whole is not None or not polish:
        _certify(analysis, job, work, ids, w)
    if not residual[b] <= reached:
        work.multipliers[b] = before
        _certify(analysis, job, work, ids, w)
