"""Options for costs that are known, limited or equal beforehand, and what is said of them."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from ..._common.words import count
from ...optimality.sets import OptimalitySet
from ...projection import project
from ...projection.result import ProjectionStatus
from ..doctor.finding import some
from ..plans import GivenCosts, Plan, find_costs
from ..tables import open_table
from ..tables.names import plain_name
from .dossier import Dossier
from .words import words_for

SOFT = 100.0
"""Price of missing the conditions of optimality, where the given costs explain no decision."""


def add_given(parser: argparse.ArgumentParser) -> None:
    """The options that say what is known of costs."""
    parser.add_argument(
        "--cost",
        action="append",
        default=[],
        metavar="VARIABLE=KNOWN",
        help="what is known of a cost beforehand: fuel=3.5 is its value, fuel=plan the value in "
        "the model file, fuel=0.. at least 0, fuel=..10 at most 10, fuel=0..10 between both; * "
        "stands for anything, as in '*=0..'; may be given several times",
    )
    parser.add_argument(
        "--same-cost",
        action="append",
        default=[],
        type=plain_name,
        metavar="PATTERN",
        help="variables that all have the same cost, such as 'fuel_*'; may be given several times",
    )
    parser.add_argument(
        "--cost-table",
        type=Path,
        metavar="FILE",
        help="the same as a table: a column 'variable', and any of 'known', 'lower', 'upper' and "
        "'same' (variables with the same word have the same cost); empty cells say nothing",
    )


def asks_for_given(args: argparse.Namespace) -> bool:
    """Whether any of the options is there."""
    return bool(args.cost or args.same_cost or args.cost_table)


def read_given(args: argparse.Namespace, plan: Plan) -> GivenCosts | None:
    """What the options say of the costs of a plan; None where they say nothing."""
    table = None if args.cost_table is None else open_table(args.cost_table)
    return find_costs(plan, args.cost, args.same_cost, table)


def unexplained(given: GivenCosts, plan: Plan, decisions: np.ndarray) -> np.ndarray:
    """Samples whose decisions no costs explain that keep to what is given; `plan` is theirs."""
    sets = OptimalitySet(plan.problem, decisions, 0.0, form=given.form)
    status = project(np.zeros((len(sets), sets.n_parameters)), sets).status
    return np.flatnonzero(np.asarray(status) == ProjectionStatus.EMPTY)


def unexplained_sentence(dossier: Dossier, rows: np.ndarray, size: int) -> str:
    """What that means for these samples of `size` that were looked at, and what to do."""
    names = some([dossier.sample(int(b)) for b in rows])
    words = words_for(dossier.plan)
    return (
        f"The given {words.costs} contradict {count(len(rows), 'decision')} of {size:,}: whatever "
        f"the other {words.costs} are, another decision is {words.better} ({names}). Check the "
        f"signs and units of the given {words.costs}; a few such decisions may be mistakes."
    )
