"""Plans with whole variables: what is learned of them, and how long their solver takes.

Letters: B samples, n variables, m rows.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from ..._common.words import count
from ...optimality.active_set import read_active_set
from ..plans import Plan
from .finding import Case, Finding, Severity, some

FRACTION = 1e-5
"""How far from whole a number may be, by a solver's rounding."""
TRIALS, TRIAL_S = 5, 2.0
"""Decisions that the solver is tried on, and seconds for each."""
SLOW_S = 0.5
"""Seconds for one decision from which on a fit takes long."""


def check_whole(case: Case, feasible: np.ndarray) -> list[Finding]:
    """Findings about variables that the plan asks to be whole."""
    if not case.plan.integers:
        return []
    rows = np.flatnonzero(feasible)
    misled = _misled(case, rows)
    found = _exact(case, rows, misled) if case.plan.is_whole else _relaxed(case, misled)
    return [*_fractions(case), *found]


class Misled(NamedTuple):
    """Decisions that the relaxation explains badly."""

    of: int
    """Decisions that were looked at."""
    between: np.ndarray
    """Those that are no corner of the relaxation."""
    free: np.ndarray
    """Those that are at bounds only, at a distance from every row."""

    def __bool__(self) -> bool:
        return bool(self.between.size or self.free.size)

    @property
    def sentence(self) -> str:
        """In words, after `misleads`."""
        parts = []
        if self.between.size:
            parts.append(
                f"{self._share(self.between)} no corner of the relaxation, so only costs that rank "
                "several corners equal explain them"
            )
        if self.free.size:
            parts.append(
                f"{self._share(self.free)} at a distance from every row, so the relaxation "
                "explains what they leave out by its own cost alone, as if there were room for it"
            )
        return f"{'; '.join(parts)}."

    def _share(self, rows: np.ndarray) -> str:
        are = "is" if len(rows) == 1 else "are"
        return f"{len(rows):,} of {self.of:,} decisions ({len(rows) / self.of:.0%}) {are}"


def _fractions(case: Case) -> list[Finding]:
    at = [case.plan.variables.index(name) for name in case.plan.integers]
    part = np.abs(case.decisions[:, at] - np.round(case.decisions[:, at]))
    broken = np.flatnonzero((part > FRACTION).any(axis=1))
    if not broken.size:
        return []
    b, k = int(broken[0]), int(part[broken[0]].argmax())
    whole = case.plan.is_whole
    return [
        Finding(
            Severity.ERROR if whole else Severity.WARNING,
            "fractions",
            f"{count(len(broken), 'decision has', 'decisions have')} fractions where the plan "
            f"asks for whole numbers: {some(case.named(broken))}. In {case.samples[b]}, "
            f"{case.plan.integers[k]} is {case.decisions[b, at[k]]:.6g}.",
            "Check these rows; a relaxation or an average may have been recorded."
            + (
                " `revealed fit` leaves them out with --infeasible skip; --relax allows fractions."
                if whole
                else ""
            ),
            case.named(broken),
        )
    ]


def _exact(case: Case, rows: np.ndarray, misled: Misled) -> list[Finding]:
    """What is learned where decisions stay whole."""
    plan, told = case.plan, _kinds(case.plan)
    slack: list[str] = []
    if rows.size:
        reached = np.asarray(_active(plan[rows], case.decisions[rows]).any(axis=0))
        slack = [name for name, there in zip(plan.inequalities, reached, strict=True) if not there]
    what = (
        f"{told} A fit learns costs under which each decision is the best whole one: it asks a "
        f"solver (HiGHS) for better ones until there are none."
    )
    if slack:
        what += (
            f" {count(len(slack), 'row is', 'rows are')} never reached exactly ({some(slack)}); "
            "the decisions that they rule out are informative too."
        )
    details: dict[str, Any] = {"whole": list(plan.integers), "never_reached": slack}
    advice = (
        "Nothing to do. Predictions will be whole. The relaxation, which --relax learns from, asks "
        "for costs under which decisions are the best even with fractions allowed, and misses "
        "those under which they are the best of the whole ones only."
    )
    if misled:
        advice += f" It would mislead here: {misled.sentence}"
    details |= {"not_a_corner": len(misled.between), "at_no_row": len(misled.free)}
    return [Finding(Severity.NOTE, "whole", what, advice, details=details), *_pace(case, rows)]


def _relaxed(case: Case, misled: Misled) -> list[Finding]:
    """What is lost where the relaxation was asked for."""
    told = _kinds(case.plan)
    what = f"{told} --relax ignores this when it learns costs and predicts decisions."
    if misled:
        what += f" That misleads: {misled.sentence}"
    return [
        Finding(
            Severity.WARNING if misled else Severity.NOTE,
            "relaxed",
            what,
            "Without --relax decisions stay whole. Rounding a fractional decision may break the "
            "plan or cost more.",
            case.named(np.union1d(misled.between, misled.free)),
        )
    ]


def _kinds(plan: Plan) -> str:
    """How many variables are whole, and how many of these yes or no."""
    at = np.isin(plan.variables, plan.integers)
    low, high = (np.atleast_2d(bound) for bound in (plan.rows.lb, plan.rows.ub))
    switch = int((at & (low >= 0).all(axis=0) & (high <= 1).all(axis=0)).sum())
    n, total = int(at.sum()), len(plan.variables)
    which = "" if n == 1 else f"{'all' if switch == n else switch} of them "
    kinds = f", {which}0 or 1" if switch else ""
    return f"{n} of {count(total, 'variable')} must be whole numbers{kinds}."


def _active(plan: Plan, X: np.ndarray) -> np.ndarray:
    """(B, m) whether each inequality holds with equality in decisions (B, n)."""
    return read_active_set(plan.rows, X, FRACTION).row_active


def _misled(case: Case, rows: np.ndarray) -> Misled:
    """Which of the decisions in these rows the relaxation explains badly; none of those that are
    too large to tell."""
    from .decisions import corners

    none = np.zeros(0, int)
    figures = corners(case, rows) if rows.size else None
    between = none if figures is None else rows[figures[:, 0] > figures[:, 1]]
    free = none
    if rows.size and case.plan.inequalities and not case.plan.equalities:
        free = rows[~_active(case.plan[rows], case.decisions[rows]).any(axis=1)]
    return Misled(len(rows), between, np.setdiff1d(free, between))


def _pace(case: Case, rows: np.ndarray) -> list[Finding]:
    """How long the solver takes for one decision, under costs drawn at random."""
    if not rows.size:
        return []
    rng = np.random.default_rng(0)
    took, stopped = [], 0
    for b in rows[np.linspace(0, len(rows) - 1, min(TRIALS, len(rows))).astype(int)]:
        cost = np.abs(rng.standard_normal((1, len(case.plan.variables))))
        # Costs of the sign that amounts have: what a decision has much of is cheap.
        cost = np.where(case.decisions[[b]] > 0, 0.5, 1.0) * cost
        begun = time.perf_counter()
        answer = case.plan[[b]].problem.solve(cost, time_limit=TRIAL_S)
        took.append(time.perf_counter() - begun)
        stopped += not bool(np.asarray(answer.optimal)[0])
    middle = float(np.median(took))
    if middle < SLOW_S and not stopped:
        return []
    return [
        Finding(
            Severity.WARNING,
            "slow-solver",
            f"The solver takes about {middle:.1f} s for one decision (of {len(took)} tried"
            + (f", {stopped} did not end in {TRIAL_S:g} s" if stopped else "")
            + "). A fit asks it some tens of times for each sample.",
            "Expect the fit to take long: begin with fewer samples, give rows that cut off "
            "fractions, or learn for the relaxation with --relax.",
            details={"seconds": middle, "stopped": stopped},
        )
    ]
