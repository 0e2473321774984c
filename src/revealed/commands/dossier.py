"""Everything that the commands for one's own data read: plan, contexts, decisions, row by row.

Letters: B samples, n variables, d features.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._words import count
from ..doctor.feasibility import broken_constraint
from ..errors import InputError
from ..explain.likeness import SAME
from ..plans import Limit, Plan, find_limits, read_limits, read_plan, with_limits
from ..store import FittedModel
from ..tables import (
    DecisionTable,
    FeatureMap,
    Table,
    TableFile,
    learn_features,
    open_table,
    pair_rows,
    read_decisions,
)
from ..tables.decisions import check_names, is_long, unused
from ..tables.names import listed, plain_name
from ..tables.pairing import find_key
from .telling import tell

BLOCK = 65_536
"""Decisions checked at a time, so that a million take no more memory than these."""


@dataclass(frozen=True, eq=False)
class Dossier:
    """Contexts and decisions of one plan, matched: row b of each belongs to sample b."""

    plan: Plan
    """Of the model file; `plans` is that of the samples, where they have limits of their own."""
    plans: Plan
    limits: tuple[Limit, ...]
    own_limits: np.ndarray | None
    """(B, k) as the table has them, NaN for the plan's own; None where there are no `limits`."""
    features: FeatureMap
    key: str | None
    contexts: np.ndarray
    """(B, d) encoded."""
    decisions: np.ndarray
    """(B, n)"""
    context_table: Table
    decision_table: DecisionTable
    context_rows: np.ndarray
    """(B,) row of the table of contexts; `decision_rows` likewise."""
    decision_rows: np.ndarray
    unused: tuple[str, ...] = ()
    """Columns of the table of decisions that nothing is read from."""

    def __len__(self) -> int:
        return len(self.contexts)

    def tell_limits(self) -> None:
        """Say which columns are limits, if any."""
        if self.limits:
            told = listed([limit.told for limit in self.limits])
            tell("Limits", f"of every sample its own: {told}. These columns are not learnt from.")

    def plain_limits(self) -> list[dict[str, str]]:
        """For JSON."""
        return [{"name": limit.name, "column": limit.column} for limit in self.limits]

    def limits_of(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.own_limits is None else self.own_limits[rows]

    def sample(self, b: int) -> str:
        """What people call sample b: its key, or the line of its decision."""
        if self.decision_table.keys is not None:
            return self.decision_table.keys[self.decision_rows[b]]
        return self.where_decision(b).rpartition(", ")[2]

    def where_decision(self, b: int, variable: str | None = None) -> str:
        """The place of a decision, or of one entry, in its file."""
        return self.decision_table.where(int(self.decision_rows[b]), variable)

    def refuse_infeasible(self) -> None:
        """Refuse decisions that break the plan, with the place of the first."""
        violation = [
            np.asarray(self.plans.problem[part].constraint_violation(self.decisions[part]))
            for part in (slice(k, k + BLOCK) for k in range(0, len(self), BLOCK))
        ]
        bad = np.flatnonzero(~(np.concatenate(violation) <= SAME))
        if bad.size:
            broken = broken_constraint(self.plans[bad[:1]], self.decisions[bad[0]])
            raise InputError(
                f"{self.where_decision(int(bad[0]))}: the decision breaks the plan: {broken}. "
                f"Broken by {len(bad):,} of {count(len(self), 'decision')}; `revealed doctor` with "
                "the same files says more."
            )

    @property
    def tables(self) -> list[np.ndarray]:
        """Every number that was read of the samples."""
        there = (self.contexts, self.decisions, self.own_limits)
        return [table for table in there if table is not None]

    def where_context(self, b: int, column: str | None = None) -> str:
        return self.context_table.where(int(self.context_rows[b]), column)


def add_files(parser: argparse.ArgumentParser, *, problem: bool) -> None:
    """The options that name the files; a model brings its own problem."""
    if problem:
        parser.add_argument(
            "--problem",
            required=True,
            metavar="FILE",
            help="the planner's model: an MPS file (.mps, .mps.gz), or a problem of the catalogue "
            'such as "grid_shortest_path(5, 5)"',
        )
        parser.add_argument(
            "--ignore",
            action="append",
            default=[],
            type=plain_name,
            metavar="COLUMN",
            help="column of the contexts not to learn from; may be given several times",
        )
        parser.add_argument(
            "--limit",
            action="append",
            default=[],
            metavar="ROW=COLUMN",
            help="row of the model whose right-hand side differs from sample to sample, and the "
            "column of the contexts that holds it (ROW alone: the column of the same name; with * "
            "all that have a column); lower:VARIABLE and upper:VARIABLE for bounds; may be given "
            "several times",
        )
    parser.add_argument(
        "--contexts",
        required=True,
        type=Path,
        metavar="FILE",
        help="table of what is known beforehand: a row for each sample, a column for each feature",
    )
    parser.add_argument(
        "--decisions",
        required=True,
        type=Path,
        metavar="FILE",
        help="table of what was decided: a column for each variable of the model, or a row for "
        "each entry in columns 'variable' and 'value'",
    )
    parser.add_argument(
        "--id",
        type=plain_name,
        metavar="COLUMN",
        help="column by which rows of both tables are matched (the one both have)",
    )


def read_dossier(args: argparse.Namespace) -> Dossier:
    """What the options of `add_files` name, for a first look."""
    plan = read_plan(args.problem)
    contexts, decisions = open_table(args.contexts), open_table(args.decisions)
    _refuse_exchanged(contexts, decisions, plan)
    key = find_key(contexts, decisions, plan.variables, args.id)
    check_names(decisions, plan.variables, key)  # quick, so before a long table is read
    limits = find_limits(plan, args.limit, contexts.names)
    own = read_limits(contexts, plan, limits) if limits else None
    apart = {limit.column for limit in limits}
    features, Z, table = learn_features(contexts, key=key, ignore=args.ignore, apart=apart)
    return _matched(plan, limits, own, features, key, Z, table, decisions)


def _refuse_exchanged(contexts: TableFile, decisions: TableFile, plan: Plan) -> None:
    known = set(plan.variables)
    if known <= {*contexts.names} and not known & {*decisions.names} and not is_long(decisions):
        raise InputError(
            f"{contexts.path.name} has the model's variables and {decisions.path.name} has none of "
            "them: exchange --contexts and --decisions."
        )


def dossier_for(model: FittedModel, contexts: Path, decisions: Path, asked: str | None) -> Dossier:
    """Files read the way a fitted model reads them."""
    plan, limits = model.plan, model.limits
    context_file, decision_file = open_table(contexts), open_table(decisions)
    key = find_key(context_file, decision_file, plan.variables, asked)
    Z, table = model.features.read(context_file, key)
    own = read_limits(context_file, plan, limits) if limits else None
    return _matched(plan, limits, own, model.features, key, Z, table, decision_file)


def _matched(
    plan: Plan,
    limits: tuple[Limit, ...],
    own: np.ndarray | None,
    features: FeatureMap,
    key: str | None,
    Z: np.ndarray,
    table: Table,
    decisions: TableFile,
) -> Dossier:
    taken = read_decisions(decisions, plan.variables, key)
    rows = pair_rows(table, taken, key)
    if not len(rows.contexts):
        raise InputError(f"{table.name} and {taken.table.name} hold no rows.")
    in_order = np.array_equal(rows.decisions, np.arange(len(taken)))
    return Dossier(
        plan,
        plan if own is None else with_limits(plan, limits, own),
        limits,
        own,
        features,
        key,
        Z,
        taken.values if in_order else taken.values[rows.decisions],
        table,
        taken,
        rows.contexts,
        rows.decisions,
        tuple(unused(decisions, plan.variables, key)),
    )
