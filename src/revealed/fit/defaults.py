"""What the estimator does when nothing is asked for: noise, form of the distance, draws, ridge.

The unit is that of the smallest costs that explain a decision with the margin. Noise of five units
and Huber's form with its bend at the noise serve noisy decisions, and cost clean ones nothing, for
the scale of the costs is learned and grows where decisions are clean. The margin itself is not the
unit: it bounds multipliers of rows, so a row in grams asks for a thousand times larger costs than
the same row in kilograms. A ridge of 0.15 over the number of samples is that of a prior of fixed
strength. All were chosen on other seeds than those reported (docs/noise.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..optimality.cost_form import CostForm
from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet as Sets
from ..problems.linear import LinearProgram
from ..projection import project
from ..projection.result import refuse_empty
from .evaluation import DistanceLoss

NOISE_PER_UNIT = 5.0
LOOKED_AT = 200
"""Samples that the unit is taken from."""
STRENGTH = 0.15
"""Of the prior, in samples: the ridge is this over their number."""
DRAWS, FEWEST_DRAWS = 8, 2
MANY = 1_000
"""Samples from which fewer draws per sample are as accurate."""


def default_loss(
    sets: Sets,
    *,
    noise: float | str = "auto",
    power: int | str = "auto",
    delta: float | None = None,
    draws: int | None = None,
    seed: int = 0,
    smooth: bool = True,
    size: int | None = None,
) -> DistanceLoss:
    """The loss with "auto" and None replaced; `smooth` is whether "auto" noise may be above 0.
    `size` is the number of samples that `sets` stand for, where they are some of many."""
    if noise == "auto":
        noise = usual_noise(sets) if smooth and is_scale_free(sets) else 0.0
    if power == "auto":
        power = "huber" if noise else 2
    if delta is None:
        delta = float(noise) if noise else 1.0
    if draws is None:
        size = max(len(sets) if size is None else size, 1)
        draws = max(FEWEST_DRAWS, min(DRAWS, 2 * round(DRAWS * MANY / size / 2)))
    return DistanceLoss(power=power, delta=delta, noise=float(noise), draws=draws, seed=seed)


def usual_noise(sets: Sets) -> float:
    """Five times the root mean square entry of the smallest costs that explain a decision, of the
    median sample; 1 without a margin, where costs of 0 explain anything."""
    some = sets[np.unique(np.linspace(0, len(sets) - 1, LOOKED_AT).astype(int))]
    near = project(np.zeros((len(some), some.n_parameters)), some)
    refuse_empty(near)
    unit = float(np.median(near.distance)) / np.sqrt(some.n_parameters)
    return NOISE_PER_UNIT * unit if unit > 0 else 1.0


def default_ridge(sets: Sets) -> float:
    """0 where costs have a unit of their own; else by the effective number of samples."""
    if not is_scale_free(sets):
        return 0.0
    weights = sets.weights
    return STRENGTH * float((weights**2).sum() / weights.sum() ** 2)


def is_scale_free(sets: Any) -> bool:
    """Whether a multiple of costs that explain decisions explains them too, margin apart: nothing
    known of the costs sets their unit."""
    parts = sets.parts if isinstance(sets, MixedSets) else (sets,)
    return all(
        _is_cone(part.form) if isinstance(part.problem, LinearProgram) else part.gradient is None
        for part in parts
    )


def _is_cone(form: CostForm | None) -> bool:
    """Whether costs of this form may all be multiplied: signs and equal costs at most are given."""
    if form is None:
        return True
    limits = all((np.isinf(bound) | (bound == 0)).all() for bound in form.bounds)
    return limits and not form.map.offset.any()
