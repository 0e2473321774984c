"""Numbers of a plan that every sample has its own of: a budget, a demand, what a machine can do.

    budget                 the right-hand side of the row `budget`, in a column of that name
    budget=money           the same, in the column `money`
    upper:truck_3=free     the upper bound of a variable, or of a row with two sides; `lower:` too
    demand_*               every row whose name begins so and that has a column of its name

Letters: B samples, k limits, n variables, m rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from ..errors import InputError
from ..problem import LinearProgram
from ..tables.names import did_you_mean, listed, plain_name
from ..tables.table import TableFile, require
from .plan import Plan

SIDES = ("lower", "upper")
_JOINT = "="


@dataclass(frozen=True)
class Limit:
    """One number of a plan, and the column of the contexts that says what it is."""

    part: str
    """What it is of: one of `PARTS`."""
    index: int
    """Of the row or variable."""
    name: str
    """As it was asked for: `budget`, `upper:truck_3`."""
    column: str

    @property
    def told(self) -> str:
        """`budget`, or `budget from the column money`."""
        same = self.column == self.name
        return self.name if same else f"{self.name} from the column {self.column}"


PARTS = ("b_eq", "b_ub", "lb", "ub")
"""Vectors of a `LinearProgram` that limits are entries of."""


def find_limits(plan: Plan, asked: Sequence[str], columns: Sequence[str]) -> tuple[Limit, ...]:
    """The limits that someone asked for, each a name or name=column."""
    found: list[Limit] = []
    for text in map(plain_name, asked):
        for name, column in _pairs(plan, text, columns):
            part, index = _place(plan, name)
            found.append(Limit(part, index, name, column))
    taken: dict[tuple[str, int], Limit] = {}
    for limit in found:
        before = taken.setdefault((limit.part, limit.index), limit)
        if before is not limit and before.column != limit.column:
            raise InputError(
                f"--limit {limit.name} is given twice, with the columns {before.column!r} and "
                f"{limit.column!r}; keep one."
            )
    return tuple(taken.values())


def _pairs(plan: Plan, text: str, columns: Sequence[str]) -> list[tuple[str, str]]:
    """(name, column) of what was asked for."""
    known = {*_names(plan), *(f"{side}:{name}" for side in SIDES for name in _names(plan))}
    if _JOINT in text and text not in known:
        name, _, column = text.partition(_JOINT)
        if not name.strip() or not column.strip():
            raise InputError(f"--limit {text}: a row and a column were expected, as in row=column.")
        return [(name.strip(), column.strip())]
    if "*" not in text or text in known:
        return [(text, text)]
    there = set(columns)
    pairs = [(name, name) for name in _names(plan) if fnmatchcase(name, text) and name in there]
    if not pairs:
        raise InputError(
            f"--limit {text}: no row of {plan.name} has such a name and a column of the contexts "
            f"with the same one; its rows are {listed(_names(plan))}."
        )
    return pairs


def _names(plan: Plan) -> tuple[str, ...]:
    """Of all rows, each once."""
    return tuple(dict.fromkeys([*plan.equalities, *plan.inequalities]))


def _place(plan: Plan, name: str) -> tuple[str, int]:
    """The vector and the entry that a name stands for."""
    side, _, bare = name.partition(":")
    if side in SIDES and bare in plan.variables:
        return ("lb", "ub")[side == "upper"], plan.variables.index(bare)
    if side in SIDES and bare in plan.inequalities:
        turned = plan.row_sign < 0
        at = [i for i in _all(plan.inequalities, bare) if turned[i] == (side == "lower")]
        if len(at) == 1:
            return "b_ub", at[0]
        raise InputError(f"--limit {name}: the row {bare!r} has no {side} limit in {plan.name}.")
    equal, unequal = _all(plan.equalities, name), _all(plan.inequalities, name)
    if len(equal) + len(unequal) == 1:
        return ("b_eq", equal[0]) if equal else ("b_ub", unequal[0])
    if equal or unequal:
        raise InputError(
            f"--limit {name}: {plan.name} has {len(equal) + len(unequal)} limits of that name; say "
            f"lower:{name} or upper:{name}."
        )
    if name in plan.variables:
        raise InputError(
            f"--limit {name}: that is a variable; say lower:{name} or upper:{name} for its bounds."
        )
    names = _names(plan)
    raise InputError(
        f"--limit {name}: {plan.name} has no row of that name{did_you_mean(name, names)}; its rows "
        f"are {listed(names)}. Bounds of a variable are called lower:NAME and upper:NAME."
    )


def _all(names: Sequence[str], name: str) -> list[int]:
    return [i for i, other in enumerate(names) if other == name]


def read_limits(file: TableFile, plan: Plan, limits: Sequence[Limit]) -> np.ndarray:
    """(B, k) limits of a table of contexts as the planner writes them; NaN where a cell is empty,
    which stands for the plan's own."""
    columns = list(dict.fromkeys(limit.column for limit in limits))
    require(file.path, file.names, columns)
    table = file.read(columns)
    values = table.numbers[:, [columns.index(limit.column) for limit in limits]]
    for limit, given in zip(limits, values.T, strict=True):
        endless = np.isinf(given) if limit.part == "b_eq" else given == _never(plan, limit)
        for b in np.flatnonzero(endless)[:1]:
            raise InputError(
                f"{table.where(int(b), limit.column)} is {given[b]:g}, which {limit.name} can "
                "never be; an empty cell stands for the plan's own."
            )
    for j in sorted({limit.index for limit in limits if limit.part in ("lb", "ub")}):
        low, high = (_bound(plan, limits, values, part, j) for part in ("lb", "ub"))
        for b in np.flatnonzero(low > high)[:1]:
            column = next(x.column for x in limits if x.part in ("lb", "ub") and x.index == j)
            raise InputError(
                f"{table.where(int(b), column)}: {plan.variables[j]} may then be no less than "
                f"{low[b]:g} and no more than {high[b]:g}; no number is both."
            )
    return values


def _never(plan: Plan, limit: Limit) -> float:
    """The infinity that would leave no decision."""
    from_below = limit.part == "lb" or (limit.part == "b_ub" and plan.row_sign[limit.index] < 0)
    return np.inf if from_below else -np.inf


def _bound(
    plan: Plan, limits: Sequence[Limit], values: np.ndarray, part: str, j: int
) -> np.ndarray:
    """(B,) bounds of one variable on one side."""
    bound = np.full(len(values), getattr(plan.problem, part)[j])
    for limit, given in zip(limits, values.T, strict=True):
        if (limit.part, limit.index) == (part, j):
            bound = np.where(np.isnan(given), bound, given)
    return bound


def with_limits(plan: Plan, limits: Sequence[Limit], values: np.ndarray) -> Plan:
    """The plan of B samples whose limits are `values` (B, k), NaN for the plan's own."""
    problem = plan.problem
    vectors = {part: getattr(problem, part) for part in PARTS}
    for part in {limit.part for limit in limits}:
        vectors[part] = np.repeat(vectors[part][None], len(values), axis=0)
    for limit, given in zip(limits, values.T, strict=True):
        turned = limit.part == "b_ub" and plan.row_sign[limit.index] < 0
        column = vectors[limit.part][:, limit.index]
        column[:] = np.where(np.isnan(given), column, -given if turned else given)
    return plan.with_problem(LinearProgram(problem.A_eq, A_ub=problem.A_ub, **vectors))
