"""`revealed doctor`: what the data can teach, before anything is fitted."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace

import numpy as np

from ..._common.words import count
from ..doctor import CHECKS, Finding, Severity, examine
from ..plans import GivenCosts, plain_given
from ..tables.names import listed
from .case import case_of
from .cleaning import cleaned
from .dossier import Dossier, add_files, read_dossier
from .given import add_given, read_given, unexplained, unexplained_sentence
from .partial import gap_findings, refuse_with_gaps
from .reading import Reading, reading_of
from .telling import tell, tell_json, waiting

MANY = 2_000_000
"""Entries from which on the checks take longer than one waits without a word."""
FEASIBLE = 1e-5
"""How far from its constraints a decision may be to be feasible."""
LOOKED = 500
"""Decisions that are compared with the given costs."""
ALIKE = 3
"""Findings of one kind that are printed: a thousand columns may have the same fault."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed doctor`."""
    add_files(parser, problem=True)
    add_given(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the findings; 1 if one of them is an error."""
    how = reading_of(args)
    read = read_dossier(args)
    refuse_with_gaps(read)
    dossier, half_unit, rounded, _ = cleaned(read, how, refuse=False)
    gaps = gap_findings(read, dossier)
    dossier = dossier.keep(np.flatnonzero(~dossier.has_gaps)) if gaps else dossier
    few = len(dossier) * len(dossier.plan.variables) < MANY and not dossier.plan.is_whole
    with waiting("Examining", len(CHECKS), quiet=args.json or few) as step:
        findings = [*examine(case_of(dossier), step), *_unused(dossier)]
    given = read_given(args, dossier.plan)
    if given is not None:
        findings += _contradicted(dossier, given)
    findings = [*gaps, *_rounded(how, half_unit, rounded), *_taken_as_exact(read, how), *findings]
    findings.sort(key=lambda finding: list(Severity).index(finding.severity))
    if args.json:
        tell_json(
            {
                "samples": len(dossier),
                "features": len(dossier.features.names),
                "variables": len(dossier.plan.variables),
                "whole": int(dossier.plan.whole.sum()),
                "limits": dossier.plain_limits(),
                "given": plain_given(given, dossier.plan),
                **dossier.plain_assumed(),
                "findings": [finding.plain() for finding in findings],
            }
        )
    else:
        notes = tuple(note for note in dossier.notes if note != rounded)  # it is a finding
        _tell(replace(dossier, notes=notes), findings)
    return 1 if any(finding.severity is Severity.ERROR for finding in findings) else 0


def _rounded(how: Reading, half_unit: np.ndarray | None, sentence: str) -> list[Finding]:
    """A note where decisions are taken as rounded without an option that says so."""
    if half_unit is None or how.tol != "auto":
        return []
    largest = float(half_unit.max())
    return [
        Finding(
            Severity.NOTE,
            "rounded",
            sentence,
            f"If so, there is nothing to do: `revealed fit` assumes the same. --tol {largest:g} "
            f"states it, another number states another precision, and --tol 0 says that they "
            f"are exact.",
            details={"half_unit": half_unit.tolist()},
        )
    ]


def _taken_as_exact(read: Dossier, how: Reading) -> list[Finding]:
    """A warning where --tol 0 takes decisions as exact that look rounded."""
    if how.tol != 0:
        return []
    found = cleaned(read, how._replace(tol="auto"), refuse=False)
    if found.half_unit is None:
        return []
    largest = float(found.half_unit.max())
    return [
        Finding(
            Severity.WARNING,
            "rounded-as-exact",
            "--tol 0 takes the decisions as exact, but they look rounded, each number by up to "
            f"{largest:g}: limits that were reached are broken or missed by that much.",
            f"Leave --tol out, or say --tol {largest:g}, unless the decisions are exact.",
            details={"half_unit": found.half_unit.tolist()},
        )
    ]


def _contradicted(dossier: Dossier, given: GivenCosts) -> list[Finding]:
    """A warning where decisions cannot be the best ones under the given costs."""
    feasible = np.asarray(dossier.plans.problem.constraint_violation(dossier.decisions)) <= FEASIBLE
    rows = np.flatnonzero(feasible)[:LOOKED]
    odd = rows[unexplained(given, dossier.plans[rows], dossier.decisions[rows])]
    if not odd.size:
        return []
    sentence = unexplained_sentence(dossier, odd, len(rows))
    what, _, advice = sentence.partition(" Check ")
    names = tuple(dossier.sample(int(b)) for b in odd)
    return [Finding(Severity.WARNING, "given-costs", what, f"Check {advice}", names)]


def _unused(dossier: Dossier) -> list[Finding]:
    names = list(dossier.unused)
    if not names:
        return []
    return [
        Finding(
            Severity.NOTE,
            "unused-columns",
            f"{count(len(names), 'column')} of {dossier.decision_table.table.name} "
            f"{'is not a variable' if len(names) == 1 else 'are not variables'} of the model, "
            f"and ignored: "
            f"{listed(names)}.",
            "Nothing to do, unless one of them should be a variable.",
            details={"columns": names},
        )
    ]


def _tell(dossier: Dossier, findings: list[Finding]) -> None:
    tell(
        "Read",
        f"{count(len(dossier), 'sample')}: {count(len(dossier.features.names), 'feature')} of the "
        f"context, {count(len(dossier.plan.variables), 'variable')} of {dossier.plan.name}, "
        + (f"rows matched by {dossier.key}." if dossier.key else "rows matched by order."),
    )
    dossier.tell_limits()
    dossier.tell_assumed()
    shown: Counter[str] = Counter()
    for finding in findings:
        shown[finding.code] += 1
        if shown[finding.code] <= ALIKE:
            print()
            tell(str(finding.severity).capitalize(), finding.what)
            tell("", finding.advice)
    hidden = sum(number - ALIKE for number in shown.values() if number > ALIKE)
    if hidden:
        print()
        tell("", f"And {count(hidden, 'finding')} like the ones above; --json lists all.")
    counts = {
        severity: sum(finding.severity is severity for finding in findings) for severity in Severity
    }
    print()
    sums = ", ".join(count(counts[severity], str(severity)) for severity in Severity)
    fit = "fix the errors before you fit." if counts[Severity.ERROR] else "ready to fit."
    tell("In all", f"{sums}: {fit}")
