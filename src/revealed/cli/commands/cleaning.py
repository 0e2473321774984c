"""Decisions as they were meant: rounding undone, infeasible ones refused, repaired or left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..._common.words import count
from ...errors import InputError
from ...metrics.sameness import SAME
from ...optimality.infeasible import settle
from ...optimality.rounding import Reading as Rounding
from ...optimality.rounding import checked_decision_tol, read_rounded
from ...problems.linear import LinearProgram, in_parts
from ..doctor.feasibility import broken_constraint
from ..doctor.finding import Severity
from ..doctor.limits import check_limits
from ..plans import Plan
from ..tables import Skipped
from .case import case_of
from .dossier import Dossier
from .partial import NO_DECISION, completed
from .reading import Reading


class Cleaned(NamedTuple):
    """A dossier with decisions that can be used, and what was found about their precision."""

    dossier: Dossier
    half_unit: np.ndarray | None
    """(n,) how far decisions may be off; None where they are exact."""
    rounded: str
    """What was assumed about it, in words; empty where nothing was."""
    warning: str = ""
    """Where half of the decisions or more break the plan; empty elsewhere."""


def cleaned(
    dossier: Dossier, how: Reading, *, refuse: bool = True, vertices: bool = True
) -> Cleaned:
    """Undo rounding and deal with infeasible decisions as `how` says. The doctor does not `refuse`
    them, nor leave them out or repair them where they are half of all: it has more to say. Where
    limits are unknown, decisions need not be `vertices` of what is known."""
    tol = how.tol
    n = len(dossier.plan.variables)
    if isinstance(tol, list) and len(tol) != n:
        raise InputError(f"The precision kept with the model is of {len(tol)} variables, not {n}.")
    if dossier.has_gaps.any():
        dossier, found = _completed(dossier, tol, vertices)
    else:
        found = _as_meant(dossier.plans, dossier.decisions, tol, vertices)
    dossier = replace(dossier, decisions=found.decisions)
    bad = np.flatnonzero(~(_violation(dossier) <= SAME))
    many, warning = 2 * len(bad) >= len(dossier), ""
    if bad.size and many and refuse and how.infeasible != "refuse":
        warning = _warning(dossier, bad, how)
    if bad.size and many and not refuse:
        pass
    elif bad.size and how.infeasible == "repair":
        dossier = _repaired(dossier, bad)
    elif bad.size and how.infeasible == "skip":
        found = found.keep(np.setdiff1d(np.arange(len(dossier)), bad))
        dossier = _skipped(dossier, bad)
    elif bad.size and refuse:
        _refuse(dossier, bad)
    if found.sentence:
        dossier = replace(dossier, notes=(*dossier.notes, found.sentence))
    return Cleaned(dossier, found.half_unit, found.sentence, warning)


def _as_meant(plans: Plan, X: np.ndarray, tol: Any, vertices: bool = True) -> Rounding:
    """Decisions (B, n) without rounding: at a vertex of the plan, or, where some variables are
    whole, at a vertex of what is left once these are fixed."""
    if not plans.is_whole:
        return read_rounded(plans.rows, X, tol, tol=SAME, vertices=vertices)
    half = checked_decision_tol(tol, X.shape[1])
    reach = SAME if half is None else np.maximum(half, SAME)
    whole = plans.whole & (np.abs(X - np.round(X)) <= reach)
    rounded = np.where(whole, np.round(X) + 0.0, X)
    if plans.whole.all():
        moved = np.abs(rounded - X).max(axis=1, initial=0.0)
        return Rounding(rounded, half, moved > 0, moved, "")
    rows = plans.rows
    low, high = (np.where(plans.whole, rounded, bound) for bound in (rows.lb, rows.ub))
    fixed = LinearProgram(rows.A_eq, rows.b_eq, rows.A_ub, rows.b_ub, low, high)
    return read_rounded(fixed, rounded, tol, tol=SAME)


def _completed(dossier: Dossier, tol: Any, vertices: bool) -> tuple[Dossier, Rounding]:
    """The same where cells are empty: how precise decisions are is found from the whole ones, and
    the others are completed to that precision, which the fit does again; NaN where that is
    impossible."""
    gaps = dossier.has_gaps
    whole, part = np.flatnonzero(~gaps), np.flatnonzero(gaps)
    cells, changed, moved = dossier.decisions.copy(), np.zeros(len(gaps), bool), np.zeros(len(gaps))
    found = _as_meant(dossier.plans[whole], cells[whole], tol, vertices)
    cells[whole], changed[whole], moved[whole] = found.decisions, found.changed, found.moved
    X, half = cells.copy(), found.half_unit
    X[part] = completed(dossier.plans[part], X[part], 0.0 if half is None else half)
    found = Rounding(X, half, changed, moved, found.sentence)
    return replace(dossier, cells=cells), found


def _violation(dossier: Dossier) -> np.ndarray:
    found = np.full(len(dossier), np.inf)
    there = np.flatnonzero(np.isfinite(dossier.decisions).all(axis=1))
    problem: Any = dossier.plans[there].problem
    for part, some, x in in_parts(problem, dossier.decisions[there]):
        found[there[part]] = np.asarray(some.constraint_violation(x))
    return found


def _warning(dossier: Dossier, bad: np.ndarray, how: Reading) -> str:
    """What it means that half of the decisions or more break the plan."""
    done = "moved to others" if how.infeasible == "repair" else "left out"
    return (
        f"{len(bad):,} of {count(len(dossier), 'decision')} break the plan and are {done}: more "
        "likely the plan is not the one they were made for. "
        f"{_likely(dossier, bad) or '`revealed doctor` with the same files says more.'}"
    )


def _likely(dossier: Dossier, bad: np.ndarray) -> str:
    """Limits that the plan does not have right, as the doctor says it; empty if none is known."""
    feasible = np.ones(len(dossier), bool)
    feasible[bad] = False
    there = np.flatnonzero(np.isfinite(dossier.decisions).all(axis=1))
    if len(there) < len(dossier):
        dossier, feasible = dossier.keep(there), feasible[there]
    found = [f for f in check_limits(case_of(dossier), feasible) if f.severity is Severity.ERROR]
    return " ".join(f"{finding.what} {finding.advice}" for finding in found[:1])


def _refuse(dossier: Dossier, bad: np.ndarray) -> None:
    """Refuse decisions that break the plan, with the place of the first."""
    likely = _likely(dossier, bad)
    raise InputError(
        f"{dossier.where_decision(int(bad[0]))}: the decision breaks the plan: "
        f"{_broken(dossier, bad[0])}. Broken by {len(bad):,} of "
        f"{count(len(dossier), 'decision')}; `revealed doctor` with the same files says more. "
        f"{likely}{' ' * bool(likely)}--infeasible skip leaves such rows out"
        + (
            "."
            if dossier.plan.is_whole
            else ", --infeasible repair takes the nearest decision that obeys."
        )
    )


def _broken(dossier: Dossier, b: int) -> str:
    if np.isnan(dossier.decisions[b]).any():
        return NO_DECISION
    return broken_constraint(dossier.plans[[b]], dossier.decisions[b])


def _repaired(dossier: Dossier, bad: np.ndarray) -> Dossier:
    problem = dossier.plans.problem
    if dossier.plan.is_whole:
        raise InputError(
            f"{dossier.where_decision(int(bad[0]))}: the decision breaks the plan: "
            f"{_broken(dossier, bad[0])}. --infeasible repair is for plans without whole "
            "variables: correct the row, or leave it out with --infeasible skip."
        )
    impossible = bad[np.isnan(dossier.decisions[bad]).any(axis=1)]
    if impossible.size:
        raise InputError(
            f"{dossier.where_decision(int(impossible[0]))}: {NO_DECISION}, so there is nothing to "
            "repair. Correct the row, or leave it out with --infeasible skip."
        )
    decisions, moved, _ = settle(problem, dossier.decisions, SAME, "repair")
    worst = int(np.argmax(moved))
    note = (
        f"{count(len(bad), 'decision breaks', 'decisions break')} the plan and "
        f"{'was' if len(bad) == 1 else 'were'} moved to the nearest that obeys: "
        f"{_some(dossier, bad)}. The farthest, {dossier.sample(worst)}, by {moved[worst]:.3g}."
    )
    return replace(dossier, decisions=decisions, notes=(*dossier.notes, note))


def _skipped(dossier: Dossier, bad: np.ndarray) -> Dossier:
    if len(bad) == len(dossier):
        raise InputError(
            f"Every decision breaks the plan, so that none is left: the first, "
            f"{_broken(dossier, int(bad[0]))}. "
            f"{_likely(dossier, bad) or '`revealed doctor` with the same files says more.'}"
        )
    left_out = [
        Skipped(
            dossier.where_decision(int(b)),
            f"the decision breaks the plan: {_broken(dossier, int(b))}.",
            dossier.sample(int(b)),
        )
        for b in bad
    ]
    kept = dossier.keep(np.setdiff1d(np.arange(len(dossier)), bad))
    return replace(kept, skipped=(*dossier.skipped, *left_out))


def _some(dossier: Dossier, rows: np.ndarray) -> str:
    names = ", ".join(dossier.sample(int(b)) for b in rows[:5])
    return names if len(rows) <= 5 else f"{names} and {len(rows) - 5:,} more"
