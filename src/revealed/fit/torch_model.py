"""Any torch module as a model of costs, and what every use of torch here shares: seeds, threads,
chunks on the module's device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._common.arrays import is_torch, to_float64
from .._common.checks import check_number, check_whole
from .._common.settings import Settings
from ..errors import InputError, ShapeError
from .contexts import Ragged, check_length
from .least_squares import chunks
from .optimizers import make_optimizer

WORTH_THREADS = 2_000_000
"""Multiply-adds of a batch below which torch gets one thread."""


class TorchModel(Settings):
    """c = module(z) for any `torch.nn.Module` that maps a batch of contexts to costs (B, n).

    In POCS the fit to the projections is `inner_steps` updates of the optimizer on minibatches; its
    state lives on from one fit to the next. First-order solvers bring their own optimizer. Batches
    are moved to the module's device.

    Parameters
    ----------
    module : torch.nn.Module
        Maps (b, ...) contexts to (b, n) costs.
    optimizer : "adam", "sgd" or "adagrad"
        Of the fit to the projections.
    lr : float
        Its learning rate.
    inner_steps : int
        Its updates in one fit.
    batch_size : int
        Samples of an update.
    ridge : float
        Adds ridge/2 |w|^2 over all parameters but biases. In `InverseRegressor` it is that of the
        estimator.
    seed : int
        Of batches and dropout; in `InverseRegressor` that of the estimator.
    """

    family = "module"

    def __init__(
        self,
        module: nn.Module,
        *,
        optimizer: str = "adam",
        lr: float = 1e-3,
        inner_steps: int = 100,
        batch_size: int = 32,
        ridge: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.module = module
        self.optimizer = optimizer
        self.lr = lr
        self.inner_steps = inner_steps
        self.batch_size = batch_size
        self.ridge = ridge
        self.seed = seed
        self._optimizer: torch.optim.Optimizer | None = None
        self._targets: list[np.ndarray] = []
        self._fits = 0

    def prepare(
        self, Z: Any, n: int, *, more: bool = False, weights: np.ndarray | None = None
    ) -> Tensor:
        self._check_settings()
        features = _as_tensor(Z)
        shape = self._read(features[:2]).shape
        if shape != (len(features[:2]), n):
            raise ShapeError(
                f"The module must map {len(features[:2])} contexts to costs of shape "
                f"({len(features[:2])}, {n}); got {shape}. Give its last layer {n} outputs."
            )
        self._features, self._targets = features, []
        return features

    def cost(self, features: Tensor) -> np.ndarray:
        training = self.module.training
        self.module.eval()
        try:
            with torch.no_grad():
                parts = [
                    self.module(to_module(features[part], self.module))
                    for part in chunks(len(features), 1024)
                ]
        finally:
            self.module.train(training)
        return torch.cat(parts).to("cpu", torch.float64).numpy()

    def add(
        self, features: Tensor, costs: np.ndarray, targets: np.ndarray, count: float | None = None
    ) -> None:
        self._targets.append(targets)  # chunks come in the order of the prepared features

    def refit(self, step: float = 1.0) -> None:
        if step != 1.0:
            raise InputError('A torch module has no preconditioner; use solver="adam".')
        optimizer = self._optimizer
        assert optimizer is not None, "`prepare` comes first"
        features, targets = self._features, torch.from_numpy(np.vstack(self._targets))
        self._targets = []
        self._fits += 1
        rng = np.random.default_rng([self.seed, self._fits])
        self.module.train()
        few = threads_worth_it(self.module, self.batch_size)
        with few, seeded(self.module, self.seed, self._fits):
            for index in _endless_batches(rng, len(features), self.batch_size, self.inner_steps):
                costs = self.module(to_module(features[index], self.module))
                gap = costs - targets[index].to(costs)
                loss = 0.5 * gap.square().sum(1).mean() + penalty(self.module, self.ridge)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        self.module.eval()

    def penalty(self) -> float:
        with torch.no_grad():
            return float(penalty(self.module, self.ridge))

    def predict_cost(self, Z: Any) -> np.ndarray:
        return self._read(_as_tensor(Z))

    def _read(self, features: Tensor) -> np.ndarray:
        """`cost` of contexts that the module may not have been made for."""
        try:
            return self.cost(features)
        except (RuntimeError, TypeError) as error:
            raise InputError(
                f"The module must map contexts of shape {(*features.shape,)} to one tensor of "
                f"costs, a row for each; it fails: {error}"
            ) from error

    def fit_targets(self, Z: Any, targets: np.ndarray) -> TorchModel:
        """`inner_steps` updates toward targets (B, n)."""
        targets = np.asarray(targets, dtype=float)
        check_length(len(Z), len(targets))
        features = self.prepare(Z, targets.shape[1])
        self.add(features, self.cost(features), targets)
        self.refit()
        return self

    def torch_module(self) -> nn.Module:
        return self.module

    def arrays(self) -> dict[str, np.ndarray]:
        """Parameters and buffers by name, to be kept on disk; the module's code is not."""
        state = self.module.state_dict()
        odd = [name for name, t in state.items() if t.dtype == torch.bfloat16]
        if odd:
            raise InputError(f"The tensor {odd[0]!r} is in bfloat16; convert the module to float.")
        return {f"module.{name}": t.detach().cpu().numpy() for name, t in state.items()}

    def take_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Put stored parameters and buffers into the module."""
        prefix = "module."
        state = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        own = self.module.state_dict()
        for name in sorted({*state, *own}):
            there = tuple(state[name].shape) if name in state else "missing"
            wanted = tuple(own[name].shape) if name in own else "nothing"
            if there != wanted:
                raise InputError(
                    f"`module` is not of the kind that was saved: its {name!r} is {wanted}, the "
                    f"stored one {there}."
                )
        self.module.load_state_dict({k: torch.from_numpy(np.array(v)) for k, v in state.items()})
        self.module.eval()

    def _check_settings(self) -> None:
        if not isinstance(self.module, nn.Module):
            raise InputError(
                f"`module` must be a torch.nn.Module; got {type(self.module).__name__}."
            )
        check_whole(self.inner_steps, "inner_steps", 1)
        check_whole(self.batch_size, "batch_size", 1)
        check_number(self.ridge, "ridge")
        if self._optimizer is None:
            self._optimizer = make_optimizer(self.optimizer, self.module, self.lr)


def penalty(module: nn.Module, ridge: float) -> Tensor | float:
    """ridge/2 times the sum of squares of all parameters but biases, those of a linear model in
    the units that its penalty is in."""
    if not ridge:
        return 0.0
    squares = [
        (p * getattr(part, "penalty_scale", 1.0)).square().sum()
        for part in module.modules()
        for name, p in part.named_parameters(recurse=False)
        if name != "bias"
    ]
    return 0.5 * ridge * torch.stack(squares).sum()


def to_module(features: Any, module: nn.Module) -> Tensor:
    """A batch as a tensor on the module's device; floating batches take its dtype."""
    batch = _tensor(features)
    first = next(module.parameters(), None)
    if first is None:
        return batch
    return batch.to(first.device, first.dtype if batch.is_floating_point() else None)


@contextmanager
def seeded(module: nn.Module, *seed: int) -> Iterator[None]:
    """Random numbers (dropout) from this seed inside, and the caller's own undisturbed outside."""
    devices = sorted({p.device.index or 0 for p in module.parameters() if p.is_cuda})
    number = int(np.random.SeedSequence(seed).generate_state(1)[0])
    with torch.random.fork_rng(devices=devices):
        # Not torch.manual_seed: it also queues a seed for every device there might be, each with
        # a traceback, which takes milliseconds.
        torch.default_generator.manual_seed(number)
        for device in devices:
            torch.cuda.default_generators[device].manual_seed(number)
        yield


@contextmanager
def threads_worth_it(module: nn.Module, batch_size: int) -> Iterator[None]:
    """One torch thread inside where the work of a batch is too small for more.

    Threads that wait for each other at every small product gain nothing on a quiet machine, and
    on a busy one each wait takes a time slice (measured: 20 ms for a product of 20 us). Layers
    other than dense ones may use a weight many times over, so they keep their threads.
    """
    parameters = list(module.parameters())
    work = batch_size * sum(p.numel() for p in parameters)
    small = work < WORTH_THREADS and all(p.ndim <= 2 for p in parameters)
    before = torch.get_num_threads()
    torch.set_num_threads(1 if small else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _tensor(features: Any) -> Tensor:
    """A tensor with the memory of an array; a read-only array (a memory map) is copied first."""
    if isinstance(features, Ragged):
        return torch.from_numpy(features.padded())
    if isinstance(features, np.ndarray) and not features.flags.writeable:
        features = features.copy()
    return torch.as_tensor(features)


def _as_tensor(Z: Any) -> Tensor:
    features = Z if is_torch(Z) else _tensor(to_float64(Z, "Z"))
    if features.ndim < 2 or len(features) == 0:
        raise ShapeError(
            f"`Z` must be (B, ...) with at least one sample; got {(*features.shape,)}."
        )
    if features.is_floating_point():
        for part in chunks(len(features)):
            bad = torch.nonzero(~torch.isfinite(features[part]))
            if len(bad):
                place = [int(i) for i in bad[0]]
                raise InputError(
                    f"`Z` must be finite; got {float(features[part][tuple(place)])} in sample "
                    f"{place[0] + part.start}. Fill or drop such samples first."
                )
    return features


def _endless_batches(
    rng: np.random.Generator, size: int, batch_size: int, count: int
) -> Iterator[np.ndarray]:
    """`count` batches from as many shuffled passes as that takes."""
    given = 0
    while given < count:
        order = rng.permutation(size)
        for part in chunks(size, batch_size):
            if given == count:
                return
            yield order[part]
            given += 1
