"""`revealed doctor`: what the data can teach, before anything is fitted."""

from __future__ import annotations

import argparse

import numpy as np

from ..doctor import Case, Finding, Severity, examine
from .dossier import Dossier, add_files, read_dossier
from .telling import count, tell, tell_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed doctor`."""
    add_files(parser, problem=True)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the findings; 1 if one of them is an error."""
    dossier = read_dossier(args)
    findings = examine(case_of(dossier))
    if args.json:
        tell_json(
            {
                "samples": len(dossier),
                "features": len(dossier.features.names),
                "variables": len(dossier.plan.variables),
                "findings": [finding.plain() for finding in findings],
            }
        )
    else:
        _tell(dossier, findings)
    return 1 if any(finding.severity is Severity.ERROR for finding in findings) else 0


def case_of(dossier: Dossier) -> Case:
    """What the checks look at: features in the units of the table, not scaled."""
    mean = [0.0 if f.levels else f.mean for f in dossier.features.features for _ in f.columns]
    scale = [1.0 if f.levels else f.scale for f in dossier.features.features for _ in f.columns]
    # Rounded, so that equal cells are equal again after scaling and back.
    features = np.round(dossier.contexts * np.array(scale) + np.array(mean), 12)
    return Case(
        dossier.plan,
        features,
        dossier.features.names,
        dossier.decisions,
        _Names(dossier),
    )


class _Names(list):
    """Names of samples, looked up when asked for: there may be a million."""

    def __init__(self, dossier: Dossier) -> None:
        super().__init__()
        self._dossier = dossier

    def __len__(self) -> int:
        return len(self._dossier)

    def __getitem__(self, b):  # type: ignore[override]
        return self._dossier.sample(b)


def _tell(dossier: Dossier, findings: list[Finding]) -> None:
    tell(
        "Read",
        f"{count(len(dossier), 'sample')}: {count(len(dossier.features.names), 'feature')} of the "
        f"context, {count(len(dossier.plan.variables), 'variable')} of {dossier.plan.name}, "
        + (f"rows matched by {dossier.key}." if dossier.key else "rows matched by order."),
    )
    for finding in findings:
        print()
        tell(str(finding.severity).capitalize(), finding.what)
        tell("", finding.advice)
    counts = {
        severity: sum(finding.severity is severity for finding in findings) for severity in Severity
    }
    print()
    told = ", ".join(count(counts[severity], str(severity)) for severity in Severity)
    fit = "mend the errors before you fit." if counts[Severity.ERROR] else "ready to fit."
    tell("In all", f"{told}: {fit}")
