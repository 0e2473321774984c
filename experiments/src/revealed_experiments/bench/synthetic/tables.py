"""What `revealed bench synthetic` tells: tables of the chosen runs, and the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..published import CAVE_REGRET, MARGINS, PAPER_TABLE
from ..sweeps.choose import Chosen, Dropped
from ..sweeps.runs import OURS
from ..tables import Table, target
from .experiments import CAVE_DEGREES, PAPER_DATA, cave_part

OPTIMISERS = {
    "pocs": "POCS",
    "armijo": "Armijo",
    "sgd": "SGD",
    "adam": "Adam",
    "adagrad": "AdaGrad",
    "lbfgs": "L-BFGS",
}
PAPER_NAME = {"path": "sp", "knapsack": "knapsack"}
PUBLISHED = {
    "two-stage": "two-stage (true costs)",
    "SPO+": "SPO+ (true costs)",
    "PFYL": "PFYL",
    "CaVE": "CaVE exact",
    "CaVE+": "CaVE+",
    "NCE": "NCE",
}
PAPER_RIVALS = ("ST", "QPTL", "BB", "MOM, true basis")
CAVE_RIVALS = ("PFYL", "CaVE+", "NCE", "BB", "ST")
COMPARABLE, NEGLIGIBLE = 0.1, 0.05
"""Shares of the other's loss by which means may differ."""


def tables(choices: Sequence[Chosen], without: Sequence[Dropped]) -> list[Table]:
    """Whatever the chosen runs have to tell."""
    found = [_paper_table(choices, part) for part in PAPER_TITLES]
    found += [_margin_table(choices), _kernel_table(choices)]
    found += [_cave_table(choices, degree) for degree in CAVE_DEGREES]
    found.append(_dropped_table(without))
    return [table for table in found if table.rows]


PAPER_TITLES = {
    "paper path": "The paper's path",
    "paper knapsack": "The paper's knapsack",
    "seeds path": "The same path with settings as chosen",
    "seeds knapsack": "The same knapsack with settings as chosen",
    "general knapsack": "The knapsack in general form",
}


def _paper_table(choices: Sequence[Chosen], part: str) -> Table:
    here = sorted(_of(choices, part), key=lambda c: _mean(c, "test", "estimate_loss"))
    rows = [
        [
            *_name(choice),
            *_mean_and_sd(choice, "test", "estimate_loss"),
            *_mean_and_sd(choice, "test", "decision_loss"),
            f"{_mean(choice, 'train', 'decision_loss'):.3f}",
            *(f"{_mean(choice, 'test', name):.3f}" for name in ("gamma", "gamma_relative")),
            f"{1e3 * choice.epoch_seconds:.2f}",
            str(choice.n_candidates),
        ]
        for choice in here
    ]
    headings = ["method", "optimiser", "true costs", "chosen", "test estimate", "sd"]
    headings += ["test decision", "sd", "train decision", "gamma", "relative", "ms an epoch", "of"]
    return Table(f"{PAPER_TITLES[part]}{_seeds(here)}", headings, rows, 4, _CHOICE)


_CHOICE = (
    "Mean estimate and decision loss over seeds, with the standard deviation. Each method is shown "
    "with its best candidate, by decision loss on validation data, of as many as the last column "
    "says."
)


def _margin_table(choices: Sequence[Chosen]) -> Table:
    headings, rows = ["margin"], [[f"{margin:g}"] for margin in MARGINS]
    for problem in PAPER_DATA:
        here = {choice.label: choice for choice in _of(choices, f"margins {problem}")}
        if not here:
            continue
        for split in _SEEN:
            headings += [f"{problem}, {split}", "sd", "paper"]
        for row, margin in zip(rows, MARGINS, strict=True):
            paper = PAPER_TABLE[PAPER_NAME[problem]][margin]
            ours = here.get(f"margin {margin:g}")
            for split, published in zip(_SEEN, paper, strict=True):
                pair = _mean_and_sd(ours, split, "decision_loss") if ours else ["", ""]
                row += [*pair, f"{published:g}"]
    note = "Mean decision loss after POCS from a random start; the paper's on one draw of its own."
    return Table("Margins", headings, rows if len(headings) > 1 else [], 1, note)


_SEEN = ("train", "test")


def _kernel_table(choices: Sequence[Chosen]) -> Table:
    rows = [
        [
            problem,
            choice.label.removeprefix("ours, POCS, "),
            _settings(choice),
            *(figure for s in _SEEN for figure in _mean_and_sd(choice, s, "decision_loss")),
            *_mean_and_sd(choice, "test", "estimate_loss"),
            str(choice.n_candidates),
        ]
        for problem in PAPER_DATA
        for choice in _of(choices, f"kernels {problem}")
    ]
    headings = ["problem", "model", "chosen", "train decision", "sd", "test decision", "sd"]
    headings += ["test estimate", "sd", "of"]
    return Table("Linear and kernel models by POCS", headings, rows, 3, _CHOICE)


def _cave_table(choices: Sequence[Chosen], degree: int) -> Table:
    here = _of(choices, cave_part(degree))
    here.sort(key=lambda choice: _mean(choice, *_REGRET))
    ours = best(filter(is_ours, here))
    rows = []
    for choice in here:
        regret = 100 * choice.final(*_REGRET)
        paired = ["", ""]
        if ours is not None and choice is not ours:
            gap = 100 * _gap(choice, ours, *_REGRET)
            paired = [f"{gap.mean():+.2f}", _spread(_error(gap), gap, 2)]
        published = CAVE_REGRET[degree].get(PUBLISHED.get(choice.label, ""))
        rows.append(
            [
                choice.label,
                *_name(choice)[2:],
                f"{regret.mean():.2f}",
                _spread(_sd(regret), regret, 2),
                *paired,
                "" if published is None else f"{published:.2f}",
                f"{1e3 * choice.epoch_seconds:.1f}",
                str(choice.n_candidates),
            ]
        )
    headings = ["method", "true costs", "chosen", "test regret, %", "sd"]
    headings += ["less our best", "error", "published", "ms an epoch", "of"]
    note = (
        "Differences are taken seed by seed, with their standard error. Published: CaVE's tables, "
        "from the same generator."
    )
    return Table(f"CaVE's yardstick, degree {degree}{_seeds(here)}", headings, rows, 3, note)


_REGRET = ("test", "relative_regret")


def _dropped_table(without: Sequence[Dropped]) -> Table:
    rows = [
        [
            each.part,
            each.label,
            OPTIMISERS.get(each.optimiser, each.optimiser),
            ", ".join(f"{count} {status}" for status, count in each.n_runs.items()),
            str(each.n_candidates),
        ]
        for each in without
    ]
    headings = ["part", "method", "optimiser", "runs", "candidates"]
    return Table("Methods without a candidate that finished with every seed", headings, rows, 4)


# --- targets -------------------------------------------------------------------------------------


def targets(choices: Sequence[Chosen]) -> list[dict[str, Any]]:
    """What is asked of ours on CaVE's yardstick, with what was found. The paper's claims are judged
    by `report.claims`, with their intervals."""
    found = []
    for degree in CAVE_DEGREES:
        found += _cave_targets(_of(choices, cave_part(degree)), degree)
    return found


def _cave_targets(here: Sequence[Chosen], degree: int) -> list[dict[str, Any]]:
    ours = best(filter(is_ours, here))
    rival = best(choice for choice in here if choice.label in CAVE_RIVALS)
    if ours is None or rival is None:
        return []
    gap = 100 * _gap(ours, rival, *_REGRET)
    told = f"degree {degree}: regret of {ours.label} less that of {rival.label}, points"
    return [target(f"{told} (standard error {_error(gap):.2f})", float(gap.mean()), 0.0)]


# --- figures -------------------------------------------------------------------------------------


def is_ours(choice: Chosen) -> bool:
    """Whether a method learns by our projections."""
    return choice.config["method"]["name"] in OURS


def best(choices: Iterable[Chosen]) -> Chosen | None:
    """The one with the least mean test regret."""
    return min(choices, key=_least(*_REGRET), default=None)


def _least(split: str, measure: str) -> Callable[[Chosen], float]:
    return lambda choice: _mean(choice, split, measure)


def _of(choices: Sequence[Chosen], part: str) -> list[Chosen]:
    return [choice for choice in choices if choice.part == part]


def _mean(choice: Chosen, split: str, measure: str) -> float:
    return float(choice.final(split, measure).mean())


def _mean_and_sd(choice: Chosen, split: str, measure: str) -> list[str]:
    values = choice.final(split, measure)
    return [f"{values.mean():.3f}", _spread(_sd(values), values, 3)]


def _spread(value: float, values: np.ndarray, digits: int) -> str:
    """Nothing for a single seed, which has no spread."""
    return f"{value:.{digits}f}" if len(values) > 1 else ""


def _gap(one: Chosen, other: Chosen, split: str, measure: str) -> np.ndarray:
    """(seeds,): one less the other, seed by seed."""
    return one.final(split, measure) - other.final(split, measure)


def _sd(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _error(values: np.ndarray) -> float:
    return _sd(values) / np.sqrt(max(1, len(values)))


def _name(choice: Chosen) -> list[str]:
    optimiser = OPTIMISERS.get(choice.optimiser, choice.optimiser)
    return [choice.label, optimiser, "yes" if choice.needs_true_costs else "", _settings(choice)]


def _full(choice: Chosen) -> str:
    return f"{choice.label} by {OPTIMISERS.get(choice.optimiser, choice.optimiser)}"


def _settings(choice: Chosen) -> str:
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, int | float) else f"{name} {value}"
        for name, value in choice.settings.items()
    )


def _seeds(choices: Sequence[Chosen]) -> str:
    count = len(choices[0].seeds) if choices else 0
    return f", {count} seed" + ("s" if count != 1 else "")
