"""`revealed predict`: decisions, or costs, for new contexts."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from .._words import count
from ..errors import InputError
from ..explain.likeness import SAME
from ..oracle import SolveStatus
from ..plans import Plan, read_limits
from ..problem import LinearProgram
from .telling import tell, tell_json, waiting
from .told import tell_without_decision
from .words import words_for

BLOCK = 65_536
"""Rows solved at a time, between two movements of the progress bar."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed predict`."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder written by revealed fit")
    parser.add_argument(
        "--contexts", required=True, type=Path, metavar="FILE", help="table of new contexts"
    )
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="FILE",
        help="table to write (.csv, .parquet, .npz); one that is there is replaced",
    )
    parser.add_argument(
        "--costs", action="store_true", help="write the predicted costs, not the decisions"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write predictions; 1 if some context has no decision of minimum cost."""
    from ..store import load_model
    from ..tables import check_ending, open_table, write_table

    check_ending(args.out)
    model, file = load_model(args.model), open_table(args.contexts)
    if args.out.exists() and args.out.samefile(args.contexts):
        raise InputError(f"{args.out} is the table of contexts; write to another file.")
    Z, table = model.read_contexts(file)
    if not len(Z):
        raise InputError(f"{table.name} has column names but no rows.")
    costs = model.costs(Z)
    values, missing, impossible, broken = costs * model.plan.sign, 0, 0, 0
    if not args.costs:
        limits = read_limits(file, model.plan, model.limits) if model.limits else None
        values, status = _decide(model.plan_of(limits).problem, costs, quiet=args.json)
        missing = int(np.isnan(values).any(axis=1).sum())
        impossible = int((status == SolveStatus.INFEASIBLE).sum())
        broken = _fractions(model.plan, values)
    key = None
    if model.key is not None and model.key in table.text:
        key = (model.key, table.text[model.key])
    write_table(args.out, model.plan.variables, values, key=key)
    what = "cost vector" if args.costs else "decision"
    if args.json:
        tell_json(
            {
                "written": str(args.out),
                "rows": len(Z),
                "without_decision": missing,
                "impossible": impossible,
                "with_fractions": broken,
            }
        )
    else:
        tell("Written", f"{count(len(Z), what)} to {args.out}.")
        words = words_for(model.plan)
        tell_without_decision(missing - impossible, words.costs, words.endless)
        if impossible:
            tell(
                "Note",
                f"{count(impossible, 'context has', 'contexts have')} limits that no "
                "decision meets.",
            )
        if missing:
            tell("", "Their rows are empty.")
        if broken:
            tell(
                "Note",
                f"{count(broken, 'decision has', 'decisions have')} fractions where the plan asks "
                "for whole numbers: costs are learnt for the relaxation, and this is its best.",
            )
    return 1 if missing else 0


def _fractions(plan: Plan, decisions: np.ndarray) -> int:
    """Decisions with a fraction where the plan asks for a whole number."""
    at = [plan.variables.index(name) for name in plan.integers]
    return int((np.abs(decisions[:, at] - np.round(decisions[:, at])) > SAME).any(axis=1).sum())


def _decide(
    problem: LinearProgram, costs: np.ndarray, *, quiet: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(B, n) decisions, NaN where there is none of minimum cost, and the (B,) status of each."""
    blocks = [slice(k, k + BLOCK) for k in range(0, len(costs), BLOCK)]
    decided, status = [], []
    with waiting("Deciding", len(blocks), quiet=quiet or len(blocks) == 1) as step:
        for k, part in enumerate(blocks):
            answer = problem[part].solve(costs[part])
            decided.append(np.asarray(answer.x))
            status.append(np.asarray(answer.status))
            step(k + 1)
    return np.concatenate(decided), np.concatenate(status)
