"""Which candidate of a method is shown: the one whose validation decisions are best.

Candidates are runs of one part, label and optimiser that differ in step or options. The mean
decision loss on validation data over all seeds decides, at the last epoch; test data and true
costs have no say. A candidate that diverged or failed with any seed is not eligible.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .runs import FINISHED, Run, RunConfig


@dataclass(frozen=True, eq=False)
class Chosen:
    """The best candidate of a method in a part: one run for each seed."""

    part: str
    label: str
    optimiser: str
    config: dict[str, Any]
    """What its runs have in common: the configuration without the seed."""
    runs: dict[int, Run]
    """By seed, in order."""
    n_candidates: int
    """Among how many it was chosen."""
    settings: dict[str, Any]
    """What was chosen: those settings, by name, in which the candidates differ."""

    @property
    def needs_true_costs(self) -> bool:
        return bool(self.config.get("needs_true_costs", False))

    @property
    def seeds(self) -> list[int]:
        return list(self.runs)

    @property
    def keys(self) -> list[str]:
        """Of its runs."""
        return [RunConfig.read(run).key for run in self.runs.values()]

    @property
    def epoch_seconds(self) -> float:
        """The median over seeds."""
        return float(np.median([run["epoch_seconds"] for run in self.runs.values()]))

    def final(self, split: str, measure: str) -> np.ndarray:
        """(seeds,): one measure at the end, say of ("test", "estimate_loss"); NaN where a run has
        none."""
        found = (run["final"][split].get(measure) for run in self.runs.values())
        return np.array([np.nan if value is None else value for value in found])


@dataclass(frozen=True)
class Dropped:
    """A method in a part of which no candidate is eligible."""

    part: str
    label: str
    optimiser: str
    n_candidates: int
    n_runs: dict[str, int]
    """How many runs ended in which status."""


def chosen(runs: Iterable[Run]) -> list[Chosen]:
    """One entry for each part, label and optimiser, in the order in which they first come."""
    found = (_choose(group) for group in _groups(runs))
    return [each for each in found if isinstance(each, Chosen)]


def dropped(runs: Iterable[Run]) -> list[Dropped]:
    """The methods that `chosen` has nothing to show of."""
    found = (_choose(group) for group in _groups(runs))
    return [each for each in found if isinstance(each, Dropped)]


def _groups(runs: Iterable[Run]) -> list[list[Run]]:
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault(_name(run), []).append(run)
    return list(groups.values())


def _name(run: Run) -> tuple[str, str, str]:
    config = run["config"]
    label = config.get("label") or config["method"]["name"]
    return str(config["part"]), str(label), str(config.get("optimiser", ""))


def _choose(group: list[Run]) -> Chosen | Dropped:
    name, seeds = _name(group[0]), {_seed(run) for run in group}
    candidates: dict[str, dict[int, Run]] = {}
    for run in group:
        candidates.setdefault(_family(run), {})[_seed(run)] = run
    eligible = {
        family: by_seed
        for family, by_seed in candidates.items()
        # A candidate that lacks a seed belongs to a sweep that has not ended.
        if by_seed.keys() == seeds and all(map(_is_finished, by_seed.values()))
    }
    if not eligible:
        statuses = Counter(str(run.get("status")) for run in group)
        return Dropped(*name, len(candidates), dict(statuses))
    family = min(eligible, key=lambda family: _rank(eligible[family]))
    by_seed = dict(sorted(eligible[family].items()))
    settings = _differing(family, [json.loads(each) for each in candidates])
    return Chosen(*name, json.loads(family), by_seed, len(candidates), settings)


def _family(run: Run) -> str:
    """The configuration without the seed, as text."""
    rest = {name: value for name, value in run["config"].items() if name != "seed"}
    return json.dumps(rest, sort_keys=True)


def _differing(family: str, candidates: list[dict[str, Any]]) -> dict[str, Any]:
    """The settings of one candidate that others have not, or have otherwise."""
    flat = [_flat(each) for each in candidates]
    return {
        name: value
        for name, value in _flat(json.loads(family)).items()
        if any(each.get(name) != value for each in flat)
    }


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    found = {"step": config.get("step")}
    for group in ("method", "training", "model"):
        found |= config.get(group) or {}
    return found


def _rank(by_seed: dict[int, Run]) -> tuple[float, float, float]:
    """Validation first; a tie goes to the better fit, then to the smaller step."""
    runs = list(by_seed.values())
    valid, train = (np.mean([_decision_loss(run, split) for run in runs]) for split in _BY)
    return float(valid), float(train), runs[0]["config"].get("step") or 0.0


_BY = ("valid", "train")


def _is_finished(run: Run) -> bool:
    return run.get("status") == FINISHED and np.isfinite(_decision_loss(run, "valid"))


def _decision_loss(run: Run, split: str) -> float:
    value = ((run.get("final") or {}).get(split) or {}).get("decision_loss")
    return np.inf if value is None else float(value)


def _seed(run: Run) -> int:
    return run["config"].get("seed", 0)
