"""One run of `revealed bench vision`: train a network on pictures and judge it epoch by epoch."""

from __future__ import annotations

import json
import os
import statistics
import time
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..record import surroundings
from ..sweeps.run_one import one_thread
from ..sweeps.runs import DIVERGED, FAILED, FINISHED, OURS, UNFINISHED, Run, RunConfig
from ..sweeps.sweep import lost
from .data import load
from .gallery import samples_of
from .parts import QUICK_PARTS

if TYPE_CHECKING:
    from torch import nn

    from revealed.losses import DecisionLoss
    from revealed.optimality.sets import OptimalitySet

    from ...images import ImageSet
    from ...vision import DeviceSplit, TrainResult

TRAIN_PART = 1_000
"""Training pictures by which a network is judged: the first, always the same."""
BEGIN_S = 5.0
"""Seconds before the deadline in which no run is begun: getting ready takes that long."""
CHECKPOINT_EVERY = {"cuda": 10}
"""Epochs between checkpoints, 1 where nothing is said. On a GPU ten take seconds, and without warm
starts, which a checkpoint drops, a late step takes longer (experiments/results/steps_cuda.json: 7.8
Newton steps instead of 3.9)."""
LOOKED_AT = 100
"""Pictures that tell whether a network that failed still predicts numbers."""


@dataclass(frozen=True)
class Where:
    """What a run needs to know of the machine; none of it changes the figures but the device."""

    device: str
    data: Path
    """Folder of the prepared data."""
    checkpoints: Path | None = None
    """Folder of all runs' checkpoints; None keeps none."""
    deadline: float | None = None
    """By the clock of `time.time`; a run ends before the epoch that would pass it."""
    jobs: int = 1
    """How many runs share the machine, for the record."""


def performer(where: Where, *, thorough: bool) -> partial[Run]:
    """What a sweep sends to its workers."""
    return partial(perform, where=where, thorough=thorough)


def perform(config: RunConfig, where: Where, *, thorough: bool) -> Run:
    """Train and judge; what goes wrong becomes the status of the run, no exception.

    `thorough` judges on train and test data after every epoch, not only at the end, and keeps with
    seed 0 what the network makes of a few pictures.
    """
    if where.deadline is not None and time.time() + BEGIN_S > where.deadline:
        return lost(config, "There was no time to begin.") | {"status": UNFINISHED}
    status, message, samples, final = FINISHED, "", [], None
    material, model, result = None, None, None
    few = one_thread() if where.device == "cpu" else nullcontext()
    with few, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        began, busy = time.perf_counter(), time.process_time()
        try:
            material = _material(config, where)
            model = material.model(config)
            result = _train(config, material, model, where, thorough)
            if not result.finished:
                status = UNFINISHED
            else:
                used, last = material.used(config, model), result.rows[-1]
                known = {split: last[split] for split in material.judged}
                final = known if used is model else material.judge(config, used)
                samples = samples_of(used, material.data) if thorough and config.seed == 0 else []
        except Exception as error:
            status, final = _what_failed(where.device, model, material), None
            message = f"{type(error).__name__}: {error}"
        taken = {
            "seconds": time.perf_counter() - began,
            "processor_seconds": time.process_time() - busy,
        }
    rows = [] if result is None else result.rows
    times = [row["seconds"] for row in rows[1:]]
    return {
        "config": config.plain(),
        "status": status,
        "message": message,
        "warnings": sorted({str(each.message) for each in caught}),
        "epochs": [row for row in rows if "test" in row],
        "epoch_seconds": statistics.median(times) if times else None,
        **taken,
        "final": final,
        "command": _command(config),
        "surroundings": _surroundings(where, result),
    } | ({"samples": samples} if samples else {})


def _command(config: RunConfig) -> str:
    """What performs the run again, with its method's choice of a step before it."""
    data, training = config.data, config.training
    words = ["revealed bench vision"]
    words += ["--quick"] * any(config.part == part.name for part in QUICK_PARTS)
    words += [f"--only {config.part!r} --methods {config.label!r} --seeds {config.seed + 1}"]
    words += [f"--epochs {config.epochs} --model {config.model['kind']}"]
    words += ["--digits mnist"] * (data.get("digits") == "mnist")
    words += ["--ties"] * (not data.get("unique", True))
    words += [f"--{name} {training[name]}" for name in ("views", "shift") if training.get(name)]
    words += ["--average"] * bool(config.model.get("averaged"))
    words += [f"--{name}" for name in ("half", "compile") if training.get(name)]
    return " ".join(words)


# --- the parts of a run --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Material:
    """Data on a device, with the sets of their decisions; runs of one process share it."""

    data: ImageSet
    train: DeviceSplit
    judged: dict[str, DeviceSplit]

    def model(self, config: RunConfig) -> nn.Module:
        """The network of a run, at its start."""
        from ...vision import build_model

        kind, channels = config.model["kind"], self.data.train.images.shape[3]
        return build_model(kind, self.data.problem, channels=channels, seed=config.seed)

    def used(self, config: RunConfig, model: nn.Module) -> nn.Module:
        """The network as it is used once it has learned: as it is, or seen from all sides."""
        from ...vision import Averaged

        if not config.model.get("averaged"):
            return model
        views, shift = config.training.get("views"), config.training.get("shift", 0)
        return Averaged(model, self.data.problem, views, shift)

    def judge(self, config: RunConfig, model: nn.Module) -> dict[str, Any]:
        """Its figures on every split."""
        from ...vision import judge

        half = bool(config.training.get("half"))
        return {
            split: judge(model, self.data.problem, part, half=half)
            for split, part in self.judged.items()
        }


def _material(config: RunConfig, where: Where) -> Material:
    return _read(json.dumps(config.data, sort_keys=True), where.device, where.data)


@lru_cache(maxsize=6)
def _read(described: str, device: str, folder: Path) -> Material:
    import torch

    from ...vision import DeviceSplit

    data = load(json.loads(described), folder)
    splits = {
        name: DeviceSplit.of(split, device, torch.float64)
        for name, split in (("train", data.train), ("valid", data.valid), ("test", data.test))
    }
    return Material(data, splits["train"], splits | {"train": splits["train"][:TRAIN_PART]})


@lru_cache(maxsize=6)
def _sets(material: Material, margin: float, views: str | None) -> OptimalitySet:
    from revealed.optimality.sets import OptimalitySet

    from ...vision import sets_in, views_of

    problem, decisions = material.data.problem, material.data.train.decisions
    sets = OptimalitySet(problem, decisions, margin)
    return sets if views is None else sets_in(views_of(problem, views), sets)


@lru_cache(maxsize=32)
def _loss(material: Material, described: str) -> DecisionLoss:
    """One for all runs of a method in a process: MOM's bases take longer to find than to use."""
    from revealed.losses import make_loss

    options = json.loads(described)
    name = options.pop("name")
    if name in OURS and material.train.device.type == "cpu":
        options["threads"] = 1
    return make_loss(name, material.data.problem, **options)


def _train(
    config: RunConfig, material: Material, model: nn.Module, where: Where, thorough: bool
) -> TrainResult:
    from ...vision import train

    clock = _Clock(where.deadline)
    loss = _loss(material, json.dumps(config.method, sort_keys=True))
    margin, views = float(config.method.get("margin", 1.0)), config.training.get("views")

    def monitor(epoch: int, model: nn.Module) -> dict[str, Any]:
        clock.tick()
        if not thorough and epoch != config.epochs:
            return {}
        return material.judge(config, model)

    return train(
        model,
        material.train,
        loss,
        sets=_sets(material, margin, views),
        monitor=monitor,
        stop=clock.is_up,
        checkpoint=_checkpoint(config, where),
        checkpoint_every=CHECKPOINT_EVERY.get(material.train.device.type, 1),
        **config.settings,
    )


def _checkpoint(config: RunConfig, where: Where) -> Path | None:
    """None also where safetensors is missing: then a run that is ended begins anew."""
    if where.checkpoints is None or find_spec("safetensors") is None:
        return None
    return where.checkpoints / config.key


class _Clock:
    """Says whether the next epoch would end after the deadline, going by the longest so far."""

    def __init__(self, deadline: float | None) -> None:
        self._deadline, self._last, self._longest = deadline, time.time(), 0.0

    def tick(self) -> None:
        """An epoch has ended."""
        now = time.time()
        self._longest, self._last = max(self._longest, now - self._last), now

    def is_up(self) -> bool:
        return self._deadline is not None and time.time() + 1.5 * self._longest > self._deadline


def _what_failed(device: str, model: nn.Module | None, material: Material | None) -> str:
    """The status of a run that ended in an error. If it is the device that gave way, no run is to
    blame: this one and those that this process would perform are left for another time."""
    if not _works(device):
        return UNFINISHED
    diverged = material and model and _beyond_bounds(model, material)
    return DIVERGED if diverged else FAILED


def _works(device: str) -> bool:
    """Whether a device still computes; one that is lost refuses to until the process ends."""
    import torch

    try:
        return float(torch.ones(2, device=device).sum()) == 2.0
    except RuntimeError:
        return False


def _beyond_bounds(model: nn.Module, material: Material) -> bool:
    """Whether a network predicts what is no number, or no number to reckon with."""
    from revealed.fit.contexts import LARGEST

    from ...vision import predict

    return not bool((predict(model, material.train.images[:LOOKED_AT]) <= LARGEST).all())


@lru_cache(maxsize=1)
def _here(device: str) -> dict[str, Any]:
    import torch

    found = surroundings("", {})
    found["hardware"].pop("load_before")
    if device.startswith("cuda"):
        found["hardware"]["accelerator"] = torch.cuda.get_device_name(device)
    return {name: found[name] for name in ("hardware", "versions")}


def _surroundings(where: Where, result: TrainResult | None) -> dict[str, Any]:
    return {
        **_here(where.device),
        "device": where.device,
        "jobs": where.jobs,
        "captured": result is not None and result.captured,
        "process": os.getpid(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }
