"""What a planner knows of the costs beforehand: values, limits, and costs that are the same.

    fuel=3.5           the cost of the variable `fuel`
    fuel=0..           at least 0;  fuel=..10  at most 10;  fuel=0..10  between both
    fuel=plan          as it stands in the model file
    fuel_*=0..         every variable whose name begins so; a name without * counts for more

Costs are read as the planner writes them, and kept as costs to be minimized. Letters: B samples,
n variables, p parameters: the costs that are left to learn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ...errors import InputError
from ...optimality.cost_form import CostForm
from ..tables.names import did_you_mean, listed, plain_name
from ..tables.table import Table, TableFile
from .plan import Plan

PLAN = "plan"
"""The word for the cost in the model file."""
COLUMNS = ("known", "lower", "upper")
"""Of a table of costs, besides `variable` and `same`."""
NOISE = 0.2
"""Times the size of the given costs: the noise that the loss is averaged over. Costs that are given
set the unit, so that a margin in units of its own would rule out true costs. Without noise the fit
ends at costs that barely explain the decisions. Chosen on seeds 0 and 1; `given_costs.json` of the
experiments compares it with others on fresh ones."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_VALUE = re.compile(
    rf"(?P<known>{_NUMBER}|{PLAN})|(?P<lower>{_NUMBER})?\.\.(?P<upper>{_NUMBER})?", re.ASCII
)


@dataclass(frozen=True, eq=False)
class GivenCosts:
    """What is known of the costs of a plan, to be minimized."""

    known: np.ndarray
    """(n,) NaN where a cost is to be learned."""
    lower: np.ndarray
    """(n,) -inf where there is no limit; `upper` likewise."""
    upper: np.ndarray
    group: np.ndarray
    """(n,) int64: the first variable with the same cost, the variable itself where there is
    none."""

    @cached_property
    def form(self) -> CostForm:
        """Parameters -> costs: one parameter for each group that is not known."""
        free, heads, place = self._parts
        shape = (len(self.known), len(heads))
        matrix = sparse.csr_array((np.ones(len(free)), (free, place)), shape=shape)
        lower, upper = self.lower[heads], self.upper[heads]
        return CostForm(matrix, np.nan_to_num(self.known), lower=lower, upper=upper)

    @cached_property
    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Variables whose costs are not known, the first of each group, and where among these the
        group of each variable stands."""
        free = np.flatnonzero(np.isnan(self.known))
        heads, place = np.unique(self.group[free], return_inverse=True)
        return free, heads, place

    @property
    def has_unit(self) -> bool:
        """Whether a number other than 0 is given, so that costs have a unit of their own."""
        return bool(self._numbers.size)

    @property
    def usual_noise(self) -> float:
        """In that unit."""
        return NOISE * float(np.sqrt(np.mean(self._numbers**2)))

    @property
    def _numbers(self) -> np.ndarray:
        given = np.concatenate([self.known, self.lower, self.upper])
        return given[np.isfinite(given) & (given != 0)]

    def spread(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (n, terms) and intercept (n,) of costs, from those of the parameters."""
        free, _, place = self._parts
        slopes = np.zeros((len(self.known), coef.shape[1]))
        slopes[free] = coef[place]
        return slopes, self.form.costs(intercept[None])[0]

    def parameters(self, costs: np.ndarray) -> np.ndarray:
        """(B, p) of costs (B, n) that have this form."""
        return costs[:, self._parts[1]]

    def within(self, costs: np.ndarray) -> np.ndarray:
        """(B, n) the nearest costs within the limits: no farther from any that explain a decision,
        for these are within the limits too."""
        return self.form.costs(self.form.within(self.parameters(costs)))

    def describe(self, plan: Plan) -> str:
        """In words, as the planner writes costs."""
        sign, names = plan.sign, plan.variables
        low, high = (self.lower, self.upper) if sign > 0 else (-self.upper, -self.lower)
        parts, known = [], np.flatnonzero(~np.isnan(self.known))
        if known.size:
            values = [f"{names[j]} = {sign * self.known[j]:g}" for j in known]
            parts.append(f"{len(known):,} known ({listed(values, 3)})")
        free = np.isnan(self.known)
        ends = np.column_stack([low, high])
        for pair in np.unique(ends[free], axis=0):
            at = np.flatnonzero(free & (ends == pair).all(axis=1))
            words = _limits(*pair)
            if words:
                whose = "all others" if known.size and len(at) == free.sum() else _whose(at, names)
                parts.append(f"{whose} {words}")
        heads, sizes = np.unique(self.group[free], return_counts=True)
        for head in heads[sizes > 1]:
            at = np.flatnonzero(free & (self.group == head))
            parts.append(f"the same for {listed([names[j] for j in at], 3)}")
        return "; ".join(parts)


def _whose(at: np.ndarray, names: Sequence[str]) -> str:
    if len(at) == len(names):
        return "all"
    return listed([names[int(j)] for j in at], 3) if len(at) <= 3 else f"{len(at):,}"


def _limits(low: float, high: float) -> str:
    if np.isfinite(low) and np.isfinite(high):
        return f"between {low:g} and {high:g}"
    if np.isfinite(low):
        return f"at least {low:g}"
    return f"at most {high:g}" if np.isfinite(high) else ""


class _Entry(NamedTuple):
    """One number that somebody gives of one cost, as the planner writes it."""

    variable: int
    kind: str
    """One of `COLUMNS`."""
    value: float
    where: str
    exact: bool = True
    """Whether the variable was named, and not only a pattern that it fits."""


def find_costs(
    plan: Plan, asked: Sequence[str], same: Sequence[str] = (), table: TableFile | None = None
) -> GivenCosts | None:
    """What options and a table say of the costs of a plan; None where they say nothing."""
    entries = [entry for text in asked for entry in _asked(plan, plain_name(text))]
    groups = [(f"--same-cost {text}", _named(plan, text, "--same-cost")) for text in same]
    if table is not None:
        more, labeled = _from_table(plan, table)
        entries, groups = entries + more, groups + labeled
    if not entries and not groups:
        return None
    if plan.is_whole:
        raise InputError(
            "--cost, --same-cost and --cost-table are for decisions with fractions; this plan asks "
            "for whole ones. Add --relax to learn from the relaxation."
        )
    given = _together(plan, _grouped(len(plan.variables), groups), entries)
    if not np.isnan(given.known).any():
        raise InputError("Every cost is given, so there is nothing to learn. Leave some out.")
    return given


def _asked(plan: Plan, text: str) -> Iterable[_Entry]:
    """The entries of one --cost."""
    name, joint, value = text.rpartition("=")
    match = _VALUE.fullmatch(value.strip())
    if not joint or not name.strip() or match is None or value.strip() == "..":
        raise InputError(
            f"--cost {text}: a variable and what is known of its cost were expected, as in "
            f"fuel=3.5, fuel=0.., fuel=..10, fuel=0..10 or fuel={PLAN}."
        )
    where, name = f"--cost {text}", name.strip()
    exact = name in plan.variables
    for j in _named(plan, name, "--cost"):
        for kind, number in match.groupdict().items():
            if number is not None:
                value = _written(plan, j, where) if number == PLAN else float(number)
                yield _Entry(j, kind, value, where, exact)


def _written(plan: Plan, j: int, where: str) -> float:
    """The cost in the model file."""
    if plan.cost is None:
        raise InputError(f"{where}: {plan.name} has no costs; write the number.")
    return plan.sign * float(plan.cost[j])


def _named(plan: Plan, text: str, option: str) -> list[int]:
    """The variables that a name or a pattern stands for."""
    text = plain_name(text)
    if text in plan.variables:
        return [plan.variables.index(text)]
    sought = re.compile(".*".join(map(re.escape, text.split("*"))))
    found = [j for j, name in enumerate(plan.variables) if sought.fullmatch(name)]
    if not found:
        raise InputError(
            f"{option} {text}: {plan.name} has no variable of that name"
            f"{did_you_mean(text, plan.variables)}; its variables are {listed(plan.variables)}."
        )
    return found


def _from_table(plan: Plan, file: TableFile) -> tuple[list[_Entry], list[tuple[str, list[int]]]]:
    """The entries of a table with a row for each variable, and the groups that it names."""
    numbers = [name for name in COLUMNS if name in file.names]
    text = [name for name in ("variable", "same") if name in file.names]
    others = [name for name in file.names if name not in (*numbers, *text)]
    if "variable" not in text or others or len(file.names) < 2:
        what = f"its columns are {listed(file.names)}"
        raise InputError(
            f"{file.path.name}: a table of costs has a column 'variable' and some of 'known', "
            f"'lower', 'upper' and 'same'; {what}."
        )
    table = file.read(numbers, text)
    entries: list[_Entry] = []
    groups: dict[str, list[int]] = {}
    seen: dict[int, int] = {}
    for row, name in enumerate(table.text["variable"]):
        j = _of_row(plan, table, row, name)
        if j in seen:
            raise InputError(
                f"{table.where(row, 'variable')}: {name!r} is there before, at "
                f"{table.where(seen[j])}. Keep one."
            )
        seen[j] = row
        for k, kind in enumerate(numbers):
            if not np.isnan(table.numbers[row, k]):
                value = float(table.numbers[row, k])
                entries.append(_Entry(j, kind, value, table.where(row, kind)))
        label = table.text["same"][row] if "same" in text else ""
        if label:
            groups.setdefault(label, []).append(j)
    return entries, [(f"{table.name}, same {label!r}", at) for label, at in groups.items()]


def _of_row(plan: Plan, table: Table, row: int, name: str) -> int:
    if name not in plan.variables:
        raise InputError(
            f"{table.where(row, 'variable')}: {plan.name} has no variable {name!r}"
            f"{did_you_mean(name, plan.variables)}; its variables are {listed(plan.variables)}."
        )
    return plan.variables.index(name)


def _grouped(n: int, groups: Sequence[tuple[str, list[int]]]) -> np.ndarray:
    """(n,) the first variable of the group of each."""
    group = np.arange(n)
    for where, at in groups:
        if len(at) < 2:
            raise InputError(f"{where}: at least two variables were expected; got one.")
        joined = np.isin(group, group[at])
        group[joined] = group[joined].min()
    return group


def _together(plan: Plan, group: np.ndarray, entries: Sequence[_Entry]) -> GivenCosts:
    """Everything that is given, refused where it contradicts itself."""
    n = len(plan.variables)
    value = {"known": np.full(n, np.nan), "lower": np.full(n, -np.inf), "upper": np.full(n, np.inf)}
    source: dict[tuple[str, int], _Entry] = {}
    for entry in sorted(entries, key=lambda entry: entry.exact):  # named ones last: they count
        _enter(plan, value, source, entry)
    for head in np.unique(group):
        members = np.flatnonzero(group == head)
        known = value["known"][members]
        numbers = np.unique(known[~np.isnan(known)])
        if len(numbers) > 1:
            a, b = (plan.variables[members[known == number][0]] for number in numbers[:2])
            raise InputError(
                f"{a} and {b} are to have the same cost, but {numbers[0]:g} and {numbers[1]:g} are "
                "given for them."
            )
        value["known"][members] = numbers[0] if len(numbers) else np.nan
        value["lower"][members] = value["lower"][members].max()
        value["upper"][members] = value["upper"][members].min()
    given = GivenCosts(**value, group=group)
    _refuse_crossed(plan, given)
    return given if plan.sign > 0 else _turned(given)


def _enter(
    plan: Plan,
    value: dict[str, np.ndarray],
    source: dict[tuple[str, int], _Entry],
    entry: _Entry,
) -> None:
    """Enter one number; a named variable overrules a pattern."""
    j, kind = entry.variable, entry.kind
    before = source.get((kind, j))
    if before is not None and before.exact == entry.exact and before.value != entry.value:
        raise InputError(
            f"{entry.where}: {plan.variables[j]} is given {entry.value:g} here and "
            f"{before.value:g} by {before.where}. Keep one."
        )
    if not np.isfinite(entry.value):
        raise InputError(f"{entry.where}: a finite number was expected; got {entry.value:g}.")
    if kind == "known":  # limits of a pattern that it fits say nothing new
        for side, none in (("lower", -np.inf), ("upper", np.inf)):
            value[side][j] = none
    value[kind][j], source[kind, j] = entry.value, entry


def _refuse_crossed(plan: Plan, given: GivenCosts) -> None:
    for bad, low, high in (
        (given.lower > given.upper, given.lower, given.upper),
        (given.known < given.lower, given.lower, given.known),
        (given.known > given.upper, given.known, given.upper),
    ):
        for j in np.flatnonzero(bad)[:1]:
            raise InputError(
                f"The cost of {plan.variables[j]} cannot be at least {low[j]:g} and at most "
                f"{high[j]:g}."
            )


def _turned(given: GivenCosts) -> GivenCosts:
    """The same with every sign turned: values of a planner who maximizes."""
    return replace(given, known=-given.known, lower=-given.upper, upper=-given.lower)


def plain_given(given: GivenCosts | None, plan: Plan) -> list[dict[str, Any]]:
    """For JSON: what is given of each variable, as the planner writes costs."""
    if given is None:
        return []
    shown = given if plan.sign > 0 else _turned(given)
    found = []
    for j, name in enumerate(plan.variables):
        own = {kind: float(getattr(shown, kind)[j]) for kind in COLUMNS}
        finite: dict[str, Any] = {
            kind: number for kind, number in own.items() if np.isfinite(number)
        }
        if given.group[j] != j or (given.group == j).sum() > 1:
            finite["same_as"] = plan.variables[given.group[j]]
        if finite:
            found.append({"variable": name, **finite})
    return found
