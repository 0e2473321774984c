"""Pictures as contexts: splits that keep them as they are, bytes, and what each cell shows.

Letters: B samples, (H, W) pixels, C color channels, n cost entries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed.datasets.dataset import DataSet, Split
from revealed.errors import InputError
from revealed.problems.linear import LinearProgram


@dataclass(frozen=True, eq=False)
class ImageSplit(Split):
    """A `Split` whose contexts are pictures, (B, H, W, C) uint8.

    The models in `revealed_experiments.vision` take them so, and make numbers of them on their
    own device, a batch at a time; `revealed_experiments.vision.as_contexts` does the same for
    other models.
    """

    cells: np.ndarray
    """(B, rows, cols) what each cell of a picture shows, for drawing and for checks: the cost of
    entering it, or its digit."""

    @property
    def images(self) -> np.ndarray:
        """(B, H, W, C) uint8, the contexts by their own name."""
        return self.contexts

    def head(self, count: int) -> ImageSplit:
        """The first `count` samples."""
        return self[:count]

    def __getitem__(self, index: slice | np.ndarray) -> ImageSplit:
        """The samples at these places; a slice shares their memory."""
        arrays = (self.contexts, self.decisions, self.costs, self.cells)
        return ImageSplit(*(array[index] for array in arrays))


@dataclass(frozen=True, eq=False)
class ImageSet(DataSet):
    """A `DataSet` of pictures."""

    train: ImageSplit
    valid: ImageSplit
    test: ImageSplit


def checked_seed(seed: int) -> int:
    """`seed` as an int; anything but a whole number of at least 0 is refused."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"`seed` must be a whole number of at least 0; got {seed!r}.")
    return int(seed)


def only_best(
    problem: LinearProgram,
    costs: np.ndarray,
    decisions: np.ndarray,
    gap: float,
    threads: int | None = None,
) -> np.ndarray:
    """(B,) bool: whether each optimal decision is the only one.

    `gap` is the least by which two different total costs differ. Decisions are 0/1 vectors of
    equal or similar size: raising the cost of each chosen entry a little, less than `gap` in all,
    moves the optimum exactly when there is another as good.
    """
    if not gap > 0:
        raise InputError(f"`gap` must be above 0; got {gap!r}.")
    chosen = decisions.sum(axis=1, keepdims=True)
    raised = costs + decisions * (0.5 * gap / np.maximum(chosen, 1.0))
    return (problem.solve(raised, threads=threads).x == decisions).all(axis=1)
