"""Boards of handwritten digits with minimum perfect matchings.

A board is a grid of digit pictures. Joining two neighboring cells costs the two-digit number read
along their edge, from left to right or from top to bottom: 10 times the first digit plus the
second. The decision is a cheapest way to join all cells in pairs.

Letters: B boards, n cells on a side, p pixels on a cell's side.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np

from revealed._common.checks import positive_int
from revealed.datasets.synthetic import Sizes, checked_sizes
from revealed.errors import InputError
from revealed.problems import grid_matching
from revealed.problems.linear import LinearProgram

from .board_folder import ABOUT, KINDS, read_boards
from .digits import Digits, digit_pools, resized
from .folder_writer import FolderWriter
from .image_set import ImageSet, ImageSplit, checked_seed, only_best
from .map_folder import SPLITS
from .parallel import first_kept

_BLOCK = 64  # boards drawn together; part of what a seed means
_VERSION = 1  # of the boards: another number, other boards


def digit_boards(
    sizes: Sizes = (10_000, 1_000, 1_000),
    *,
    side: int = 12,
    digits: str | os.PathLike[str] = "sklearn",
    pixels: int = 16,
    seed: int = 0,
    unique: bool = False,
    jobs: int = 1,
) -> ImageSet:
    """Boards of side x side digits as a data set of pictures in gray (C = 1).

    `digits` is where they come from, see `digit_pools`; the three splits use different pictures.
    Each cell is a square of `pixels`, its digit scaled to fit with a pixel to spare on every side.
    Costs are whole numbers, so many boards have several best matchings, of which the oracle takes
    one; `unique=True` keeps only boards with a single one (of 12 x 12 about one in eighteen).
    `jobs` processes solve them, which changes no board.
    """
    jobs = positive_int(jobs, "jobs")
    sizes, seed = checked_sizes(sizes), checked_seed(seed)
    if positive_int(pixels, "pixels") < 6:
        raise InputError(f"A digit needs at least 6 `pixels`; got {pixels}.")
    problem = grid_matching(side, side)
    pools = [_framed(pool, pixels) for pool in digit_pools(digits)]
    splits = [
        _split(problem, pool, k, count, seed, unique, jobs)
        for k, (pool, count) in enumerate(zip(pools, sizes, strict=True))
    ]
    return ImageSet(f"digits {side}x{side}", problem, *splits)


def reading_costs(problem: LinearProgram, board: np.ndarray) -> np.ndarray:
    """(B, E): the number read along each edge of boards (B, n, n) of digits."""
    graph = problem.structure
    flat = board.reshape(-1, graph.n_left + graph.n_right).astype(np.float64)
    return 10.0 * flat[:, graph.tails] + flat[:, graph.heads]


def write_boards(
    folder: str | os.PathLike[str],
    sizes: Sizes = (10_000, 1_000, 1_000),
    *,
    side: int = 12,
    digits: str | os.PathLike[str] = "sklearn",
    pixels: int = 16,
    seed: int = 0,
    unique: bool = False,
    jobs: int = 1,
    overwrite: bool = False,
) -> Path:
    """Write the boards of `digit_boards` as the folder `folder/{side}x{side}`; return its path.

    For each of train, val and test: `{split}_full_images.npy` (B, H, W, 1) uint8,
    `{split}_board.npy` (B, n, n) digits, `{split}_perfect_matching.npy` (B, E) 0 or 1 for the
    edges in the order of `grid_matching`. Besides: `boards.json` and `SHA256SUMS`.
    """
    side, seed = positive_int(side, "side"), checked_seed(seed)
    with FolderWriter(folder, f"{side}x{side}", overwrite=overwrite) as writer:
        options = {"side": side, "pixels": pixels, "seed": seed, "unique": unique}
        data = digit_boards(sizes, digits=digits, jobs=jobs, **options)
        for name, split in zip(SPLITS, (data.train, data.valid, data.test), strict=True):
            arrays = (split.images, split.cells, split.decisions.astype(np.uint8))
            for kind, array in zip(KINDS, arrays, strict=True):
                writer.save(f"{name}_{kind}", array)
        source = digits if digits in ("sklearn", "mnist") else "files"
        counts = dict(zip(SPLITS, map(int, sizes), strict=True))
        writer.describe(ABOUT, options | {"version": _VERSION, "digits": source, "sizes": counts})
        return writer.finish()


def load_boards(folder: str | os.PathLike[str], *, verify: bool = True) -> ImageSet:
    """Read a folder `{n}x{n}` that `write_boards` wrote: the same data set to the last bit."""
    problem, stored = read_boards(Path(folder), verify=verify)
    splits = [
        ImageSplit(images, matching.astype(np.float64), reading_costs(problem, board), board)
        for images, board, matching in stored
    ]
    side, _ = problem.structure.grid_shape
    return ImageSet(f"digits {side}x{side}", problem, *splits)


def _framed(pool: Digits, pixels: int) -> Digits:
    images = resized(pool.images, pixels - 2)
    return Digits(np.pad(images, ((0, 0), (1, 1), (1, 1))), pool.labels)


def _split(
    problem: LinearProgram,
    pool: Digits,
    stream: int,
    count: int,
    seed: int,
    unique: bool,
    jobs: int,
) -> ImageSplit:
    side, pixels = problem.structure.grid_shape[0], pool.images.shape[1]
    source, threads = (_VERSION, side, stream, seed), None if jobs == 1 else 1
    attempt = partial(_block, problem, pool.labels, source, unique, threads)
    chosen, decisions = first_kept(attempt, count, jobs)
    board = pool.labels[chosen]
    images = pool.images[chosen].swapaxes(2, 3)
    images = images.reshape(count, side * pixels, side * pixels, 1)
    costs = reading_costs(problem, board)
    return ImageSplit(images, decisions.astype(np.float64), costs, board)


def _block(
    problem: LinearProgram,
    labels: np.ndarray,
    source: tuple[int, ...],
    unique: bool,
    threads: int | None,
    block: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Of a block of boards, those to keep: the digits on each by number, and its matching."""
    rng = np.random.default_rng([*source, block])
    digits = rng.integers(len(labels), size=(_BLOCK, *problem.structure.grid_shape))
    costs = reading_costs(problem, labels[digits])
    best = np.asarray(problem.solve(costs, threads=threads).x)
    kept = only_best(problem, costs, best, 1.0, threads) if unique else np.ones(_BLOCK, bool)
    return digits[kept], best[kept].astype(np.uint8)
