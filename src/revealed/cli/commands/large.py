"""Fits and predictions part by part: tables in many Parquet files, larger than memory.

Letters: B samples, n variables, d features.
"""

from __future__ import annotations

import argparse
import glob
import os
import sys
import time
import warnings
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ..._common.words import count
from ...datasets.parquet import column_names
from ...datasets.pieces import files_of
from ...errors import InputError
from ..plans import Plan, find_limits, read_plan
from ..store import FittedModel, Samples, save_model
from ..tables.encoder import learn_parts, scales_of, standardized
from .deciding import without_last_bits
from .dossier import tell_own_limits
from .explanation import tell_without_decision
from .given import asks_for_given
from .headline import tell_figures
from .judging import Verdict, judge
from .options import number
from .parts import (
    Parts,
    Some,
    encoded,
    open_parts,
    parts_for,
)
from .reading import Reading, reading_of
from .telling import tell, tell_json, waiting
from .words import words_for

JUDGED = 20_000
"""Samples that a model is judged on, of those seen and of those held out."""
TOL = 1e-4
"""Relative distance to the minimum that a fit goes to."""
EVALUATIONS = 500


def add_large(parser: argparse.ArgumentParser) -> None:
    """Options of fits to more than memory holds."""
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="read Parquet files part by part, and let a process take at most so much memory, such "
        "as 2GB; samples beyond it are kept in files",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="fit on the workers of a Dask cluster, such as tcp://10.0.0.1:8786",
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="with --memory or many files: keep checkpoints there; the same command goes on from "
        "them",
    )
    parser.add_argument(
        "--gap",
        type=number,
        default=TOL,
        help=f"with --memory or many files: relative distance to the minimum to go to ({TOL:g})",
    )


def many_files(path: Path) -> bool:
    """Whether a path stands for Parquet files: a folder or a pattern."""
    return path.is_dir() or glob.has_magic(os.fspath(path))


def is_large(args: argparse.Namespace) -> bool:
    """Whether a fit is to run part by part."""
    asked = args.memory or args.scheduler or args.checkpoint
    return bool(asked) or many_files(args.contexts) or many_files(args.decisions)


def fit_large(args: argparse.Namespace, replaced: bool) -> int:
    """Fit part by part, judge on some samples, save; 1 if the fit did not converge."""
    from ...fit.storing import training_facts

    plan = read_plan(args.problem, relax=args.relax)
    _refuse(args, plan)
    parts, notes, left = _parts(args, plan)
    margin = 1.0 if args.margin is None else args.margin
    learn, held = parts.data.split(args.holdout)
    began = time.perf_counter()
    est = _fitted(args, plan, margin, learn)
    rows = est.model_.rows
    features = standardized(parts.features, rows.mean, rows.spread)
    mean, scale = scales_of(features)
    coef, intercept = est.coef_ * scale, est.intercept_ + est.coef_ @ mean
    facts = training_facts(est) | {
        "seconds": time.perf_counter() - began,
        "held_out": args.holdout if held is not None else 0.0,
        "seed": args.seed,
        "solver": "lbfgs",
        "run": est.partitions_report_,
        "data": parts.fingerprint,
        "reading": parts.how.plain(None),
        "made_by": f"revealed {__version__}",
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    model = FittedModel(plan, features, coef, intercept, margin, args.id, facts, None, parts.limits)
    verdicts, kept = _judged(model, parts, facts["held_out"], args.keep)
    facts |= {name: verdict.plain() for name, verdict in verdicts.items()}
    save_model(replace(model, samples=kept), args.out)
    if args.json:
        limits = [{"name": limit.name, "column": limit.column} for limit in parts.limits]
        told = {"model": str(args.out), "replaced": replaced, "left_out": left, "limits": limits}
        tell_json(told | {"assumed": notes} | facts)
    else:
        _tell(args, model, est.decision_report_, left, notes)
    return 1 if facts["unsolved"] or not facts["converged"] else 0


def _fitted(args: argparse.Namespace, plan: Plan, margin: float, learn: Any) -> Any:
    from sklearn.exceptions import ConvergenceWarning

    from ...fit import LBFGS, InverseRegressor, Run

    est = InverseRegressor(
        plan.problem,
        model="linear",
        solver=LBFGS(max_iter=args.max_iter or EVALUATIONS, tol=args.gap),
        margin=margin,
        noise="auto" if args.noise is None else args.noise,
        ridge="auto" if args.ridge is None else args.ridge,
        infeasible=args.infeasible or ("skip" if args.skip_bad else "refuse"),
        decision_tol="auto" if args.tol is None else args.tol,
        random_state=args.seed,
        verbose=not args.json and sys.stderr.isatty(),
    )
    run = Run(executor=args.scheduler or "threads", memory=args.memory, checkpoint=args.checkpoint)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said below in the command's words
        return est.fit(learn, run=run)


def _refuse(args: argparse.Namespace, plan: Plan) -> None:
    """Options that go with one table in memory only."""
    if plan.is_whole:
        raise InputError(
            f"{plan.name} asks for whole numbers, which are fitted in memory; --relax allows "
            "fractions."
        )
    if args.unknown_limit:
        raise InputError("--unknown-limit is for tables in memory: limits are learned from all.")
    if args.impute != "none":
        raise InputError(
            "--impute is for tables in memory: what fills a cell follows from all others. With "
            "--skip-bad such rows are left out."
        )
    if args.tol == "auto":
        raise InputError("Parts need the rounding error as a number: --tol 0.005 for two decimals.")
    if asks_for_given(args):
        raise InputError(
            "--cost, --same-cost and --cost-table are for tables in memory; leave out --memory, "
            "--scheduler and --checkpoint, and give one file."
        )
    if args.model == "quadratic":
        raise InputError("Parts are fitted with --model linear.")


def _parts(args: argparse.Namespace, plan: Plan) -> tuple[Parts, tuple[str, ...], list[str]]:
    """The parts, what was assumed about them, and the columns that are not learned from."""
    there = column_names(files_of(os.fspath(args.contexts), "contexts")[0])
    limits = tuple(find_limits(plan, args.limit, there))
    same = os.fspath(args.contexts) == os.fspath(args.decisions)
    apart = {args.id, *(limit.column for limit in limits), *(plan.variables if same else ())}
    how = reading_of(args)
    features, notes = learn_parts(
        args.contexts, apart, ignore=args.ignore, dates=args.date, skip=how.skip_bad
    )
    paths = (args.contexts, args.decisions)
    parts = open_parts(plan, features, limits, *paths, key=args.id, how=how, narrow=True)
    read = {feature.source for feature in features.features}
    return parts, notes, [name for name in there if name not in read | apart]


def _judged(
    model: FittedModel, parts: Parts, share: float, most: int
) -> tuple[dict[str, Verdict], Samples | None]:
    """The verdicts on up to `JUDGED` samples that were seen and as many that were held out, and
    some samples to look at later: those held out, or where there are none those seen."""
    verdicts = {"seen": Verdict(), "held": Verdict()}
    kept: list[Some] = []
    for some in encoded(parts, model.features, share):
        name = "held" if some.is_held else "seen"
        room = JUDGED - verdicts[name].samples
        if room > 0:
            some = some.take(np.arange(min(room, len(some.Z))))
            found = judge(model, some.plan, some.Z, some.X).verdict()
            verdicts[name] = verdicts[name].plus(found)
            if some.is_held or not share:
                room = most - sum(len(one.Z) for one in kept)
                kept.append(some.take(np.arange(min(room, len(some.Z)))))
        elif all(verdict.samples >= JUDGED for verdict in verdicts.values()) or not share:
            break
    return verdicts, _as_samples(kept)


def _as_samples(kept: list[Some]) -> Samples | None:
    if not sum(len(some.Z) for some in kept):
        return None
    Z, X = (np.concatenate([getattr(some, name) for some in kept]) for name in ("Z", "X"))
    names = tuple(some.name(b) for some in kept for b in range(len(some.Z)))
    held = np.concatenate([np.full(len(some.Z), int(some.is_held)) for some in kept])
    limits = None
    if kept[0].limits is not None:
        limits = np.concatenate([some.limits for some in kept if some.limits is not None])
    return Samples(names, Z, X, held, limits)


def _tell(args: argparse.Namespace, model: FittedModel, report: str, left: Any, notes: Any) -> None:
    facts, plan = model.training, model.plan
    run = facts["run"]
    tell(
        "Read",
        f"{count(run['samples'], 'sample')} with {run['executor']}: "
        f"{count(len(model.features.names), 'feature')} of the context, "
        f"{count(len(plan.variables), 'variable')} of {plan.name}; "
        f"{run['bytes_in_memory'] / 1e6:,.0f} MB in memory, "
        f"{run['bytes_on_disk'] / 1e6:,.0f} MB in files, "
        f"at most {run['peak_bytes'] / 1e6:,.0f} MB for a process.",
    )
    tell_own_limits(model.limits)
    for note in notes:
        tell("Assumed", note)
    if left:
        tell("Left out", f"columns that are ignored: {', '.join(left)}.")
    if report:
        tell("Skipped", report)
    tell("Learned", f"in {facts['seconds']:.1f} s. {facts['certificate']}")
    if not facts["converged"]:
        tell("", f"Allow more with --max-iter {2 * (args.max_iter or EVALUATIONS)}.")
    words = words_for(plan)
    for heading, name in (("Seen", "seen"), ("Held out", "held")):
        if facts[name]["samples"]:
            tell_figures(heading, facts[name], words)
    empty = facts["seen"]["without_decision"] + facts["held"]["without_decision"]
    tell_without_decision(empty, plan, limits=False)
    tell("Written", f"{args.out}.")


def predict_large(args: argparse.Namespace, model: FittedModel) -> int:
    """Write a Parquet file of decisions or costs for each file of contexts; 1 if some context has
    no decision."""
    if args.robust is not None or args.skip_bad or args.time_limit or model.plan.is_whole:
        raise InputError(
            "Parts are predicted without --robust, --skip-bad, --time-limit and whole numbers: "
            "give one file of contexts at a time for these."
        )
    args.out.mkdir(parents=True, exist_ok=True)
    files = files_of(os.fspath(args.contexts), "contexts")
    rows = missing = 0
    with waiting("Deciding", len(files), quiet=args.json) as step:
        for k, file in enumerate(map(Path, files)):
            target = args.out / file.name
            if target.exists() and target.samefile(file):
                raise InputError(f"{target} is a table of contexts; write to another folder.")
            written = _predicted(args, model, file, target)
            rows, missing = rows + written[0], missing + written[1]
            step(k + 1)
    if args.json:
        tell_json({"written": str(args.out), "rows": rows, "without_decision": missing})
    else:
        what = "cost vector" if args.costs else "decision"
        tell("Written", f"{count(rows, what)} in {count(len(files), 'file')} to {args.out}.")
        tell_without_decision(missing, model.plan, limits=False)
    return 1 if missing else 0


def _predicted(
    args: argparse.Namespace, model: FittedModel, file: Path, target: Path
) -> tuple[int, int]:
    """Write what is predicted on one file; how many rows that are, and how many without a
    decision."""
    import pyarrow
    import pyarrow.parquet as parquet

    rows, missing, writer = 0, 0, None
    for some in parts_for(model, file, None, Reading()).runs():
        costs = model.costs(some.Z)
        values = costs * model.plan.sign
        if not args.costs:
            values = without_last_bits(np.asarray(some.plan.problem.solve(costs).x))
            missing += int(np.isnan(values).any(axis=1).sum())
        columns: dict[str, Any] = {} if some.ids is None else {str(model.key): some.ids}
        columns |= {name: values[:, j] for j, name in enumerate(model.plan.variables)}
        table = pyarrow.table(columns)
        writer = writer or parquet.ParquetWriter(target, table.schema)
        writer.write_table(table)
        rows += len(values)
    if writer is not None:
        writer.close()
    return rows, missing
