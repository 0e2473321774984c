"""How good a network's decisions are: one pass over a split, the figures summed on its device.

Letters: B pictures, n cost entries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from revealed.errors import InputError
from revealed.metrics.sameness import TIE, same_decision
from revealed.problems.linear import LinearProgram

from .inputs import DeviceSplit

MEASURES = ("decision_loss", "estimate_loss", "relative_regret", "optimal", "exact")
AT_ONCE = 500
"""Pictures that go through the network together."""


def judge(
    model: nn.Module, problem: LinearProgram, split: DeviceSplit, *, half: bool = False
) -> dict[str, float]:
    """Means over a split of what `MEASURES` names.

    decision_loss     |x(c) - x*|^2
    estimate_loss     <c*, x(c) - x*>
    relative_regret   its sum over that of |<c*, x*>|; not a number where they are all 0
    optimal           share of decisions x(c) whose true cost is the optimum, so ties count
    exact             share of decisions x(c) that equal x*
    """
    if not len(split):
        raise InputError("There must be pictures to judge by; the split is empty.")
    total: Tensor | float = 0.0
    for part in _parts(len(split)):
        chosen = split[part]
        total = total + _sums(predict(model, chosen.images, half=half), problem, chosen)
    # The only trip to the host.
    gap, regret, optimum, ties, same = torch.as_tensor(total).tolist()
    size = len(split)
    if not math.isfinite(gap):
        raise InputError("Some predicted costs have no best decision, so nothing can be judged.")
    share = regret / optimum if optimum else math.nan
    found = (gap / size, regret / size, share, ties / size, same / size)
    return dict(zip(MEASURES, found, strict=True))


def predict(model: nn.Module, images: Tensor, *, half: bool = False) -> Tensor:
    """(B, n) costs of pictures on the model's device, with the model set to judge, not to learn."""
    with _resting(model), torch.no_grad(), precision(images.device, half):
        return torch.cat([model(images[part]) for part in _parts(len(images))])


def precision(device: torch.device, half: bool) -> torch.autocast:
    """Convolutions in bfloat16 if asked for; what decides about costs stays in float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=half)


def _sums(costs: Tensor, problem: LinearProgram, split: DeviceSplit) -> Tensor:
    """(5,) float64, summed over the pictures of a chunk."""
    decided = torch.as_tensor(problem.solve(costs.double()).x).to(costs.device)
    observed, truth = split.decisions.double(), split.costs.double()
    gap = decided - observed
    regret, optimum = (truth * gap).sum(1), (truth * observed).sum(1).abs()
    terms = (truth * observed).abs().sum(1)
    each = (
        gap.square().sum(1),
        regret,
        optimum,
        regret <= TIE * terms,
        same_decision(decided, observed),
    )
    return torch.stack([values.double().sum() for values in each])


def _parts(size: int) -> list[slice]:
    return [slice(start, start + AT_ONCE) for start in range(0, size, AT_ONCE)]


@contextmanager
def _resting(model: nn.Module) -> Iterator[None]:
    learning = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(learning)
