"""The entry for paths on the device: chooses between kernel and plain torch, and launches.

Nothing here waits for the device: no size, flag or result is read back, so a call can be captured
in a CUDA graph (after one ordinary call, in which the kernel is compiled and the graph uploaded).

Letters: B instances, N nodes, E edges, D slots of a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..._common.device import as_device_costs, has_triton, processors
from ...errors import InputError
from ...problems.linear import LinearProgram
from ...problems.solution import Solution
from .slots import Slots, ends_of, slots_of

METHODS = ("auto", "triton", "torch")
MOST_SCRATCH = 1 << 27
"""Numbers of scratch in all, 1 GiB; for graphs so large that it matters, fewer programs run."""


@dataclass(frozen=True)
class Launch:
    """How the kernel is laid out on the device; None where the batch decides.

    While a batch does not fill the device, a thread has one node and a program up to 16 warps, for
    the shortest wait. Larger batches get many small programs, which waste fewer threads: on an
    H200, 1.6 ms instead of 3.1 for 10,000 paths on an 18x18 grid.
    """

    warps: int | None = None
    """Warps of a program."""
    chunk: int | None = None
    """Nodes looked at together, at most; a power of two from 128 on."""
    per_processor: int = 16
    """Programs that share a multiprocessor, at most."""

    def shape(self, batch: int, n_nodes: int, processors: int) -> tuple[int, int, int]:
        """Programs, nodes looked at together and warps of a program."""
        few = batch <= 2 * processors
        most = self.chunk or (512 if few else 128)
        chunk = min(max(128, 1 << (n_nodes - 1).bit_length()), most)
        warps = self.warps or chunk // 32
        return min(batch, processors * self.per_processor), chunk, warps


def solve_paths_on_device(
    problem: LinearProgram, costs: Tensor, *, method: str = "auto", launch: Launch | None = None
) -> Solution:
    """`problem.solve` for a path problem and costs (B, E) that are on a device, and stay there.

    The same decisions as the CPU's where the costs allow but one, and where they tie without
    negative costs around cycles; objectives always agree. Costs that are not finite are not
    refused, which would mean waiting for the device: their instances end as FAILED.
    """
    if method not in METHODS:
        raise InputError(f"`method` must be one of {', '.join(METHODS)}; got {method!r}.")
    costs = as_device_costs(costs, problem.n_variables)
    problem.check_batch(len(costs), "costs")
    slots = slots_of(problem, costs.device)
    ends = ends_of(problem.structure, costs.device)
    if not len(costs) or not _by_kernel(costs, method):
        from .plain import solve_by_torch

        return solve_by_torch(costs, slots, *ends)
    return _launch(costs, slots, ends, launch or Launch())


def _by_kernel(costs: Tensor, method: str) -> bool:
    if method == "auto":
        return costs.is_cuda and has_triton()
    return method == "triton"


def _launch(costs: Tensor, slots: Slots, ends: tuple[Tensor, Tensor], launch: Launch) -> Solution:
    from . import kernel

    paths_kernel: Any = kernel.paths_kernel  # a type checker takes it for a plain function
    B, N, D = len(costs), slots.n_nodes, slots.depth
    programs, chunk, warps = launch.shape(B, N, processors(costs.device))
    words, links = (D + 2) * N, 3 * N
    programs = max(1, min(programs, MOST_SCRATCH // (words + links)))

    def empty(*shape: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=costs.device)

    answer = Solution(
        torch.empty_like(costs), empty(B, dtype=costs.dtype), empty(B, dtype=torch.int8)
    )
    source, target = ends
    arguments: dict[str, Any] = {
        "costs_ptr": costs,
        "x_ptr": answer.x,
        "objective_ptr": answer.objective,
        "status_ptr": answer.status,
        "source_ptr": source,
        "target_ptr": target,
        "tail_ptr": slots.tail,
        "edge_ptr": slots.edge,
        "words_ptr": empty(programs * words, dtype=torch.float64),
        "links_ptr": empty(programs * links, dtype=torch.int32),
        "words_stride": words,
        "links_stride": links,
        "B": B,
        "E": slots.n_edges,
        "N": N,
        "D": D,
        "per_instance": int(len(source) > 1),
    }
    shape = {"C": chunk, "U": slots.unroll, "CYCLIC": slots.cyclic}
    paths_kernel[(programs,)](**arguments, **shape, num_warps=warps, num_stages=1)
    return answer
