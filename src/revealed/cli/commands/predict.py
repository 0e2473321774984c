"""`revealed predict`: decisions, or costs, for new contexts."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..._common.words import count
from ...errors import InputError
from ...metrics.sameness import SAME
from ...problems.solution import SolveStatus
from ..doctor.finding import some
from ..plans import Plan, empty_limits, read_limits
from ..store import FittedModel
from ..tables import Bad, Skipped, Table
from .deciding import Decided, decide, without_last_bits
from .explanation import tell_without_decision
from .headline import fine
from .large import many_files, predict_large
from .options import number, seconds
from .ranges import Outside, far_outside
from .reading import missing_units, refuse_other_units
from .robust import cone_of, plain_cone
from .telling import tell, tell_json
from .words import Words, words_for

SHOWN = 10
"""Rows and numbers of one kind that are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed predict`."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder written by revealed fit")
    parser.add_argument(
        "--contexts",
        required=True,
        type=Path,
        metavar="FILE",
        help="table of new contexts; a folder or a pattern of Parquet files is read part by part",
    )
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="FILE",
        help="table to write (.csv, .xlsx, .parquet, .npz), or for a folder or a pattern of "
        "contexts a folder; what is there is replaced",
    )
    parser.add_argument(
        "--costs", action="store_true", help="write the predicted costs, not the decisions"
    )
    parser.add_argument(
        "--robust",
        type=number,
        metavar="LEVEL",
        help="write the decisions with the smallest worst-case cost over a cone of costs; with "
        "this probability, such as 0.9, the cone explains a new decision (calibrated on "
        "the held-out samples)",
    )
    parser.add_argument(
        "--time-limit",
        type=seconds,
        metavar="SECONDS",
        help="time for each whole decision; what quick ones do not use goes to the others "
        "(none). A decision that is not proved optimal by then is written all the same, "
        "and reported",
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="leave the decision empty for rows that cannot be read, and list them",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write predictions; 1 if some context has no decision of minimum cost."""
    from ..store import load_model
    from ..tables import check_ending, open_table, write_table

    if many_files(args.contexts):
        return predict_large(args, load_model(args.model))
    check_ending(args.out)
    if args.robust is not None and args.costs:
        raise InputError("--robust is about decisions; leave out --costs.")
    model, file = load_model(args.model), open_table(args.contexts, lenient=args.skip_bad)
    if args.out.exists() and args.out.samefile(args.contexts):
        raise InputError(f"{args.out} is the table of contexts; write to another file.")
    bad: Bad | None = {} if args.skip_bad else None
    Z, table = model.read_contexts(file, bad)
    refuse_other_units(model.training, table)
    if not len(Z):
        raise InputError(f"{table.name} has column names but no rows.")
    cone = None if args.robust is None else cone_of(model, args.robust)
    limits = None
    if model.limits and not args.costs:
        given = [limit for limit in model.limits if not limit.learned]
        limits = read_limits(file, model.plan, given, bad) if given else None
        limits = model.limits_at(Z, limits)
    good = np.setdiff1d(np.arange(len(Z)), [*(bad or ())])
    costs = model.costs(Z[good])
    values, missing, broken = costs * model.plan.sign, 0, 0
    impossible, open_ = np.zeros(0, int), Open()
    if not args.costs:
        problem = model.plan_of(None if limits is None else limits[good]).problem
        found = decide(problem, costs, quiet=args.json, seconds=args.time_limit, cone=cone)
        values, open_ = without_last_bits(found.decisions), Open.of(found)
        missing = int(np.isnan(values).any(axis=1).sum())
        impossible = good[found.status == SolveStatus.INFEASIBLE]
        broken = _fractions(model.plan, values)
    key = None
    if model.key is not None and model.key in table.text:
        key = (model.key, table.text[model.key])
    written = np.full((len(Z), values.shape[1]), np.nan)
    written[good] = values
    write_table(args.out, model.plan.variables, written, key=key)
    skipped = [Skipped(table.where(row), said) for row, said in sorted((bad or {}).items())]
    outside = [
        o._replace(row=int(good[o.row]))
        for o in far_outside(model.features, Z[good], model.training)
    ]
    unseen = model.features.unseen_parts(table)
    notes, at_limits = _assumed(model, table, limits, good), model.beyond(Z[good])
    if args.json:
        tell_json(
            {
                "written": str(args.out),
                "rows": len(Z),
                "robust": None if cone is None else plain_cone(cone),
                "without_decision": missing,
                "impossible": len(impossible),
                "impossible_rows": [_named(table, model.key, row) for row in impossible],
                "with_fractions": broken,
                "whole": model.plan.is_whole,
                "unproved": open_.unproved,
                "stopped": open_.stopped,
                "at_limits": at_limits,
                "assumed": notes,
                "skipped": [row.plain() for row in skipped],
                "extrapolated": [o._asdict() | {"place": table.where(o.row)} for o in outside],
                "unseen": unseen,
            }
        )
    else:
        tell(
            "Written",
            f"{count(len(Z), 'cost vector' if args.costs else 'decision')} to {args.out}.",
        )
        if cone is not None:
            tell("Robust", cone.statement)
        for note in notes:
            tell("Assumed", note)
        if at_limits:
            tell(
                "Given",
                f"In {count(at_limits, 'context')} the model's own "
                f"{words_for(model.plan).costs} lie beyond the given limits; they count as the "
                "limits there.",
            )
        _tell_skipped(skipped)
        _tell_outside(table, outside, unseen)
        _tell_open(open_, words_for(model.plan))
        names = [_named(table, model.key, row) for row in impossible]
        _tell_decisions(model, missing - open_.stopped, names, broken)
    return 1 if missing or open_.unproved else 0


def _tell_skipped(skipped: list[Skipped]) -> None:
    if skipped:
        tell("Skipped", f"{count(len(skipped), 'row')} that cannot be read; they are left empty:")
    for row in skipped[:SHOWN]:
        tell("", f"{row.place}: {row.why}")
    if len(skipped) > SHOWN:
        tell("", f"and {len(skipped) - SHOWN:,} more; --json lists all.")


def _tell_outside(table: Table, outside: list[Outside], unseen: dict[str, int]) -> None:
    """Warn of contexts unlike all that the model has learned from."""
    if outside:
        rows = len({o.row for o in outside})
        tell(
            "Warning",
            f"{count(rows, 'context lies', 'contexts lie')} far outside what the model has seen; "
            "its costs may not hold there:",
        )
    for o in outside[:SHOWN]:
        seen = f"between {o.low:.6g} and {o.high:.6g}" if o.low < o.high else f"only {o.low:.6g}"
        tell("", f"{table.where(o.row)}: {o.feature} is {o.value:.6g}, seen was {seen}.")
    if len(outside) > SHOWN:
        tell("", f"and {len(outside) - SHOWN:,} more numbers; --json lists all.")
    for word, rows in unseen.items():
        tell(
            "Warning",
            f"{word} was never seen before; {count(rows, 'row')} with it count as average.",
        )


def _assumed(
    model: FittedModel, table: Table, limits: np.ndarray | None, good: np.ndarray
) -> list[str]:
    """What was assumed about the contexts: how they are written, and what empty cells count as."""
    notes = [*table.notes, *missing_units(model.training, table)]
    if limits is not None:
        notes += empty_limits(model.plan, model.limits, limits, table.where, good)
    return notes


def _named(table: Table, key: str | None, row: int) -> str:
    """A row as people call it, with its place."""
    word = table.text[key][row] if key in table.text else ""
    return f"{table.where(row)}{f' ({word})' if word else ''}"


class Open(NamedTuple):
    """What a time limit has left open."""

    unproved: int = 0
    """Decisions that were found but not proved to be the best."""
    stopped: int = 0
    """Contexts for which no decision was found in time."""
    worst: float = 0.0
    """By how much a decision may be beaten at most, as a share of its cost; inf if not known."""

    @classmethod
    def of(cls, found: Decided) -> Open:
        none = ~np.isfinite(found.decisions).all(axis=1)
        return cls(
            int(found.unproved.sum()),
            int((none & (found.status == SolveStatus.LIMIT)).sum()),
            float(found.gap[found.unproved].max(initial=0.0)),
        )


def _tell_open(open_: Open, words: Words) -> None:
    if open_.unproved:
        most = f", by {fine(open_.worst)} at most" if np.isfinite(open_.worst) else ""
        tell(
            "Warning",
            f"{count(open_.unproved, 'decision is', 'decisions are')} the {words.best} found in "
            f"time, not proved to be the {words.best}: another may be {words.better}{most}. A "
            "longer --time-limit may settle it.",
        )
    if open_.stopped:
        tell(
            "Warning",
            f"No decision was found in time for {count(open_.stopped, 'context')}; give a longer "
            "--time-limit. Their rows are empty.",
        )


def _tell_decisions(model: FittedModel, missing: int, impossible: list[str], broken: int) -> None:
    free = model.given is None
    tell_without_decision(missing - len(impossible), model.plan, limits=free)
    if impossible:
        tell(
            "Note",
            f"{count(len(impossible), 'context has', 'contexts have')} limits that no decision "
            f"meets: {some(impossible)}.",
        )
    if missing > 0:
        tell("", "Their rows are empty.")
    if broken:
        tell(
            "Note",
            f"{count(broken, 'decision has', 'decisions have')} fractions where the plan asks "
            "for whole numbers: the model was fitted to the relaxation, and this is its best. "
            "Fit again, without --relax, for whole decisions.",
        )


def _fractions(plan: Plan, decisions: np.ndarray) -> int:
    """Decisions with a fraction where the plan asks for a whole number."""
    if plan.is_whole or not len(decisions):
        return 0
    at = [plan.variables.index(name) for name in plan.integers]
    return int((np.abs(decisions[:, at] - np.round(decisions[:, at])) > SAME).any(axis=1).sum())
