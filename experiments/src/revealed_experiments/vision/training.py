"""Training a network from pictures: data on the device, any loss, and the same numbers again.

    result = train(net, DeviceSplit.of(data.train, "cuda"), loss, sets=sets, lr=5e-4, max_epochs=50)

Batches of epoch k are drawn from (seed, k) and everything random in a loss likewise, so a run that
was killed and goes on from its checkpoint ends with the numbers of one that was not.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from revealed.errors import InputError
from revealed.fit import checkpoint as checkpoints
from revealed.fit.checkpoint import Checkpoint
from revealed.fit.history import History, StopReason
from revealed.fit.loop import Loop, Row, shuffled
from revealed.fit.optimizers import (
    CONSTANT,
    check_schedule,
    learning_rate,
    load_state,
    set_lr,
    state_of,
)
from revealed.losses import DecisionLoss
from revealed.optimality.sets import OptimalitySet

from .inputs import DeviceSplit
from .optimizers import make_optimizer
from .shifts import Shifts
from .stepping import CapturedStep, Step, can_capture, make_observed
from .views import ViewedSplit, sets_in

FIRST = 1
"""The number of the first epoch in rows and in random draws."""
Monitor = Callable[[int, nn.Module], Row]
"""Asked at the start (epoch 0) and after each epoch; what it finds joins the row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainSettings:
    """How to train; everything but the network, the data and the loss."""

    optimizer: str = "adam"
    """"adam" or "adagrad"."""
    lr: float = 5e-4
    max_epochs: int = 50
    batch_size: int = 100
    """An epoch takes as many whole batches as there are; what is left over waits for the next."""
    schedule: float | str = CONSTANT
    """How `lr` falls from epoch to epoch, as in `revealed.fit.TrainSettings`. It stays the same
    within one, for every change is a copy to the device."""
    seed: int = 0
    views: str | None = None
    """Maps from other sides, "mirrored" or "all" (also turned by half), boards with rows and
    columns exchanged: each epoch draws one view of every picture."""
    shift: int = 0
    """Each epoch moves every picture by up to so many pixels up or down and to either side."""
    half: bool = False
    """Convolutions in bfloat16."""
    compile: bool = False
    """The network through `torch.compile`."""
    capture: bool = True
    """On CUDA, the whole step as one graph where the loss allows it."""
    checkpoint: str | os.PathLike[str] | None = None
    """Folder for checkpoints; a run that finds its own there goes on from it."""
    checkpoint_every: int = 1
    """Epochs between checkpoints; a run that ends in between goes on from the last one. A
    checkpoint drops the warm starts of projections, so with 1 there are none."""

    def __post_init__(self) -> None:
        for name, least in (
            ("max_epochs", 0), ("batch_size", 1), ("shift", 0), ("checkpoint_every", 1)
        ):  # fmt: skip
            if getattr(self, name) < least:
                raise InputError(f"`{name}` must be at least {least}; got {getattr(self, name)}.")
        if not self.lr > 0:
            raise InputError(f"`lr` must be above 0; got {self.lr}.")
        check_schedule(self.schedule)


@dataclass(frozen=True, eq=False)
class TrainResult:
    """What happened, epoch by epoch."""

    rows: list[Row]
    """Row k after epoch k: "epoch", "seconds" of training alone, "loss" as the batches came, and
    what the monitor found. Row 0 is the network at its start."""
    finished: bool
    """False where `stop` has ended it; the same call goes on from the checkpoint."""
    captured: bool
    """Whether steps were one CUDA graph."""


def train(
    model: nn.Module,
    data: DeviceSplit,
    loss: DecisionLoss,
    *,
    sets: OptimalitySet | None = None,
    monitor: Monitor | None = None,
    stop: Callable[[], bool] | None = None,
    **settings: Any,
) -> TrainResult:
    """Train `model` in place on pictures and the decisions taken in them, all on one device.

    `settings` are the fields of `TrainSettings`. `sets` are those of the decisions with the margin
    of the loss, in all views if there are any (`sets_in`); None builds them. `monitor(epoch,
    model)` is asked at the start and after each epoch, `stop()` before each.
    """
    s = TrainSettings(**settings)
    if not len(data):
        raise InputError("There must be pictures to learn from; the split is empty.")
    learner = _Learner(model, data, loss, sets, s)
    loop = Loop(
        module=model,
        learner=learner,
        max_epochs=s.max_epochs,
        monitor=None if monitor is None else lambda epoch: monitor(epoch, model),
        stop=stop,
        facts=_facts(s, model, data, loss, sets),
        checkpoint=s.checkpoint,
        checkpoint_every=s.checkpoint_every,
        checkpoint_last=True,
    )
    with reproducible():
        history = loop.run()
    finished = history.reason is not StopReason.STOPPED
    return TrainResult(_by_epoch(history), finished=finished, captured=learner.captured)


def _by_epoch(history: History) -> list[Row]:
    """Rows that join what an epoch saw with what was found after it, not before it."""
    seen = [{"seconds": 0.0, "loss": None}]
    seen += [{name: row[name] for name in ("seconds", "loss")} for row in history.rows[:-1]]
    own = {"iteration", "seconds", "loss", "lr"}
    return [
        {"epoch": k} | seen[k] | {name: found for name, found in row.items() if name not in own}
        for k, row in enumerate(history.rows)
    ]


class _Learner:
    """A network with everything that changes it, on pictures that stay on one device."""

    def __init__(
        self,
        model: nn.Module,
        data: DeviceSplit,
        loss: DecisionLoss,
        sets: OptimalitySet | None,
        s: TrainSettings,
    ) -> None:
        self._device, self._size = data.device, min(s.batch_size, len(data))
        model.to(self._device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._model, self._data, self._loss, self._sets, self._s = model, data, loss, sets, s
        self._lines = data if s.views is None else ViewedSplit(data, loss.problem, s.views)
        if sets is not None and len(sets) != len(self._lines):
            raise InputError(
                f"`sets` must be those of {len(self._lines)} decisions, of {len(data)} pictures in "
                f"{len(self._lines) // len(data)} views; got {len(sets)}."
            )
        self._shifts = Shifts(s.shift, data.device) if s.shift else None
        self._optimizer = make_optimizer(s.optimizer, model.parameters(), s.lr)
        # A sample comes once an epoch: with a checkpoint after each there is nothing to start from.
        self._warm_starts = s.checkpoint_every > 1 and getattr(loss, "warm_start", False)
        if self._warm_starts:
            loss.forget()  # what another run has left there

    @property
    def captured(self) -> bool:
        return isinstance(self.__dict__.get("_advance"), CapturedStep)

    @cached_property
    def _advance(self) -> Step | CapturedStep:
        """Made when it is first needed: after a checkpoint was read, and not if all is done."""
        s, loss = self._s, self._loss
        sets = self._own_sets() if self._sets is None else self._sets
        self._model.train()
        step = Step(
            torch.compile(self._model) if s.compile else self._model,  # type: ignore[arg-type]
            self._lines,
            loss,
            self._optimizer,
            make_observed(loss, self._lines, sets),
            shifts=self._shifts,
            half=s.half,
            warm_starts=self._warm_starts,
        )
        if self._device.type != "cuda" or not s.capture or not can_capture(loss):
            return step
        try:
            return CapturedStep(step, self._size)
        except RuntimeError as error:
            warnings.warn(
                f"The step cannot be one CUDA graph and is taken as it is: {error}", stacklevel=4
            )
            return step

    def _own_sets(self) -> OptimalitySet:
        margin = getattr(self._loss, "margin", None)
        margin = 1.0 if margin is None else margin
        sets = OptimalitySet(self._loss.problem, self._data.decisions, margin)
        return sets_in(self._lines.views, sets) if isinstance(self._lines, ViewedSplit) else sets

    def learn(self, epoch: int) -> Row:
        """Learn from every whole batch once; the host looks at the device when all is done."""
        s, advance = self._s, self._advance
        lr = learning_rate(s.lr, s.schedule, epoch, s.max_epochs)
        set_lr(self._optimizer, lr)
        self._loss.begin_epoch(s.seed, epoch + FIRST)
        self._model.train()
        batches = self._batches(epoch)
        advance.total.zero_()
        began = time.perf_counter()
        for index in batches:
            advance(index)
        mean = float(advance.total) / len(batches)  # waits for the device, once
        seconds = time.perf_counter() - began
        if not np.isfinite(mean):
            raise InputError(
                f"The training has diverged: the loss of epoch {epoch + FIRST} is not a number. "
                "Choose a smaller `lr`."
            )
        return {"seconds": seconds, "loss": mean, "lr": lr}

    def _batches(self, epoch: int) -> Tensor:
        """(K, B) lines of the data, drawn anew in each epoch: every picture once, in one view, and
        with the number of its shift where pictures are shifted."""
        size = len(self._data)
        order, rng = shuffled(size, self._s.seed, epoch + FIRST)
        order += size * rng.integers(len(self._lines) // size, size=size)
        if self._shifts is not None:
            order += len(self._lines) * rng.integers(len(self._shifts), size=size)
        whole = len(order) // self._size * self._size
        return torch.from_numpy(order[:whole].reshape(-1, self._size)).to(self._device)

    def measure(self) -> Row:
        """Nothing: another pass over all pictures costs as much as an epoch."""
        return {}

    def forget(self) -> None:
        if self._warm_starts:
            self._loss.forget()

    def state(self) -> dict[str, Tensor]:
        return state_of(self._optimizer)

    def load(self, found: Checkpoint) -> None:
        parameters = list(self._model.parameters())
        needed = found.facts["epoch"] > 0
        load_state(self._optimizer, found.state_like("optimizer", parameters, needed=needed))


# --- the same numbers again ----------------------------------------------------------------------


@contextmanager
def reproducible() -> Iterator[None]:
    """Convolutions by algorithms that add in the same order every time."""
    cudnn = torch.backends.cudnn
    before = cudnn.deterministic, cudnn.benchmark
    cudnn.deterministic, cudnn.benchmark = True, False
    try:
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark = before


# --- on disk -------------------------------------------------------------------------------------

_FREE_TO_CHANGE = {"checkpoint"}


def _facts(
    s: TrainSettings,
    model: nn.Module,
    data: DeviceSplit,
    loss: DecisionLoss,
    sets: OptimalitySet | None,
) -> dict[str, Any]:
    """What two runs must have in common for one to go on from the other's checkpoint."""
    if s.checkpoint is None:
        return {}
    settings = {name: v for name, v in asdict(s).items() if name not in _FREE_TO_CHANGE}
    pieces = checkpoints.checksum(data.images, data.decisions, data.costs)
    return settings | {
        "model": {name: list(tensor.shape) for name, tensor in model.state_dict().items()},
        "data": f"{len(data)} pictures, {pieces}",
        "loss": repr(loss),
        "constraints": checkpoints.shared_rows(loss.problem),
        "sets": None if sets is None else checkpoints.fingerprint(sets),
        "device": data.device.type,
    }
