"""Contexts and the sets that explain their decisions, batch by batch, for a `DataLoader`.

data = DecisionDataset(Z, sets)
for z, sets, index in data.loader(batch_size=32, shuffle=True):
    loss = loss_fn(net(z), sets, index=index)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from .._common.arrays import is_torch
from ..errors import InputError, ShapeError
from ..optimality.protocol import CostSet


class DecisionBatch(NamedTuple):
    """What a training step needs of some samples."""

    contexts: Tensor
    sets: CostSet
    """Of these samples."""
    index: Tensor
    """(b,) which samples they are: for warm starts, and to look up whatever else there is."""


class DecisionDataset(Dataset[DecisionBatch]):
    """Contexts beside the cost sets of their decisions; sets are built once and sliced by batch.

    Fetches whole batches, so give `DataLoader` its `collate`, or use `loader`. Works with samplers,
    `random_split`, `Subset` and Lightning; a batch is a named tuple.

    Parameters
    ----------
    contexts : (B, ...) array or tensor
        Floating numbers become `dtype`; anything else stays as it is.
    sets : OptimalitySet
        Of the B decisions; `sets.to("cuda")` for projections on a GPU.
    dtype : torch.dtype
    """

    def __init__(self, contexts: Any, sets: CostSet, *, dtype: torch.dtype = torch.float32) -> None:
        if not isinstance(sets, CostSet):
            raise InputError(
                "`sets` must be the cost sets of the decisions, OptimalitySet(problem, decisions); "
                f"got {type(sets).__name__}."
            )
        given = contexts if is_torch(contexts) else torch.as_tensor(np.asarray(contexts))
        if not given.ndim or len(given) != len(sets):
            raise ShapeError(f"There are {len(sets)} sets; got contexts of {tuple(given.shape)}.")
        self.contexts = given.to(dtype) if given.is_floating_point() else given
        self.sets = sets

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, index: Any) -> DecisionBatch:
        """One sample, as a batch of one; a list, a slice or a tensor gives several."""
        positions = torch.arange(len(self))[index].reshape(-1)
        return DecisionBatch(
            self.contexts[positions.to(self.contexts.device)], self.sets[positions], positions
        )

    def __getitems__(self, indices: Sequence[int]) -> DecisionBatch:
        """A whole batch at once, as `DataLoader` asks for it."""
        return self[torch.as_tensor(indices)]

    @staticmethod
    def collate(batch: Any) -> Any:
        """For `DataLoader(data, collate_fn=data.collate)`: the batch is complete as it comes."""
        return batch

    def loader(self, **options: Any) -> DataLoader:
        """A `DataLoader` of this data set.

        Parameters
        ----------
        **options
            Those of `torch.utils.data.DataLoader`, such as `batch_size`, `shuffle` and
            `num_workers`; all but `collate_fn`.

        Returns
        -------
        DataLoader
            Its batches are `DecisionBatch`: contexts, sets and index.
        """
        return DataLoader(self, collate_fn=self.collate, **options)
