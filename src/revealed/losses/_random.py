"""Losses that draw at random: a seed gives the same draws twice.

Letters: K draws, B samples, n cost entries.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._common.checks import positive_int
from ..errors import InputError
from ..problems.linear import LinearProgram
from ..problems.protocol import LinearObjective
from ._options import check_floor, check_positive, raised
from .base import Batch, DecisionLoss


class RandomLoss(DecisionLoss):
    """Draws from its seed until a training loop begins an epoch, then from all three numbers.

    Batches on the CPU draw from `generator`; those on a GPU from a stream there (`NormalStream`),
    with other numbers, but as reproducible and also when a captured graph is replayed.
    """

    def __init__(self, problem: LinearProgram, *, seed: int, reduction: str) -> None:
        super().__init__(problem, reduction=reduction)
        self.seed = _check_seed(seed)
        self.generator = torch.Generator().manual_seed(self.seed)
        self._stream_seed = _mixed(self.seed)
        self._streams: dict[torch.device, NormalStream] = {}

    def begin_epoch(self, seed: int, epoch: int) -> None:
        self._stream_seed = _mixed(self.seed, seed, epoch)
        self.generator.manual_seed(self._stream_seed)
        for stream in self._streams.values():
            stream.restart(self._stream_seed)

    def stream(self, device: torch.device) -> NormalStream:
        """The normal numbers of a device, begun when first asked for."""
        if device not in self._streams:
            self._streams[device] = NormalStream(self._stream_seed, device)
        return self._streams[device]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, seed={self.seed}"


class PerturbingLoss(RandomLoss):
    """Looks at decisions under the predicted costs with Gaussian noise, c + sigma xi."""

    works_on_device = True
    accepts = LinearObjective

    def __init__(
        self,
        problem: LinearProgram,
        *,
        n_samples: int = 10,
        sigma: float = 1.0,
        seed: int = 0,
        floor: float | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(problem, seed=seed, reduction=reduction)
        self.n_samples = positive_int(n_samples, "n_samples")
        self.sigma = check_positive(sigma, "sigma")
        self.floor = check_floor(floor)

    def noise(self, shape: tuple[int, ...], device: torch.device) -> Tensor:
        """(K, B, n) standard normal draws for one call; single precision is enough for noise.

        To choose them, put a function in place of this one:
        `loss.noise = lambda shape, device: mine`.
        """
        if device.type == "cuda":
            return self.stream(device).draw(shape)
        return torch.randn(shape, generator=self.generator)

    def perturb(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Noise, the costs it leads to, and the decisions under them: (K, B, n) each."""
        shape = (self.n_samples, *batch.costs.shape)
        noise = self.noise(shape, batch.costs.device).to(batch.costs)
        costs = raised(batch.costs + self.sigma * noise, self.floor)
        return noise, costs, batch.decide(costs.flatten(0, 1)).view_as(costs)

    def extra_repr(self) -> str:
        return (
            f"{super().extra_repr()}, n_samples={self.n_samples}, sigma={self.sigma:g}, "
            f"floor={self.floor}"
        )


def _mixed(*numbers: int) -> int:
    """Below 2^64, and far from what other numbers give."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def _check_seed(seed: Any) -> int:
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if number < 0:
        raise InputError(f"`seed` must be a whole number of at least 0; got {seed!r}.")
    return number


STRIDE = -0x61C8864680B583EB
FIRST, SECOND = -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15
"""Odd 64-bit numbers, as signed ones: the stride of the sequence and the factors of the hash. It is
SplitMix64 (Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators*, 2014)."""


class NormalStream:
    """Standard normal numbers, the same for a seed on every device up to rounding."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self._place = torch.empty((), dtype=torch.int64, device=device)
        self.restart(seed)

    def restart(self, seed: int) -> None:
        """Go to the place that belongs to `seed`, a number below 2^64; nothing waits for it."""
        self._place.fill_(seed - (1 << 64) if seed >= 1 << 63 else seed)

    def draw(self, shape: tuple[int, ...]) -> Tensor:
        """The next numbers, float64."""
        count = math.prod(shape)
        z = torch.arange(1, count + 1, device=self._place.device).add_(self._place).mul_(STRIDE)
        self._place.add_(count)
        z = (z ^ _shifted(z, 30)).mul_(FIRST)
        z = (z ^ _shifted(z, 27)).mul_(SECOND)
        z ^= _shifted(z, 31)
        uniform = _shifted(z, 11).double().add_(0.5).mul_(2.0**-53)  # never 0 and never 1
        return torch.special.ndtri(uniform).view(shape)


def _shifted(z: Tensor, bits: int) -> Tensor:
    """To the right, with zeros moving in on the left."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)
