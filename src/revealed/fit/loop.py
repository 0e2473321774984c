"""The loop behind every training of a torch module: epochs, checkpoints, and when to stop.

    history = Loop(module=module, learner=learner, max_epochs=50).run()

What an epoch does is up to the learner. `erm` has one for contexts of any kind and every optimizer;
the experiments on pictures have one whose data stay on a GPU. All else is here and the same for
both: the order of events, the history, the best epoch and patience, checkpoints and resuming.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn

from ..errors import InputError
from . import checkpoint as checkpoints
from .checkpoint import Checkpoint
from .history import History, StopReason, json_line

Row = dict[str, Any]


class Learner(Protocol):
    """A model with everything that changes it in an epoch."""

    def learn(self, epoch: int) -> Row:
        """Learn from every sample once; what the batches were like as they came, with "loss".

        Epochs count from 0. All that is random must follow from a seed and the epoch, so that a
        resumed run draws alike.
        """
        ...

    def measure(self) -> Row:
        """What the model is like once training has ended."""
        ...

    def forget(self) -> None:
        """Called when a checkpoint is due: a resumed run has no warm starts, so drop them."""
        ...

    def state(self) -> dict[str, Tensor]:
        """What the optimizer remembers."""
        ...

    def load(self, found: Checkpoint) -> None:
        """Put back what `state` gave, part "optimizer" of a checkpoint, or refuse it."""
        ...


@dataclass(kw_only=True)
class Loop:
    """One training. Row k of its history is measured before epoch k, and joined by what epoch k
    saw; one row more says what the final model is like."""

    module: nn.Module
    learner: Learner
    max_epochs: int
    validate: Callable[[], float] | None = None
    """The loss on validation data. The module that did best is kept."""
    patience: int | None = None
    """Epochs without improvement of `validate` after which to stop; None: never."""
    ended: Callable[[list[Row]], StopReason | None] = lambda rows: None
    """Other reasons to stop, from the rows so far; asked before each epoch."""
    monitor: Callable[[int], Row] | None = None
    """Asked before each epoch and at the end; what it finds joins the row."""
    stop: Callable[[], bool] | None = None
    """Asked after `monitor`. True leaves the module as it stands; the same run goes on from its
    checkpoint."""
    show: Callable[[Row], None] = lambda row: None
    """Called with every row."""
    facts: Row = field(default_factory=dict)
    """What two runs must have in common for one to go on from the other's checkpoint."""
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: int = 10
    checkpoint_last: bool = False
    """Also after the last epoch, so that a finished run is not repeated. For runs that cannot be
    resumed with more epochs, for these would have kept their warm starts there."""
    log: str | os.PathLike[str] | None = None
    """File for one JSON line an epoch."""

    def run(self) -> History:
        """Train the module in place."""
        best = _Best(self.module, self.validate)
        with checkpoints.claimed(self.checkpoint):
            history = self._resume(best)
            while history.reason is None:
                row = self._row(history, best)
                history.append(row)
                self._write(row)
                self.show(row)
                if history.reason is None and self._due(len(history)):
                    self._save(history, best)
                    self.learner.forget()
        return history

    def _row(self, history: History, best: _Best) -> Row:
        epoch = len(history)
        row = {"iteration": epoch} | best.look(epoch)
        history.reason = self._reason(history.rows, best)
        if history.reason is not None:
            best.restore()
        row |= self.monitor(epoch) if self.monitor else {}
        if history.reason is None and self.stop is not None and self.stop():
            history.reason = StopReason.STOPPED
        more = self.learner.learn(epoch) if history.reason is None else self.learner.measure()
        return row | more

    def _reason(self, rows: list[Row], best: _Best) -> StopReason | None:
        if (reason := self.ended(rows)) is not None:
            return reason
        if self.patience is not None and len(rows) - best.epoch >= self.patience:
            return StopReason.VALIDATION
        return StopReason.CAP if len(rows) >= self.max_epochs else None

    # --- on disk ---------------------------------------------------------------------------------

    def _due(self, epoch: int) -> bool:
        return epoch % self.checkpoint_every == 0 or (
            self.checkpoint_last and epoch == self.max_epochs
        )

    def _save(self, history: History, best: _Best) -> None:
        if self.checkpoint is None:
            return
        state = {"model": self.module.state_dict(), "optimizer": self.learner.state()}
        state["best"] = best.kept
        tensors = {f"{part}.{k}": t for part, named in state.items() for k, t in named.items()}
        facts = {"epoch": len(history), "run": self.facts, "rows": history.rows}
        if best.kept:
            facts |= {"best_epoch": best.epoch, "best_loss": best.loss}
        checkpoints.save(self.checkpoint, Checkpoint(tensors, facts))

    def _resume(self, best: _Best) -> History:
        """The history so far, with everything else put back; empty without a checkpoint."""
        found = None if self.checkpoint is None else checkpoints.load(self.checkpoint, self.facts)
        history = History()
        if found is not None:
            history = History(_checked_rows(found))
            model = found.part_like("model", self.module.state_dict())
            best.resume(found)
            self.learner.load(found)
            self.module.load_state_dict(model)
        if self.log is not None:
            with _writing(self.log):
                Path(self.log).parent.mkdir(parents=True, exist_ok=True)
                history.write_jsonl(self.log)
        return history

    def _write(self, row: Row) -> None:
        if self.log is not None:
            with _writing(self.log), open(self.log, "a", encoding="utf-8") as file:
                file.write(json_line(row))


class _Best:
    """The parameters that did best on validation data; without such data it does nothing."""

    def __init__(self, module: nn.Module, validate: Callable[[], float] | None) -> None:
        self._module, self._validate = module, validate
        self.epoch, self.loss = 0, np.inf
        self.kept: dict[str, Tensor] = {}

    def look(self, epoch: int) -> Row:
        """Measure, keep the parameters if they are the best so far, and return the column."""
        if self._validate is None:
            return {}
        loss = self._validate()
        if loss < self.loss:
            self.epoch, self.loss = epoch, loss
            self.kept = {name: t.clone() for name, t in self._module.state_dict().items()}
        return {"validation": loss}

    def restore(self) -> None:
        """Give the module its best parameters."""
        if self.kept:
            self._module.load_state_dict(self.kept)

    def resume(self, found: Checkpoint) -> None:
        """Take what a checkpoint kept as the best, if it has any."""
        if not found.part("best") and "best_epoch" not in found.facts:
            return
        epoch, loss = (found.facts.get(name) for name in ("best_epoch", "best_loss"))
        if type(epoch) is not int or not isinstance(loss, float | int):
            raise found.refusal("it does not say which epoch did best on the validation data")
        self.kept = found.part_like("best", self._module.state_dict())
        self.epoch, self.loss = epoch, float(loss)


def shuffled(size: int, seed: int, epoch: int) -> tuple[np.ndarray, np.random.Generator]:
    """(size,) the order of the samples in an epoch, and the generator for what else it draws."""
    rng = np.random.default_rng([seed, epoch])
    return rng.permutation(size), rng


def _checked_rows(found: Checkpoint) -> list[Row]:
    """The rows, one for each epoch."""
    rows = found.facts["rows"]
    if [row.get("iteration") for row in rows] != list(range(found.facts["epoch"])):
        raise found.refusal(f"it is of epoch {found.facts['epoch']} and does not have all its rows")
    if not all(isinstance(row.get("loss"), float | int) for row in rows):
        raise found.refusal("a row has no loss")
    return rows


@contextmanager
def _writing(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        said = error.strerror or error
        raise InputError(f"The log {os.fspath(path)!r} cannot be written: {said}.") from error
