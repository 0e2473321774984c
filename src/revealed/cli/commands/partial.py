"""Decisions with empty cells: completed where a model is fitted, left out where one is judged.

Letters: B samples, n variables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._common.words import count
from ...errors import InputError
from ...optimality.completion import SLIGHT, Completion, plain_costs
from ..doctor import Finding, Severity
from ..doctor.finding import some

if TYPE_CHECKING:
    from ..plans import Limit, Plan
    from .dossier import Dossier

NO_DECISION = "no decision that the plan allows agrees with its cells"


class InPart(NamedTuple):
    """What a fit did with decisions that have empty cells."""

    decisions: int
    turns: int
    """Of completing and learning."""
    gap: float
    """By how much decisions that agree exceed the cheapest of all under the learned costs."""

    def sentence(self) -> str:
        """For people."""
        which = count(self.decisions, "decision")
        return (
            f"{which} with empty cells, completed {count(self.turns, 'time')}; decisions as "
            f"completed cost {100 * self.gap:.2g}% more than the cheapest of all."
        )


def refuse_with_gaps(dossier: Dossier, unknown: tuple[Limit, ...] = ()) -> None:
    """Refuse empty cells where nothing completes them, or where no decision is whole."""
    gaps = np.flatnonzero(dossier.has_gaps)
    if not gaps.size:
        return
    where = where_gap(dossier, int(gaps[0]))
    if len(gaps) == len(dossier):
        raise InputError(
            f"{where} is empty, and so is a cell of every other decision: there is none to judge a "
            "model by. revealed.fit.PartialDecisions learns from such decisions in Python."
        )
    what = "whole variables" if dossier.plan.is_whole else "--unknown-limit" if unknown else ""
    if what:
        raise InputError(
            f"{where} is empty. Decisions are completed where the plan has fractions and its "
            f"limits are known, not with {what}: fill such cells in, or leave such rows out with "
            "--skip-bad."
        )


def refuse_contradicted(dossier: Dossier, b: int) -> None:
    """Refuse given costs that whole decisions contradict, where others are completed under them."""
    raise InputError(
        f"{dossier.where_decision(b)}: no costs within those that are given explain the decision, "
        "and under such costs no empty cell can be completed. Correct the given costs, or leave "
        "rows with empty cells out with --skip-bad."
    )


def where_gap(dossier: Dossier, b: int) -> str:
    """The place of the first empty cell of a decision."""
    j = int(np.flatnonzero(np.isnan(dossier.decisions[b]))[0])
    return dossier.where_decision(b, dossier.plan.variables[j])


def gap_note(dossier: Dossier) -> str:
    """What is assumed of empty cells; `dossier` is as it was read."""
    gaps = np.flatnonzero(dossier.has_gaps)
    return (
        f"{len(gaps):,} of {count(len(dossier), 'decision')} "
        f"{'has' if len(gaps) == 1 else 'have'} empty cells (first: "
        f"{where_gap(dossier, int(gaps[0]))}): they count as not seen, not as 0, and are completed "
        "as the cheapest decision that agrees with the other cells, in turns with the fit. Write 0 "
        "where 0 is meant; --skip-bad leaves such rows out."
    )


def without_gaps(dossier: Dossier) -> Dossier:
    """The samples whose decisions have no empty cell, and a note about the others."""
    gaps = np.flatnonzero(dossier.has_gaps)
    if not gaps.size:
        return dossier
    where = where_gap(dossier, int(gaps[0]))
    if len(gaps) == len(dossier):
        raise InputError(f"{where} is empty, and so is a cell of every other decision.")
    note = (
        f"{count(len(gaps), 'decision')} with empty cells (first: {where}) "
        f"{'is' if len(gaps) == 1 else 'are'} left out: only whole ones can be judged."
    )
    kept = dossier.keep(np.flatnonzero(~dossier.has_gaps))
    return replace(kept, notes=(*kept.notes, note))


def completed(plans: Plan, seen: np.ndarray, slack: Any) -> np.ndarray:
    """(B, n) the plainest decisions that agree with what was seen (B, n), to within rounding by at
    most `slack` where none agrees exactly; NaN where none does."""
    rows, found = plans.rows, np.full(seen.shape, np.nan)
    for reach in (0.0, slack):
        off = np.maximum(rows.lb - seen, seen - rows.ub)
        inside = ~(off > np.maximum(reach, SLIGHT)).any(axis=1)
        left = np.flatnonzero(inside & np.isnan(found).any(axis=1))
        if left.size:
            completion = Completion(plans[left].rows, seen[left], slack=reach)
            costs = np.broadcast_to(plain_costs(completion.problem), (len(left), seen.shape[1]))
            found[left] = completion.solve(np.array(costs))[0]
    return found


def gap_findings(read: Dossier, cleaned: Dossier) -> list[Finding]:
    """What the doctor says of empty cells; `read` is as it came, `cleaned` is completed."""
    gaps = np.flatnonzero(read.has_gaps)
    if not gaps.size:
        return []
    names = tuple(read.sample(int(b)) for b in gaps)
    found = [
        Finding(
            Severity.WARNING,
            "empty-cells",
            f"{len(gaps):,} of {count(len(read), 'decision')} "
            f"{'has' if len(gaps) == 1 else 'have'} empty cells: {some(names)} (first: "
            f"{where_gap(read, int(gaps[0]))}).",
            "`revealed fit` completes them as the cheapest decision that agrees with the other "
            "cells, and judges no model by them. Write 0 where 0 is meant; --skip-bad leaves such "
            "rows out.",
            names,
        )
    ]
    impossible = np.flatnonzero(np.isnan(cleaned.decisions).any(axis=1))
    if impossible.size:
        names = tuple(cleaned.sample(int(b)) for b in impossible)
        found.append(
            Finding(
                Severity.ERROR,
                "cannot-complete",
                f"{count(len(names), 'decision')} with empty cells: {NO_DECISION} ({some(names)}).",
                "Correct these rows, or leave them out with --infeasible skip.",
                names,
            )
        )
    return found
