"""One update of a network on one batch, and the same held in a CUDA graph.

Gather the batch, predict, compare, differentiate, move: nothing in between waits for the device,
and where the loss allows it the whole becomes one launch. This is why pictures have a step of
their own. The steppers of `revealed.fit` read the loss of every batch, check its costs and tally
distances, and their line searches decide by what they read: each makes the host wait for the
device, and none can be part of a graph. Order, schedule, history and checkpoints are those of
`revealed.fit.loop` in both.

Letters: B pictures of a batch, n cost entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from revealed.fit.optimizers import state_of
from revealed.losses import DecisionLoss
from revealed.optimality.sets import OptimalitySet
from revealed.problems.structures import PathStructure

from .inputs import DeviceSplit
from .judging import precision
from .optimizers import start_state
from .shifts import Shifts
from .views import ViewedSplit

WARM_UP = 3
"""Ordinary steps before a capture: libraries choose algorithms and kernels are compiled in them."""

Observed = Callable[[Tensor], Any]
"""From the places of a batch to what its loss takes for decisions."""


class Step:
    """Called with the places (B,) of a batch; adds the loss to `total`, on the device.

    With `shifts` a place is that of a shifted picture: shift k of line i is k L + i of L lines.
    """

    def __init__(
        self,
        model: nn.Module,
        data: DeviceSplit | ViewedSplit,
        loss: DecisionLoss,
        optimizer: torch.optim.Optimizer,
        observed: Observed,
        *,
        shifts: Shifts | None = None,
        half: bool = False,
        warm_starts: bool = False,
    ) -> None:
        self.model, self.loss, self.optimizer = model, loss, optimizer
        self.total = torch.zeros((), dtype=torch.float64, device=data.device)
        self._data, self._observed, self._shifts = data, observed, shifts
        self._half, self.warm_starts = half, warm_starts

    def __call__(self, index: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        if self._shifts is None:
            images = self._data.images[index]
        else:
            which = index.div(len(self._data), rounding_mode="floor")
            index = index.remainder(len(self._data))
            images = self._shifts.apply(self._data.images[index], which)
        with precision(images.device, self._half):
            costs = self.model(images)
        value = self.loss(
            costs,
            self._observed(index),
            true_costs=self._data.costs[index] if self.loss.needs_true_costs else None,
            index=index if self.warm_starts else None,
        )
        value.backward()
        self.optimizer.step()
        self.total += value.detach()


class CapturedStep:
    """A `Step` recorded once as a CUDA graph and replayed for every batch of the same size.

    Recording changes nothing: the steps that it needs beforehand are taken back.
    """

    def __init__(self, step: Step, size: int) -> None:
        self._index = torch.arange(size, device=step.total.device)
        self._step = step
        before = _Kept(step)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(stream):
                for _ in range(WARM_UP):
                    step(self._index)
        finally:  # also where they fail, for then the steps are taken without a graph
            torch.cuda.current_stream().wait_stream(stream)
            before.restore(step)
        self._graph = torch.cuda.CUDAGraph()
        step.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(self._graph):
            step(self._index)

    @property
    def total(self) -> Tensor:
        return self._step.total

    def __call__(self, index: Tensor) -> None:
        self._index.copy_(index)
        self._graph.replay()


class _Kept:
    """Everything that steps change, to be put back where it lies."""

    def __init__(self, step: Step) -> None:
        self._model = {name: t.clone() for name, t in step.model.state_dict().items()}
        self._optimizer = {name: t.clone() for name, t in state_of(step.optimizer).items()}
        self._total = step.total.clone()

    @torch.no_grad()
    def restore(self, step: Step) -> None:
        for name, tensor in step.model.state_dict().items():
            tensor.copy_(self._model[name])
        if self._optimizer:
            for name, tensor in state_of(step.optimizer).items():
                tensor.copy_(self._optimizer[name])
        else:  # nothing had been remembered yet
            start_state(step.optimizer)
        step.total.copy_(self._total)
        if step.warm_starts:
            step.loss.forget()


def can_capture(loss: DecisionLoss) -> bool:
    """Whether a step with this loss never leaves the device: no oracle, or one that stays there."""
    if loss.name in _ORACLES_ON_PATHS:
        return isinstance(loss.problem.structure, PathStructure)
    return loss.name in ("projection", "smoothed", "two-stage") or (
        loss.name == "mom" and not loss.needs_true_costs
    )


_ORACLES_ON_PATHS = ("st", "bb", "spo+", "pfyl")


def make_observed(
    loss: DecisionLoss, data: DeviceSplit | ViewedSplit, sets: OptimalitySet
) -> Observed:
    """What a loss is given for decisions: the sets, where it makes use of them, on the data's
    device; else the decisions themselves."""
    if loss.name not in _BY_SETS:
        return lambda index: data.decisions[index]
    if data.device.type == "cpu":
        return lambda index: sets[index.numpy()]
    there = sets.to(data.device)
    return lambda index: there[index]


_BY_SETS = ("projection", "smoothed", "mom")
