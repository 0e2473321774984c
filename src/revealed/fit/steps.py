"""One update of a model on one batch: torch's optimizers, Armijo's line search, preconditioned
steps.

Each step asks the objective once for the costs of its batch and their loss; the projections behind
that are the expensive part. Letters: B samples of a batch, n cost entries.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import InputError
from ..losses import DecisionLoss, ProjectionLoss
from ..optimality.protocol import CostSet as Sets
from .contexts import LARGEST
from .evaluation import Tally
from .models import CostModel
from .optimizers import (
    CONSTANT,
    OPTIMIZERS,
    learning_rate,
    load_state,
    make_optimizer,
    set_lr,
    state_of,
)
from .torch_model import TorchModel, penalty, to_module

USUAL_LR = {"armijo": 1.0, "preconditioned": 1.0, "sgd": 0.1, "adam": 0.01, "adagrad": 0.1}
FULL_BATCH = ("armijo", "preconditioned")
SHARE = 0.5
"""Of step times |gradient|^2: the fall of the loss that Armijo's rule asks for."""
TRIALS = 60
"""Steps tried by a line search; as many halvings leave nothing."""


class Objective:
    """The loss of a batch plus the ridge penalty, and a tally of what was seen on the way."""

    def __init__(
        self, module: nn.Module, loss: DecisionLoss, ridge: float, true_costs: Tensor | None = None
    ) -> None:
        self.module = module
        self.loss = loss
        self.ridge = ridge
        self.true_costs = true_costs
        self.restart()

    def restart(self) -> None:
        """Begin a new tally, as each epoch does."""
        self.tally = Tally()
        self._total, self._samples = 0.0, 0

    def row(self) -> dict[str, Any]:
        """What the batches counted were like: the columns of a History that come from a pass."""
        row = self.tally.result().row() if self.measures_distance else self.tally.seconds()
        return row | {"loss": self._total / self._samples}

    @property
    def measures_distance(self) -> bool:
        """Whether the loss projects, and so knows how far the sets are."""
        return isinstance(self.loss, ProjectionLoss)

    def __call__(
        self, batch: Any, sets: Sets, index: np.ndarray, *, count: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Costs (B, n) and the scalar to minimize; with `count` the batch enters the tally."""
        costs = self.module(to_module(batch, self.module))
        if not costs.detach().abs().max() <= LARGEST:  # neither is NaN
            if count:
                raise InputError(
                    "The training has diverged: some predicted costs are beyond all bounds. "
                    "Choose a smaller `lr`, or scale the contexts."
                )
            return costs, costs.new_tensor(torch.inf)  # a step tried by a line search
        started = time.perf_counter()
        truth = None if self.true_costs is None else self.true_costs[index]
        loss = self.loss(costs, sets, index=index, true_costs=truth)
        self.tally.projecting += time.perf_counter() - started
        value = loss + penalty(self.module, self.ridge)
        if count:
            if isinstance(self.loss, ProjectionLoss):
                self.tally.add(self.loss.projection, self.loss.size, sets.weights)
            self._total += float(value.detach()) * len(sets)
            self._samples += len(sets)
        return costs, value


class Stepper(Protocol):
    """Moves the parameters and returns the learning rate; `when` is the time in epochs, from which
    a schedule computes it."""

    def __call__(self, batch: Any, sets: Sets, index: np.ndarray, when: float) -> float: ...

    def state(self) -> dict[str, Tensor]: ...

    def load(self, state: dict[str, Tensor]) -> None: ...


def make_stepper(
    name: str,
    model: CostModel,
    objective: Objective,
    *,
    lr: float | None = None,
    schedule: float | str = CONSTANT,
    max_epochs: int = 1,
    weight_decay: float = 0.0,
    inner_steps: int = 1,
) -> Stepper:
    """The method of that name, with its usual learning rate unless one is given."""
    lr = USUAL_LR[name] if lr is None else lr
    if name == "armijo":
        return Armijo(objective, lr)

    def rate(when: float) -> float:
        return learning_rate(lr, schedule, when, max_epochs)

    if name == "preconditioned":
        return Preconditioned(model, objective, rate)
    optimizer = make_optimizer(name, objective.module, lr, weight_decay)
    return Gradient(objective, optimizer, rate, inner_steps)


class Gradient:
    """torch's optimizer, `inner_steps` updates for each projection.

    The first follows the gradient g of the loss in the costs q. The others go on toward the
    target q - g, with which 1/2 |c - target|^2 has that very gradient at q and, the loss being
    1-smooth in the costs, lies above it (Lavington et al. 2023). They need no projection.
    """

    def __init__(
        self,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        rate: Callable[[float], float],
        inner_steps: int,
    ) -> None:
        self._objective = objective
        self._optimizer = optimizer
        self._rate, self._inner_steps = rate, inner_steps

    def __call__(self, batch: Any, sets: Sets, index: np.ndarray, when: float) -> float:
        lr = self._rate(when)
        set_lr(self._optimizer, lr)
        costs, value = self._objective(batch, sets, index, count=True)
        if self._inner_steps > 1:
            costs.retain_grad()
        self._update(value)
        if self._inner_steps > 1:
            module, ridge = self._objective.module, self._objective.ridge
            target = _target(costs, sets)
            for _ in range(self._inner_steps - 1):
                gap = module(to_module(batch, module)) - target
                self._update(0.5 * gap.square().sum(1).mean() + penalty(module, ridge))
        return lr

    def _update(self, value: Tensor) -> None:
        self._optimizer.zero_grad()
        value.backward()
        self._optimizer.step()

    def state(self) -> dict[str, Tensor]:
        return state_of(self._optimizer)

    def load(self, state: dict[str, Tensor]) -> None:
        load_state(self._optimizer, state)


class Armijo:
    """Gradient descent on the whole data set; the step is found by trying, starting from the last.

    A step s is accepted if it lowers the value by at least s/2 |gradient|^2, which for a quadratic
    means at most the exact minimizer along the gradient. If the last step is accepted it is doubled
    until that fails, otherwise halved until it holds.
    """

    def __init__(self, objective: Objective, step: float) -> None:
        self._objective = objective
        self._step = step

    def __call__(self, batch: Any, sets: Sets, index: np.ndarray, when: float) -> float:
        parameters = [p for p in self._objective.module.parameters() if p.requires_grad]
        _, value = self._objective(batch, sets, index, count=True)
        gradient = torch.autograd.grad(value, parameters)
        base, start = float(value.detach()), [p.detach().clone() for p in parameters]
        slope = float(sum(g.double().square().sum() for g in gradient))

        def move(step: float) -> None:
            with torch.no_grad():
                for p, begin, g in zip(parameters, start, gradient, strict=True):
                    torch.add(begin, g, alpha=-step, out=p)

        def falls(step: float) -> bool:
            move(step)
            with torch.no_grad():
                reached = float(self._objective(batch, sets, index)[1])
            return reached <= base - SHARE * step * slope

        step = self._search(falls) if slope > 0 else 0.0
        move(step)
        return step

    def _search(self, falls: Any) -> float:
        """The accepted step, or 0 where rounding leaves nothing to gain."""
        step, trials = self._step, 1
        if falls(step):
            while trials < TRIALS and falls(2 * step):
                step, trials = 2 * step, trials + 1
        else:
            while trials < TRIALS and not falls(step := step / 2):
                trials += 1
            if trials == TRIALS:
                return 0.0
        self._step = step
        return step

    def state(self) -> dict[str, Tensor]:
        return {"step": torch.tensor(self._step, dtype=torch.float64)}

    def load(self, state: dict[str, Tensor]) -> None:
        self._step = float(state["step"])


class Preconditioned:
    """Newton's step of the least-squares problem toward the targets q - g; with step 1, POCS."""

    def __init__(
        self, model: CostModel, objective: Objective, rate: Callable[[float], float]
    ) -> None:
        self._model, self._objective = model, objective
        self._rate = rate

    def __call__(self, batch: Any, sets: Sets, index: np.ndarray, when: float) -> float:
        lr = self._rate(when)
        costs, value = self._objective(batch, sets, index, count=True)
        costs.retain_grad()
        value.backward()
        counted = float(sets.weights.sum())
        self._model.add(batch, costs.detach().numpy(), _target(costs, sets).numpy(), counted)
        self._model.refit(lr)
        return lr

    def state(self) -> dict[str, Tensor]:
        return {}

    def load(self, state: dict[str, Tensor]) -> None:
        pass


def _target(costs: Tensor, sets: Sets) -> Tensor:
    """q - g for the mean loss whose gradient is in `costs.grad`, g counted by the weights."""
    assert costs.grad is not None
    return costs.detach() - float(sets.weights.sum()) * costs.grad


def check_method(name: str, model: CostModel, inner_steps: int) -> None:
    """Refuse a method that is unknown or does not go with the model."""
    if name not in USUAL_LR:
        raise InputError(f"`optimizer` must be one of {', '.join(USUAL_LR)}; got {name!r}.")
    if name == "preconditioned" and isinstance(model, TorchModel):
        raise InputError(
            'optimizer="preconditioned" needs a model that is linear in its parameters; for a '
            f"torch module use one of {', '.join(OPTIMIZERS)} or armijo."
        )
    if name in FULL_BATCH and inner_steps != 1:
        raise InputError(f"`inner_steps` is for {', '.join(OPTIMIZERS)}; {name} takes one step.")
