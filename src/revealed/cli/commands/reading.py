"""How tables are read where they are not perfect: rounded, with gaps, with rows that are wrong.

The options of a fit are kept with its model, so that `explain` reads the same tables the same way.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ..tables import IMPUTE, Table
from ..tables.names import plain_name
from .options import number

POLICIES = ("refuse", "repair", "skip")


class Reading(NamedTuple):
    """What to do with what cannot be used as it is."""

    tol: Any = "auto"
    """Half a unit of the last digit of the decisions: one number, one for each variable, or
    "auto"."""
    infeasible: str = "refuse"
    skip_bad: bool = False
    impute: str = "none"
    dates: tuple[str, ...] = ()

    def plain(self, half_unit: np.ndarray | None) -> dict[str, Any]:
        """For the model, with the precision that was found."""
        settings = self._asdict() | {"dates": list(self.dates)}
        if half_unit is not None:
            same = bool((half_unit == half_unit[0]).all())
            settings["tol"] = float(half_unit[0]) if same else half_unit.tolist()
        return settings


def add_reading(parser: argparse.ArgumentParser, *, contexts: bool) -> None:
    """The options about imperfect tables; those about `contexts` are settled once a model is."""
    parser.add_argument(
        "--tol",
        type=_tolerance,
        metavar="HALF_UNIT",
        help="largest rounding error of a number in the decisions: 0.005 for two decimals, 0 "
        "for exact ones (found from the digits, and reported)",
    )
    parser.add_argument(
        "--infeasible",
        choices=POLICIES,
        help="decisions that break the plan by more than rounding: refuse them all, repair them to "
        "the nearest that obeys, or skip them (refuse; skip with --skip-bad)",
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        default=None,
        help="leave out rows that cannot be used, and list them: an empty cell, a cell that is "
        "not a number, a day without a decision",
    )
    if not contexts:
        return
    parser.add_argument(
        "--impute",
        choices=IMPUTE,
        default="none",
        help="how to fill empty cells of the contexts: with the mean or median of the column, "
        "or the most frequent word (none: such cells are refused, or skipped)",
    )
    parser.add_argument(
        "--date",
        action="append",
        default=[],
        type=plain_name,
        metavar="COLUMN",
        help="column of dates whose weekday and month to learn from; may be given several times",
    )


def _tolerance(text: str) -> float | str:
    return text if text == "auto" else number(text)


def reading_of(args: argparse.Namespace) -> Reading:
    """What the options say, before there is a model."""
    skip = bool(args.skip_bad)
    return Reading(
        "auto" if args.tol is None else args.tol,
        args.infeasible or ("skip" if skip else "refuse"),
        skip,
        args.impute,
        tuple(args.date),
    )


def reading_for(training: dict[str, Any], args: argparse.Namespace | None) -> Reading:
    """What a model was fitted with, unless the options say otherwise."""
    kept = training.get("reading")
    kept = kept if isinstance(kept, dict) else {}
    reading = Reading(
        _stored_tolerance(kept.get("tol")),
        kept["infeasible"] if kept.get("infeasible") in POLICIES else "refuse",
        kept.get("skip_bad") is True,
    )
    if args is None:
        return reading
    if args.tol is not None:
        reading = reading._replace(tol=args.tol)
    if args.skip_bad:
        reading = reading._replace(skip_bad=True, infeasible="skip")
    return reading if args.infeasible is None else reading._replace(infeasible=args.infeasible)


def refuse_other_units(training: dict[str, Any], table: Table) -> None:
    """Refuse contexts in other units than those that a model has learned from."""
    kept = training.get("units")
    kept = kept if isinstance(kept, dict) else {}
    for column, unit in table.units.items():
        known = kept.get(column)
        if isinstance(known, str) and known != unit:
            raise InputError(
                f"{table.name}, column {column!r} is in {unit}; the model has learned from "
                f"{plain_name(known)}. Convert it, or fit again."
            )


def missing_units(training: dict[str, Any], table: Table) -> list[str]:
    """What is assumed of columns without a unit where the model has learned from one."""
    kept = training.get("units")
    kept = kept if isinstance(kept, dict) else {}
    bare = [
        (column, unit)
        for column, unit in kept.items()
        if column in table.columns
        and column not in table.units
        and isinstance(unit, str)
        and table.filled_cells.get(column) != len(table)  # else there is no number
    ]
    return [
        f"{table.name}: {column} has no unit; it is taken to be in {plain_name(unit)}, as in the "
        "fit."
        for column, unit in bare
    ]


def _stored_tolerance(tol: Any) -> Any:
    """A tolerance from a file: a number, numbers, or "auto" for anything else."""
    numbers = tol if isinstance(tol, list) else [tol]
    good = all(isinstance(t, int | float) and not isinstance(t, bool) and t >= 0 for t in numbers)
    return tol if good and numbers else "auto"
