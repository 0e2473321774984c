"""The entry to every oracle: check and scale the costs, choose the oracle, price the decisions."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from .._common.arrays import as_costs
from .._common.device import is_cuda
from ..problems.linear import LinearProgram
from ..problems.solution import Solution, SolveStatus
from .calls import deadline_after, thread_count
from .general import solve_general
from .special import DEVICE_ORACLES, GENERAL, SPECIAL_ORACLES, SpecialOracle

# Blocks are what threads share and what the clock is read between: small enough for both, and
# large enough that handing one to a thread (50 microseconds) costs little beside solving it.
_SMALLEST_BLOCK, _LARGEST_BLOCK = 1 << 12, 1 << 16  # cost entries


def solve_batch(
    problem: LinearProgram,
    costs: Any,
    *,
    time_limit: float | None = None,
    threads: int | None = None,
) -> Solution:
    """Decisions of minimum cost for each row of `costs` (B, n); see `LinearProgram.solve`."""
    if is_cuda(costs) and time_limit is None:
        there = DEVICE_ORACLES.find(type(problem.structure))
        if there is not None:
            return there(problem, costs)
    C, restore = as_costs(costs, problem.n_variables)
    problem.check_batch(len(C), "costs")
    deadline = deadline_after(time_limit)
    threads = thread_count(threads)
    scaled, exponent = _scale_rows(C)
    X = np.zeros(C.shape)
    status = np.full(len(C), GENERAL, dtype=np.int8)
    special = SPECIAL_ORACLES.find(type(problem.structure))
    if special is not None:
        _run_blocks(special, problem, scaled, X, status, deadline, threads)
    rest = np.flatnonzero(status == GENERAL)
    if rest.size:
        part = problem if rest.size == len(C) else problem[rest]
        X[rest], status[rest] = solve_general(part, scaled[rest], deadline, threads)
    X[status != SolveStatus.OPTIMAL] = np.nan
    with np.errstate(over="ignore"):  # a cost beyond float64 is inf, as its definition is
        objective = np.ldexp((scaled * X).sum(axis=1), exponent)
    return Solution(restore(X), restore(objective), restore(status))


def _scale_rows(C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Costs with their largest entry in [1/2, 1), and the exponents of two that were taken out.

    Decisions do not depend on the scale of the costs, but solvers' tolerances do, and sums of
    1e308 overflow. A power of two moves no digit, so ties stay ties.
    """
    _, exponent = np.frexp(np.abs(C).max(axis=1, initial=0.0))
    return np.ldexp(C, -exponent[:, None]), exponent


def _run_blocks(
    oracle: SpecialOracle,
    problem: LinearProgram,
    costs: np.ndarray,
    X: np.ndarray,
    status: np.ndarray,
    deadline: float,
    threads: int,
) -> None:
    """Fill `X` and `status` block by block, in several threads when there are several blocks."""
    size = _block_size(costs, threads)

    def run(start: int) -> None:
        block = slice(start, start + size)
        if time.monotonic() >= deadline:
            status[block] = SolveStatus.LIMIT
        else:
            X[block], status[block] = oracle(problem[block], costs[block])

    starts = range(0, len(costs), size)
    if min(threads, len(starts)) <= 1:
        for start in starts:
            run(start)
        return
    list(_pool(threads).map(run, starts))


def _block_size(costs: np.ndarray, threads: int) -> int:
    """Instances in a block: one block for each thread, within the limits."""
    batch, n = costs.shape
    least, most = (max(1, entries // n) for entries in (_SMALLEST_BLOCK, _LARGEST_BLOCK))
    return min(max(-(-batch // threads), least), most)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Kept from call to call: starting the threads takes longer than a batch of 100 paths."""
    return ThreadPoolExecutor(threads)


if hasattr(os, "register_at_fork"):  # the child of a fork has the pool, but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
