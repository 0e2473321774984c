"""Problems known only by a function that decides: costs in, the cheapest decision out.

Letters: B instances, n variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._common.checks import check_number, positive_int
from ..errors import InputError
from .integer import IntegerProgram

ON_ERROR = ("raise", "fail")
REMEMBERED = 2048
"""Answers, and decisions, that a function's others are compared with: the last ones."""
EXACT = 1e-7
"""Of the largest cost times the number of variables: how exact an answer must be."""


class Answers:
    """What a function has answered so far, and whether that agrees: no decision known to be
    feasible, another answer or one that was observed, may cost less than an answer does."""

    def __init__(self, n: int) -> None:
        self.costs, self.decisions, self.known = (np.empty((0, n)) for _ in range(3))
        self.count, self.agree = 0, True
        self.probed = False
        """Whether it was asked questions that only test it."""

    def enter(self, C: np.ndarray, X: np.ndarray, feasible: np.ndarray | None = None) -> np.ndarray:
        """Remember decisions X (B, n) under costs C (B, n), and others that are feasible; which of
        X (B,) are wrong."""
        self.count += len(C)
        new = X if feasible is None else np.concatenate([X, feasible])
        new = np.unique(new[np.isfinite(new).all(axis=1)], axis=0)
        known = np.concatenate([self.known, new])[-REMEMBERED:]
        wrong = _cheaper(C, X, known)
        if wrong.any() or _cheaper(self.costs, self.decisions, new).any():
            self.agree = False
        self.known = np.unique(known, axis=0)
        self.costs = np.concatenate([self.costs, C])[-REMEMBERED:]
        self.decisions = np.concatenate([self.decisions, X])[-REMEMBERED:]
        return wrong


def _cheaper(C: np.ndarray, X: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(B,) bool: a known decision costs less under C (B, n) than X (B, n)."""
    if not len(C) or not len(known):
        return np.zeros(len(C), bool)
    allowed = EXACT * np.abs(C).max(axis=1) * C.shape[1]
    return (C * X).sum(axis=1) > (C @ known.T).min(axis=1) + allowed


class OracleProblem(IntegerProgram):
    """A problem of which only an oracle knows all constraints.

    Parameters
    ----------
    solve : callable
        Costs (n,) -> a feasible decision (n,) of least cost, or None where there is none to give.
        With `batched=True`, costs (B, n) -> decisions (B, n). It must not change its argument.
    n_variables : int
    lb, ub : float or (n,) array
        Bounds that every decision obeys; 0 and 1 unless given.
    integer : bool or (n,) bool array
        Which variables are whole; all of them unless given.
    rows : LinearProgram, optional
        Constraints that every decision is known to obey; bounds are then taken from it. They make
        the checks sharper, and the inner sets larger.
    feasible : callable, optional
        A decision (n,) -> whether it obeys all constraints, to check answers and observations by.
    batched : bool
    time_limit : float, optional
        Seconds for one call. A call that takes longer counts as one without an answer; Python
        cannot end it, so it runs on in a thread of its own.
    on_error : "raise" or "fail"
        What to do about an answer that cannot be right (infeasible, NaN, of the wrong length, not
        whole) or an exception: raise it, or let the instance have status FAILED.
    distance : (n,) array, optional
        As of `IntegerProgram`.
    """

    oracle: Callable[[np.ndarray], Any]
    feasible: Callable[[np.ndarray], Any] | None
    batched: bool
    time_limit: float | None
    on_error: str
    record: Answers

    def __init__(
        self,
        solve: Callable[[np.ndarray], Any],
        n_variables: int,
        *,
        lb: Any = 0.0,
        ub: Any = 1.0,
        integer: Any = True,
        rows: Any = None,
        feasible: Callable[[np.ndarray], Any] | None = None,
        batched: bool = False,
        time_limit: float | None = None,
        on_error: str = "raise",
        distance: Any = None,
    ) -> None:
        n = positive_int(n_variables, "n_variables")
        if not callable(solve) or not (feasible is None or callable(feasible)):
            raise InputError(
                "`solve` must be a function from costs (n,) to a decision (n,), and `feasible` one "
                f"from a decision to True or False; got {solve!r} and {feasible!r}."
            )
        if on_error not in ON_ERROR:
            raise InputError(f"`on_error` must be 'raise' or 'fail'; got {on_error!r}.")
        if time_limit is not None:
            check_number(time_limit, "time_limit", " None sets no limit.")
            if time_limit == 0:
                raise InputError(
                    "`time_limit` must be more than 0 seconds, or no call could ever answer; got "
                    f"{time_limit!r}. None sets no limit."
                )
        box = {"lb": _spread(lb, -np.inf, n), "ub": _spread(ub, np.inf, n)}
        super().__init__(**box, integer=integer, distance=distance)
        if rows is not None:
            self._set(relaxation=_checked_rows(rows, n))
        if self.n_instances is not None:
            raise InputError(
                "The bounds and rows of an OracleProblem are the same for all instances: its "
                "function does not know which instance it decides for. Build one problem for each."
            )
        self._set(
            oracle=solve,
            feasible=feasible,
            batched=bool(batched),
            time_limit=time_limit,
            on_error=on_error,
            record=Answers(n),
        )

    def constraint_violation(self, decisions: Any) -> Any:
        """(B,): as of `IntegerProgram`, by the bounds and rows that are known; 1 where `feasible`
        says that a decision obeying these is not feasible."""
        found = super().constraint_violation(decisions)
        if self.feasible is None:
            return found
        X, wrong = np.atleast_2d(np.asarray(decisions, float)), np.zeros(len(found))
        for b, x in enumerate(X):
            wrong[b] = 0.0 if self.feasible(x.copy()) else 1.0
        return np.maximum(np.asarray(found), wrong)

    @property
    def is_trusted(self) -> bool:
        """Whether the function's answers agree with each other. One that has returned a decision
        above that of another it knew is not exact, and proves nothing: set its gap to 0."""
        return self.record.agree

    def __repr__(self) -> str:
        name = getattr(self.oracle, "__name__", type(self.oracle).__name__)
        return f"OracleProblem({name}, {self.n_variables} variables)"


def _spread(bound: Any, none: float, n: int) -> Any:
    """A bound for every variable; of another length it is left to the checks of LinearProgram."""
    if bound is None or np.ndim(bound) == 0:
        return np.full(n, none if bound is None else bound)
    return bound


def _checked_rows(rows: Any, n: int) -> Any:
    from .linear import LinearProgram

    if not isinstance(rows, LinearProgram) or rows.n_variables != n:
        raise InputError(f"`rows` must be a LinearProgram of {n} variables; got {rows!r}.")
    return rows
