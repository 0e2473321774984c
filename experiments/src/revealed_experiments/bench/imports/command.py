"""`revealed bench imports`: models written elsewhere, learned with from end to end.

For every model: contexts are drawn, and costs around the model's own that depend linearly on them;
the model's decisions under those costs are all that the estimator sees. Ten NETLIB files go through
`rv.read_mps`, five CVXPY problems through `rv.from_cvxpy`.

Letters: B samples, d context features, n columns, p parameters.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.cli.commands.options import positive, whole
from revealed.errors import InputError

from ..record import surroundings, write_json
from ..tables import Table, show, show_targets, target

if TYPE_CHECKING:
    from revealed.importers import ImportedModel

    from .cvxpy_models import Loaded

Row = dict[str, Any]
Load = Callable[[], "Loaded"]
NETLIB = ("adlittle", "scagr7", "share2b", "lotfi", "scorpion", "israel", "scsd1", "capri", "e226")
NETLIB += ("forplan",)
"""Small enough for a few minutes, and with decisions that do change with the cost."""
FEATURES = 3
SPREAD = 0.8
"""How far a cost moves with its context, as a share of the model's own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench imports`."""
    parser.add_argument(
        "--netlib", type=Path, metavar="DIR", help="folder of .mps.gz files; without it only CVXPY"
    )
    parser.add_argument(
        "--files", nargs="+", metavar="NAME", help="of that folder, instead of all models"
    )
    parser.add_argument("--samples", type=positive, default=100, help="to learn from (100)")
    parser.add_argument(
        "--max-iter", type=positive, default=500, metavar="N", help="evaluations of a fit (500)"
    )
    parser.add_argument("--only", metavar="TEXT", help="only models whose name contains this")
    parser.add_argument("--seed", type=whole, default=0)
    parser.add_argument("--quick", action="store_true", help="smoke test: few samples, no claims")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results/imports.json"),
        help="JSON file to write (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Learn with every model, print the table, write the JSON; 1 if one did not train."""
    if args.quick:
        args.samples, args.max_iter = min(args.samples, 10), min(args.max_iter, 5)
    settings = {"samples": args.samples, "max-iter": args.max_iter, "seed": args.seed}
    options = " ".join(f"--{name} {value}" for name, value in settings.items())
    settings |= {"features": FEATURES, "spread": SPREAD}
    content = surroundings(f"revealed bench imports{_choice(args)} {options}", settings)
    rows = []
    for name, route, load in _chosen(args):
        print(f"  {name}", file=sys.stderr, flush=True)
        rows.append({"model": name, "route": route} | learn(load(), args))
    targets = [] if args.quick else _targets(rows)
    write_json(args.out, content | {"benchmark": "imports", "rows": rows, "targets": targets})
    show([_table(rows)])
    show_targets(targets)
    print(f"written to {args.out}")
    return int(any(not entry["holds"] for entry in targets))


def learn(loaded: Loaded, args: argparse.Namespace) -> Row:
    """Fit the estimator to decisions of a model, and see how it does in contexts of both kinds."""
    from revealed.fit import LBFGS, InverseRegressor

    model, own, margin = loaded
    rng = np.random.default_rng(args.seed)
    Z, X = _data(model, own, args.samples, rng)
    train, test = np.arange(args.samples), np.arange(args.samples, len(Z))
    began = time.process_time()
    estimator = InverseRegressor(
        model.problem,
        cost_map=model.form,
        solver=LBFGS(max_iter=args.max_iter),
        margin=margin,
        noise=0.0,  # decisions are exact: there is nothing to average over
        random_state=args.seed,
        threads=1,
    ).fit(Z[train], X[train])
    seconds = time.process_time() - began
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # costs without a decision are counted below
        predicted = estimator.predict(Z)
    ignoring = model.problem.solve(_costs(model, own[None])).x
    first, last = estimator.history_.rows[0], estimator.history_.rows[-1]
    told = estimator.certificate_
    return {
        "columns": model.problem.n_variables,
        "margin": margin,
        "parameters": len(own),
        "rows": model.problem.eq_rows.shape[0] + model.problem.ub_rows.shape[0],
        "decisions": len(np.unique(X[train].round(6), axis=0)),
        "iterations": estimator.n_iter_,
        "converged": told.converged if told is not None and told.convergence else None,
        "seconds": seconds,
        "h_first": first["loss"],
        "h": last["loss"],
        "unsolved": int(last["unsolved"]),
        "no_decision": int(np.isnan(predicted).any(axis=1).sum()),
        "train": _relative(predicted[train], X[train]),
        "test": _relative(predicted[test], X[test]),
        "ignoring": _relative(np.tile(ignoring, (len(test), 1)), X[test]),
    }


def _data(
    model: ImportedModel, own: np.ndarray, samples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Contexts (2 B, d) and the decisions (2 B, n) taken there, drawn until there are enough."""
    weights = rng.uniform(-1, 1, (len(own), FEATURES)) / FEATURES
    contexts, decisions, found = [], [], 0
    while found < 2 * samples:
        Z = rng.uniform(-1, 1, (2 * samples, FEATURES))
        answer = model.problem.solve(_costs(model, own * (1 + SPREAD * Z @ weights.T)))
        if not answer.optimal.any():
            raise InputError(f"{model.source} has no best decision under any of the costs drawn.")
        # Some files allow costs to fall without limit when the prices move; no one decides there.
        contexts.append(Z[answer.optimal])
        decisions.append(answer.x[answer.optimal])
        found += int(answer.optimal.sum())
    return np.vstack(contexts)[: 2 * samples], np.vstack(decisions)[: 2 * samples]


def _costs(model: ImportedModel, parameters: np.ndarray) -> np.ndarray:
    return parameters if model.form is None else model.form.costs(parameters)


def _relative(predicted: np.ndarray, decisions: np.ndarray) -> float:
    """Mean of |x - x*|^2 / |x*|^2 over predictions that there are."""
    there = ~np.isnan(predicted).any(axis=1)
    gaps = ((predicted[there] - decisions[there]) ** 2).sum(axis=1)
    return float(np.mean(gaps / (decisions[there] ** 2).sum(axis=1))) if there.any() else np.nan


def _choice(args: argparse.Namespace) -> str:
    """The options that choose models, as they were given; a folder by its name."""
    words = f" --netlib {args.netlib.name}" if args.netlib else ""
    words += f" --files {' '.join(args.files)}" if args.files else ""
    return words + (f" --only {args.only}" if args.only else "")


def _chosen(args: argparse.Namespace) -> list[tuple[str, str, Load]]:
    """Name, importer and loader of every model that was asked for."""
    from .cvxpy_models import MODELS

    if args.files and args.netlib is None:
        raise InputError("`--files` are those of a folder; name it with `--netlib DIR`.")
    listed: list[tuple[str, str, Load]] = []
    if args.netlib is not None:
        files = args.files or NETLIB
        listed += [(name, "read_mps", partial(_load_mps, args.netlib, name)) for name in files]
    if not args.files:
        listed += [(name, "from_cvxpy", load) for name, load in MODELS.items()]
    chosen = [entry for entry in listed if not args.only or args.only in entry[0]]
    if not chosen:
        names = ", ".join(name for name, _, _ in listed)
        raise InputError(f"`--only {args.only}` matches none of {names}.")
    return chosen


def _load_mps(folder: Path, name: str) -> Loaded:
    from revealed.importers import read_mps

    from .cvxpy_models import Loaded

    model = read_mps(folder / f"{name}.mps.gz")
    assert model.cost is not None  # an MPS file always has one
    return Loaded(model, model.cost)


def _targets(rows: list[Row]) -> list[Row]:
    return [target("models trained", sum(map(has_trained, rows)), len(rows), at_least=True)]


def has_trained(row: Row) -> bool:
    """The minimum is reached, and there are decisions to compare; where a solver has no certificate
    of that, h has fallen to a tenth."""
    compared = np.isfinite([row["train"], row["test"]]).all()
    converged = row.get("converged")
    return bool(compared and (row["h"] <= 0.1 * row["h_first"] if converged is None else converged))


def _table(rows: list[Row]) -> Table:
    headings = ["model", "importer", "columns", "predicted", "rows", "decisions", "steps", "s"]
    headings += ["h at first", "h", "train", "test", "ignoring", "none", "open"]
    return Table(
        "Learning with imported models",
        headings,
        [
            [row["model"], row["route"]]
            + [str(row[k]) for k in ("columns", "parameters", "rows", "decisions", "iterations")]
            + [f"{row[k]:.3g}" for k in ("seconds", "h_first", "h", "train", "test", "ignoring")]
            + [str(row[k]) for k in ("no_decision", "unsolved")]
            for row in rows
        ],
        n_words=2,
        note="train, test: mean of |x - x*|^2 / |x*|^2 in contexts that were and were not seen; "
        "ignoring: of the decision under the model's own cost, which ignores them. decisions: how "
        "many different ones were seen. none: predicted costs that fall without limit. open: "
        "projections of the last step that are not certified.",
    )
