"""`revealed predict`: decisions, or costs, for new contexts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from ..errors import InputError
from .telling import count, tell, tell_json

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
    values, missing = costs * model.plan.sign, 0
    if not args.costs:
        values = _decide(model.plan.problem, costs, show=not args.json and sys.stderr.isatty())
        missing = int(np.isnan(values).any(axis=1).sum())
    key = None
    if model.key is not None and model.key in table.text:
        key = (model.key, table.text[model.key])
    write_table(args.out, model.plan.variables, values, key=key)
    what = "cost vectors" if args.costs else "decisions"
    if args.json:
        tell_json({"written": str(args.out), "rows": len(Z), "without_decision": missing})
    else:
        tell("Written", f"{len(Z):,} {what} to {args.out}.")
        if missing:
            tell(
                "Note",
                f"{count(missing, 'context')} have no decision of minimum cost: under the "
                "predicted costs the total falls without limit. Their rows are empty.",
            )
    return 1 if missing else 0


def _decide(problem, costs: np.ndarray, *, show: bool) -> np.ndarray:
    """(B, n) decisions, NaN where there is none of minimum cost."""
    from ..fit.progress import progress

    blocks = [slice(k, k + BLOCK) for k in range(0, len(costs), BLOCK)]
    decided = []
    with progress("Deciding", len(blocks), verbose=show and len(blocks) > 1) as step:
        for k, part in enumerate(blocks):
            decided.append(np.asarray(problem.solve(costs[part]).x))
            step({"iteration": k + 1, "h": np.nan})
    return np.concatenate(decided)
