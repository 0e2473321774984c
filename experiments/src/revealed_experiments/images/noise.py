"""Smooth random fields and strewn bumps: the raw material of drawn terrain.

Random numbers on a coarse lattice, joined by cubic B-splines, are smooth without showing the
lattice; several of them with shorter and shorter wavelengths make a field with detail at every
scale. Only sums, products, divisions and square roots of float32 numbers are used, entry by entry,
so a seed gives the same field to the last bit on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

Size = tuple[int, int]
Wavelength = float | tuple[float, float]
"""Distance between lattice points in entries; (down, across) where the two differ."""


def smooth_noise(
    rng: np.random.Generator, count: int, size: Size, wavelength: Wavelength
) -> np.ndarray:
    """(count, *size) float32 of mean 0 and variance about 1, smooth over one wavelength."""
    lengths = wavelength if isinstance(wavelength, tuple) else (wavelength, wavelength)
    down, across = (
        _spline(entries, length, rng.random())
        for entries, length in zip(size, lengths, strict=True)
    )
    lattice = rng.random((count, down[0][-1] + 4, across[0][-1] + 4), dtype=np.float32)
    lattice -= np.float32(0.5)
    field = _blend(_blend(lattice, *down, axis=1), *across, axis=2)
    # A uniform number has variance 1/12, and each of the two splines keeps a share of about 0.48.
    field *= np.float32(7.2)
    return field


def fractal_noise(
    rng: np.random.Generator,
    count: int,
    size: Size,
    wavelength: float,
    *,
    octaves: int = 3,
    gain: float = 0.5,
) -> np.ndarray:
    """(count, *size) float32 of mean 0 and variance about 1; each octave halves the wavelength."""
    total = np.zeros((count, *size), np.float32)
    weights = gain ** np.arange(octaves)
    weights /= np.sqrt((weights**2).sum())
    for octave, weight in enumerate(weights):
        total += smooth_noise(rng, count, size, wavelength / 2**octave) * np.float32(weight)
    return total


def strewn_bumps(
    rng: np.random.Generator,
    size: Size,
    spacing: float,
    bump: Callable[..., np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Bumps at random places, one for each square of side `spacing`, the highest on top.

    `bump(down, across, first, second)` is the height at that offset from a place, in units of the
    spacing, of a bump with two random numbers of its own. Returns the upper envelope (*size) of all
    bumps, at least 0, and a random number (*size) of the bump on top (0 where there is none).
    """
    entry = [np.arange(entries, dtype=np.float32) / np.float32(spacing) for entries in size]
    square = [positions.astype(np.int64) for positions in entry]
    places = rng.random((5, square[0][-1] + 3, square[1][-1] + 3), dtype=np.float32)
    height, mark = np.zeros(size, np.float32), np.zeros(size, np.float32)
    for step in product((-1, 0, 1), repeat=2):  # a bump reaches at most into the next square
        at = np.ix_(square[0] + 1 + step[0], square[1] + 1 + step[1])
        down = (entry[0] - square[0] - step[0]).astype(np.float32)[:, None] - places[0][at]
        across = (entry[1] - square[1] - step[1]).astype(np.float32)[None] - places[1][at]
        here = bump(down, across, places[2][at], places[3][at])
        above = here > height
        height, mark = np.where(above, here, height), np.where(above, places[4][at], mark)
    return height, mark


def _spline(entries: int, wavelength: float, phase: float) -> tuple[np.ndarray, np.ndarray]:
    """For each entry the first of four lattice points, and (4, entries) their weights."""
    position = np.arange(entries) / wavelength + phase
    first = position.astype(np.int64)
    t = (position - first).astype(np.float32)
    u = 1 - t
    third, half = np.float32(1 / 3), np.float32(0.5)
    inner = [2 * third - s * s + half * s * s * s for s in (t, u)]
    outer = [half * third * s * s * s for s in (u, t)]
    return first, np.stack([outer[0], inner[0], inner[1], outer[1]])


def _blend(array: np.ndarray, first: np.ndarray, weights: np.ndarray, axis: int) -> np.ndarray:
    shape = [1, 1, 1]
    shape[axis] = -1
    parts = (np.take(array, first + k, axis=axis) * weights[k].reshape(shape) for k in range(4))
    total = next(parts)
    for part in parts:
        total += part
    return total
