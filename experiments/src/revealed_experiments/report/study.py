"""The chosen runs of every part, ready to be told: by seed, in order, each with its look."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..bench.sweeps.runs import OURS as OUR_METHODS
from .elements import slug
from .numbers import mean
from .palette import OTHERS, OURS, RIVALS, SHADES, Style
from .reading import Folder, Run


@dataclass(frozen=True)
class Entry:
    """One method in one part with its chosen settings: a run for each seed."""

    part: str
    label: str
    runs: tuple[Run, ...]
    candidates: int
    style: Style

    @property
    def config(self) -> dict[str, Any]:
        """Of one run; the others differ in the seed only."""
        return self.runs[0].config

    @property
    def method(self) -> str:
        return str(self.runs[0].method["name"])

    @property
    def ours(self) -> bool:
        return self.style.ours

    @property
    def needs_true_costs(self) -> bool:
        return self.style.needs_true_costs

    @property
    def pocs(self) -> bool:
        return is_pocs(self.runs[0])

    @property
    def seeds(self) -> list[Any]:
        return [run.seed for run in self.runs]

    @property
    def command(self) -> str:
        return self.runs[0].command

    def final(self, split: str, measure: str) -> np.ndarray:
        """(seeds,) of a measure at the end of training."""
        return np.array([run.final(split, measure) for run in self.runs])

    def epoch_seconds(self) -> np.ndarray:
        """(seeds,) of training seconds of an epoch."""
        return np.array([run.epoch_seconds for run in self.runs])

    def curve(self, split: str, measure: str) -> tuple[np.ndarray, np.ndarray]:
        """Epochs (E,) that every seed was evaluated in, and the measure there, (seeds, E)."""
        tables = []
        for run in self.runs:
            rows = ((row.get("epoch"), run.at(row, split, measure)) for row in run.epochs)
            tables.append({e: v for e, v in rows if isinstance(e, int) and np.isfinite(v)})
        common = sorted(set.intersection(*map(set, tables)))
        values = np.array([[table[epoch] for epoch in common] for table in tables])
        return np.array(common), values.reshape(len(tables), len(common))


@dataclass(frozen=True)
class Study:
    """Everything a section may tell about."""

    folder: Folder
    entries: list[Entry]
    commands: list[str]
    """That made the runs, and that made the page from them."""

    @property
    def runs(self) -> list[Run]:
        return self.folder.runs

    @property
    def quick(self) -> bool:
        """Whether the sweep was a smoke test, which supports no claim."""
        settings = self.folder.sweep.get("settings")
        return isinstance(settings, dict) and settings.get("quick") is True

    @property
    def parts(self) -> list[str]:
        """In the order of the sweep; then any that it does not name."""
        named = self.folder.sweep.get("parts")
        named = [p for p in named if isinstance(p, str)] if isinstance(named, list) else []
        seen = [run.part for run in self.runs]
        return [part for part in dict.fromkeys([*named, *seen]) if part in seen]

    def parts_like(self, *words: str) -> list[str]:
        """Parts whose name starts with one of the words."""
        return [part for part in self.parts if part.startswith(words)]

    def beside(self, name: str) -> dict[str, Any]:
        """A measurement that lies in the folder beside the runs; empty where it does not."""
        try:
            content = json.loads((self.folder.path / name).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def of(self, part: str) -> list[Entry]:
        """The entries of one part."""
        return [entry for entry in self.entries if entry.part == part]


def part_title(part: str) -> str:
    """A part as a heading; names of experiments yet unknown are taken as they are."""
    kind, _, rest = part.partition(" ")
    known = {
        "paper": f"The paper's {rest} problem",
        "seeds": f"The paper's {rest} problem, 30 fresh seeds",
        "general": f"The {rest} problem in general form",
        "cave": f"CaVE's paths, {rest}",
        "margins": f"Margins on the {rest} problem",
        "kernels": f"Kernels on the {rest} problem",
    }
    return known.get(kind, part[:1].upper() + part[1:]) if rest else part


def part_words(part: str) -> str:
    """The same within a sentence."""
    title = part_title(part)
    return f"the{title[3:]}" if title.startswith("The ") else title


def is_ours(run: Run) -> bool:
    """Whether a run is of the method this library is about."""
    return run.method["name"] in OUR_METHODS


def is_pocs(run: Run) -> bool:
    """Whether a run alternates projections and fits rather than following a gradient."""
    return run.optimiser == "pocs"


def gather(folder: Folder, commands: Sequence[str]) -> Study:
    """Choose the settings of every method in every part, and give every method its look."""
    from ..bench.sweeps.choose import chosen

    run_of = {id(run.raw): run for run in folder.runs}
    choices = chosen([run.raw for run in folder.runs])
    labels = Counter((choice.part, choice.label) for choice in choices)
    looks = _Looks()
    entries = []
    for choice in choices:
        runs = tuple(run_of[id(raw)] for raw in choice.runs.values())
        # Two optimisers of one method share its label; then the optimiser tells them apart.
        twice = labels[choice.part, choice.label] > 1
        label = f"{choice.label}, {optimiser_name(runs[0])}" if twice else choice.label
        entries.append(
            Entry(choice.part, label, runs, choice.n_candidates, looks.of(runs[0], label))
        )
    return Study(folder, entries, list(commands))


def optimiser_name(run: Run) -> str:
    """As people write it."""
    from ..bench.synthetic.tables import OPTIMISERS

    return OPTIMISERS.get(run.optimiser, run.optimiser)


class _Looks:
    """Gives each label a look when it first comes, and the same ever after."""

    def __init__(self) -> None:
        self._given: dict[str, Style] = {}
        self._strangers: dict[str, str] = {}

    def of(self, run: Run, label: str) -> Style:
        if label not in self._given:
            name = f"{slug(label)}-{len(self._given)}"  # two labels may have one slug
            needs = bool(run.config.get("needs_true_costs"))
            self._given[label] = Style(name, label, self._color(run), is_ours(run), needs)
        return self._given[label]

    def _color(self, run: Run) -> str:
        if is_ours(run):
            kinds = (run.optimiser, run.method["name"], str(run.method.get("power", 2)), "2")
            return next(OURS[kind] for kind in kinds if kind in OURS)
        name = str(run.method["name"])
        if name not in RIVALS:
            self._strangers.setdefault(name, OTHERS[len(self._strangers) % len(OTHERS)])
        return RIVALS.get(name) or self._strangers[name]


def one_for_each_label(entries: Iterable[Entry]) -> list[Entry]:
    """Of a method trained by several optimisers only the one that validation prefers."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.runs[0].label, []).append(entry)
    preferred = [best(group, "valid", "decision_loss") for group in groups.values()]
    return [entry for entry in preferred if entry is not None]


def shaded(entries: Sequence[Entry]) -> list[Entry]:
    """The same from dark to light, for variants of one method."""
    return [
        replace(entry, style=replace(entry.style, color=SHADES[k % len(SHADES)]))
        for k, entry in enumerate(entries)
    ]


def best(entries: Iterable[Entry], split: str, measure: str) -> Entry | None:
    """The entry of the least mean; those without the measure stand back."""
    scored = [(mean(entry.final(split, measure)), entry) for entry in entries]
    scored = [(score, entry) for score, entry in scored if np.isfinite(score)]
    return min(scored, key=lambda pair: pair[0])[1] if scored else None


def ranked(entries: Iterable[Entry], split: str, measure: str) -> list[Entry]:
    """From the least mean up; those without the measure last."""

    def score(entry: Entry) -> float:
        return float(np.nan_to_num(mean(entry.final(split, measure)), nan=np.inf))

    return sorted(entries, key=score)


def differences(one: Entry, other: Entry, split: str, measure: str) -> np.ndarray:
    """(seeds,) of `one` less `other`, over the seeds that both have."""
    of_other = {run.seed: run.final(split, measure) for run in other.runs}
    return np.array(
        [run.final(split, measure) - of_other[run.seed] for run in one.runs if run.seed in of_other]
    )
