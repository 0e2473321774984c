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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ..._common.words import count
from ...errors import InputError
from ..plans import Plan, read_plan
from ..store import FittedModel, Samples, save_model
from ..tables import Feature, FeatureMap
from .explanation import tell_without_decision
from .given import asks_for_given
from .headline import tell_figures
from .judging import judge
from .options import number
from .telling import tell, tell_json
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
    from sklearn.exceptions import ConvergenceWarning

    from ...fit import LBFGS, InverseRegressor, Run
    from ...fit.storing import training_facts

    plan = read_plan(args.problem, relax=args.relax)
    _refuse(args, plan)
    data, left = _data(args, plan)
    margin = 1.0 if args.margin is None else args.margin
    learn, held = data.split(args.holdout)
    began = time.perf_counter()
    est = InverseRegressor(
        plan.problem,
        model="linear",
        solver=LBFGS(max_iter=args.max_iter or EVALUATIONS, tol=args.gap),
        margin=margin,
        noise="auto" if args.noise is None else args.noise,
        ridge="auto" if args.ridge is None else args.ridge,
        infeasible="skip" if args.skip_bad else "refuse",
        random_state=args.seed,
        verbose=not args.json and sys.stderr.isatty(),
    )
    run = Run(executor=args.scheduler or "threads", memory=args.memory, checkpoint=args.checkpoint)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said below in the command's words
        est.fit(learn, run=run)
    features, coef, intercept = _encoded(est, data.feature_names)
    facts = training_facts(est) | {
        "seconds": time.perf_counter() - began,
        "held_out": args.holdout if held is not None else 0.0,
        "seed": args.seed,
        "solver": "lbfgs",
        "run": est.partitions_report_,
        "made_by": f"revealed {__version__}",
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    shown = (held or learn).first(JUDGED)
    kept = _some(features, shown, held is not None, args.keep)
    model = FittedModel(plan, features, coef, intercept, margin, args.id, facts, kept, ())
    for name, some in (("seen", learn.first(JUDGED)), ("held", shown if held else None)):
        Z = np.zeros((0, len(features.names))) if some is None else _encode(features, some.Z)
        X = np.zeros((0, plan.problem.n_variables)) if some is None else some.X
        facts[name] = judge(model, plan, Z, X, quiet=args.json).plain()
    save_model(model, args.out)
    if args.json:
        tell_json({"model": str(args.out), "replaced": replaced, "left_out": left} | facts)
    else:
        _tell(args, plan, data, facts, est.decision_report_, left)
    return 1 if facts["unsolved"] or not facts["converged"] else 0


def _refuse(args: argparse.Namespace, plan: Plan) -> None:
    """Options that go with one table in memory only."""
    if plan.is_whole:
        raise InputError(
            f"{plan.name} asks for whole numbers, which are fitted in memory; --relax allows "
            "fractions."
        )
    if args.unknown_limit:
        raise InputError("--unknown-limit is for tables in memory: limits are learned from all.")
    if args.limit:
        raise InputError(
            "--limit is for tables in memory; for more, give datasets.Partitions `limits`."
        )
    if asks_for_given(args):
        raise InputError(
            "--cost, --same-cost and --cost-table are for tables in memory; leave out --memory, "
            "--scheduler and --checkpoint, and give one file."
        )
    if args.model == "quadratic":
        raise InputError("Parts are fitted with --model linear.")


def _data(args: argparse.Namespace, plan: Plan) -> tuple[Any, list[str]]:
    """The partitions, and the columns that are not learned from."""
    from ...datasets.parquet import column_names
    from ...datasets.partitions import Partitions
    from ...datasets.pieces import files_of

    options: dict[str, Any] = {
        "variables": plan.variables,
        "ids": args.id,
        "bad": "skip" if args.skip_bad else "refuse",
    }
    files = os.fspath(args.contexts), os.fspath(args.decisions)
    data = Partitions.from_parquet(plan.problem, *files, **options)
    assert data.feature_names is not None, "they come from files"
    names = [name for name in data.feature_names if name not in args.ignore]
    if not names:
        raise InputError("No column of numbers is left to learn from.")
    there = column_names(files_of(files[0], "contexts")[0])
    left = [n for n in there if n not in names and n not in plan.variables and n != args.id]
    return Partitions.from_parquet(plan.problem, *files, features=names, **options), left


def _encoded(est: Any, names: Any) -> tuple[FeatureMap, np.ndarray, np.ndarray]:
    """The features with mean 0 and standard deviation 1, as models on disk have them, and the
    coefficients there."""
    rows = est.model_.rows
    scale = np.where(rows.spread > 0, rows.spread, 1.0)
    parts = zip(names, rows.mean.tolist(), scale.tolist(), strict=True)
    features = FeatureMap(tuple(Feature(name, mean, one) for name, mean, one in parts))
    return features, est.coef_ * scale, est.intercept_ + est.coef_ @ rows.mean


def _encode(features: FeatureMap, Z: np.ndarray) -> np.ndarray:
    mean = np.array([feature.mean for feature in features.features])
    return (Z - mean) / np.array([feature.scale for feature in features.features])


def _some(features: FeatureMap, shown: Any, held: bool, most: int) -> Samples | None:
    """A few samples to look at later."""
    size = min(most, len(shown.Z))
    if not size:
        return None
    ids = shown.ids or range(1, len(shown.Z) + 1)
    names = tuple(str(name) for name in list(ids)[:size])
    Z = _encode(features, shown.Z[:size])
    return Samples(names, Z, shown.X[:size], np.full(size, int(held)), None)


def _tell(
    args: argparse.Namespace, plan: Plan, data: Any, facts: dict[str, Any], report: str, left: Any
) -> None:
    run = facts["run"]
    tell(
        "Read",
        f"{count(run['samples'], 'sample')} with {run['executor']}: "
        f"{count(len(data.feature_names), 'feature')} of the context, "
        f"{count(len(plan.variables), 'variable')} of {plan.name}; "
        f"{run['bytes_in_memory'] / 1e6:,.0f} MB in memory, "
        f"{run['bytes_on_disk'] / 1e6:,.0f} MB in files, "
        f"at most {run['peak_bytes'] / 1e6:,.0f} MB for a process.",
    )
    if left:
        tell("Left out", f"columns that are not numbers, or ignored: {', '.join(left)}.")
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
    import pyarrow
    import pyarrow.parquet as parquet

    from ...datasets.partitions import Partitions
    from ...datasets.pieces import files_of

    if args.robust is not None or args.skip_bad or model.limits or model.plan.is_whole:
        raise InputError(
            "Parts are predicted without --robust, --skip-bad, limits and whole numbers: give one "
            "file of contexts at a time for these."
        )
    words = [feature.name for feature in model.features.features if feature.levels]
    if words:
        raise InputError(f"Parts have features that are numbers; {words[0]!r} has words.")
    names = [feature.name for feature in model.features.features]
    args.out.mkdir(parents=True, exist_ok=True)
    rows = missing = 0
    files = files_of(os.fspath(args.contexts), "contexts")
    for file in files:
        data = Partitions.from_parquet(model.plan.problem, file, features=names, ids=model.key)
        target = args.out / Path(file).name
        if target.exists() and target.samefile(file):
            raise InputError(f"{target} is a table of contexts; write to another folder.")
        writer = None
        for some in (s for part in data.partitions for piece in part for s in data.read(piece)):
            costs = model.costs(_encode(model.features, some.Z))
            values = costs * model.plan.sign
            if not args.costs:
                values = np.asarray(model.plan.problem.solve(costs).x)
                missing += int(np.isnan(values).any(axis=1).sum())
            columns: dict[str, Any] = {} if some.ids is None else {str(model.key): some.ids}
            columns |= {name: values[:, j] for j, name in enumerate(model.plan.variables)}
            table = pyarrow.table(columns)
            writer = writer or parquet.ParquetWriter(target, table.schema)
            writer.write_table(table)
            rows += len(values)
        if writer is not None:
            writer.close()
    if args.json:
        tell_json({"written": str(args.out), "rows": rows, "without_decision": missing})
    else:
        what = "cost vector" if args.costs else "decision"
        tell("Written", f"{count(rows, what)} in {count(len(files), 'file')} to {args.out}.")
        tell_without_decision(missing, model.plan, limits=False)
    return 1 if missing else 0
