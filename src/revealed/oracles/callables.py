"""Oracles of the caller's own: their functions are called, their answers checked.

Letters: B instances, n variables.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .._common.arrays import as_costs, to_float64
from ..errors import InputError, RevealedError, ShapeError
from ..problems.integer import INTEGRAL
from ..problems.oracle_problem import OracleProblem
from ..problems.solution import IntegerSolution, SolveStatus
from .calls import deadline_after
from .integer import packed

_LATE = object()


def solve_by_oracle(
    problem: OracleProblem,
    costs: Any,
    *,
    time_limit: float | None = None,
    gap: float = 0.0,
    threads: int | None = None,
    start: np.ndarray | None = None,
) -> IntegerSolution:
    """The function's decisions for each row of `costs` (B, n), checked.

    A decision that passes is taken as optimal, since only the function can know, unless another of
    its answers, or a decision in `start`, costs less: then the function is not exact, and
    `OracleProblem.is_trusted` no more. A `gap` is left to the function. Calls come one after the
    other, in the calling thread unless they have a time limit.
    """
    C, restore = as_costs(costs, problem.n_variables)
    deadline = deadline_after(time_limit)
    X = np.full(C.shape, np.nan)
    status = np.full(len(C), SolveStatus.LIMIT, np.int8)
    blocks = [np.arange(len(C))] if problem.batched else [np.array([b]) for b in range(len(C))]
    for rows in blocks:
        if time.monotonic() >= deadline or not rows.size:
            break
        first = int(rows[0])
        given = C[rows] if problem.batched else C[first].copy()
        answer = _called(problem, given, first, deadline)
        if answer is _LATE:
            continue
        for b, x in zip(rows, _decisions(problem, answer, rows), strict=True):
            fault = None if x is None else _wrong(problem, x)
            if fault is not None and problem.on_error == "raise":
                raise InputError(f"The oracle's decision for instance {b} {fault}")
            status[b] = SolveStatus.FAILED
            if x is not None and fault is None:
                status[b] = SolveStatus.OPTIMAL
                X[b] = problem.rounded(x[None])[0]
    _contradicted(problem, C, X, status, start)
    bound = np.where(status == SolveStatus.OPTIMAL, (C * X).sum(axis=1), -np.inf)
    return packed(X, status, bound, C, restore)


def _contradicted(
    problem: OracleProblem, C: np.ndarray, X: np.ndarray, status: np.ndarray, start: Any
) -> None:
    """Take OPTIMAL back where a decision known to be feasible costs less; remember the answers."""
    there = np.flatnonzero(status == SolveStatus.OPTIMAL)
    if there.size:
        wrong = problem.record.enter(C[there], X[there], start)
        status[there[wrong]] = SolveStatus.FAILED


def _called(problem: OracleProblem, given: np.ndarray, b: int, deadline: float) -> Any:
    """The answer; None where the function failed and that is no error, `_LATE` where time is up."""
    seconds = deadline - time.monotonic()
    if problem.time_limit is not None:
        seconds = min(seconds, problem.time_limit)
    try:
        if not np.isfinite(seconds):
            return problem.oracle(given)
        return _within(lambda: problem.oracle(given), seconds)
    except RevealedError:
        raise
    except Exception as error:
        if problem.on_error == "fail":
            return None
        raise InputError(
            f"The oracle raised {type(error).__name__} for instance {b}: {error}. Fix the function,"
            ' or give OracleProblem on_error="fail" to go on without its answer.'
        ) from error


def _within(call: Callable[[], Any], seconds: float) -> Any:
    """What `call` returns, or `_LATE` where that takes longer than `seconds`."""
    box: dict[str, Any] = {}

    def run() -> None:
        try:
            box["answer"] = call()
        except BaseException as error:
            box["error"] = error

    if seconds <= 0:
        return _LATE
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return _LATE
    if "error" in box:
        raise box["error"]
    return box["answer"]


def _decisions(problem: OracleProblem, answer: Any, rows: np.ndarray) -> list[Any]:
    """A decision (n,), or None, for each of the rows that were asked about."""
    if answer is None:
        return [None] * len(rows)
    n, size = problem.n_variables, len(rows)
    shape = (size, n) if problem.batched else (n,)
    try:
        array = to_float64(answer, "the oracle's answer")
    except (TypeError, ValueError) as error:
        return _refused(problem, f"numbers of shape {shape}, got {type(answer).__name__}", error)
    if array.shape != shape:
        return _refused(problem, f"shape {shape}, got shape {array.shape}", None) * size
    return list(array) if problem.batched else [array]


def _refused(problem: OracleProblem, expected: str, error: Exception | None) -> list[Any]:
    if problem.on_error == "fail":
        return [None]
    raise ShapeError(
        f"The oracle must return a decision of {expected}: one number for each cost entry."
    ) from error


def _wrong(problem: OracleProblem, x: np.ndarray) -> str | None:
    """What is wrong with a decision, the rest of a sentence; None if nothing."""
    bad = np.flatnonzero(~np.isfinite(x))
    if bad.size:
        return f"is {x[bad[0]]} in entry {bad[0]}; it must be finite."
    off = np.abs(x - np.round(x)) * problem.integer
    if off.max(initial=0.0) > INTEGRAL:
        k = int(off.argmax())
        return (
            f"is {x[k]:.6g} in entry {k}, which must be whole. Solve the integer problem, not its "
            "relaxation, or say with `integer` which variables are whole."
        )
    violation = float(np.asarray(problem.constraint_violation(problem.rounded(x[None])))[0])
    if violation > INTEGRAL:
        return (
            f"breaks a constraint that is known, by {violation:.3g} relative to its size. Check "
            "the function, or the `lb`, `ub`, `rows` and `feasible` given to OracleProblem."
        )
    return None
