"""What `revealed bench vision` prints: a table for each part, and the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from revealed._common.words import count

from ..sweeps.choose import Chosen
from ..sweeps.runs import OURS
from ..tables import Table, target
from .parts import VIEWS

SHARE_OPTIMAL, REGRET = 0.80, 0.014
"""On terrain 12x12: what the best decision-only method reached on the original maps."""
PUBLISHED_ON = "terrain 12x12"
_DECISIONS, _ESTIMATE = ("test", "decision_loss"), ("test", "estimate_loss")


def tables(choices: Sequence[Chosen]) -> list[Table]:
    """One table for each part, its methods in order of their decisions."""
    return [_table(part, group) for part, group in _by_part(choices).items()]


def _table(part: str, group: list[Chosen]) -> Table:
    headings = ["method", "true costs", "optimiser", "decision loss", "± sd", "estimate loss"]
    headings += ["regret", "optimal", "exact", "train decision loss", "s an epoch"]
    rows = [_row(choice) for choice in sorted(group, key=_mean_of(*_DECISIONS))]
    told = f"{part}, on test data, {_seeds_in_words(group)}"
    told += "".join(f", {words}" for words in changes_in_words(choice.config for choice in group))
    return Table(told, headings, rows, 3)


def _seeds_in_words(group: list[Chosen]) -> str:
    """How many seeds stand behind a row; methods of an unfinished sweep differ."""
    seeds = [len(choice.seeds) for choice in group]
    told = count(max(seeds), "seed")
    return told if min(seeds) == max(seeds) else f"{min(seeds)} to {told}"


def changes_in_words(configs: Iterable[dict[str, Any]]) -> list[str]:
    """What these runs have seen besides their pictures as they are; nothing if they have not."""
    configs = list(configs)
    views = [(_under(each, "training", "views"), _under(each, "data", "generator"))
             for each in configs]  # fmt: skip
    told = [
        words
        for kind, by_generator in VIEWS.items()
        for generator, words in by_generator.items()
        if (kind, generator) in views
    ]
    shifts = {_under(each, "training", "shift") for each in configs} - {None}
    told += [f"pictures moved by up to {most} px in training" for most in sorted(shifts)]
    averaged = any(map(is_averaged, configs))
    return [*told, "judged by the mean cost over all of these"] if averaged else told


def is_averaged(config: dict[str, Any]) -> bool:
    """Whether the network of a run was judged from all sides in the end."""
    return bool(_under(config, "model", "averaged"))


def _under(config: dict[str, Any], name: str, key: str) -> Any:
    """Of a run that may have been written by hand."""
    found = config.get(name)
    return found.get(key) if isinstance(found, dict) else None


def _row(choice: Chosen) -> list[str]:
    def mean(measure: str, split: str = "test") -> float:
        return float(choice.final(split, measure).mean())

    decisions = choice.final(*_DECISIONS)
    spread = f"{decisions.std(ddof=1):.3f}" if len(decisions) > 1 else ""
    return [
        choice.label,
        "yes" if choice.needs_true_costs else "",
        f"{choice.optimiser} {choice.config['step']:g}",
        f"{decisions.mean():.3f}",
        spread,
        f"{mean('estimate_loss'):.4f}",
        f"{mean('relative_regret'):.2%}",
        f"{mean('optimal'):.1%}",
        f"{mean('exact'):.1%}",
        f"{mean('decision_loss', 'train'):.3f}",
        f"{choice.epoch_seconds:.2f}",
    ]


def targets(choices: Sequence[Chosen]) -> list[dict[str, Any]]:
    """What is claimed of ours, part by part, with what was found.

    Which of ours stands for ours is decided on validation data, as on the page.
    """
    found = []
    for part, group in _by_part(choices).items():
        candidates = [choice for choice in group if choice.config["method"]["name"] in OURS]
        others = [choice for choice in group if choice not in candidates]
        if candidates:
            ours = min(candidates, key=_mean_of("valid", "decision_loss"))
            found += _comparisons(part, ours, others)
            found += _published(ours) if part == PUBLISHED_ON else []
    return found


def _comparisons(part: str, ours: Chosen, others: list[Chosen]) -> list[dict[str, Any]]:
    blind = [choice for choice in others if not choice.needs_true_costs]
    found = []
    if others:
        words = f"{part}: ours less the best of all others, test decision loss"
        found.append(_less(words, ours, others, _DECISIONS))
    if blind:
        words = f"{part}: ours less the best that sees no true costs, test estimate loss"
        found.append(_less(words, ours, blind, _ESTIMATE))
    return found


def _published(ours: Chosen) -> list[dict[str, Any]]:
    share = _mean_of("test", "optimal")(ours)
    regret = _mean_of("test", "relative_regret")(ours)
    return [
        target(f"{PUBLISHED_ON}: share of optimal paths", share, SHARE_OPTIMAL, at_least=True),
        target(f"{PUBLISHED_ON}: relative regret", regret, REGRET),
    ]


def _less(
    name: str, ours: Chosen, others: list[Chosen], measure: tuple[str, str]
) -> dict[str, Any]:
    mean = _mean_of(*measure)
    return target(name, mean(ours) - min(map(mean, others)), 0.0)


def _mean_of(split: str, measure: str) -> Callable[[Chosen], float]:
    return lambda choice: float(np.mean(choice.final(split, measure)))


def _by_part(choices: Iterable[Chosen]) -> dict[str, list[Chosen]]:
    groups: dict[str, list[Chosen]] = {}
    for choice in choices:
        groups.setdefault(choice.part, []).append(choice)
    return groups
