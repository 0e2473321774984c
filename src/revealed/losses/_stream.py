"""Random numbers of a device, from a counter that is kept there.

A generator of torch has to be made known to a CUDA graph that is captured around it. Here every
number is a hash of its place in one long sequence, and where the sequence stands is a tensor: a
replay of the graph moves it on as an ordinary call does, and draws the same numbers.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

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
