"""ERM: minimize the mean loss over a data set by first-order methods, in the loop of `loop`.

"armijo"          gradient descent on all data, step by line search
"preconditioned"  the same with preconditioner (Z^T Z / B)^-1; with step 1 it is POCS
"sgd", "adam", "adagrad"    torch's optimizers on minibatches
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._common.arrays import to_float64
from .._common.checks import check_number, check_whole
from ..errors import InputError
from ..losses import DecisionLoss, ProjectionLoss, projection_loss
from ..metrics.measures import decision_loss
from ..optimality.integer import IntegerCosts
from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet as Sets
from ..optimality.sets import OptimalitySet
from . import checkpoint as checkpoints
from .certificate import Certificate
from .checkpoint import Checkpoint
from .contexts import as_contexts, check_data, check_length, is_ragged
from .decisions import counting
from .history import History, StopReason, has_stalled
from .kept_cuts import cuts_as_tensors, take_cuts
from .least_squares import chunks
from .loop import Loop, Row, shuffled
from .models import CostModel
from .optimizers import CONSTANT, check_schedule
from .pocs import Monitor
from .progress import progress
from .steps import FULL_BATCH, Objective, Stepper, check_method, make_stepper
from .torch_model import TorchModel, seeded, threads_worth_it


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainSettings:
    """How to train; everything but the model and the data.

    Parameters
    ----------
    optimizer : "armijo", "preconditioned", "sgd", "adam" or "adagrad"
        The first two take all data at once; the others are torch's, on minibatches.
    max_epochs : int
        Passes over the data; for "armijo" and "preconditioned" one update each.
    batch_size : int
        Samples of a minibatch.
    lr : float or None
        First learning rate; None for the usual one of the optimizer. For "armijo" the first step to
        try.
    schedule : "constant", "linear" or float
        "linear" is a straight line that would end at 0. A number p divides the rate by
        (1 + epochs so far)^p; usual are 0.5 and 1.
    weight_decay : float
        Of torch's optimizers: it shrinks every parameter, where the ridge of a model spares
        intercepts and is measured in standardized features.
    inner_steps : int
        Updates of the model for each projection ("sgd", "adam", "adagrad").
    power : 1, 2, "huber" or "welsch"
        2 for 1/2 distance^2, 1 for the distance, "huber" between (bends at `delta`), "welsch" where
        many decisions are beyond explaining (not convex: begin where another power ends).
    delta : float
        Where "huber" and "welsch" bend.
    tol : float
        Ends the run when every cost is within this relative distance of its set; on full batches
        also when the loss falls by less than this share over `window` epochs.
    window : int
        See `tol`.
    patience : int or None
        Epochs without improvement on the validation data after which to stop; None: never.
    seed : int
        Order of samples and dropout; epoch k draws from (seed, k), so a resumed run draws alike.
    checkpoint : path or None
        Folder for checkpoints; a run that finds its own there goes on from it.
    checkpoint_every : int
        Epochs. A checkpoint drops the warm starts, so this is part of what makes two runs equal.
    log : path or None
        File for one JSON line an epoch.
    threads : int or None
        Of projections; None for every core.
    verbose : bool
        Whether to show progress.
    """

    optimizer: str = "adam"
    max_epochs: int = 100
    batch_size: int = 32
    lr: float | None = None
    schedule: float | str = CONSTANT
    weight_decay: float = 0.0
    inner_steps: int = 1
    power: int | str = 2
    delta: float = 1.0
    tol: float = 1e-6
    window: int = 10
    patience: int | None = None
    seed: int = 0
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: int = 10
    log: str | os.PathLike[str] | None = None
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
        check_schedule(self.schedule)
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

    Another loss than our own measures no distance to the sets, so its history has no `h` and no
    certificate, and validation goes by the decision loss.

    Parameters
    ----------
    model : LinearModel or another model, or torch.nn.Module
        Trained in place.
    Z : (B, ...) array or tensor
        Contexts.
    sets : OptimalitySet or other sets
        Of the B decisions.
    loss : DecisionLoss, optional
        Any of `revealed.losses`; `ProjectionLoss` with the margin of the sets unless given.
    true_costs : (B, n) array, optional
        For a loss that needs them.
    validation : (Z, sets), optional
        Held-out contexts and sets; the model that did best on them is kept.
    monitor : callable, optional
        `monitor(model)` returns a dict of further columns for a row of the history.
    **settings
        The fields of `TrainSettings`, such as `optimizer="sgd"` and `max_epochs=20`.

    Returns
    -------
    History
        Row k records what pass k saw (for full batches: before its update), and one row more what
        the final model is like.
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
        schedule=s.schedule,
        max_epochs=s.max_epochs,
        weight_decay=s.weight_decay,
        inner_steps=s.inner_steps,
    )
    with progress("ERM", s.max_epochs, verbose=s.verbose) as show:
        history = Loop(
            module=module,
            learner=_Learner(stepper, objective, features, sets, s),
            max_epochs=s.max_epochs,
            validate=_validation_loss(model, validation, objective, s),
            patience=s.patience,
            ended=lambda rows: _ended(rows, s),
            monitor=None if monitor is None else lambda epoch: monitor(model),
            show=show,
            facts=_facts_of(s, model, objective, features, sets, validation),
            checkpoint=s.checkpoint,
            checkpoint_every=s.checkpoint_every,
            log=s.log,
        ).run()
    if objective.measures_distance:
        assert history.reason is not None, "the loop ends for a reason"
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


class _Learner:
    """A model with its objective and its stepper, on data as `Sets` and `CostModel` take them."""

    def __init__(
        self, stepper: Stepper, objective: Objective, features: Any, sets: Sets, s: TrainSettings
    ) -> None:
        self._stepper, self._objective, self._s = stepper, objective, s
        self._features, self._sets = features, sets

    def learn(self, epoch: int) -> Row:
        s, objective, size = self._s, self._objective, len(self._sets)
        objective.restart()
        objective.loss.begin_epoch(s.seed, epoch)
        objective.module.train()
        few = threads_worth_it(objective.module, size if s.full_batch else s.batch_size)
        lr, batches = 0.0, _batches(size, epoch, s)
        with few, seeded(objective.module, s.seed, epoch):
            for k, index in enumerate(batches):
                when = epoch + k / len(batches)
                lr = self._stepper(self._features[index], self._sets[index], index, when)
        objective.module.eval()
        return objective.row() | {"lr": lr}

    def measure(self) -> Row:
        objective = self._objective
        objective.restart()
        objective.module.eval()
        with torch.no_grad():
            for part in chunks(len(self._sets)):
                index = np.arange(part.start, part.stop)
                objective(self._features[part], self._sets[part], index, count=True)
        return objective.row()

    def forget(self) -> None:
        if self._s.checkpoint:  # without one nothing can be resumed, and warm starts save time
            self._objective.loss.forget()
            if isinstance(self._sets.kind, IntegerCosts):
                self._sets.kind.alternatives.forget()

    def state(self) -> dict[str, Tensor]:
        return self._stepper.state() | cuts_as_tensors(self._sets)

    def load(self, found: Checkpoint) -> None:
        found = take_cuts(self._sets, found)
        name = self._s.optimizer
        if name in FULL_BATCH:
            state = found.part_like("optimizer", self._stepper.state())
        else:
            parameters = list(self._objective.module.parameters())
            needed = name != "sgd" and found.facts["epoch"] > 0
            state = found.state_like("optimizer", parameters, needed=needed)
        self._stepper.load(state)


def _batches(size: int, epoch: int, s: TrainSettings) -> list[np.ndarray]:
    if s.full_batch:
        return [np.arange(size)]
    order, _ = shuffled(size, s.seed, epoch)
    return [order[part] for part in chunks(size, s.batch_size)]


def _ended(rows: list[Row], s: TrainSettings) -> StopReason | None:
    """Whether the rows leave nothing to do."""
    if rows and rows[-1].get("max_relative", np.inf) <= s.tol:
        return StopReason.INTERPOLATED
    recent = [row["loss"] for row in rows[-1 - s.window :]]
    if s.full_batch and has_stalled(recent, s.tol, s.window):
        return StopReason.NO_PROGRESS
    return None


def _validation_loss(
    model: CostModel, validation: tuple[Any, Sets] | None, objective: Objective, s: TrainSettings
) -> Callable[[], float] | None:
    """What measures the model on the validation data: by the distance to the sets, or by its
    decisions where the loss measures no distance."""
    if validation is None:
        if s.patience is not None:
            raise InputError("`patience` needs data to watch: give `validation=(Z, sets)`.")
        return None
    Z, sets = validation
    check_data(len(Z), sets)

    def measure() -> float:
        costs = model.predict_cost(Z)
        if objective.measures_distance:
            return float(projection_loss(costs, sets, power=s.power, delta=s.delta))
        assert isinstance(sets, OptimalitySet)  # other losses are of one problem
        return float(decision_loss(sets.problem, costs=costs, decisions=sets).mean())

    return measure


# --- what a checkpoint belongs to -----------------------------------------------------------------

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
