"""Everything that the commands for one's own data read: plan, contexts, decisions, row by row.

Letters: B samples, n variables, d features.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._common.words import count
from ...errors import InputError
from ...problems.unknown import UnknownLimits
from ..plans import (
    Limit,
    Plan,
    empty_limits,
    find_limits,
    read_limits,
    read_plan,
    turned,
    unknown_of,
    with_limits,
)
from ..store import FittedModel
from ..tables import (
    Bad,
    DecisionTable,
    FeatureMap,
    Skipped,
    Table,
    TableFile,
    learn_contexts,
    open_table,
    pair_rows,
    read_decisions,
)
from ..tables.decisions import check_names, is_long, unused
from ..tables.names import listed, plain_name
from ..tables.pairing import find_key
from .judging import split_rows
from .partial import without_gaps
from .reading import Reading, add_reading, missing_units, reading_of, refuse_other_units
from .telling import tell

if TYPE_CHECKING:
    from ...fit.limits.model import LimitModel

SHOWN = 10
"""Rows that were left out and are printed; --json lists all."""


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
    skipped: tuple[Skipped, ...] = ()
    """Rows that were left out."""
    notes: tuple[str, ...] = ()
    """What was assumed."""
    positions: np.ndarray | None = None
    """(B,) row of the file that each sample comes from, where rows were left out; None where none
    was."""
    file_rows: int = 0
    """Rows of the contexts before any was left out."""
    cells: np.ndarray | None = None
    """(B, n) the decisions before they were completed, NaN where a cell is empty; None where none
    is, and before."""

    def __len__(self) -> int:
        return len(self.contexts)

    @property
    def has_gaps(self) -> np.ndarray:
        """(B,) decisions with empty cells, completed or not."""
        cells = self.decisions if self.cells is None else self.cells
        return np.asarray(np.isnan(cells).any(axis=1))

    def tell_limits(self) -> None:
        """Say which columns are limits, if any."""
        tell_own_limits(self.limits)

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

    def keep(self, rows: np.ndarray) -> Dossier:
        """The same with some of the samples."""
        return replace(
            self,
            plans=self.plans[rows],
            own_limits=self.limits_of(rows),
            contexts=self.contexts[rows],
            decisions=self.decisions[rows],
            context_table=self.context_table.take(rows),
            context_rows=np.arange(len(rows)),
            decision_rows=self.decision_rows[rows],
            cells=None if self.cells is None else self.cells[rows],
            positions=rows if self.positions is None else self.positions[rows],
        )

    def opened(self, unknown: tuple[Limit, ...]) -> Dossier:
        """The same without the limits that are unknown: the plan's own are not looked at."""
        if not unknown:
            return self
        if self.plan.is_whole:
            raise InputError(
                "--unknown-limit is for decisions with fractions, whose vertices tell which limits "
                "are active; add --relax to learn from the relaxation."
            )
        which = UnknownLimits.read(unknown_of(unknown), self.plan.rows)
        plan, plans = (each.with_rows(which.opened(each.rows)) for each in (self.plan, self.plans))
        return replace(self, plan=plan, plans=plans)

    def with_learned(self, limits: tuple[Limit, ...], model: LimitModel) -> Dossier:
        """The same with learned limits as they were in force at the decisions."""
        from ...fit.limits.learning import limits_in_force

        found = limits_in_force(model, self.plans.rows, self.decisions, self.contexts)
        found = found * [turned(self.plan, limit) for limit in limits]
        found = np.where(np.isfinite(found), found, np.nan)
        given = [k for k, limit in enumerate(self.limits) if not limit.learned]
        own = found
        if self.own_limits is not None:
            own = np.hstack([self.own_limits[:, given], found])
        both = (*(self.limits[k] for k in given), *limits)
        plans = with_limits(self.plan, both, own)
        return replace(self, limits=both, own_limits=own, plans=plans)

    def split(self, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Samples to learn from and samples held out. They are drawn among all rows of the file,
        so that rows which are left out change nothing for the others. Decisions with empty cells
        are never held out: no model can be judged by them."""
        if self.positions is None and self.cells is None:
            return split_rows(len(self), share, seed)
        size = self.file_rows if self.positions is not None else len(self)
        rows = np.arange(len(self)) if self.positions is None else self.positions
        held = np.isin(rows, split_rows(size, share, seed)[1]) & ~self.has_gaps
        if held.all():
            raise InputError(f"Holding out {share:g} of the samples leaves none to learn from.")
        return np.flatnonzero(~held), np.flatnonzero(held)

    def tell_assumed(self) -> None:
        """Say what was assumed about the tables, and which rows were left out."""
        for note in self.notes:
            tell("Assumed", note)
        if self.skipped:
            tell("Skipped", f"{count(len(self.skipped), 'row')} that cannot be used:")
        for row in self.skipped[:SHOWN]:
            kind = (
                "decision " if row.place.startswith(f"{self.decision_table.table.name}, ") else ""
            )
            name = f" ({kind}{row.sample})" if row.sample else ""
            tell("", f"{row.place}{name}: {row.why}")
        if len(self.skipped) > SHOWN:
            tell("", f"and {len(self.skipped) - SHOWN:,} more; --json lists all.")

    def plain_assumed(self) -> dict[str, list[Any]]:
        """For JSON."""
        return {"assumed": list(self.notes), "skipped": [row.plain() for row in self.skipped]}

    @property
    def tables(self) -> list[np.ndarray]:
        """Every number that was read of the samples."""
        given = [k for k, limit in enumerate(self.limits) if not limit.learned]
        limits = None if self.own_limits is None or not given else self.own_limits[:, given]
        there = (self.contexts, self.decisions, limits)
        return [table for table in there if table is not None]

    def where_context(self, b: int, column: str | None = None) -> str:
        return self.context_table.where(int(self.context_rows[b]), column)


def tell_own_limits(limits: Sequence[Limit]) -> None:
    """Say which columns are limits, if any."""
    own = [limit.source for limit in limits if not limit.learned]
    if own:
        tell(
            "Limits",
            f"{listed(own)}: read for each sample. The model does not learn from these columns.",
        )


def add_files(parser: argparse.ArgumentParser, *, problem: bool) -> None:
    """The options that name the files; a model brings its own problem."""
    if problem:
        parser.add_argument(
            "--problem",
            required=True,
            metavar="FILE",
            help="the planner's model: an MPS or LP file (.mps, .lp, .gz), or a problem of the "
            'catalogue such as "grid_shortest_path(5, 5)"',
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
            "--relax",
            action="store_true",
            help="allow fractions where the model asks for whole numbers: faster, and predictions "
            "are no longer whole",
        )
        parser.add_argument(
            "--unknown-limit",
            action="append",
            default=[],
            metavar="ROW",
            help="row of the model whose right-hand side nobody wrote down, to be learned as a "
            "function of the context; lower:VARIABLE and upper:VARIABLE for bounds, * for anything;"
            " may be given several times",
        )
    add_reading(parser, contexts=problem)
    parser.add_argument(
        "--contexts",
        required=True,
        type=Path,
        metavar="FILE",
        help="table of what is known beforehand: a row for each sample, a column for each feature; "
        "a folder or a pattern of Parquet files is read part by part",
    )
    parser.add_argument(
        "--decisions",
        required=True,
        type=Path,
        metavar="FILE",
        help="table of what was decided: a column for each variable of the model, or a row for "
        "each entry in columns 'variable' and 'value'; or a folder or a pattern",
    )
    parser.add_argument(
        "--id",
        type=plain_name,
        metavar="COLUMN",
        help="column by which rows of both tables are matched (the one both have)",
    )


def read_dossier(args: argparse.Namespace) -> Dossier:
    """What the options of `add_files` name, for a first look."""
    plan, how = read_plan(args.problem, relax=args.relax), reading_of(args)
    contexts, decisions = _open(args.contexts, how), _open(args.decisions, how)
    _refuse_exchanged(contexts, decisions, plan)
    key = find_key(contexts, decisions, plan.variables, args.id)
    check_names(decisions, plan.variables, key)  # quick, so before a long table is read
    limits = find_limits(plan, args.limit, contexts.names)
    bad: tuple[Bad, Bad] | None = ({}, {}) if how.skip_bad else None
    found = learn_contexts(
        contexts,
        key=key,
        ignore=args.ignore,
        apart={limit.column for limit in limits},
        dates=how.dates,
        impute=how.impute,
        bad=bad and bad[0],
    )
    own = read_limits(contexts, plan, limits, bad and bad[0]) if limits else None
    read = _Read(found.features, found.contexts, found.table, own, found.notes)
    return _matched(plan, limits, key, read, decisions, bad)


class _Read(NamedTuple):
    """A table of contexts that was read, and what was assumed about it."""

    features: FeatureMap
    contexts: np.ndarray
    table: Table
    limits: np.ndarray | None
    notes: tuple[str, ...] = ()


def _open(path: Path, how: Reading) -> TableFile:
    return open_table(path, lenient=how.skip_bad)


def _refuse_exchanged(contexts: TableFile, decisions: TableFile, plan: Plan) -> None:
    known = set(plan.variables)
    if known <= {*contexts.names} and not known & {*decisions.names} and not is_long(decisions):
        raise InputError(
            f"{contexts.path.name} has the model's variables and {decisions.path.name} has none of "
            "them: exchange --contexts and --decisions."
        )


def dossier_for(
    model: FittedModel, contexts: Path, decisions: Path, asked: str | None, how: Reading
) -> Dossier:
    """Files read the way a fitted model reads them."""
    plan, limits = model.plan, model.limits
    context_file, decision_file = _open(contexts, how), _open(decisions, how)
    key = find_key(context_file, decision_file, plan.variables, asked)
    bad: tuple[Bad, Bad] | None = ({}, {}) if how.skip_bad else None
    Z, table = model.features.read(context_file, key, bad and bad[0])
    refuse_other_units(model.training, table)
    given = tuple(limit for limit in limits if not limit.learned)
    own = read_limits(context_file, plan, given, bad and bad[0]) if given else None
    read = _Read(model.features, Z, table, own, tuple(missing_units(model.training, table)))
    found = without_gaps(_matched(plan, given, key, read, decision_file, bad))
    if model.learned is None:
        return found
    learned = tuple(limit for limit in limits if limit.learned)
    return found.with_learned(learned, learned_limits(model))


def plans_at(model: FittedModel, dossier: Dossier) -> Plan:
    """The plans of samples, with learned limits as the model says them from the context alone."""
    if model.learned is None:
        return dossier.plans
    given, own = [k for k, limit in enumerate(model.limits) if not limit.learned], None
    if given and dossier.own_limits is not None:
        own = dossier.own_limits[:, given]
    return model.plan_of(model.limits_at(dossier.contexts, own))


def learned_limits(model: FittedModel) -> LimitModel:
    """What a model has learned of limits."""
    from ...fit.limits.model import LimitModel

    assert model.learned is not None
    unknown = UnknownLimits.read(unknown_of(model.limits), model.plan.rows)
    return LimitModel.from_arrays(unknown, model.learned, int(model.training.get("samples", 0)))


def _matched(
    plan: Plan,
    limits: tuple[Limit, ...],
    key: str | None,
    read: _Read,
    decisions: TableFile,
    bad: tuple[Bad, Bad] | None,
) -> Dossier:
    table, own = read.table, read.limits
    taken = read_decisions(decisions, plan.variables, key, bad and bad[1], gaps=True)
    rows = pair_rows(table, taken, key, bad)
    if not len(rows.contexts):
        none = "hold no rows" if not bad or not (bad[0] or bad[1]) else "hold no row to learn from"
        raise InputError(
            f"{table.name} and {taken.table.name} {none}{_most_frequent(table, taken, bad)}."
        )
    whole = len(rows.contexts) == len(table)
    in_order = np.array_equal(rows.decisions, np.arange(len(taken)))
    empty = [] if own is None else empty_limits(plan, limits, own, table.where, rows.contexts)
    own = own if whole or own is None else own[rows.contexts]
    return Dossier(
        plan,
        plan if own is None else with_limits(plan, limits, own),
        limits,
        own,
        read.features,
        key,
        read.contexts if whole else read.contexts[rows.contexts],
        taken.values if in_order else taken.values[rows.decisions],
        table if whole else table.take(rows.contexts),
        taken,
        np.arange(len(rows.contexts)),
        rows.decisions,
        tuple(unused(decisions, plan.variables, key)),
        tuple(_left_out(table, taken, key, bad)),
        (*table.notes, *taken.table.notes, *read.notes, *empty),
        None if whole else rows.contexts,
        len(table),
    )


def _most_frequent(table: Table, taken: DecisionTable, bad: tuple[Bad, Bad] | None) -> str:
    """The reason why most rows were left out, with the first row that it concerns."""
    names = (table.name, taken.table.name)
    reasons = [
        (n, said) for n, part in zip(names, bad or (), strict=False) for said in part.values()
    ]
    if not reasons:
        return ""
    alike = Counter((n, _kind(said)) for n, said in reasons)
    kind, rows = alike.most_common(1)[0]
    first = next(said for n, said in reasons if (n, _kind(said)) == kind)
    return f": {kind[0]} has {count(rows, 'row')} such as this: {first.rstrip('.')}"


def _kind(said: str) -> str:
    """A reason without what differs from row to row: words in quotes, and numbers."""
    return re.sub(r"\d+", "0", re.sub(r"(?<!column )'[^']*'", "''", said))


def _left_out(
    table: Table, taken: DecisionTable, key: str | None, bad: tuple[Bad, Bad] | None
) -> list[Skipped]:
    """Rows of both tables that were left out, contexts first."""
    if bad is None:
        return []
    words = table.text.get(key, []) if key else []
    found = [
        Skipped(table.where(row), said, words[row] if words else "")
        for row, said in sorted(bad[0].items())
    ]
    return found + [
        Skipped(taken.where_bad(row), said, taken.keys[row] if taken.keys else "")
        for row, said in sorted(bad[1].items())
    ]
