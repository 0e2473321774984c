"""Scheduling under a price of electricity that changes through the day.

A task runs once, without a break, inside its time window, and draws constant power. Variable x_jt
says that task j starts in period t (the starts that fit its window are the only variables):

    minimize <c, x>   subject to   sum_t x_jt = 1 for each task,   0 <= x,
                                   the use of the machines in each period at most their capacity

The cost of a start is what the electricity of the whole run costs, so prices w of the P periods
become costs c = S w with the (n, P) energy matrix S of `energy_per_start`. Machines are pooled: a
start's cost does not depend on the machine, so neither does what a schedule reveals. But a schedule
that fits the pool need not fit on the machines one by one.

The linear program is a relaxation of the integer one. Where its solution is whole it is an optimal
schedule; otherwise its value is a lower bound and `integer_schedules` finds the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..._common.arrays import Choice, as_costs, to_float64
from ..._common.checks import positive_int
from ..._common.rows import frozen
from ...errors import InputError, ShapeError
from ..linear import LinearProgram


@dataclass(frozen=True, eq=False)
class ScheduleStructure:
    """Which start each variable stands for; entry k: task[k] starts in period start[k]."""

    task: np.ndarray
    """(n,) int64, ascending; `start` (n,) ascends within a task."""
    start: np.ndarray
    duration: np.ndarray
    """(tasks,) periods that each task runs."""
    n_periods: int

    @property
    def n_instances(self) -> int | None:
        return None

    def take(self, index: Choice) -> ScheduleStructure:
        return self


def scheduling(
    duration: Any,
    earliest: Any,
    latest: Any,
    *,
    n_periods: int,
    usage: Any = None,
    capacity: Any = None,
) -> LinearProgram:
    """When to start each task; one cost for each possible start, in order of task and time.

    Parameters
    ----------
    duration : (tasks,) int array
        Periods that each task runs.
    earliest : (tasks,) int array
        The first period that each task may use.
    latest : (tasks,) int array
        The first period that each task may no longer use: it has ended by then.
    n_periods : int
    usage : (tasks,) array, optional
        What each task takes of the capacity while it runs. Give both or neither.
    capacity : float or (n_periods,) array, optional
        Above 0. Without it tasks do not meet.

    Returns
    -------
    LinearProgram
        The relaxation; `integer_schedules` finds whole schedules.
    """
    n_periods = positive_int(n_periods, "n_periods")
    length, first, end = (
        _whole(value, name)
        for value, name in ((duration, "duration"), (earliest, "earliest"), (latest, "latest"))
    )
    _refuse_impossible(length, first, end, n_periods)
    counts = end - length - first + 1
    task = np.repeat(np.arange(len(length)), counts)
    start = np.concatenate([np.arange(f, f + k) for f, k in zip(first, counts, strict=True)])
    structure = ScheduleStructure(
        frozen(task), frozen(start.astype(np.int64)), frozen(length), n_periods
    )
    place = (task, np.arange(len(task)))
    once = sparse.coo_array((np.ones(len(task)), place), shape=(len(length), len(task)))
    if usage is None and capacity is None:
        return LinearProgram(A_eq=once, b_eq=1.0, structure=structure)
    if usage is None or capacity is None:
        raise InputError("`usage` and `capacity` belong together; give both or neither.")
    # Shares of the capacity, not units: a margin asks for multipliers of at least its size, and in
    # units of hundreds that would drown every difference between starts.
    taken = _per_task(usage, structure, "usage")
    if (taken < 0).any():
        raise InputError(f"`usage` must not be negative; got {taken.min():g}.")
    share = running(structure) * taken / _room(capacity, n_periods)
    return LinearProgram(A_eq=once, b_eq=1.0, A_ub=share.T, b_ub=1.0, structure=structure)


def running(structure: ScheduleStructure) -> sparse.csr_array:
    """(n, P) 0/1: whether the task of a start runs in a period."""
    length = structure.duration[structure.task]
    rows = np.repeat(np.arange(len(length)), length)
    first = np.cumsum(length) - length
    periods = np.arange(len(rows)) - np.repeat(first, length) + np.repeat(structure.start, length)
    shape = (len(length), structure.n_periods)
    return sparse.csr_array((np.ones(len(rows)), (rows, periods)), shape=shape)


def energy_per_start(problem: LinearProgram, power: Any, hours: float = 1.0) -> sparse.csr_array:
    """(n, P) energy that each start draws in each period: costs are this times the prices.

    Parameters
    ----------
    problem : LinearProgram
        Of `scheduling`.
    power : (tasks,) array
        What each task draws while it runs.
    hours : float
        The length of a period.

    Returns
    -------
    (n, P) sparse matrix
    """
    structure = _structure(problem)
    return sparse.csr_array(running(structure) * (_per_task(power, structure, "power") * hours))


def integer_schedules(
    problem: LinearProgram, costs: Any, *, time_limit: float | None = None
) -> np.ndarray:
    """(B, n) whole schedules of smallest cost, by HiGHS's branch and bound (scipy's `milp`).

    Slower than `problem.solve`, and the explaining costs of a whole schedule that is no solution of
    the relaxation are an empty set at a positive margin: learning then treats it as noise.

    Parameters
    ----------
    problem : LinearProgram
        Of `scheduling`.
    costs : (B, n) array or tensor
    time_limit : float, optional
        Seconds for each row.

    Returns
    -------
    (B, n) array

    Raises
    ------
    InputError
        If a schedule is not proved to be the best.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    _structure(problem)
    C, _ = as_costs(costs, problem.n_variables)
    equal: Any = problem.b_eq
    limit: Any = problem.b_ub
    rules = [LinearConstraint(problem.A_eq, equal, equal)]
    if problem.ub_rows.shape[0]:
        rules.append(LinearConstraint(problem.A_ub, -np.inf, limit))
    options = {"mip_rel_gap": 0.0}
    if time_limit is not None:
        options["time_limit"] = float(time_limit)
    found = np.empty(C.shape)
    for b, cost in enumerate(C):
        answer = milp(cost, integrality=1, bounds=Bounds(0, 1), constraints=rules, options=options)
        if not answer.success:
            raise InputError(f"No schedule is proved best for row {b} of `costs`: {answer.message}")
        found[b] = np.round(answer.x)
    return found


def start_times(problem: LinearProgram, schedules: Any) -> np.ndarray:
    """(B, tasks) the mean start of each task; exact where schedules are whole.

    Parameters
    ----------
    problem : LinearProgram
        Of `scheduling`.
    schedules : (B, n) array or tensor

    Returns
    -------
    (B, tasks) array
    """
    structure = _structure(problem)
    X, _ = as_costs(schedules, problem.n_variables, "schedules")
    first = np.searchsorted(structure.task, np.arange(len(structure.duration)))
    return np.add.reduceat(X * structure.start, first, axis=1)


def _room(capacity: Any, n_periods: int) -> np.ndarray:
    room = to_float64(capacity, "capacity")
    if room.shape not in ((), (n_periods,)) or not (np.isfinite(room) & (room > 0)).all():
        raise InputError(
            f"`capacity` must be a number above 0, or one for each of the {n_periods} periods; "
            f"got {capacity!r}."
        )
    return np.broadcast_to(room, (n_periods,))


def _structure(problem: LinearProgram) -> ScheduleStructure:
    if not isinstance(problem.structure, ScheduleStructure):
        raise InputError(f"`problem` must come from `rv.problems.scheduling`; got {problem!r}.")
    return problem.structure


def _per_task(value: Any, structure: ScheduleStructure, name: str) -> np.ndarray:
    """(n, 1) numbers of the tasks, one for each start."""
    array = to_float64(value, name)
    if array.shape != structure.duration.shape or not np.isfinite(array).all():
        raise ShapeError(
            f"`{name}` must hold a finite number for each of the {len(structure.duration)} tasks; "
            f"got shape {array.shape}."
        )
    return array[structure.task][:, None]


def _whole(value: Any, name: str) -> np.ndarray:
    array = to_float64(value, name)
    whole = np.isfinite(array) & (array == np.floor(array))
    if array.ndim != 1 or array.size == 0 or not whole.all():
        raise InputError(f"`{name}` must hold a whole number for each task; got {value!r}.")
    return array.astype(np.int64)


def _refuse_impossible(
    length: np.ndarray, first: np.ndarray, end: np.ndarray, n_periods: int
) -> None:
    if not len(length) == len(first) == len(end):
        raise ShapeError(
            "`duration`, `earliest` and `latest` must have one entry for each task; got "
            f"{len(length)}, {len(first)} and {len(end)}."
        )
    bad = np.flatnonzero((length < 1) | (first < 0) | (end > n_periods) | (end - first < length))
    if bad.size:
        j = int(bad[0])
        raise InputError(
            f"Task {j} must run for at least one period, inside its window and the {n_periods} "
            f"periods; it runs for {length[j]} between {first[j]} and {end[j]}."
        )
