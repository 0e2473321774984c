"""Limits that nobody wrote down: which right-hand sides and bounds of a linear program are unknown.

    a_k x <= b_k        a row of A_ub, or x_j <= b_k; with the other sign a lower bound b_k <= x_j

A decision bounds the limit: it is at a_k x, or somewhere beyond. Letters: B
instances, n variables, K unknown limits in the order rows, lower bounds, upper bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._common.rows import frozen
from ..errors import InputError, ShapeError
from .linear import LinearProgram

GROUPS = ("ub", "lower", "upper")
"""Rows of `A_ub`, lower bounds of variables, upper bounds of variables."""


@dataclass(frozen=True, eq=False)
class UnknownLimits:
    """Which limits of a LinearProgram are unknown; what it holds there is not looked at."""

    rows: np.ndarray
    """Rows of `A_ub`."""
    lower: np.ndarray
    """Variables whose lower bound is unknown; `upper` likewise."""
    upper: np.ndarray

    @classmethod
    def read(cls, given: Any, problem: Any) -> UnknownLimits:
        """From `{"ub": [2, 5], "lower": [...], "upper": [...]}`; every name may be left out."""
        if isinstance(given, UnknownLimits):
            return given
        if type(problem) is not LinearProgram:
            raise InputError(
                f"`unknown_limits` are those of a LinearProgram; got {type(problem).__name__}."
            )
        if not isinstance(given, Mapping) or not given or set(given) - set(GROUPS):
            raise InputError(
                '`unknown_limits` must name rows as {"ub": [2, 5]}, or variables under "lower" and '
                f'"upper"; got {given!r}.'
            )
        m, n = problem.ub_rows.shape
        sizes = {"ub": (m, "rows of `A_ub`"), "lower": (n, "variables"), "upper": (n, "variables")}
        found = cls(*(_checked(given.get(name, ()), name, *sizes[name]) for name in GROUPS))
        if not len(found):
            raise InputError("`unknown_limits` names no row and no bound; leave it out instead.")
        found._refuse_all(problem)
        return found

    def __len__(self) -> int:
        """K"""
        return len(self.rows) + len(self.lower) + len(self.upper)

    @cached_property
    def sense(self) -> np.ndarray:
        """(K,) 1 where a limit is from above, -1 for lower bounds: sense * limit >= sense *
        value."""
        below = len(self.rows), len(self.rows) + len(self.lower)
        sense = np.ones(len(self))
        sense[below[0] : below[1]] = -1.0
        return sense

    @property
    def as_dict(self) -> dict[str, list[int]]:
        """As it is given to the estimator."""
        parts = zip(GROUPS, (self.rows, self.lower, self.upper), strict=True)
        return {name: part.tolist() for name, part in parts if len(part)}

    @property
    def names(self) -> list[str]:
        """(K,) what each limit is, in words."""
        words = (
            "row {} of A_ub",
            "the lower bound of variable {}",
            "the upper bound of variable {}",
        )
        parts = zip(words, (self.rows, self.lower, self.upper), strict=True)
        return [word.format(k) for word, part in parts for k in part]

    def values(self, problem: LinearProgram, X: np.ndarray) -> np.ndarray:
        """(B, K): where decisions X (B, n) stand, in the units of the limits."""
        return np.hstack(
            [problem.ub_rows.times(X)[:, self.rows], X[:, self.lower], X[:, self.upper]]
        )

    def normals(self, problem: LinearProgram) -> np.ndarray:
        """(K, n) of the constraints a_k x <= b_k, or (B, K, n) where matrices differ by instance;
        those of lower bounds are negative unit vectors."""
        unit = np.eye(problem.n_variables)
        bounds = np.vstack([-unit[self.lower], unit[self.upper]])
        rows = problem.ub_rows
        count = len(rows.data) if rows.per_instance else 1
        each = [rows.matrix(i)[self.rows].toarray() for i in range(count)]
        found = np.stack([np.vstack([part, bounds]) for part in each])
        return found if rows.per_instance else found[0]

    def opened(self, problem: LinearProgram) -> LinearProgram:
        """The problem without these limits."""
        return self._with(problem, np.inf * self.sense, problem.n_instances)

    def closed(self, problem: LinearProgram, limits: np.ndarray) -> LinearProgram:
        """The problem with limits (B, K) of each instance, infinite where there is none."""
        if problem.n_instances not in (None, len(limits)):
            raise ShapeError(
                f"The problem has constraints for {problem.n_instances} instances; limits came for "
                f"{len(limits)}."
            )
        return self._with(problem, limits, len(limits))

    def crossed(self, problem: LinearProgram, limits: np.ndarray) -> np.ndarray:
        """(B,) whether limits (B, K) leave a variable no value at all."""
        low, high = self._bounds(problem, limits)
        return np.asarray((low > high).any(axis=-1))

    def _with(
        self, problem: LinearProgram, limits: np.ndarray, n_instances: int | None
    ) -> LinearProgram:
        m = len(self.rows)
        b_ub = _placed(problem.b_ub, self.rows, limits[..., :m])
        lb, ub = self._bounds(problem, limits)
        parts = {"b_ub": frozen(b_ub), "lb": frozen(lb), "ub": frozen(ub)}
        # A structure describes constraints that these no longer are.
        return problem.replaced(**parts, n_instances=n_instances, structure=None)

    def _bounds(self, problem: LinearProgram, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m, split = len(self.rows), len(self.rows) + len(self.lower)
        lb = _placed(problem.lb, self.lower, limits[..., m:split])
        return lb, _placed(problem.ub, self.upper, limits[..., split:])

    def _refuse_all(self, problem: LinearProgram) -> None:
        """Something must be known: limits that go through every decision explain anything."""
        free = self.opened(problem)
        known = problem.eq_rows.shape[0] + np.isfinite(free.b_ub).sum()
        known += np.isfinite(free.lb).sum() + np.isfinite(free.ub).sum()
        if not known:
            raise InputError(
                "Every row and bound of the problem is an unknown limit, so that any decision can "
                "be explained by limits that pass through it. Give at least the bounds of the "
                "variables."
            )


def _placed(known: np.ndarray, where: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """The known values with some replaced: (m,) or, where limits differ by instance, (B, m)."""
    if not len(where):
        return known.copy()
    shape = (*limits.shape[:-1], known.shape[-1]) if limits.ndim > known.ndim else known.shape
    result = np.array(np.broadcast_to(known, shape))
    result[..., where] = limits
    return result


def _checked(given: Any, name: str, size: int, what: str) -> np.ndarray:
    array = np.atleast_1d(np.asarray(given))
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f'`unknown_limits["{name}"]` must be a list of whole numbers, of {what} counted from '
            f"0; got {given!r}."
        )
    bad = array[(array < 0) | (array >= size)]
    if bad.size:
        raise InputError(
            f'`unknown_limits["{name}"]` names {bad[0]}, but the problem has {size} {what}, '
            "counted from 0."
        )
    if len(np.unique(array)) < len(array):
        raise InputError(f'`unknown_limits["{name}"]` names {what} twice; got {given!r}.')
    return array.astype(np.int64)
