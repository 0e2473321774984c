"""The experiments of `revealed bench synthetic` as tables: parts, methods, and their candidates.

A part is a data set, a model and seeds; a method is a loss and how it is trained. The runs of a
part are all combinations of its seeds with the candidates of its methods, and a candidate is a
combination of a step, options of the loss and settings of the training. Nothing here computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from revealed.errors import InputError
from revealed.fit.defaults import STRENGTH

from ..published import MARGINS
from ..sweeps.runs import OURS, RunConfig, seed_in

Choices = Mapping[str, Sequence[Any]]
"""Options by name, each with the values to try."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """A row of a results table: a loss, how it is trained, and the candidates it chooses among."""

    label: str
    name: str
    """In `revealed.losses.LOSSES`."""
    steps: Sequence[float | None] = (None,)
    options: Choices = field(default_factory=dict)
    """Of the loss."""
    training: Choices = field(default_factory=dict)
    """Of `revealed.fit.erm`."""
    optimiser: str = "adam"
    needs_true_costs: bool = False
    epochs: int | None = None
    """None for those of the part."""
    models: Sequence[dict[str, Any]] | None = None
    """None for that of the part."""

    @property
    def is_ours(self) -> bool:
        return self.name in OURS


@dataclass(frozen=True, kw_only=True)
class Part:
    """Methods compared on the same data."""

    name: str
    data: dict[str, Any]
    model: dict[str, Any]
    epochs: int
    batch_size: int
    seeds: Sequence[int]
    methods: Sequence[Method]
    settings_of: str | None = None
    """The part on whose seeds the settings were chosen, where this one has other seeds: then only
    the chosen candidate of each method is run here."""

    def configs(self) -> Iterator[RunConfig]:
        """Every run, seed by seed, so that what is done first already says something."""
        for seed, method in product(self.seeds, self.methods):
            for config in self.candidates(method):
                yield replace(config, seed=seed)

    def candidates(self, method: Method) -> list[RunConfig]:
        """What a method chooses among, with the first seed."""
        return [
            RunConfig(
                part=self.name,
                label=method.label,
                data=self.data,
                method={"name": method.name} | options,
                model=model,
                optimiser=method.optimiser,
                step=step,
                epochs=method.epochs or self.epochs,
                batch_size=self.batch_size,
                seed=self.seeds[0],
                needs_true_costs=method.needs_true_costs,
                training=training,
            )
            for model in method.models or (self.model,)
            for options in _combinations(method.options)
            for training in _combinations(method.training)
            for step in method.steps
        ]


def _combinations(choices: Choices) -> list[dict[str, Any]]:
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


# --- the paper's appendix C ----------------------------------------------------------------------

STEPS = (10.0, 1.0, 0.1, 0.01, 1e-3, 1e-4)
SMOOTHING = (100.0, 10.0, 1.0, 0.1, 0.01, 1e-3)
"""Of BB and QPTL, searched jointly with the step."""
RIDGES = tuple((STRENGTH / 100 * 10.0 ** np.arange(2.0, -3.1, -0.5)).tolist())
"""Of the estimator on 100 samples: from a hundred times its default to a thousandth of it."""
NOISE_SHARES = (1.0, 0.4, 0.0)
"""Of the estimator's usual noise; 0 is the plain distance."""

OURS_ON_PAPER = (
    Method(label="ours, POCS", name="projection", optimiser="pocs"),
    Method(label="ours, ERM", name="projection", optimiser="armijo"),
    Method(label="ours, ERM", name="projection", optimiser="sgd", steps=STEPS),
    Method(label="ours, ERM", name="projection", optimiser="adagrad", steps=STEPS),
    Method(label="ours, ERM", name="projection", steps=STEPS),
    Method(label="ours, power 1", name="projection", steps=STEPS, options={"power": (1,)}),
    Method(label="ours, Huber", name="projection", steps=STEPS, options={"power": ("huber",)}),
    Method(label="ours, smoothed", name="smoothed", steps=STEPS),
    Method(
        label="our estimator today",
        name="smoothed",
        optimiser="lbfgs",
        training={"ridge": RIDGES},
        models=({"kind": "linear"},),
    ),
    Method(
        label="our estimator, noise chosen",
        name="smoothed",
        optimiser="lbfgs",
        training={"ridge": RIDGES[::2], "noise_share": NOISE_SHARES},
        models=({"kind": "linear"},),
    ),
)
"""The last two are `InverseRegressor` (smoothed, to the minimum). The first is as users get it, its
ridge chosen like the steps of all others; in the second its noise is searched jointly with the
ridge, as the smoothing of BB and QPTL is. What stands above is the paper's method and variants."""

RIVALS_ON_PAPER = (
    Method(label="ST", name="st", steps=STEPS),
    Method(label="BB", name="bb", steps=STEPS, options={"lam": SMOOTHING}),
    Method(label="QPTL", name="qptl", steps=STEPS, options={"tau": SMOOTHING}),
    Method(label="OptNet", name="optnet", steps=STEPS),
    Method(label="log barrier", name="intopt", steps=STEPS),
    Method(label="MOM", name="mom", optimiser="armijo"),
    Method(label="MOM", name="mom", steps=STEPS),
    Method(label="DPO", name="dpo", steps=STEPS),
    Method(label="PFYL", name="pfyl", steps=STEPS),
    Method(label="CaVE", name="cave", steps=STEPS),
    Method(label="CaVE+", name="cave+", steps=STEPS),
    Method(label="NCE", name="nce", steps=STEPS),
)

TOLD_ON_PAPER = tuple(
    replace(method, needs_true_costs=True)
    for method in (
        Method(
            label="MOM, true basis", name="mom", optimiser="armijo", options={"basis": ("true",)}
        ),
        Method(label="MOM, true basis", name="mom", steps=STEPS, options={"basis": ("true",)}),
        Method(label="SPO+", name="spo+", steps=STEPS),
        Method(label="two-stage", name="two-stage", steps=STEPS),
    )
)

# The last feature of the paper's contexts is always 1, so no intercept; the start is torch's.
PAPER_MODEL = {"kind": "linear", "fit_intercept": False, "start": "random"}
PAPER_SIZES = [100, 100, 100]
PAPER_DATA = {
    "path": {"generator": "paper_paths", "sizes": PAPER_SIZES, "degree": 4},
    "knapsack": {"generator": "paper_knapsacks", "sizes": PAPER_SIZES, "degree": 2},
}
PAPER_SEEDS = range(5)
MORE_SEEDS = range(100, 130)
"""For verdicts: five seeds decide little. Fresh ones, since settings were chosen on the five."""
GENERAL_DATA = {"generator": "general_knapsacks", "sizes": PAPER_SIZES, "degree": 2}
"""Ours, not the paper's: no slacks to predict."""

MARGIN_ROWS = tuple(
    Method(
        label=f"margin {margin:g}",
        name="projection",
        optimiser="pocs",
        options={"margin": (margin,)},
    )
    for margin in MARGINS
)

KERNEL_ROWS = (
    Method(label="ours, POCS, linear", name="projection", optimiser="pocs"),
    Method(
        label="ours, POCS, polynomial kernel",
        name="projection",
        optimiser="pocs",
        models=[
            {"kind": "kernel", "kernel": "poly", "degree": degree, "ridge": ridge}
            for degree in (2, 3)
            for ridge in (1e-3, 1e-2, 0.1)
        ],
    ),
    Method(
        label="ours, POCS, Gaussian kernel",
        name="projection",
        optimiser="pocs",
        models=[
            {"kind": "kernel", "kernel": "rbf", "gamma": gamma, "ridge": ridge}
            for gamma in (0.01, 0.03, 0.1, 0.3)
            for ridge in (1e-4, 1e-3, 1e-2)
        ],
    ),
)

# --- the yardstick of CaVE's tables --------------------------------------------------------------

# Twelve candidates for everyone: steps, whether they fall, and one hyperparameter of its own; who
# has none gets more steps.
FEW_STEPS = (0.1, 0.03, 0.01)
MANY_STEPS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
FALLING = {"decay": (0.0, 1.0)}

OURS_ON_CAVE = (
    Method(
        label="ours, power 2",
        name="projection",
        steps=FEW_STEPS,
        training=FALLING,
        options={"power": (2,), "margin": (0.2, 0.8)},
    ),
    Method(
        label="ours, power 1",
        name="projection",
        steps=FEW_STEPS,
        training=FALLING,
        options={"power": (1,), "margin": (0.2, 0.8)},
    ),
    Method(
        label="ours, Huber",
        name="projection",
        steps=FEW_STEPS,
        training=FALLING,
        options={"power": ("huber",), "margin": (0.4,), "delta": (0.2, 0.8)},
    ),
    Method(
        label="ours, smoothed",
        name="smoothed",
        steps=FEW_STEPS,
        training=FALLING,
        options={"power": (2,), "margin": (0.25, 0.5)},  # against sigma 1; only the ratio matters
    ),
    Method(
        label="ours, smoothed, power 1",
        name="smoothed",
        steps=FEW_STEPS,
        training=FALLING,
        options={"power": (1,), "margin": (0.25, 0.5)},
    ),
)

RIVALS_ON_CAVE = (
    Method(label="ST", name="st", steps=MANY_STEPS, training=FALLING),
    Method(
        label="BB",
        name="bb",
        steps=(0.03, 0.01, 0.003),  # with a large lam it moves like ST, which wants small steps
        training=FALLING,
        options={"lam": (1.0, 10.0)},
    ),
    Method(
        label="DPO",
        name="dpo",
        steps=FEW_STEPS,
        training=FALLING,
        options={"sigma": (1.0, 3.0)},
    ),
    Method(
        label="PFYL",
        name="pfyl",
        steps=FEW_STEPS,
        training=FALLING,
        options={"sigma": (0.3, 1.0)},
    ),
    Method(
        label="MOM",
        name="mom",
        steps=FEW_STEPS,
        training=FALLING,
        options={"margin": (0.2, 1.0)},
    ),
    Method(label="CaVE", name="cave", steps=MANY_STEPS, training=FALLING),
    Method(
        label="CaVE+",
        name="cave+",
        steps=FEW_STEPS,
        training=FALLING,
        options={"max_iter": (2, 3)},
    ),
    Method(label="NCE", name="nce", steps=MANY_STEPS, training=FALLING, epochs=20),
)

TOLD_ON_CAVE = (
    Method(label="SPO+", name="spo+", steps=MANY_STEPS, training=FALLING, needs_true_costs=True),
    Method(
        label="two-stage",
        name="two-stage",
        steps=MANY_STEPS,
        training=FALLING,
        epochs=20,
        needs_true_costs=True,
    ),
)

CAVE_MODEL = {"kind": "linear", "fit_intercept": True, "start": "random"}
CAVE_DEGREES = (4, 6)
CAVE_SEEDS = range(42, 52)


def cave_part(degree: int) -> str:
    """The name of the part of CaVE's yardstick with that degree."""
    return f"cave degree {degree}"


def _cave_data(degree: int) -> dict[str, Any]:
    sizes = [1000, 100, 1000]
    return {"generator": "noisy_paths", "sizes": sizes, "degree": degree, "noise": 0.5}


# --- the whole -----------------------------------------------------------------------------------


def seeds_part(problem: str) -> str:
    """The name of the part with many seeds."""
    return f"seeds {problem}"


def _paper_part(name: str, data: dict[str, Any], methods: Sequence[Method]) -> Part:
    return Part(
        name=name,
        data=data,
        model=PAPER_MODEL,
        epochs=150,
        batch_size=100,
        seeds=PAPER_SEEDS,
        methods=methods,
    )


ON_PAPER = (*OURS_ON_PAPER, *RIVALS_ON_PAPER, *TOLD_ON_PAPER)
_PAPER_PARTS = tuple(
    _paper_part(f"paper {problem}", data, ON_PAPER) for problem, data in PAPER_DATA.items()
)

PARTS = (
    *_PAPER_PARTS,
    *(
        replace(part, name=seeds_part(problem), seeds=MORE_SEEDS, settings_of=part.name)
        for problem, part in zip(PAPER_DATA, _PAPER_PARTS, strict=True)
    ),
    *(
        _paper_part(f"{what} {problem}", data, methods)
        for what, methods in (("margins", MARGIN_ROWS), ("kernels", KERNEL_ROWS))
        for problem, data in PAPER_DATA.items()
    ),
    _paper_part("general knapsack", GENERAL_DATA, ON_PAPER),
    *(
        Part(
            name=cave_part(degree),
            data=_cave_data(degree),
            model=CAVE_MODEL,
            epochs=10,
            batch_size=32,
            seeds=CAVE_SEEDS,
            methods=(*OURS_ON_CAVE, *RIVALS_ON_CAVE, *TOLD_ON_CAVE),
        )
        for degree in CAVE_DEGREES
    ),
)


def with_settings(part: Part, chosen: Mapping[tuple[str, str], dict[str, Any]]) -> list[RunConfig]:
    """The runs of a part whose settings were chosen in another one.

    `chosen` has, by label and optimizer, the configuration without its seed that was chosen there.
    """
    found = []
    for seed, method in product(part.seeds, part.methods):
        config = chosen.get((method.label, method.optimiser))
        if config is not None:
            found.append(RunConfig(**(config | {"part": part.name, "seed": seed})))
    return found


def experiment(
    *, quick: bool = False, seeds: int | None = None, only: str | None = None
) -> list[Part]:
    """The parts to run: `seeds` of them instead of each part's own, those with `only` in a name."""
    parts = [part for part in PARTS if not only or only in part.name]
    if not parts:
        names = ", ".join(part.name for part in PARTS)
        raise InputError(f"`--only {only}` matches none of {names}.")
    if quick:
        parts = [_quick(part) for part in parts]
    if seeds is not None:
        parts = [replace(part, seeds=_first(part.seeds, seeds)) for part in parts]
    return parts


def _first(seeds: Sequence[int], count: int) -> range:
    return range(seeds[0], seeds[0] + count)


def _quick(part: Part) -> Part:
    """One seed, two steps and only the first value of each option, fewer epochs."""
    methods = [
        replace(
            method,
            steps=method.steps[1:3] or method.steps,
            options={name: values[:1] for name, values in method.options.items()},
            training={name: values[:1] for name, values in method.training.items()},
            models=method.models and method.models[:1],
            epochs=None,
        )
        for method in part.methods
    ]
    epochs = 50 if part.epochs > 50 else 5
    return replace(part, seeds=part.seeds[:1], epochs=epochs, methods=methods)


def find(key: str) -> RunConfig:
    """The configuration with that key, in the full experiment or the quick one, with any seed."""
    seed = seed_in(key)
    if seed is not None:
        for part in (*PARTS, *map(_quick, PARTS)):
            for config in replace(part, seeds=[seed]).configs():
                if config.key == key:
                    return config
    raise InputError(
        f"{key!r} is neither a file nor the key of a run of this version's experiments. Give the "
        "file of the run or of its configuration."
    )
