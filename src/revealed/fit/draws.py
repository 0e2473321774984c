"""The noise on predicted costs: normal draws that a sample keeps for a whole fit.

Draws come in pairs of opposite sign, so that half of them say it all. Those of a data set of
moderate size come from one stream and stay in memory. Those of a larger one are drawn anew in every
pass, block by block, each block from a stream of its own: which numbers a sample gets follows from
the seed and its place in the data set alone, not from who draws them. Letters: B samples, n cost
entries, H = K / 2 pairs.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import NamedTuple

import numpy as np

KEPT = 2e7
"""Numbers up to which the draws of a whole data set are one stream, and kept."""
BLOCK = 2048
"""Samples that share a stream in a larger one."""


class Place(NamedTuple):
    """Where samples stand in a data set: the first one's number, and how many there are in all."""

    start: int
    total: int


class Draws:
    """Draws of the samples `place.start` to `place.start + size` of a data set."""

    def __init__(
        self, *, noise: float, pairs: int, seed: int, size: int, n: int, place: Place | None = None
    ) -> None:
        self._noise, self._pairs, self._seed, self._n = noise, pairs, seed, n
        place = place or Place(0, size)
        self._start, self._blocks = place.start, dict[int, np.ndarray]()
        self.half: np.ndarray | None = None
        """(H, size, n) where they are kept."""
        if pairs * place.total * n <= KEPT:
            shape = (pairs, place.total, n)
            if size == place.total:
                self.half = noise * np.random.default_rng(seed).standard_normal(shape)
            else:
                with _ONE_AT_A_TIME:
                    whole = _one_stream(seed, shape)
                self.half = noise * whole[:, place.start : place.start + size]

    def of(self, part: slice) -> np.ndarray:
        """(H, b, n) of a run of samples."""
        if self.half is not None:
            return self.half[:, part]
        first, last = self._start + part.start, self._start + part.stop
        found = []
        for block in range(first // BLOCK, -(-last // BLOCK)):
            begin = block * BLOCK
            found.append(self._block(block)[:, max(first - begin, 0) : last - begin])
        return np.concatenate(found, axis=1)

    def some(self, pair: np.ndarray, index: np.ndarray) -> np.ndarray:
        """(b, n) of chosen samples (b,), each the draw of one of its pairs (b,)."""
        if self.half is not None:
            return self.half[pair, index]
        result, numbers = np.empty((len(index), self._n)), self._start + index
        for block in np.unique(numbers // BLOCK):
            here = numbers // BLOCK == block
            result[here] = self._block(int(block))[pair[here], numbers[here] % BLOCK]
        return result

    def _block(self, block: int) -> np.ndarray:
        """(H, BLOCK, n); the last two are kept, for chunks straddle blocks."""
        if block not in self._blocks:
            while len(self._blocks) > 1:
                self._blocks.pop(next(iter(self._blocks)), None)
            rng = np.random.default_rng([self._seed, block])
            drawn = rng.standard_normal((self._pairs, BLOCK, self._n))
            drawn *= self._noise
            self._blocks[block] = drawn
            return drawn
        return self._blocks[block]


_ONE_AT_A_TIME = threading.Lock()


@lru_cache(maxsize=1)
def _one_stream(seed: int, shape: tuple[int, int, int]) -> np.ndarray:
    """Draws of a whole data set, for those who look at parts of it one after the other."""
    return np.random.default_rng(seed).standard_normal(shape)
