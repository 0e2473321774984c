"""Boards on disk: what `write_boards` writes, checked before any of it is used.

For each of train, val and test three arrays of whole numbers:

    {split}_full_images.npy        (B, H, H, 1) uint8 pictures
    {split}_board.npy              (B, n, n) digits from 0 to 9
    {split}_perfect_matching.npy   (B, E) 1 on the edges that are joined, else 0

Letters: B boards, n cells on a side, E edges.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from revealed.errors import InputError
from revealed.problems import grid_matching
from revealed.problems.linear import LinearProgram

from .checksums import SUMS, check_sums, read_sums
from .map_folder import SPLITS
from .stored_files import read_array, read_facts

KINDS = ("full_images", "board", "perfect_matching")
ABOUT = "boards.json"
LARGEST = 100
"""Cells on a side of the largest board that is read."""


class Boards(NamedTuple):
    """One split as it is stored."""

    images: np.ndarray
    board: np.ndarray
    matching: np.ndarray


def read_boards(folder: Path, *, verify: bool) -> tuple[LinearProgram, list[Boards]]:
    """The problem that the boards pose, and the three splits."""
    if not (folder / ABOUT).is_file():
        raise InputError(f"{str(folder)!r} was not written by `write_boards`: it has no {ABOUT}.")
    names = [f"{split}_{kind}.npy" for split in SPLITS for kind in KINDS]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{str(folder)!r} is not complete: {missing[0]} is missing. Write it again."
        )
    if verify:
        check_sums(folder, [ABOUT, *names], read_sums(folder / SUMS))
    problem = _problem(read_facts(folder / ABOUT))
    return problem, [_split(folder, split, problem) for split in SPLITS]


def _problem(facts: dict[str, object]) -> LinearProgram:
    side = facts.get("side")
    if isinstance(side, bool) or not isinstance(side, int) or not 2 <= side <= LARGEST or side % 2:
        raise InputError(
            f'{ABOUT} must say as "side" how many cells a board has on each, an even number from 2 '
            f"to {LARGEST}; it says {str(side)[:40]!r}."
        )
    return grid_matching(side, side)


def _split(folder: Path, split: str, problem: LinearProgram) -> Boards:
    found = Boards(*(read_array(folder / f"{split}_{kind}.npy") for kind in KINDS))
    side, count = problem.structure.grid_shape[0], len(np.atleast_1d(found.board))
    height = found.images.shape[1] if found.images.ndim == 4 else 0
    _check(
        height > 0
        and height % side == 0
        and found.images.dtype == np.uint8
        and found.images.shape == (count, height, height, 1),
        f"{split}_full_images",
        f"({count}, H, H, 1) uint8 pictures with H a multiple of {side}",
        found.images,
    )
    edges = problem.n_variables
    for name, array, shape, most in (
        ("board", found.board, (count, side, side), 9),
        ("perfect_matching", found.matching, (count, edges), 1),
    ):
        whole = array.shape == shape and array.dtype.kind in "iub"
        within = whole and not ((array < 0) | (array > most)).any()
        _check(within, f"{split}_{name}", f"whole numbers from 0 to {most}, {shape}", array)
    _refuse_other_than_perfect(split, found.matching, problem)
    return found


def _check(holds: bool, name: str, expected: str, array: np.ndarray) -> None:
    if not holds:
        least, most = (array.min(), array.max()) if _has_order(array) else ("-", "-")
        raise InputError(
            f"{name} must be {expected}; got {array.shape} {array.dtype}, from {least} to {most}."
        )


def _has_order(array: np.ndarray) -> bool:
    return array.size > 0 and array.dtype.kind in "iubf"


def _refuse_other_than_perfect(split: str, matching: np.ndarray, problem: LinearProgram) -> None:
    bad = np.flatnonzero(problem.constraint_violation(matching.astype(np.float64)) > 0)
    if bad.size:
        raise InputError(
            f"Every line of {split}_perfect_matching must join each cell with one other; board "
            f"{bad[0]} has cells that it does not ({bad.size} such boards)."
        )
