"""`revealed bench pyepo`: the same training in PyEPO and here must end at the same regret.

Both sides train a linear model on PyEPO's own 5x5 paths, from the same weights, on the same batches
in the same order, so most methods must end alike on every seed. Where a loss draws at random the
two draw differently, and what must agree is the mean over seeds, within one standard error. Values
and gradients are compared draw by draw in tests/library/test_rivals_pyepo.py.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from revealed.cli.commands.options import positive

from ..pages import Page, publish
from ..record import surroundings
from ..tables import Table, target

FIRST_SEED = 42
BATCH = 40
"""Divides the training samples: in PyEPO the size of a batch is part of what BB's lambda means."""
STEP = 0.01
ALIKE = 0.01
"""Points of regret: a test path or two of a thousand, chosen otherwise at a near tie."""
SIZES = (1000, 1000)
"""Samples for training and test."""


@dataclass(frozen=True)
class Pair:
    """One method under its name and options here, and under those it has in PyEPO's process."""

    label: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    pyepo_name: str = ""
    pyepo_options: dict[str, Any] = field(default_factory=dict)
    differs_in: str = ""
    """What the two sides do not share; where it is nothing but rounding, every seed ends alike."""
    takes_seed: bool = False
    """Whether PyEPO's loss can be told where to begin its draws."""
    with_pool: bool = False
    """Whether our loss must be told the training decisions, as PyEPO's is by its data set."""

    @property
    def theirs(self) -> str:
        return self.pyepo_name or self.name


ONE_DRAW = {"n_samples": 1, "sigma": 1.0}
FEW_DRAWS = {"n_samples": 5, "sigma": 1.0}
SELDOM = {"solve_ratio": 0.05}
PAIRS = (
    Pair("two-stage", "two-stage"),
    Pair("SPO+", "spo+"),
    Pair("ST", "st"),
    # PyEPO adds lambda times the gradient of the mean over the batch, we that of the sample alone.
    Pair("BB", "bb", {"lam": 10.0 / BATCH}, pyepo_options={"lambd": 10.0}),
    Pair("CaVE", "cave"),
    # Three steps of an interior-point method that is not the same one.
    Pair("CaVE+", "cave+", differs_in="steps"),
    Pair("PFYL", "pfyl", ONE_DRAW, pyepo_options=ONE_DRAW, differs_in="draws", takes_seed=True),
    # Without the baseline that PyEPO takes off its draws by default, so that both do the same.
    Pair(
        "DPO",
        "dpo",
        FEW_DRAWS,
        pyepo_options=FEW_DRAWS | {"variance_reduction": False},
        differs_in="draws",
        takes_seed=True,
    ),
    Pair("NCE", "nce", SELDOM, pyepo_options=SELDOM, differs_in="draws", with_pool=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench pyepo`."""
    parser.add_argument(
        "--pyepo",
        metavar="PYTHON",
        default=".venv-pyepo/bin/python",
        help="Python of PyEPO's environment, made by experiments/pyepo/setup (%(default)s)",
    )
    parser.add_argument("--seeds", type=positive, default=10, help="data sets (10)")
    parser.add_argument("--epochs", type=positive, default=5, help="of training (5)")
    parser.add_argument("--degree", type=positive, default=4, help="of the hidden function (4)")
    parser.add_argument("--only", metavar="TEXT", help="only methods whose name holds this")
    parser.add_argument("--quick", action="store_true", help="smoke test: tiny sizes, no claims")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results/pyepo.json"),
        help="JSON file to write, with a page of the same name beside it (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Train on both sides, print the table, write the JSON and the page; 1 if a target fails."""
    from revealed.errors import InputError

    from .partner import Partner

    pairs = [pair for pair in PAIRS if not args.only or args.only in pair.label]
    if not pairs:
        raise InputError(f"--only {args.only!r} matches none of the methods.")
    seeds, epochs, sizes = args.seeds, args.epochs, SIZES
    if args.quick:
        seeds, epochs, sizes = 1, 2, (64, 64)
    settings = {"seeds": seeds, "epochs": epochs, "degree": args.degree, "sizes": sizes}
    content = surroundings(_command(args), settings | {"batch_size": BATCH, "step": STEP})
    with Partner(args.pyepo) as partner:
        content |= {"benchmark": "pyepo", "pyepo": partner.versions}
        content["methods"] = _measure(partner, pairs, settings)
    content["targets"] = [] if args.quick else find_targets(content["methods"])
    return publish(content, make_page, args.out)


def make_page(content: dict[str, Any]) -> Page:
    """What is shown of a run that is kept."""
    table = make_table(content["methods"], content["settings"]["degree"])
    findings = _verdict(content["targets"])
    return Page("The same as in PyEPO", findings, [table], _method(content))


# --- training on both sides ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Data:
    """Paths of PyEPO's generator with edges in our order, and where PyEPO finds the same."""

    problem: Any
    order: np.ndarray
    contexts: np.ndarray
    costs: np.ndarray
    n_train: int
    coef: np.ndarray
    intercept: np.ndarray
    place: str


def _measure(partner: Any, pairs: list[Pair], settings: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"label": pair.label, "differs_in": pair.differs_in, "ours": [], "pyepo": []}
        for pair in pairs
    ]
    for seed in range(FIRST_SEED, FIRST_SEED + settings["seeds"]):
        _say(f"seed {seed}")
        data = _generate(partner, seed, settings)
        for pair, row in zip(pairs, rows, strict=True):
            row["ours"].append(_regret(data, _train_here(data, pair, seed, settings["epochs"])))
            options = pair.pyepo_options | ({"seed": seed} if pair.takes_seed else {})
            row["pyepo"].append(
                _regret(data, _train_there(partner, data, pair.theirs, options, settings))
            )
    return rows


def _generate(partner: Any, seed: int, settings: dict[str, Any]) -> _Data:
    from revealed.problems import grid_shortest_path

    from .partner import pyepo_order

    n_train, n_test = settings["sizes"]
    answer = partner.ask(
        "generate",
        samples=n_train + n_test,
        degree=settings["degree"],
        seed=seed,
        answer=f"{partner.folder}/drawn.npz",
    )
    drawn = partner.fetch(answer["file"])
    # PyEPO's data sets keep single precision, so that is what both sides learn from.
    drawn["contexts"] = drawn["contexts"].astype(np.float32).astype(float)
    problem = grid_shortest_path(5, 5, directed="right-down")
    order = pyepo_order(problem)
    costs = np.empty_like(drawn["costs"])
    costs[:, order] = drawn["costs"]
    rng, d = np.random.default_rng(seed), drawn["contexts"].shape[1]
    start = [rng.uniform(-1, 1, size) / np.sqrt(d) for size in ((40, d), 40)]
    coef, intercept = (part.astype(np.float32).astype(float) for part in start)
    place = partner.send(
        f"seed{seed}",
        kind="path 5x5",
        contexts=drawn["contexts"][:n_train],
        costs=drawn["costs"][:n_train],
        test_contexts=drawn["contexts"][n_train:],
        coef=coef[order],
        intercept=intercept[order],
        orders=batch_orders(seed, settings["epochs"], n_train),
    )
    return _Data(problem, order, drawn["contexts"], costs, n_train, coef, intercept, place)


def batch_orders(seed: int, epochs: int, size: int) -> np.ndarray:
    """(epochs, B): the order in which `erm` takes the samples."""
    return np.stack([np.random.default_rng([seed, e]).permutation(size) for e in range(epochs)])


def _train_here(data: _Data, pair: Pair, seed: int, epochs: int) -> np.ndarray:
    """Predicted costs of the test contexts."""
    from revealed.fit import LinearModel, erm
    from revealed.losses import make_loss
    from revealed.optimality.sets import OptimalitySet

    contexts, costs = data.contexts[: data.n_train], data.costs[: data.n_train]
    sets = OptimalitySet(data.problem, data.problem.solve(costs).x)
    options = pair.options | ({"pool": sets} if pair.with_pool else {})
    loss, model = make_loss(pair.name, data.problem, **options), LinearModel()
    model.coef, model.intercept = data.coef.copy(), data.intercept.copy()
    erm(
        model,
        contexts,
        sets,
        loss=loss,
        true_costs=costs if loss.needs_true_costs else None,
        optimizer="adam",
        lr=STEP,
        max_epochs=epochs,
        batch_size=BATCH,
        seed=seed,
        tol=0.0,
    )
    return model.predict_cost(data.contexts[data.n_train :])


def _train_there(
    partner: Any, data: _Data, method: str, options: dict[str, Any], settings: dict[str, Any]
) -> np.ndarray:
    """The same by PyEPO, with edges back in our order."""
    answer = partner.ask(
        "fit",
        data=data.place,
        method=method,
        options=options,
        epochs=settings["epochs"],
        batch_size=BATCH,
        step=STEP,
        answer=f"{partner.folder}/predicted.npz",
    )
    costs = partner.fetch(answer["file"])["costs"]
    ours = np.empty_like(costs)
    ours[:, data.order] = costs
    return ours


def _regret(data: _Data, predicted: np.ndarray) -> float:
    """Relative regret on the test samples, in per cent."""
    from revealed.metrics.measures import relative_regret

    true = data.costs[data.n_train :]
    decisions = data.problem.solve(true).x
    return 100.0 * float(
        relative_regret(data.problem, costs=predicted, decisions=decisions, true_costs=true)
    )


# --- what the figures say ------------------------------------------------------------------------


def find_targets(methods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every seed alike where the two sides do the same, else means within a standard error."""
    found = []
    for row in methods:
        if row["differs_in"]:
            gap = abs(float(np.mean(_gap(row)))) / _error(row["pyepo"])
            words = f"{row['label']}: difference of mean regrets over its standard error"
            found.append(target(words, gap, 1.0))
        else:
            words = f"{row['label']}: largest difference of a seed, in points"
            found.append(target(words, float(np.abs(_gap(row)).max()), ALIKE))
    return found


def make_table(methods: list[dict[str, Any]], degree: int) -> Table:
    """Mean regrets side by side."""
    rows = [
        [
            row["label"],
            row["differs_in"] or "nothing",
            f"{np.mean(row['ours']):.2f}",
            f"{np.mean(row['pyepo']):.2f}",
            f"{_error(row['pyepo']):.2f}",
            f"{np.mean(_gap(row)):+.3f}",
            f"{_error(_gap(row)):.3f}",
            f"{np.abs(_gap(row)).max():.3f}",
        ]
        for row in methods
    ]
    headings = [
        "method", "differs in", "ours", "PyEPO", "standard error", "difference",
        "its standard error", "largest of a seed",
    ]  # fmt: skip
    return Table(f"Relative regret on test data, degree {degree}, per cent", headings, rows, 2)


def _gap(row: dict[str, Any]) -> np.ndarray:
    """(seeds,) ours less PyEPO's, seed by seed."""
    return np.array(row["ours"]) - np.array(row["pyepo"])


def _error(values: Any) -> float:
    """Standard error of the mean; of one value nothing is known."""
    count = len(values)
    return float(np.std(values, ddof=1) / np.sqrt(count)) if count > 1 else float("nan")


def _method(content: dict[str, Any]) -> str:
    settings = content["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in content["pyepo"].items())
    return f"""
5x5 paths of PyEPO's own generator ({settings["sizes"][0]} training and {settings["sizes"][1]} test
samples, noise 0.5, seeds {FIRST_SEED} to {FIRST_SEED + settings["seeds"] - 1}). On both sides the
same linear model starts from the same weights and sees the same batches of {BATCH} in the same
order; Adam with step {STEP:g}, {settings["epochs"]} epochs. PyEPO runs in an environment of its own
({versions}), here in double precision.
"""


def _verdict(targets: list[dict[str, Any]]) -> str:
    if not targets:
        return "A smoke test: too short for any claim."
    missed = [f"{t['name']} {t['value']:.3g}" for t in targets if not t["holds"]]
    found = "These do not agree: " + "; ".join(missed) if missed else "All agree"
    return (
        f"{found}. Asked for: every seed within {ALIKE:g} points where both sides do the same, and "
        "elsewhere means that differ by at most the standard error of PyEPO's over seeds."
    )


def _command(args: argparse.Namespace) -> str:
    words = [f"revealed bench pyepo --seeds {args.seeds} --epochs {args.epochs}"]
    words.append(f"--degree {args.degree}")
    words += [f"--only {args.only!r}"] if args.only else []
    return " ".join([*words, "--quick"] if args.quick else words)


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
