"""What every generator and loader returns.

Letters: B samples, d context features, n cost entries.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from .._common.words import shapes
from ..problems.linear import LinearProgram


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Samples seen together: what was known, what was decided, and the costs behind it."""

    contexts: np.ndarray
    """(B, d)"""
    decisions: np.ndarray
    """(B, n), optimal under `costs`."""
    costs: np.ndarray
    """(B, n) the true ones, for judging a model; learning from decisions never sees them."""

    def __repr__(self) -> str:
        return shapes(self)

    def __len__(self) -> int:
        return len(self.contexts)

    def head(self, count: int) -> Split:
        """The first samples.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        Split
        """
        return Split(self.contexts[:count], self.decisions[:count], self.costs[:count])


@dataclass(frozen=True, eq=False, repr=False)
class DataSet:
    """A forward problem with samples to learn from, to choose settings on, and to judge by.

    Parameters
    ----------
    name : str
        In words.
    problem : LinearProgram
        What the decision maker may do.
    train, valid, test : Split
        Samples to learn from, to choose settings on, and to judge by.
    """

    name: str
    problem: LinearProgram
    train: Split
    valid: Split
    test: Split

    def __repr__(self) -> str:
        return shapes(self)

    def with_train_decisions(self, decisions: np.ndarray) -> DataSet:
        """The same with other decisions to learn from, whatever the true costs say.

        Parameters
        ----------
        decisions : (B, n) array
            One for each training sample.

        Returns
        -------
        DataSet
        """
        return replace(self, train=replace(self.train, decisions=decisions))


def split_by_size(
    name: str,
    problem: LinearProgram,
    contexts: np.ndarray,
    costs: np.ndarray,
    sizes: tuple[int, int, int],
) -> DataSet:
    """Decide under the true costs, then cut all samples into train, valid and test, in order."""
    decisions = np.asarray(problem.solve(costs).x)
    ends = np.cumsum((0, *sizes))
    parts = [
        Split(contexts[start:end], decisions[start:end], costs[start:end])
        for start, end in itertools.pairwise(ends)
    ]
    return DataSet(name, problem, *parts)
