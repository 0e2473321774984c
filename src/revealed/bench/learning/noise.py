"""`revealed bench noise`: which distance to learn with when decisions are noisy.

Paths on the 5x5 grid whose costs carry 50% noise, so that no model explains all decisions. The
squared distance (power 2, the paper's), the plain distance (power 1) and Huber's form between them
are trained alike; each has its margin chosen on data sets of other seeds, by decisions alone.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ..pages import Page, publish
from ..published import CAVE, CAVE_REGRET
from ..record import surroundings
from ..tables import Table, positive, target

POWERS: tuple[int | str, ...] = (2, 1, "huber")
DEGREES = (4, 6)
NOISE = 0.5
FIRST_SEED = 42
MARGINS = (0.1, 0.2, 0.4, 0.8, 1.6)
TUNING_SEEDS = (0, 1, 2, 3, 4, 5)
FURTHER_SEED = 100
WRONG = 0.2
"""Share of training decisions that are swapped among each other in one of the experiments."""
# A distance does not fade near its minimum, so a constant step never settles. Steps that fall like
# 1/epoch served all three losses best on the tuning seeds (against constant ones and 1/sqrt).
TRAINING = {"optimiser": "adam", "step": 3e-2, "decay": 1.0, "batch_size": 32, "tol": 0.0}
LEARNERS: dict[Any, str] = {2: "power 2", 1: "power 1", "huber": "Huber"}
POCS, TRUTH = "power 2 by POCS", "least squares (true costs)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench noise`."""
    parser.add_argument("--seeds", type=positive, default=10, help=f"from {FIRST_SEED} on (10)")
    parser.add_argument(
        "--further",
        type=positive,
        default=30,
        help=f"more seeds for noise alone, from {FURTHER_SEED} (30)",
    )
    parser.add_argument("--epochs", type=positive, default=20, help="of Adam (20)")
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: two tiny data sets, no claims"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("benchmarks/results/noise.json"),
        help="JSON file to write (%(default)s)",
    )
    parser.add_argument(
        "--page", type=Path, default=Path("docs/noise.md"), help="page to write (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Choose margins, train, print the tables, write JSON and page; 1 if a target was missed."""
    quick = args.quick
    epochs, sizes = (2, (30, 20, 20)) if quick else (args.epochs, (1000, 100, 1000))
    seeds = list(range(FIRST_SEED, FIRST_SEED + (2 if quick else args.seeds)))
    margins = MARGINS[:2] if quick else MARGINS
    further = range(FURTHER_SEED, FURTHER_SEED + (1 if quick else args.further))
    command = (
        f"revealed bench noise --seeds {len(seeds)} --further {len(further)} --epochs {epochs}"
    )
    command += " --quick" if quick else ""
    settings = {"epochs": epochs, "sizes": sizes, "seeds": seeds, "noise": NOISE, **TRAINING}
    settings |= {"tuning_seeds": TUNING_SEEDS, "tuning_margins": margins}
    content = surroundings(command, settings)
    tuning = _tune(TUNING_SEEDS[:1] if quick else TUNING_SEEDS, margins, epochs, sizes[0])
    chosen = {d: {power: _best(tuning[d][power]) for power in POWERS} for d in DEGREES}
    results = []
    for kind, group in (("noise", seeds), ("swapped", seeds), ("further", further)):
        for degree, seed in product(DEGREES, group):
            _say(f"{kind}: degree {degree}, seed {seed}")
            results.append(_compare(kind, degree, seed, chosen[degree], epochs, sizes))
    content |= {"benchmark": "noise", "tuning": _named(tuning), "margins": _named(chosen)}
    content |= {"results": results, "published": {"source": CAVE, "regret": CAVE_REGRET}}
    # A smoke test learns too little to compare anything.
    content["targets"] = [] if quick else _targets(results)
    return publish(content, make_page, args.out, args.page)


def make_page(content: dict[str, Any]) -> Page:
    """What is shown of a run that is kept."""
    results = content["results"]
    tables = [*_tables(results), _tuning_table(content["tuning"], content["margins"])]
    return Page("Noisy decisions", _words(results, content), tables)


# --- learning ------------------------------------------------------------------------------------


def _tune(seeds, margins, epochs: int, size: int) -> dict[int, dict[Any, dict[float, float]]]:
    """Mean decision loss on held-out decisions for every degree, power and margin."""
    return {degree: _tune_degree(degree, seeds, margins, epochs, size) for degree in DEGREES}


def _tune_degree(
    degree: int, seeds, margins, epochs: int, size: int
) -> dict[Any, dict[float, float]]:
    from ...data import noisy_paths

    found: dict[Any, dict[float, list[float]]] = {p: {m: [] for m in margins} for p in POWERS}
    for seed in seeds:
        _say(f"choosing margins: degree {degree}, seed {seed}")
        data = noisy_paths((size, 2 * size, 0), degree=degree, noise=NOISE, seed=seed)
        for power in POWERS:
            for margin in margins:
                model = _train(data, data.train.decisions, power, margin, epochs, seed)
                found[power][margin].append(_decision_loss(data, data.valid, model))
    return {p: {m: float(np.mean(v)) for m, v in by.items()} for p, by in found.items()}


def _best(loss_of: dict[float, float]) -> float:
    return min(loss_of, key=loss_of.__getitem__)


def _compare(kind: str, degree: int, seed: int, chosen, epochs: int, sizes) -> dict[str, Any]:
    """Relative regret on the test data of everyone who learned from one training set."""
    from ...data import noisy_paths
    from ...fit import LinearModel, pocs
    from ...optimality import OptimalitySet

    data = noisy_paths(sizes, degree=degree, noise=NOISE, seed=seed)
    contexts, decisions = data.train.contexts, data.train.decisions
    if kind == "swapped":
        decisions = _swapped(decisions, WRONG, seed)
    regret = {}
    for power in POWERS:
        model = _train(data, decisions, power, chosen[power], epochs, seed)
        regret[LEARNERS[power]] = _regret(data, model)
    model = LinearModel()
    pocs(model, contexts, OptimalitySet(data.problem, decisions), max_iter=150, tol=0.0)
    regret[POCS] = _regret(data, model)
    truth = LinearModel().fit_targets(contexts, data.train.costs)
    regret[TRUTH] = _regret(data, truth)
    return {"kind": kind, "degree": degree, "seed": seed, "regret": regret}


def _swapped(decisions: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Decisions of which some were taken in one another's context."""
    rng = np.random.default_rng([seed, 1])
    chosen = rng.permutation(len(decisions))[: int(share * len(decisions))]
    result = decisions.copy()
    result[chosen] = decisions[np.roll(chosen, 1)]
    return result


def _train(data, decisions: np.ndarray, power, margin: float, epochs: int, seed: int):
    from ...fit import LinearModel, erm
    from ...optimality import OptimalitySet

    sets, model = OptimalitySet(data.problem, decisions, margin=margin), LinearModel()
    settings = {**TRAINING, "power": power, "delta": margin, "epochs": epochs, "seed": seed}
    erm(model, data.train.contexts, sets, **settings)
    return model


def _decision_loss(data, split, model) -> float:
    from ... import metrics

    costs = model.predict_cost(split.contexts)
    each = metrics.decision_loss(data.problem, costs=costs, decisions=split.decisions)
    return float(each.mean())


def _regret(data, model) -> float:
    from ... import metrics

    test = data.test
    return metrics.relative_regret(
        data.problem,
        costs=model.predict_cost(test.contexts),
        decisions=test.decisions,
        true_costs=test.costs,
    )


# --- telling -------------------------------------------------------------------------------------


def _column(results, kind: str, degree: int, name: str) -> np.ndarray:
    """(seeds,) regret of one learner, in per cent."""
    return np.array(
        [
            100 * row["regret"][name]
            for row in results
            if row["degree"] == degree and row["kind"] == kind
        ]
    )


def _gap(results, kind: str, degree: int, name: str) -> np.ndarray:
    """(seeds,) regret of one learner less that of power 2, seed by seed."""
    return _column(results, kind, degree, name) - _column(results, kind, degree, "power 2")


def _targets(results) -> list[dict[str, Any]]:
    gaps = {f"degree {d}": _gap(results, "noise", d, "power 1") for d in DEGREES}
    gaps["both degrees"] = np.concatenate(list(gaps.values()))
    words = "mean regret of power 1 less that of power 2, points"
    return [target(f"{name}: {words}", float(gap.mean()), 0.0) for name, gap in gaps.items()]


def _tables(results) -> list[Table]:
    further = sum(row["kind"] == "further" for row in results) // len(DEGREES)
    return [
        _regret_table(results, "noise", "Relative regret on test data, in per cent"),
        _regret_table(results, "further", f"The same on {further} further seeds"),
        _regret_table(results, "swapped", f"With {WRONG:.0%} of the training decisions swapped"),
        _published_table(),
        _seed_table(results),
    ]


def _regret_table(results, kind: str, title: str) -> Table:
    headings = ["learned with"]
    for degree in DEGREES:
        headings += [f"degree {degree}", "sd", "less power 2", "standard error"]
    rows = []
    for name in (*LEARNERS.values(), POCS, TRUTH):
        cells = [name]
        for degree in DEGREES:
            values, gap = _column(results, kind, degree, name), _gap(results, kind, degree, name)
            cells += [f"{values.mean():.2f}", f"{_sd(values):.2f}"]
            paired = [f"{gap.mean():+.2f}", f"{_error(gap):.2f}"]
            cells += ["", ""] if name == "power 2" else paired
        rows.append(cells)
    note = "Differences from power 2 are taken seed by seed; so is their standard error."
    return Table(title, headings, rows, 1, note)


def _published_table() -> Table:
    names = list(CAVE_REGRET[DEGREES[0]])
    rows = [[name, *(f"{CAVE_REGRET[degree][name]:.2f}" for degree in DEGREES)] for name in names]
    headings = ["method", *(f"degree {degree}" for degree in DEGREES)]
    note = f"{CAVE}. Generator and seeds are the same; how they split the samples is not known."
    return Table("Published figures", headings, rows, 1, note)


def _seed_table(results) -> Table:
    names = ("power 2", "power 1", "Huber", POCS)
    headings = ["degree", "seed", *names, "power 1 less power 2"]
    rows = []
    for degree in DEGREES:
        for row in (r for r in results if r["degree"] == degree and r["kind"] == "noise"):
            values = [100 * row["regret"][name] for name in names]
            gap = values[1] - values[0]
            rows.append(
                [str(degree), str(row["seed"]), *(f"{v:.2f}" for v in values), f"{gap:+.2f}"]
            )
    return Table("Seed by seed", headings, rows, 2)


def _tuning_table(tuning, chosen) -> Table:
    rows, margins = [], list(next(iter(tuning[str(DEGREES[0])].values())))
    for degree, learner in product(map(str, DEGREES), LEARNERS.values()):
        best, found = chosen[degree][learner], tuning[degree][learner]
        loss = [f"{found[m]:.3f}" + (" *" if float(m) == best else "") for m in margins]
        rows.append([degree, learner, *loss])
    note = "Mean decision loss on held-out decisions of other seeds; * marks the margin taken."
    headings = ["degree", "learned with", *(f"margin {float(m):g}" for m in margins)]
    return Table("How the margin was chosen", headings, rows, 2, note)


def _words(results, content: dict[str, Any]) -> str:
    settings = content["settings"]
    sizes = settings["sizes"]
    return f"""
Shortest paths on the right-down 5x5 grid; costs are a power of a hidden linear function of five
features, times uniform noise in [{1 - NOISE:g}, {1 + NOISE:g}] drawn for every edge of every sample
(`revealed.data.noisy_paths`). So decisions are optimal under costs that no model of the context can
know. {sizes[0]} training and {sizes[2]} test samples, seeds {settings["seeds"][0]} to
{settings["seeds"][-1]}; linear model from 0, Adam with step {settings["step"]:g} divided by the
number of the epoch (a distance does not fade near its minimum, so a constant step never settles),
batches of {settings["batch_size"]}, {settings["epochs"]} epochs. The margin of each loss is chosen
for each degree on data sets of other seeds by decision loss, so that nobody but least squares sees
a true cost.

{_verdict(results)}
"""


def _verdict(results) -> str:
    """What the figures say, put together from the figures."""
    told = []
    for kind, where in (
        ("noise", "Under noise alone"),
        ("further", "On the further seeds"),
        ("swapped", f"With {WRONG:.0%} of the decisions swapped among each other"),
    ):
        parts = []
        for degree in DEGREES:
            gap = _gap(results, kind, degree, "power 1")
            clear = abs(gap.mean()) > 2 * _error(gap)
            words = "" if clear else ", not told apart from 0"
            parts.append(f"{gap.mean():+.2f} ± {_error(gap):.2f} points at degree {degree}{words}")
        both = np.concatenate([_gap(results, kind, degree, "power 1") for degree in DEGREES])
        parts.append(f"{both.mean():+.2f} on average")
        told.append(f"- {where}: {'; '.join(parts)}.")
    return "Regret of power 1 less that of power 2, with its standard error:\n\n" + "\n".join(told)


def _error(values: np.ndarray) -> float:
    return _sd(values) / np.sqrt(max(1, len(values)))


def _sd(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _named(by_degree: dict[int, dict[Any, Any]]) -> dict[int, dict[str, Any]]:
    return {d: {LEARNERS[power]: v for power, v in by.items()} for d, by in by_degree.items()}


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
