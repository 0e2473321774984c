"""ERM: minimise the mean distance loss over a data set by first-order methods, one loop for all.

"armijo"          gradient descent on all data, step by line search
"preconditioned"  the same with preconditioner (Z^T Z / B)^-1; with step 1 it is POCS
"sgd", "adam", "adagrad"    torch's optimizers on minibatches
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._common.arrays import to_float64
from .._common.checks import check_number, check_whole
from ..errors import InputError
from ..losses import DecisionLoss, ProjectionLoss, projection_loss
from ..metrics.measures import decision_loss
from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet as Sets
from ..optimality.sets import OptimalitySet
from . import checkpoint as checkpoints
from .certificate import Certificate
from .checkpoint import Checkpoint
from .contexts import as_contexts, check_data, check_length, is_ragged
from .decisions import counting
from .history import History, StopReason, has_stalled, json_line
from .least_squares import chunks
from .models import CostModel
from .pocs import Monitor
from .progress import progress
from .schedules import check_decay
from .steps import FULL_BATCH, Objective, Stepper, check_method, make_stepper
from .torch_model import TorchModel, seeded, threads_worth_it


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainSettings:
    """How to train; everything but the model and the data."""

    optimizer: str = "adam"
    """"armijo", "preconditioned", "sgd", "adam" or "adagrad"."""
    max_epochs: int = 100
    """Passes over the data; for "armijo" and "preconditioned" one update each."""
    batch_size: int = 32
    lr: float | None = None
    """First learning rate; None for the usual one of the optimizer. For "armijo" the first step to
    try."""
    lr_decay: float | str = 0.0
    """The rate is divided by (1 + epochs so far)^lr_decay: 0 keeps it, 0.5 and 1 are the usual ways
    to decrease it. With "linear" it falls in a straight line that would end at 0."""
    weight_decay: float = 0.0
    """Of torch's optimizers: it shrinks every parameter, where the ridge of a model spares
    intercepts and is measured in standardized features."""
    inner_steps: int = 1
    """Updates of the model for each projection ("sgd", "adam", "adagrad")."""
    power: int | str = 2
    """2 for 1/2 distance^2, 1 for the distance, "huber" between (bends at `delta`), "bounded" where
    many decisions are beyond explaining (not convex: begin where another power ends)."""
    delta: float = 1.0
    tol: float = 1e-6
    """Ends the run when every cost is within this relative distance of its set; on full batches
    also when the loss falls by less than this share over `window` epochs."""
    window: int = 10
    patience: int | None = None
    """Epochs without improvement on the validation data after which to stop; None: never."""
    seed: int = 0
    """Order of samples and dropout; epoch k draws from (seed, k), so a resumed run draws alike."""
    checkpoint: str | os.PathLike[str] | None = None
    """Folder for checkpoints; a run that finds its own there goes on from it."""
    checkpoint_every: int = 10
    """Epochs. A checkpoint drops the warm starts, so this is part of what makes two runs equal."""
    log: str | os.PathLike[str] | None = None
    """File for one JSON line an epoch."""
    threads: int | None = None
    verbose: bool = False

    @property
    def full_batch(self) -> bool:
        return self.optimizer in FULL_BATCH

    def __post_init__(self) -> None:
        least = {
            "max_epochs": 0,
            "batch_size": 1,
            "inner_steps": 1,
            "window": 1,
            "checkpoint_every": 1,
        }
        for name, limit in least.items():
            check_whole(getattr(self, name), name, limit)
        check_decay(self.lr_decay)
        for name in ("weight_decay", "tol"):
            check_number(getattr(self, name), name)
        if self.patience is not None:
            check_whole(self.patience, "patience", 1)
        if self.lr is not None:
            check_number(self.lr, "lr")
            if self.lr == 0:
                raise InputError("`lr` must be None or above 0; got 0.")
        if self.weight_decay and self.full_batch:
            raise InputError(
                "`weight_decay` is for sgd, adam and adagrad; give the model a `ridge`."
            )


def erm(
    model: CostModel | nn.Module,
    Z: Any,
    sets: Sets,
    *,
    loss: DecisionLoss | None = None,
    true_costs: Any = None,
    validation: tuple[Any, Sets] | None = None,
    monitor: Monitor | None = None,
    **settings: Any,
) -> History:
    """Train `model` in place on contexts `Z` (B, ...) and the sets of the decisions taken there.

    `settings` are the fields of `TrainSettings`. Row k of the history tells what pass k saw (for
    full batches: before its update), and one row more what the final model is like. With
    `validation`, contexts and sets, the model that did best on them is kept.

    `loss` is any of `revealed.losses`, by default our own with the margin of the sets; `true_costs`
    (B, n) go with a loss that needs them. Another loss than ours measures no distance to the sets,
    so its history has no `h` and no certificate, and validation goes by the decision loss.
    """
    s = TrainSettings(**settings)
    model = TorchModel(model) if isinstance(model, nn.Module) else model
    check_method(s.optimizer, model, s.inner_steps)
    check_data(len(Z), sets)
    size = len(sets)
    Z, sets, there = counting(Z, sets)
    features = model.prepare(Z, sets.n_parameters, weights=sets.weights)
    module = model.torch_module()
    if loss is None:  # no margin of its own: the loss takes that of the sets
        problem = sets.parts[0].problem if isinstance(sets, MixedSets) else sets.problem
        assert problem is not None
        loss = ProjectionLoss(problem, None, power=s.power, delta=s.delta, threads=s.threads)
    objective = Objective(module, loss, model.ridge, _truth(true_costs, loss, size, there))
    stepper = make_stepper(
        s.optimizer,
        model,
        objective,
        lr=s.lr,
        lr_decay=s.lr_decay,
        max_epochs=s.max_epochs,
        weight_decay=s.weight_decay,
        inner_steps=s.inner_steps,
    )
    best = _Best(model, module, validation, objective, s)
    run = _facts_of(s, model, objective, features, sets, validation)
    with (
        checkpoints.claimed(s.checkpoint),
        progress("ERM", s.max_epochs, verbose=s.verbose) as show,
    ):
        history = _resume(s, run, module, stepper, best)
        while history.reason is None:
            epoch = len(history)
            row = {"iteration": epoch} | best.look(epoch)
            history.reason = _reason(history, best, s)
            if history.reason is not None:
                best.restore()
            row |= monitor(model) if monitor else {}
            if history.reason is None:
                few = threads_worth_it(module, len(sets) if s.full_batch else s.batch_size)
                with few, seeded(module, s.seed, epoch):
                    row |= _one_pass(stepper, objective, features, sets, epoch, s)
            else:
                row |= _last_look(objective, features, sets)
            history.append(row)
            _log(s, history)
            show(row)
            if s.checkpoint and len(history) % s.checkpoint_every == 0 and not history.reason:
                _save(s, run, history, module, stepper, best)
                # A resumed run has no warm starts either, so that both go the same way.
                loss.forget()
    if objective.measures_distance:
        history.certificate = Certificate.of(objective.tally.result(), s.tol, history.reason)
    return history


def _truth(
    true_costs: Any, loss: DecisionLoss, size: int, there: np.ndarray | None
) -> Tensor | None:
    """The true costs of the samples `there` (None: all `size`), where the loss needs them."""
    if true_costs is None or not loss.needs_true_costs:
        return None
    check_length(len(true_costs), size)
    truth = torch.as_tensor(true_costs)
    return truth if there is None else truth[there]


def _one_pass(
    stepper: Stepper,
    objective: Objective,
    features: Any,
    sets: Sets,
    epoch: int,
    s: TrainSettings,
) -> dict[str, Any]:
    """Learn from every sample once; the row of what the batches looked like as they came."""
    objective.restart()
    objective.loss.begin_epoch(s.seed, epoch)
    objective.module.train()
    step, batches = 0.0, _batches(len(sets), epoch, s)
    for k, index in enumerate(batches):
        step = stepper(features[index], sets[index], index, epoch + k / len(batches))
    objective.module.eval()
    return objective.row() | {"step": step}


def _last_look(objective: Objective, features: Any, sets: Sets) -> dict[str, Any]:
    """The row of a model that is not changed any more."""
    objective.restart()
    objective.module.eval()
    with torch.no_grad():
        for part in chunks(len(sets)):
            index = np.arange(part.start, part.stop)
            objective(features[part], sets[part], index, count=True)
    return objective.row()


def _batches(size: int, epoch: int, s: TrainSettings) -> list[np.ndarray]:
    if s.full_batch:
        return [np.arange(size)]
    order = np.random.default_rng([s.seed, epoch]).permutation(size)
    return [order[part] for part in chunks(size, s.batch_size)]


def _reason(history: History, best: _Best, s: TrainSettings) -> StopReason | None:
    rows = history.rows
    if rows and rows[-1].get("max_relative", np.inf) <= s.tol:
        return StopReason.INTERPOLATED
    if s.patience is not None and len(rows) - best.epoch >= s.patience:
        return StopReason.VALIDATION
    recent = [row["loss"] for row in rows[-1 - s.window :]]
    if s.full_batch and has_stalled(recent, s.tol, s.window):
        return StopReason.NO_PROGRESS
    return StopReason.CAP if len(rows) >= s.max_epochs else None


class _Best:
    """The parameters that did best on the validation data; without such data it does nothing."""

    def __init__(
        self,
        model: CostModel,
        module: nn.Module,
        validation: tuple[Any, Sets] | None,
        objective: Objective,
        s: TrainSettings,
    ) -> None:
        if validation is None and s.patience is not None:
            raise InputError("`patience` needs data to watch: give `validation=(Z, sets)`.")
        if validation is not None:
            check_data(len(validation[0]), validation[1])
        self._model, self._module, self._validation, self._s = model, module, validation, s
        self._by_distance = objective.measures_distance
        self.epoch, self.loss = 0, np.inf
        self.kept: dict[str, Tensor] = {}

    def look(self, epoch: int) -> dict[str, float]:
        """Measure, keep the parameters if they are the best so far, and tell."""
        if self._validation is None:
            return {}
        Z, sets = self._validation
        costs = self._model.predict_cost(Z)
        if self._by_distance:
            loss = float(projection_loss(costs, sets, power=self._s.power, delta=self._s.delta))
        else:
            assert isinstance(sets, OptimalitySet)  # other losses are of one problem
            loss = float(decision_loss(sets.problem, costs=costs, decisions=sets).mean())
        if loss < self.loss:
            self.epoch, self.loss = epoch, loss
            self.kept = {name: t.clone() for name, t in self._module.state_dict().items()}
        return {"validation": loss}

    def restore(self) -> None:
        if self.kept:
            self._module.load_state_dict(self.kept)


# --- on disk -------------------------------------------------------------------------------------

_FREE_TO_CHANGE = {"max_epochs", "checkpoint", "log", "threads", "verbose"}


def _facts_of(
    s: TrainSettings,
    model: CostModel,
    objective: Objective,
    features: Any,
    sets: Sets,
    validation: tuple[Any, Sets] | None,
) -> dict[str, Any]:
    """What two runs must have in common for one to go on from the other's checkpoint."""
    if s.checkpoint is None:
        return {}
    settings = {name: v for name, v in asdict(s).items() if name not in _FREE_TO_CHANGE}
    tensors = objective.module.state_dict().items()
    return settings | {
        "model": {name: list(tensor.shape) for name, tensor in tensors},
        "ridge": model.ridge,
        "loss": repr(objective.loss),
        "data": checkpoints.fingerprint(sets, features, objective.true_costs),
        "constraints": checkpoints.constraints(sets),
        "validation": None if validation is None else _validation_facts(*validation),
    }


def _validation_facts(Z: Any, sets: Sets) -> str:
    if is_ragged(Z):
        contexts = as_contexts(Z, ndim=3)
    else:
        contexts = Z if isinstance(Z, np.ndarray | Tensor) else to_float64(Z, "Z")
    return f"{checkpoints.fingerprint(sets, contexts)}; {checkpoints.constraints(sets)}"


def _save(
    s: TrainSettings,
    run: dict[str, Any],
    history: History,
    module: nn.Module,
    stepper: Stepper,
    best: _Best,
) -> None:
    assert s.checkpoint is not None
    parts = {"model": module.state_dict(), "optimizer": stepper.state(), "best": best.kept}
    tensors = {f"{part}.{k}": t for part, named in parts.items() for k, t in named.items()}
    facts = {"epoch": len(history), "run": run, "rows": history.rows}
    if best.kept:
        facts |= {"best_epoch": best.epoch, "best_loss": best.loss}
    checkpoints.save(s.checkpoint, Checkpoint(tensors, facts))


def _resume(
    s: TrainSettings, run: dict[str, Any], module: nn.Module, stepper: Stepper, best: _Best
) -> History:
    """The history so far, with everything else put back; empty where there is no checkpoint."""
    found = checkpoints.load(s.checkpoint, run) if s.checkpoint is not None else None
    history = History()
    if found is not None:
        history = History(_checked_rows(found))
        own = module.state_dict()
        parts = found.part_like("model", own), _optimizer_state(found, s.optimizer, module)
        _resume_best(best, found, own)
        module.load_state_dict(parts[0])
        stepper.load(parts[1])
    if s.log is not None:
        with _writing(s.log):
            Path(s.log).parent.mkdir(parents=True, exist_ok=True)
            history.write_jsonl(s.log)
    return history


def _checked_rows(found: Checkpoint) -> list[dict[str, Any]]:
    """The rows, one for each epoch."""
    rows = found.facts["rows"]
    if [row.get("iteration") for row in rows] != list(range(found.facts["epoch"])):
        raise found.refusal(f"it is of epoch {found.facts['epoch']} and does not have all its rows")
    if not all(isinstance(row.get("loss"), float | int) for row in rows):
        raise found.refusal("a row has no loss")
    return rows


def _optimizer_state(found: Checkpoint, name: str, module: nn.Module) -> dict[str, Tensor]:
    if name == "armijo":
        return found.part_like("optimizer", {"step": torch.zeros((), dtype=torch.float64)})
    if name == "preconditioned":
        return found.part_like("optimizer", {})
    needed = name != "sgd" and found.facts["epoch"] > 0
    return found.state_like("optimizer", list(module.parameters()), needed=needed)


def _resume_best(best: _Best, found: Checkpoint, own: dict[str, Tensor]) -> None:
    """Put back the parameters that did best, where validation data has said so."""
    if not found.part("best") and "best_epoch" not in found.facts:
        return
    epoch, loss = (found.facts.get(name) for name in ("best_epoch", "best_loss"))
    if type(epoch) is not int or not isinstance(loss, float | int):
        raise found.refusal("it does not say which epoch did best on the validation data")
    best.kept, best.epoch, best.loss = found.part_like("best", own), epoch, float(loss)


@contextmanager
def _writing(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        said = error.strerror or error
        raise InputError(f"The log {os.fspath(path)!r} cannot be written: {said}.") from error


def _log(s: TrainSettings, history: History) -> None:
    if s.log is not None:
        with _writing(s.log), open(s.log, "a", encoding="utf-8") as file:
            file.write(json_line(history.rows[-1]))
