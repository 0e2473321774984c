"""Samples drawn block by block, in this process or in several: the same samples either way.

What a block holds depends on its number alone, so that any process may draw it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from revealed.errors import InputError

Attempt = Callable[[int], tuple[np.ndarray, ...]]
"""From the number of a block to arrays of equal length, an entry for each sample kept of it."""


FRUITLESS = 200
"""Blocks without a single sample after which no more are tried."""


def first_kept(attempt: Attempt, count: int, jobs: int) -> tuple[np.ndarray, ...]:
    """The first `count` samples that blocks 0, 1, ... keep, as the arrays of all of them joined.

    Where the first blocks keep none, waiting for one is refused.
    """
    found: list[tuple[np.ndarray, ...]] = []
    kept = 0
    while kept < count or not found:
        blocks = range(len(found), len(found) + _next_round(count, kept, len(found), jobs))
        found += mapped(attempt, ((block,) for block in blocks), jobs)
        kept = sum(len(arrays[0]) for arrays in found)
        if kept == 0 and len(found) >= FRUITLESS and count:
            raise InputError(
                f"Not one of the samples in the first {len(found)} blocks could be kept. With "
                "`unique=True` that happens on large grids, where hardly a sample has one best "
                "decision: choose a smaller `side`, or `unique=False`."
            )
    return tuple(np.concatenate(arrays)[:count] for arrays in zip(*found, strict=True))


def _next_round(count: int, kept: int, blocks: int, jobs: int) -> int:
    """How many blocks to draw next: in several processes about as many as are still needed."""
    if jobs == 1 or kept == 0:
        return jobs
    return max(jobs, math.ceil((count - kept) * blocks / kept))


def mapped(
    function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], jobs: int
) -> Iterable[Any]:
    """`function(*each)` for each of the arguments, in order, computed in `jobs` processes.

    The processes start afresh and keep to one thread each.
    """
    if jobs == 1:
        return (function(*each) for each in arguments)
    import joblib

    with joblib.parallel_config("loky", inner_max_num_threads=1):
        pool: Any = joblib.Parallel(n_jobs=jobs, return_as="generator")
        return pool(joblib.delayed(function)(*each) for each in arguments)
