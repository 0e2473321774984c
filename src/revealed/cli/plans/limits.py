"""Numbers of a plan that every sample has its own of: a budget, a demand, what a machine can do.

    budget                 the right-hand side of the row `budget`, in a column of that name
    budget=money           the same, in the column `money`
    upper:truck_3=free     the upper bound of a variable, or of a row with two sides; `lower:` too
    demand_*               every row whose name begins so and that has a column of its name
    upper:truck_*=free_*   the same for other columns, in which * stands for what it stands for here

Limits that nobody wrote down (`--unknown-limit`) are called the same, and have no column: they are
learned.

Letters: B samples, k limits, n variables, m rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ...problems.linear import LinearProgram
from ..tables.gaps import Bad
from ..tables.names import did_you_mean, listed, plain_name
from ..tables.table import TableFile
from .plan import Plan, structure_with

SIDES = ("lower", "upper")
ENDLESS = 1e20
"""What stands for no limit at all, as in model files; anything larger does too."""
_JOINT, _STAR = "=", "*"

Place = tuple[str, int]
"""A vector of a problem, one of `PARTS`, and an entry of it."""


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
    learned: bool = False
    """Whether the model says what it is, and no column does."""

    @property
    def place(self) -> Place:
        return self.part, self.index

    @property
    def source(self) -> str:
        """`budget`, or `budget from the column money`."""
        if self.learned:
            return f"{self.name}, learned"
        same = self.column == self.name
        return self.name if same else f"{self.name} from the column {self.column}"


PARTS = ("b_eq", "b_ub", "lb", "ub")
"""Vectors of a `LinearProgram` that limits are entries of."""


def limit_names(plan: Plan) -> dict[str, list[Place]]:
    """What limits of a plan may be called, and what that stands for: several where a row has two
    sides and none was said."""
    rows: dict[str, list[Place]] = {}
    sides: dict[str, list[Place]] = {}
    for i, name in enumerate(plan.equalities):
        rows.setdefault(name, []).append(("b_eq", i))
    for i, (name, sign) in enumerate(zip(plan.inequalities, plan.row_sign, strict=True)):
        rows.setdefault(name, []).append(("b_ub", i))
        sides.setdefault(f"{SIDES[int(sign > 0)]}:{name}", []).append(("b_ub", i))
    bounds: dict[str, list[Place]] = {
        f"{side}:{name}": [(part, j)]
        for side, part in zip(SIDES, ("lb", "ub"), strict=True)
        for j, name in enumerate(plan.variables)
    }
    return sides | bounds | rows  # what is called the same is the last of these


def find_limits(plan: Plan, asked: Sequence[str], columns: Sequence[str]) -> tuple[Limit, ...]:
    """The limits that someone asked for, each a name or name=column."""
    taken: dict[Place, Limit] = {}
    names = limit_names(plan) if asked else {}
    for text in map(plain_name, asked):
        for name, column in _pairs(plan, names, text, columns):
            limit = Limit(*_place(plan, names, name), name, column)
            before = taken.setdefault(limit.place, limit)
            if before.column != column:
                raise InputError(
                    f"--limit {name} is given twice, with the columns {before.column!r} and "
                    f"{column!r}; keep one."
                )
    return tuple(taken.values())


def find_unknown(
    plan: Plan, asked: Sequence[str], known: Sequence[Limit] = ()
) -> tuple[Limit, ...]:
    """The limits that are to be learned, each a name in which * stands for anything; rows first,
    then lower bounds, then upper ones."""
    names = limit_names(plan) if asked else {}
    taken: dict[Place, Limit] = {}
    for text in map(plain_name, asked):
        sought = re.compile(".*".join(map(re.escape, text.split(_STAR))))
        here = (
            [text] if text in names or _STAR not in text else list(filter(sought.fullmatch, names))
        )
        if not here:
            raise InputError(
                f"--unknown-limit {text}: no row of {plan.name} has such a name; its rows are "
                f"{listed(_rows(plan))}."
            )
        for name in here:
            part, index = _place(plan, names, name, "--unknown-limit")
            if part == "b_eq":
                raise InputError(
                    f"--unknown-limit {name}: that row is an equality, whose right-hand side every "
                    "decision shows. Only limits that a decision may stay below can be unknown."
                )
            taken.setdefault((part, index), Limit(part, index, name, f"learned {name}", True))
    both = [limit.name for limit in known if limit.place in taken]
    if both:
        raise InputError(f"--unknown-limit {both[0]}: --limit says where it is written down.")
    order = {part: k for k, part in enumerate(("b_ub", "lb", "ub"))}
    return tuple(sorted(taken.values(), key=lambda limit: order[limit.part]))


def unknown_of(limits: Sequence[Limit]) -> dict[str, list[int]]:
    """As `InverseRegressor(unknown_limits=...)` takes those that are learned."""
    words = {"b_ub": "ub", "lb": "lower", "ub": "upper"}
    found: dict[str, list[int]] = {}
    for limit in limits:
        if limit.learned:
            found.setdefault(words[limit.part], []).append(limit.index)
    return found


def turned(plan: Plan, limit: Limit) -> float:
    """-1 where the planner writes a limit with the other sign than the problem has it, else 1."""
    return -1.0 if limit.part == "b_ub" and plan.row_sign[limit.index] < 0 else 1.0


def _pairs(
    plan: Plan, names: Mapping[str, object], text: str, columns: Sequence[str]
) -> list[tuple[str, str]]:
    """(name, column) of what was asked for."""
    name, column = _parted(names, text)
    if not name or not column:
        raise InputError(f"--limit {text}: a row and a column were expected, as in row=column.")
    if _STAR not in name or name in names:
        return [(name, column)]
    if column.count(_STAR) not in (0, name.count(_STAR)):
        raise InputError(
            f"--limit {text}: every {_STAR} of the column stands for one of {name}, so it needs as "
            "many."
        )
    there, pairs = set(columns), []
    sought = re.compile("(.*)".join(map(re.escape, name.split(_STAR))))
    for match in filter(None, map(sought.fullmatch, names)):
        parts = iter(match.groups())
        own = "".join(next(parts) if letter == _STAR else letter for letter in column)
        if own in there:
            pairs.append((match[0], own))
    if not pairs:
        raise InputError(
            f"--limit {text}: no row of {plan.name} has such a name and a column of the contexts "
            f"{'with the same one' if name == column else f'such as {column}'}; its rows are "
            f"{listed(_rows(plan))}, the columns {listed(columns)}."
        )
    return pairs


def _parted(names: Mapping[str, object], text: str) -> tuple[str, str]:
    """Name and column; where a name has the mark between them in it, the one that is known."""
    if text in names or _JOINT not in text:
        return text, text
    words = text.split(_JOINT)
    splits = [(_JOINT.join(words[:k]), _JOINT.join(words[k:])) for k in range(1, len(words))]
    name, column = next((pair for pair in splits if pair[0].strip() in names), splits[0])
    return name.strip(), column.strip()


def _rows(plan: Plan) -> tuple[str, ...]:
    """Names of all rows, each once."""
    return tuple(dict.fromkeys([*plan.equalities, *plan.inequalities]))


def _place(
    plan: Plan, names: Mapping[str, list[Place]], name: str, option: str = "--limit"
) -> Place:
    """The vector and the entry that a name stands for."""
    found = names.get(name, [])
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(
            f"{option} {name}: {plan.name} has {len(found)} limits of that name; say lower:{name} "
            f"or upper:{name}."
        )
    side, _, bare = name.partition(":")
    if side in SIDES and bare in plan.equalities:
        raise InputError(f"{option} {name}: the row {bare!r} is an equality; say {bare} alone.")
    if side in SIDES and bare in plan.inequalities:
        raise InputError(f"{option} {name}: the row {bare!r} has no {side} limit in {plan.name}.")
    if name in plan.variables:
        raise InputError(
            f"{option} {name}: that is a variable; say lower:{name} or upper:{name} for its bounds."
        )
    rows = _rows(plan)
    raise InputError(
        f"{option} {name}: {plan.name} has no row of that name{did_you_mean(name, rows)}; its rows "
        f"are {listed(rows)}. Bounds of a variable are called lower:NAME and upper:NAME."
    )


def read_limits(
    file: TableFile, plan: Plan, limits: Sequence[Limit], bad: Bad | None = None
) -> np.ndarray:
    """(B, k) limits of a table of contexts as the planner writes them; NaN where a cell is empty,
    which stands for the plan's own. Rows that cannot be read are refused, or entered in `bad`."""
    limits = [limit for limit in limits if not limit.learned]
    columns = list(dict.fromkeys(limit.column for limit in limits))
    refuse_missing_columns(file, limits)
    table = file.read(columns)
    place = {name: k for k, name in enumerate(columns)}
    values = table.numbers[:, [place[limit.column] for limit in limits]]
    if bad is None:
        return as_limits(plan, limits, values, table.where)
    values[values >= ENDLESS], values[values <= -ENDLESS] = np.inf, -np.inf
    bad |= {row: said for row, said in table.faults.items() if row not in bad}
    try:
        refuse_limits(plan, limits, values, table.where)
    except InputError:
        _find_impossible(plan, limits, values, bad)
    return values


def as_limits(
    plan: Plan, limits: Sequence[Limit], values: np.ndarray, where: Callable[[int, str], str]
) -> np.ndarray:
    """Numbers (B, k) of a table as limits: what is too large is endless, what nothing meets is
    refused; `where` names the place of a row and a column."""
    values[values >= ENDLESS], values[values <= -ENDLESS] = np.inf, -np.inf
    refuse_limits(plan, limits, values, where)
    return values


def limits_in(plan: Plan, limits: Sequence[Limit], problem: LinearProgram) -> np.ndarray:
    """(B, k) the limits of the samples of a problem, as the planner writes them."""
    vectors = [np.atleast_2d(getattr(problem, limit.part))[:, limit.index] for limit in limits]
    return np.column_stack(vectors) * [turned(plan, limit) for limit in limits]


def _find_impossible(plan: Plan, limits: Sequence[Limit], values: np.ndarray, bad: Bad) -> None:
    """Enter into `bad` every row whose limits are refused, and leave them empty."""
    for row in range(len(values)):
        try:
            refuse_limits(plan, limits, values[row : row + 1], lambda _, column: repr(column))
        except InputError as error:
            bad.setdefault(row, f"column {error}")
            values[row] = np.nan


def refuse_missing_columns(file: TableFile, limits: Sequence[Limit]) -> None:
    """Refuse a table without the columns of limits."""
    there = set(file.names)
    missing = [limit for limit in limits if limit.column not in there]
    if missing:
        name, column = missing[0].name, missing[0].column
        others = list(dict.fromkeys(limit.column for limit in missing[1:]))
        nor = f", nor {listed(others, 3)}" if others else ""
        raise InputError(
            f"{file.path.name} has no column {column!r}{did_you_mean(column, file.names)} that "
            f"says what {name} is{nor}; its columns are {listed(file.names)}."
        )


def refuse_limits(
    plan: Plan, limits: Sequence[Limit], values: np.ndarray, where: Callable[[int, str], str]
) -> None:
    """Refuse limits (B, k) that no decision could meet, whatever the others are; `where` names the
    place of a row and a column."""
    sign = plan.row_sign
    for limit, given in zip(limits, values.T, strict=True):
        from_below = limit.part == "lb" or (limit.part == "b_ub" and sign[limit.index] < 0)
        never = np.inf if from_below else -np.inf  # leaves nothing
        endless = np.isinf(given) if limit.part == "b_eq" else given == never
        for b in np.flatnonzero(endless)[:1]:
            raise InputError(
                f"{where(int(b), limit.column)} is {given[b]:g}, which {limit.name} can never be; "
                "an empty cell stands for the plan's own."
            )
    place = {limit.place: k for k, limit in enumerate(limits)}
    for j in sorted({limit.index for limit in limits if limit.part in ("lb", "ub")}):
        low, high = (_bound(plan, place.get((part, j)), values, part, j) for part in ("lb", "ub"))
        for b in np.flatnonzero(low > high)[:1]:
            k = place.get(("ub", j), place.get(("lb", j), 0))
            raise InputError(
                f"{where(int(b), limits[k].column)}: {plan.variables[j]} may then be no less than "
                f"{low[b]:g} and no more than {high[b]:g}; no number is both."
            )


def _bound(plan: Plan, k: int | None, values: np.ndarray, part: str, j: int) -> np.ndarray:
    """(B,) bounds of one variable on one side, of which limit k tells if there is one."""
    own = getattr(plan.rows, part)[j]
    if k is None:
        return np.full(len(values), own)
    return np.where(np.isnan(values[:, k]), own, values[:, k])


def planned(plan: Plan, limit: Limit) -> float:
    """What the plan itself says, as the planner writes it."""
    own = float(getattr(plan.rows, limit.part)[limit.index])
    return -own if limit.part == "b_ub" and plan.row_sign[limit.index] < 0 else own


def empty_limits(
    plan: Plan,
    limits: Sequence[Limit],
    values: np.ndarray,
    where: Callable[[int, str], str],
    rows: np.ndarray,
) -> list[str]:
    """What is assumed where cells of limits (B, k) are empty in some of these rows: a sentence for
    each limit; `where` names the place of a row and a column."""
    notes = []
    for limit, given in zip(limits, values.T, strict=True):
        empty = rows[np.isnan(given[rows])]
        if empty.size:
            first = where(int(empty[0]), limit.column)
            more = f" and in {len(empty) - 1:,} more" if len(empty) > 1 else ""
            notes.append(
                f"{first}{more} is empty: {limit.name} is the plan's own there, "
                f"{planned(plan, limit):g}."
            )
    return notes


def with_limits(plan: Plan, limits: Sequence[Limit], values: np.ndarray) -> Plan:
    """The plan of B samples whose limits are `values` (B, k), NaN for the plan's own."""
    problem, sign = plan.rows, plan.row_sign
    vectors = {part: getattr(problem, part) for part in PARTS}
    for part in {limit.part for limit in limits}:
        vectors[part] = np.repeat(vectors[part][None], len(values), axis=0)
    for limit, given in zip(limits, values.T, strict=True):
        turned = limit.part == "b_ub" and sign[limit.index] < 0
        column = vectors[limit.part][:, limit.index]
        column[:] = np.where(np.isnan(given), column, -given if turned else given)
    structure = structure_with(problem, vectors)
    return plan.with_rows(
        LinearProgram(problem.A_eq, A_ub=problem.A_ub, **vectors, structure=structure)
    )
