"""Batches of partitions for a training loop of torch, each process reading only its share.

batches = PartitionBatches(data, batch_size=256, rank=rank, ranks=world)
for epoch in range(10):
    for z, sets in batches.epoch(epoch):
        loss = loss_fn(net(torch.from_numpy(z)), sets)
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._common.checks import check_whole
from ...datasets.partitions import Partitions
from ...errors import InputError
from .memory import bytes_of
from .messages import Orders, Whole
from .share import Share


class PartitionBatches:
    """The batches of one process of several.

    Process r of R reads partitions r, r + R, ... once, in compact form. An epoch goes through its
    partitions and their samples in an order that follows from the seed and the epoch, so a run that
    is resumed at an epoch sees what it would have seen. Processes have about, not exactly, the same
    number of batches: train inside the `join()` of a DistributedDataParallel.

    Parameters
    ----------
    data : Partitions
        At least as many partitions as processes.
    batch_size : int
        Of this process.
    rank, ranks : int
        Which process this is, and how many there are.
    margin : float
    seed : int
    memory : str, int or None
        What samples may take in memory; more are kept in files. None keeps all in memory.
    scratch : path or None
        Folder for these files.
    """

    def __init__(
        self,
        data: Partitions,
        *,
        batch_size: int = 256,
        rank: int = 0,
        ranks: int = 1,
        margin: float = 1.0,
        seed: int = 0,
        memory: Any = None,
        scratch: Any = None,
    ) -> None:
        check_whole(batch_size, "batch_size", 1)
        check_whole(ranks, "ranks", 1)
        check_whole(rank, "rank", 0)
        if rank >= ranks or ranks > len(data.partitions):
            raise InputError(
                "`rank` must be below `ranks`, and there must be a partition for each process; got "
                f"{rank} of {ranks} for {len(data.partitions)} partitions. Cut the data into more "
                "with `partitions`."
            )
        self.batch_size, self._seed = batch_size, seed
        mine = range(rank, len(data.partitions), ranks)
        room = bytes_of(memory)
        orders = Orders(
            data=data,
            margin=margin,
            infeasible="refuse",
            decision_tol=0,
            center=True,
            budget=np.inf if room is None else room / len(mine),
            scratch=None if scratch is None else str(scratch),
            token=uuid.uuid4().hex,
        )
        self.numbers = tuple(mine)
        """Of the partitions of this process."""
        self._shares = [Share(orders.only(k)) for k in mine]
        found = [share.found for share in self._shares]
        self.samples = sum(one.samples for one in found)
        used = np.logical_or.reduce([one.row_used for one in found])
        self._whole = Whole(used, max(one.heaviest for one in found))

    def __len__(self) -> int:
        """Batches of an epoch."""
        sizes = (size for share in self._shares for size in share.block_sizes)
        return sum(-(-size // self.batch_size) for size in sizes)

    def epoch(self, epoch: int) -> Iterator[tuple[np.ndarray, Any]]:
        """Contexts (b, d) and sets of each batch, in the order of this epoch."""
        for number in np.random.default_rng([self._seed, epoch]).permutation(len(self._shares)):
            share = self._shares[number]
            rng = np.random.default_rng([self._seed, epoch, self.numbers[number]])
            for block, sets in share.blocks(self._whole):
                order = rng.permutation(block.size)
                for start in range(0, block.size, self.batch_size):
                    some = np.sort(order[start : start + self.batch_size])
                    yield np.asarray(block.Z[some]), sets[some]
