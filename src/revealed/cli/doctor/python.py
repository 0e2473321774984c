"""The doctor for arrays and DataFrames: what decisions can teach, before anything is fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ..._common.arrays import to_float64
from ..._common.words import count
from ...errors import InputError, ShapeError
from ...problems.linear import LinearProgram
from ..plans import Plan
from . import examine
from .finding import Case, Finding, Severity

COLORS = {Severity.ERROR: "#b3261e", Severity.WARNING: "#a05a00", Severity.NOTE: "#5d636b"}


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """Findings on contexts and decisions, the worst first; print it, or show it in a notebook."""

    findings: tuple[Finding, ...]
    samples: int
    features: int
    variables: int

    @property
    def ok(self) -> bool:
        """Whether there is no error, so that a fit makes sense."""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        lines = [self._headline()]
        lines += [f"{str(f.severity).capitalize():8}{f.what} {f.advice}" for f in self.findings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td style="color:{COLORS[f.severity]};font-weight:600;text-align:left;'
            f'vertical-align:top">{escape(str(f.severity))}</td><td style="text-align:left">'
            f"{escape(f.what)}<br><small>{escape(f.advice)}</small></td></tr>"
            for f in self.findings
        )
        return f"<p><b>{escape(self._headline())}</b></p><table>{rows}</table>"

    def _headline(self) -> str:
        kinds = [(kind, [f for f in self.findings if f.severity is kind]) for kind in Severity]
        told = ", ".join(count(len(found), str(kind)) for kind, found in kinds if found)
        return (
            f"{count(self.samples, 'sample')}, {count(self.features, 'feature')}, "
            f"{count(self.variables, 'variable')}: {told or 'nothing to say'}."
        )


def diagnose(
    problem: LinearProgram,
    Z: Any,
    X: Any,
    *,
    features: Sequence[str] | None = None,
    variables: Sequence[str] | None = None,
) -> Diagnosis:
    """What decisions can teach and what is wrong with them, as `revealed doctor` says it.

    Parameters
    ----------
    problem : LinearProgram
        What the decision maker may do.
    Z : (B, d) contexts
        An array or a DataFrame of numbers.
    X : (B, n) decisions
        They may break the constraints; that is a finding.
    features, variables : sequences of str or None
        Names; those of the columns of DataFrames, else z0, z1, ... and x0, x1, ...

    Returns
    -------
    Diagnosis
    """
    if not isinstance(problem, LinearProgram):
        raise InputError(f"`problem` must be a LinearProgram; got {type(problem).__name__}.")
    contexts, decisions = to_float64(Z, "Z"), to_float64(X, "X")
    if contexts.ndim != 2 or decisions.shape != (len(contexts), problem.n_variables):
        raise ShapeError(
            f"`Z` must be (B, d) and `X` (B, {problem.n_variables}); got {contexts.shape} and "
            f"{decisions.shape}."
        )
    for name, values in (("Z", contexts), ("X", decisions)):
        if not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            raise InputError(f"`{name}` must be finite; row {row} is not. Fill or drop such rows.")
    plan = Plan(
        problem,
        _names(variables, X, "x", problem.n_variables),
        tuple(f"A_eq[{i}]" for i in range(problem.eq_rows.shape[0])),
        tuple(f"A_ub[{i}]" for i in range(problem.ub_rows.shape[0])),
        name="the problem",
    )
    case = Case(
        plan,
        contexts,
        _names(features, Z, "z", contexts.shape[1]),
        decisions,
        [str(label) for label in getattr(X, "index", range(len(decisions)))],
    )
    return Diagnosis(tuple(examine(case)), len(contexts), contexts.shape[1], problem.n_variables)


def _names(given: Sequence[str] | None, table: Any, letter: str, size: int) -> tuple[str, ...]:
    found = getattr(table, "columns", None) if given is None else given
    names = [f"{letter}{j}" for j in range(size)] if found is None else [str(n) for n in found]
    if len(names) != size:
        raise InputError(f"{size} names are needed; got {len(names)}.")
    return tuple(names)
