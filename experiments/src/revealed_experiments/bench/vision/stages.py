"""The stages of `revealed bench vision`: trials, finals, and the runs that count.

Each goes on where it was ended: what is finished is a file, and full runs have checkpoints.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..sweeps.runs import UNFINISHED, Run, RunConfig
from ..sweeps.sweep import sweep
from ..synthetic.experiments import Part
from .choice import joined, larger, pick, shortlist, tried, write_picks
from .folder import set_others_aside
from .parts import Choosing, Picks, Shortlist, candidates, finals
from .run import Where, perform, performer


@dataclass(frozen=True)
class Choice:
    """What each method learns with, and what it chose among."""

    picks: Picks
    trials: dict[str, Any]
    """By part and label: [optimiser, step, validation decision loss] after a short trial."""
    finals: dict[str, Any]
    """The same of finalists after runs as long as those that count."""
    waiting: int
    """Runs that cannot begin, since time was up before their method had chosen."""


def choose(
    parts: Sequence[Part], choosing: Choosing, given: Picks, folder: Path, where: Where
) -> Choice:
    """Optimizer and step of each method: as given, else by trying."""
    open_parts = [_without(part, given) for part in parts]
    _warm_up(parts, where)
    trials = _try(open_parts, choosing, folder, where)
    finalists, compared = _compare(open_parts, choosing, trials, folder, where)
    picks = joined(given, pick(compared, finalists))
    write_picks(folder, picks)
    unsure = {
        (run["config"]["part"], run["config"]["label"])
        for run in [*trials, *compared]
        if run["status"] == UNFINISHED
    }
    waiting = sum(len(part.seeds) for part in parts for name, _ in unsure if name == part.name)
    return Choice(picks, tried(trials), tried(compared), waiting)


def _without(part: Part, given: Picks) -> Part:
    """The part with the methods for which nothing was given."""
    known = given.get(part.name, {})
    return replace(part, methods=[m for m in part.methods if m.label not in known])


def _try(parts: Sequence[Part], choosing: Choosing, folder: Path, where: Where) -> list[Run]:
    """Short runs, judged at their end alone; one that is cut short begins anew."""
    configs = [config for part in parts for config in candidates(part, choosing).configs()]
    work = performer(replace(where, checkpoints=None), thorough=False)
    return sweep(configs, folder / "choice", jobs=where.jobs, work=work)


def _compare(
    parts: Sequence[Part], choosing: Choosing, trials: list[Run], folder: Path, where: Where
) -> tuple[Shortlist, list[Run]]:
    """The best of the trials in full, and larger steps as long as they come out better."""
    finalists = shortlist(trials, choosing.finalists)
    while True:
        compared = learn([finals(part, finalists, choosing) for part in parts], folder, where)
        more = larger(finalists, trials, compared, choosing.within)
        if more == finalists:
            return finalists, compared
        finalists = more


def learn(parts: Sequence[Part], folder: Path, where: Where) -> list[Run]:
    """Full runs, the first seed of every part first; those of the same methods and seeds that were
    done otherwise are set aside."""
    configs = [config for part in parts for config in part.configs()]
    configs.sort(key=lambda config: config.seed)
    set_others_aside(folder, configs)
    runs = sweep(configs, folder, jobs=where.jobs, work=performer(where, thorough=True))
    for each in runs:
        if each["status"] != UNFINISHED:
            shutil.rmtree(folder / "checkpoints" / RunConfig.read(each).key, ignore_errors=True)
    return runs


def _warm_up(parts: Sequence[Part], where: Where) -> None:
    """A few pictures through every method, so that workers find all kernels compiled."""
    if where.jobs == 1:
        return
    alone = replace(where, checkpoints=None, deadline=None)
    for part in parts:
        tiny = replace(part, data=part.data | {"sizes": [4, 2, 2]}, epochs=1, batch_size=4)
        for method in part.methods:
            config = tiny.candidates(replace(method, steps=(1e-3,)))[0]
            perform(config, alone, thorough=False)
