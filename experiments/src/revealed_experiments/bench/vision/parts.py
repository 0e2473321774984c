"""The experiments of `revealed bench vision` as tables: what is learned from, by whom, with what.

The paper's section 7 on data of our own: maps with shortest paths, boards of digits with perfect
matchings. Each method first chooses its optimiser and step by its decisions on validation data: the
best after a few epochs are finalists, joined by larger steps as long as these are better, and the
best after all epochs is chosen; then it learns with the other seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from revealed.errors import InputError

from ..synthetic.experiments import Method, Part

STEPS = (0.1, 0.05, 0.01, 0.005, 0.001, 5e-4, 1e-4, 5e-5)
OPTIMISERS = ("adam", "adagrad")
EPOCHS, BATCH_SIZE = 50, 100
SEEDS = range(5)
SIZES = [10_000, 1_000, 1_000]
NETWORKS = 2
"""Version of the networks by their names: those of another number begin with other costs, and
their runs are other runs. With 1, which runs do not say, costs began far above the margin."""
FLOOR = 0.01
"""Shifted or disturbed costs of streets are raised to it: a graph with cycles has no shortest path
below 0."""

SMOOTHED = {"power": (1,), "margin": (1.0,), "sigma": (1.0,), "n_samples": (4,)}
"""Noise of the size of the margin, in two pairs of opposite draws."""

_MAPS = ("terrain", "warcraft")
_BOARDS = {"digit_boards": "boards also with rows and columns exchanged in training"}
VIEWS = {
    "mirrored": dict.fromkeys(_MAPS, "maps also mirrored in training") | _BOARDS,
    "all": dict.fromkeys(_MAPS, "maps also mirrored and turned in training") | _BOARDS,
}
"""What of `revealed_experiments.vision.views` a sweep may ask for, for every method alike; what
that means, by the generator of the pictures."""
SWITCHES = ("half", "compile")
"""Settings of the training that a sweep may turn on."""
CHANGES = ("views", "shift", *SWITCHES)
"""All settings of the training that a sweep may change."""


@dataclass(frozen=True, kw_only=True)
class Choosing:
    """How steps are chosen: many in short trials, a few of them in runs as long as those that
    count."""

    steps: Sequence[float]
    sizes: Sequence[int]
    """Of the trials: the first samples of the data."""
    epochs: int
    """Of the trials."""
    finalists: int
    """Pairs of optimiser and step that go on from the trials, for each method."""
    within: float
    """While the best finalist could have a larger step, that one is compared too: a long run may
    make more of it than a trial. Not if its trial came out worse than so many times the best."""
    seeds: Sequence[int]
    """With which finalists are compared, whichever are asked for: a pair that comes first in one
    run may fail in the next."""


@dataclass(frozen=True)
class Pick:
    """What a method chose."""

    optimiser: str
    step: float


Picks = Mapping[str, Mapping[str, Pick]]
"""By part and by label."""
Shortlist = Mapping[str, Mapping[str, Sequence[Pick]]]
"""Finalists by part and by label, the best first."""


def methods(on_paths: bool) -> tuple[Method, ...]:
    """Ours first; those that see true costs last."""
    floor = {"floor": (FLOOR,)} if on_paths else {}
    return (
        Method(label="Ours", name="projection", options={"power": (2,), "margin": (1.0,)}),
        Method(label="Ours, robust", name="projection", options={"power": (1,), "margin": (1.0,)}),
        Method(label="Ours, smoothed", name="smoothed", options=SMOOTHED),
        Method(label="ST", name="st"),
        Method(label="MOM", name="mom", options={"margin": (1.0,)}),
        Method(label="BB", name="bb", options={"lam": (10.0,)} | floor),
        Method(label="PFYL", name="pfyl", options={"n_samples": (3,), "sigma": (1.0,)} | floor),
        Method(label="SPO+", name="spo+", options=floor, needs_true_costs=True),
        Method(label="two-stage", name="two-stage", needs_true_costs=True),
    )


def network(kind: str) -> dict[str, Any]:
    """What a run says of its network."""
    return {"kind": kind, "version": NETWORKS}


def _terrain(side: int, sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    return {"generator": "terrain", "side": side, "sizes": list(sizes), "unique": True, "seed": 0}


def _boards(side: int, pixels: int, sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    drawn = {"side": side, "pixels": pixels, "digits": "sklearn", "unique": True, "seed": 0}
    return {"generator": "digit_boards", "sizes": list(sizes)} | drawn


def _part(name: str, data: dict[str, Any]) -> Part:
    return Part(
        name=name,
        data=data,
        model=network("truncated"),
        epochs=EPOCHS,
        batch_size=BATCH_SIZE,
        seeds=SEEDS,
        methods=[
            replace(method, training={"decay": (True,)})
            for method in methods(data["generator"] in _MAPS)
        ],
    )


PARTS = (
    _part("terrain 12x12", _terrain(12)),
    _part("terrain 18x18", _terrain(18)),
    _part("matching 12x12", _boards(12, 12)),
)
CHOOSING = Choosing(steps=STEPS, sizes=SIZES, epochs=5, finalists=2, within=2, seeds=range(2))
"""All the data, since how large a step may be depends on how much there is to learn from."""

QUICK_SIZES = [300, 100, 100]
QUICK_PARTS = tuple(
    replace(part, model=network("small"), epochs=6, batch_size=10, seeds=range(1))
    for part in (
        _part("terrain 6x6", _terrain(6, QUICK_SIZES)),
        _part("matching 6x6", _boards(6, 8, QUICK_SIZES)),
    )
)
QUICK_CHOOSING = Choosing(
    steps=(0.01, 0.001), sizes=[200, 100, 100], epochs=4, finalists=2, within=2, seeds=range(1)
)
"""80 updates: enough for decisions to differ by the step."""


def experiment(
    *,
    quick: bool = False,
    only: str | None = None,
    labels: Sequence[str] | None = None,
    seeds: int | None = None,
    epochs: int | None = None,
    model: str | None = None,
    digits: str = "sklearn",
    ties: bool = False,
    averaged: bool = False,
    warcraft: bool = False,
    published: bool = False,
) -> list[Part]:
    """The parts to run: those with `only` in their name and the methods of these labels.

    `ties` lets in maps and boards that have several best decisions; networks that are `averaged`
    are judged in the end by the mean over their views and shifts. `warcraft` puts the original maps
    in the place of the terrain. `published` is the paper's configuration: a whole ResNet-18 with a
    cost for each edge, steps that do not fall, pictures as they are.
    """
    used = {"averaged": True} if averaged else {}
    known = QUICK_PARTS if quick else PARTS
    if warcraft:
        known = [_on_warcraft(part) for part in known if part.data["generator"] == "terrain"]
    if published:
        known = [_as_published(part) for part in known]
        ties = True
    parts = [part for part in known if not only or only in part.name]
    if not parts:
        raise InputError(f"`--only {only}` matches none of {', '.join(p.name for p in known)}.")
    return [
        replace(
            part,
            data=_changed(part.data, digits, ties),
            model=(part.model if model is None else network(model)) | used,
            methods=_chosen_methods(part.methods, labels),
            seeds=part.seeds if seeds is None else range(seeds),
            epochs=part.epochs if epochs is None else epochs,
        )
        for part in parts
    ]


def candidates(part: Part, choosing: Choosing) -> Part:
    """The part in which its methods choose: every optimiser with every step, one seed, networks as
    they are, since looking from all sides would take longer than the trial."""
    return replace(
        part,
        model={name: value for name, value in part.model.items() if name != "averaged"},
        data=part.data | {"sizes": list(choosing.sizes)},
        epochs=choosing.epochs,
        seeds=part.seeds[:1],
        methods=[
            replace(method, optimiser=optimiser, steps=choosing.steps)
            for method in part.methods
            for optimiser in OPTIMISERS
        ],
    )


def finals(part: Part, shortlist: Shortlist, choosing: Choosing) -> Part:
    """The part in which finalists are compared; a method without any is left out."""
    found = shortlist.get(part.name, {})
    methods = [_with(m, pick) for m in part.methods for pick in found.get(m.label, ())]
    return replace(part, methods=methods, seeds=choosing.seeds)


def decided(part: Part, picks: Picks) -> Part:
    """The part with what its methods chose; a method without a choice is left out."""
    found = picks.get(part.name, {})
    return replace(
        part, methods=[_with(m, found[m.label]) for m in part.methods if m.label in found]
    )


def _with(method: Method, pick: Pick) -> Method:
    return replace(method, optimiser=pick.optimiser, steps=(pick.step,))


def _on_warcraft(part: Part) -> Part:
    """The same task on the original maps, ties and all."""
    data = {"generator": "warcraft", "side": part.data["side"], "sizes": part.data["sizes"]}
    return replace(part, name=part.name.replace("terrain", "warcraft"), data=data)


def _as_published(part: Part) -> Part:
    steady = [replace(method, training={"decay": (False,)}) for method in part.methods]
    return replace(part, model=network("resnet18"), methods=steady)


def _changed(data: dict[str, Any], digits: str, ties: bool) -> dict[str, Any]:
    if "unique" not in data:  # stored maps are what they are
        return data
    changed = data | {"unique": not ties}
    return changed | {"digits": digits} if "digits" in data else changed


def _chosen_methods(known: Sequence[Method], labels: Sequence[str] | None) -> Sequence[Method]:
    if labels is None:
        return known
    by_label = {method.label.lower(): method for method in known}
    unknown = [label for label in labels if label.lower() not in by_label]
    if unknown:
        names = "; ".join(method.label for method in known)
        raise InputError(f"`--methods` must name some of {names}; got {unknown[0]!r}.")
    wanted = {label.lower() for label in labels}
    return [method for method in known if method.label.lower() in wanted]
