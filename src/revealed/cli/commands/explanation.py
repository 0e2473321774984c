"""What `revealed explain` found out, in words and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..._common.words import apart, count
from ..doctor.finding import some
from ..explain import Miss, Needed, SensitivityRange
from ..plans import Plan
from ..store import FittedModel
from ..tables.names import listed
from .headline import tell_baselines, tell_figures
from .learned import tell_limits
from .telling import table, tell
from .words import words_for

if TYPE_CHECKING:
    from ...fit import CoefficientIntervals
    from ...optimality.identification import Identified

CHANGES = 2
"""Entries of a cheaper decision that are shown, so that a line holds them."""

TENTHS = 10
"""Decisions from which on a tenth of them is one at least."""
EFFECTS = 24
"""Effects that are shown: a list of a thousand is not read."""


class OneSample(NamedTuple):
    """The sample that someone asked about: the sensitivity ranges of its costs, or, where these do
    not explain its decision, what they would have to be."""

    name: str
    ranges: list[SensitivityRange] | None
    needed: list[Needed] | None


class Source(Protocol):
    """Where samples come from: one table, or many files."""

    def sample(self, b: int) -> str:
        """What people call a sample."""
        ...

    def tell_assumed(self) -> None:
        """Say what was assumed about the tables, and which rows were left out."""
        ...


@dataclass(frozen=True, eq=False)
class Explanation:
    """Everything that is known of a model on tables whose decisions are known."""

    model: FittedModel
    source: Source
    facts: dict[str, Any]
    misses: list[Miss]
    """The farthest first."""
    missed: int
    """How many there are in all."""
    changes: np.ndarray
    """Of all costs at once, that explained decisions stand."""
    sure: CoefficientIntervals | None
    one: OneSample | None
    rounds: int = 0
    """Refits that intervals were asked to come from."""

    def plain(self) -> dict[str, Any]:
        """For JSON. Costs are those to minimize, also where the planner maximizes."""
        misses = [m._asdict() | {"sample": self.source.sample(m.sample)} for m in self.misses]
        maximize = self.model.plan.maximize
        output = self.facts | {"maximize": maximize, "missed": self.missed, "misses": misses}
        output["sensitivity"] = self.changes
        if self.sure is not None:
            output["coefficients"] = self._plain_coefficients(self.sure)
        if self.one is not None and self.one.ranges is not None:
            output["ranges"] = [each._asdict() for each in self.one.ranges]
        if self.one is not None and self.one.needed is not None:
            output["needed"] = [line._asdict() for line in self.one.needed]
        return output

    def _plain_coefficients(self, sure: CoefficientIntervals) -> dict[str, Any]:
        """Coefficients per unit of the encoded features; no number where nothing is said."""
        known = sure.identified
        return {
            "variables": list(self.model.plan.variables),
            "features": [*self.model.terms, "(mean cost)"],
            "value": sure.value,
            "low": sure.low,
            "high": sure.high,
            "level": sure.level,
            "refits": sure.refits,
            "converged": sure.converged,
            "ridge": sure.ridge,
            "directions": {
                "all": known.n,
                "identified": known.n_identified,
                "one_sided": known.n_one_sided,
            },
            "note": sure.sentence,
        }


def tell_all(explanation: Explanation, top: int) -> None:
    """Print it, `top` of the misses."""
    _tell_shares(explanation)
    tell_limits(explanation.facts.get("limits", []), top)
    _tell_misses(explanation, top)
    _tell_sensitivity(explanation)
    if explanation.sure is not None:
        refitted = _refitted(explanation.sure, explanation)
        _tell_coefficients(explanation.sure, explanation.model, refitted)
    elif explanation.model.plan.is_whole and explanation.rounds:
        tell(
            "Intervals",
            "none: intervals are available only for decisions with fractions.",
        )
    elif explanation.model.given is not None and explanation.rounds:
        tell(
            "Intervals",
            "none: intervals are available only where no costs are given.",
        )
    elif explanation.facts.get("many") is not None and explanation.rounds:
        tell(
            "Intervals",
            f"none: refits need their decisions in memory, and {explanation.facts['many']:,} are "
            "too many. One table with fewer of them gives intervals, though wider ones.",
        )
    elif explanation.facts["few"] is not None and explanation.rounds:
        tell(
            "Intervals",
            f"none: {count(explanation.facts['few'], 'decision')} to learn from "
            "are too few to tell which limits are always reached.",
        )
    if explanation.one is not None:
        _tell_one(explanation.one, explanation.model)


def _tell_shares(explanation: Explanation) -> None:
    explanation.source.tell_assumed()
    tell_whole(explanation.model.plan)
    tell_given(explanation.model)
    certificate, words = (
        explanation.model.training.get("certificate"),
        words_for(explanation.model.plan),
    )
    if isinstance(certificate, str):
        tell("Fit", certificate)
    if explanation.facts["held"] is None:
        tell(
            "Note",
            "Which of these rows are new to the model is not known: it was fitted on other tables, "
            "or with nothing held out.",
        )
    for heading, figures in (
        ("Held out", explanation.facts["held"]),
        ("All rows", explanation.facts["all"]),
    ):
        if figures:
            more = (
                f"{count(figures['explained'], 'is', 'are')} optimal under the learned "
                f"{words.costs}"
            )
            tell_figures(heading, figures, words, more)
    kept = explanation.model.training.get("baselines")
    if isinstance(kept, dict) and explanation.facts["held"] is not None:
        tell_baselines(kept, words)
    tell_without_decision(
        explanation.facts["all"]["without_decision"],
        explanation.model.plan,
        limits=explanation.model.given is None,
    )


def tell_whole(plan: Plan) -> None:
    """Say whether decisions are whole, where the plan asks for it."""
    if plan.is_whole:
        n, total = len(plan.integers), count(len(plan.variables), "variable")
        tell(
            "Whole",
            f"{n:,} of {total} must be whole numbers. {words_for(plan).costs.capitalize()} are "
            f"learned under which each decision is the best whole one.",
        )
    elif plan.integers:
        tell(
            "Relaxed",
            f"{count(len(plan.integers), 'variable')} of {plan.name} must be whole numbers, which "
            f"--relax ignores: costs are learned under which the decisions are optimal even "
            f"among fractional ones, and predictions may have fractions.",
        )


def tell_given(model: FittedModel) -> None:
    """Say what was given of the costs, if anything."""
    if model.given is not None:
        costs = words_for(model.plan).costs
        tell("Given", f"{costs}: {model.given.describe(model.plan)}. Predictions keep to it.")


def tell_without_decision(number: int, plan: Plan, *, limits: bool = True) -> None:
    """Say for how many contexts there is no best decision at all; `limits` is whether limits on
    costs could be asked for, and are not there yet."""
    if number:
        words = words_for(plan)
        sign, end = ("positive", "..0") if plan.maximize else ("negative", "0..")
        known = f" If no {words.cost} can be {sign}, fit again with --cost '*={end}'."
        more = known if limits and not plan.is_whole else ""
        tell(
            "Note",
            f"{count(number, 'context has', 'contexts have')} no best decision: under the "
            f"predicted {words.costs} the total {words.endless}, and nothing in the plan stops it. "
            f"Bounds on the variables would stop it.{more}",
        )


def _tell_misses(explanation: Explanation, top: int) -> None:
    words, misses = words_for(explanation.model.plan), explanation.misses
    if not misses:
        tell("Misses", f"none: every decision is the {words.best} under the learned {words.costs}.")
        return
    many = count(explanation.missed, "decision is", "decisions are")
    several = f"; the {min(top, len(misses))} farthest from it:" if top else "."
    shown = several if len(misses) > 1 or not top else ":"
    tell(
        "Misses",
        f"{many} not the {words.best} under the learned {words.costs}{shown}",
    )
    rows = []
    for miss in misses[:top]:
        changes, hidden = miss.changes[:CHANGES], len(miss.changes[CHANGES:])
        moved = ", ".join(f"{name} {' → '.join(apart(a, b))}" for name, a, b in changes)
        rest = f" and {hidden} more" if hidden else ""
        name = explanation.source.sample(miss.sample)
        rows.append([name, f"{miss.distance:.3g}", f"{miss.saving:.3g}", moved + rest])
    if rows:
        last = f"{words.better} under the learned {words.costs}"
        print(table(["sample", "distance", words.saving, last], rows, 12))


def _tell_sensitivity(explanation: Explanation) -> None:
    margin = explanation.model.margin
    finite, words = (
        explanation.changes[np.isfinite(explanation.changes)],
        words_for(explanation.model.plan),
    )
    if not finite.size:
        if explanation.model.plan.is_whole and len(explanation.changes):
            tell(
                "Sensitivity",
                "not given for all costs at once: decisions have entries between their bounds, "
                f"which may move either way. --sample NAME shows the range of each {words.cost}.",
            )
        return
    low, middle, high = np.percentile(finite, [10, 50, 90])
    of = ""
    if explanation.model.plan.is_whole and len(finite) < len(explanation.changes):
        of = (
            f" that are at their bounds ({len(finite):,} of {len(explanation.changes):,} looked at)"
        )
    tenths = (
        f"; the most sensitive tenth changes at {_short(max(low, 0.0))} or less, the most "
        f"stable tenth only above {_short(high)}"
    )
    tell(
        "Sensitivity",
        f"Half of the explained decisions{of} stay the {words.best} while no {words.cost} changes "
        f"by more than {_short(middle)}{tenths if finite.size >= TENTHS else ''}. The margin "
        f"of the fit was {margin:g}. --sample NAME shows the range of each {words.cost}.",
    )


def _short(value: float) -> str:
    """Two figures: 120, where `.2g` alone says 1.2e+02."""
    return f"{float(f'{value:.2g}'):g}"


def _tell_coefficients(sure: CoefficientIntervals, model: FittedModel, refitted: str = "") -> None:
    tell("Intervals", f"{sure.sentence} {refitted}".rstrip())
    for line in _withheld(sure, model):
        tell("", line)
    if not sure.has_interval.any():
        return
    total = int(sure.has_interval.sum())
    firsts = [f"{f.name}={f.levels[0]}" for f in model.features.features if len(f.levels) > 1]
    instead = f", or a word in place of {listed(firsts)}" if firsts else ""
    tell(
        "",
        f"{int(sure.clear.sum()):,} of {total:,} intervals exclude 0 (about "
        f"{(1.0 - sure.level) * total:.0f} would by chance). These make a variable "
        f"{words_for(model.plan).moved}, against its alternatives: one standard deviation of a "
        f"number{instead}:",
    )
    rows = _clearest(sure, model)
    shown = sorted(sorted(rows, key=lambda row: -abs(row[0]))[:EFFECTS], key=rows.index)
    if not rows:
        tell("", "none that is clear.")
        return
    interval = f"{100 * sure.level:g}% interval"
    print(table(["feature", "variable", "effect", interval], [row[1] for row in shown], 12))
    if len(rows) > EFFECTS:
        tell("", f"These are the {EFFECTS} largest of {len(rows):,}; --json lists all.")


def _withheld(sure: CoefficientIntervals, model: FittedModel) -> list[str]:
    """What was taken out of the coefficients, and which have no interval, with the reason."""
    known, plan, lines = sure.identified, model.plan, []
    if known.n_unknown:
        parts = _unlearned(known, plan)
        one = len(parts) == 1 and " are " not in parts[0]
        lines.append(
            f"Of {known.n} directions of {words_for(plan).cost} these decisions identify "
            f"{known.n_identified}. {'; '.join(parts)}, so {'its' if one else 'their'} own worth "
            f"cannot be learned. It has been removed from every {words_for(plan).cost}; only "
            f"differences are meaningful."
        )
    hidden = np.flatnonzero(~known.entries)
    if hidden.size:
        lines.append(
            f"No interval, because nothing of it is identified: {_some(plan.variables, hidden)}."
        )
    names = [str(name) for name, k in zip(model.terms, sure.columns, strict=True) if not k]
    if names:
        lines.append(
            f"No interval, because their effects cannot be separated: {some(names)} (the same in "
            "every row, or made of other features)."
        )
    return lines


def _unlearned(known: Identified, plan: Plan) -> list[str]:
    """What decisions do not identify the worth of, and why. Rows and bounds that all but a few
    decisions reach count as always reached here."""
    used_up = known.reached[plan.row_sign[known.reached] > 0]
    met = np.setdiff1d(known.reached, used_up)
    parts = ["The equalities always hold"] if known.n_lines > len(known.fixed) else []
    for names, index, what in (
        (plan.inequalities, used_up, "nearly always used up"),
        (plan.inequalities, met, "nearly always met exactly"),
        (plan.variables, known.still, "nearly always at the same bound"),
        (plan.variables, known.fixed, "fixed by the plan"),
    ):
        if index.size:
            parts.append(f"{_some(names, index)} {'is' if index.size == 1 else 'are'} {what}")
    return parts


def _refitted(sure: CoefficientIntervals, explanation: Explanation) -> str:
    """Which fit intervals are of."""
    ridge = explanation.model.training.get("ridge")
    own = float(ridge) if isinstance(ridge, int | float) else sure.ridge
    tables = "" if explanation.facts["same_tables"] else ", to these tables and not the model's,"
    if own > sure.ridge * (1 + 1e-9):
        return (
            f"The refits{tables} have a ridge of {sure.ridge:.2g}; the model's own, {own:.2g}, "
            "shrinks coefficients by as much as they are uncertain."
        )
    return f"The refits{tables} have the model's ridge of {sure.ridge:.2g}."


def _some(names: Sequence[str], index: np.ndarray) -> str:
    return some([names[int(i)] for i in index])


def _clearest(sure: CoefficientIntervals, model: FittedModel) -> list[tuple[float, list[str]]]:
    """Of every feature the two largest effects that are clear, each with its line of the table."""
    rows, sign, clear = [], model.plan.sign, sure.clear
    size = np.where(clear, np.abs(np.nan_to_num(sure.value)), 0.0)
    for k, name in enumerate(model.terms):
        order = np.argsort(-size[:, k], kind="stable")
        for j in [j for j in order[:2] if clear[j, k]]:
            interval = _interval(sign, sure.low[j, k], sure.high[j, k])
            value = float(sign * sure.value[j, k])
            rows.append((value, [name, model.plan.variables[j], f"{value:+.4g}", interval]))
    return rows


def _tell_one(one: OneSample, model: FittedModel) -> None:
    words, sign = words_for(model.plan), model.plan.sign
    if one.ranges is not None:
        tell(
            "Sample",
            f"Sensitivity range of every {words.cost} on {one.name}, the others unchanged:",
        )
        size = max((abs(each.cost) for each in one.ranges), default=0.0)
        rows = []
        for each in one.ranges:
            low, high = sorted((sign * each.low, sign * each.high))
            figures = (_cost(value, size) for value in (sign * each.cost, low, high))
            rows.append([each.variable, f"{each.taken + 0.0:g}", *figures])
        print(table(["variable", "taken", words.cost, "may fall to", "may rise to"], rows, 12))
        return
    if one.needed is None:
        tell(
            "Sample",
            f"The decision on {one.name} is not the {words.best} under its {words.costs}, and no "
            f"{words.costs} that keep to the given ones make it so.",
        )
        return
    lines = one.needed
    tell(
        "Sample",
        f"The decision on {one.name} is not the {words.best} under its {words.costs}. It would "
        f"be under the nearest {words.costs} that explain it; {len(lines):,} of them differ:",
    )
    rows = [
        [line.variable, f"{line.taken:g}", f"{sign * line.cost:.4g}", f"{sign * line.nearest:.4g}"]
        for line in lines
    ]
    print(table(["variable", "taken", words.cost, "would have to be"], rows, 12))


def _interval(sign: float, low: float, high: float) -> str:
    a, b = sorted((sign * low, sign * high))
    return f"{a:+.4g} to {b:+.4g}"


def _cost(value: float, size: float) -> str:
    """A cost among others of a size, beside which rounding is nothing."""
    if np.isnan(value):
        return "not known"
    if np.isinf(value):
        return "no limit"
    return "0" if abs(value) < 1e-9 * size else f"{value:.4g}"
