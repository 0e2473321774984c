"""What a projection loss keeps on a device: warm starts, the last projection, a count of failures.

Nothing is read back before it is asked for, so a call can be captured in a CUDA graph once a first
one has made room. Letters: B samples, n cost entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._common.device import has_triton
from ..projection import Projection
from ..projection.distance import length_of, value_and_gradient
from ..projection.triton import DeviceSets, project_on_device
from ._memory import MOST_LINES, DeviceMemory
from ._reduce import check_weights_shape, working_dtype

FINE, COARSE = 1e-8, 1e-6
"""Residuals asked for. The coarse one is for costs shorter than float64: in float32 their rounding
alone moves a projection by 6e-5 of a move that is 1e-3 of the cost, where residuals are measured
from."""


class OnDevice:
    """Projections of a loss whose costs are on a device, one batch after the other."""

    def __init__(self) -> None:
        self.memory = DeviceMemory()
        self._costs: Tensor | None = None
        self._sets: DeviceSets | None = None
        self._last: Projection | None = None
        self._missed: Tensor | None = None

    def project(
        self, costs: Tensor, sets: DeviceSets, index: Any, *, threads: int | None = None
    ) -> Projection:
        """Project costs (B, n), from where the samples of `index` were left unless it is None.

        An index on the device belongs to the table of the sets; one on the host may be anything.
        """
        options: dict[str, Any] = {"tol": tolerance(costs), "threads": threads}
        if index is None:
            p = project_on_device(costs, sets, **options)
        else:
            rows = self.memory.reserve(_lines(index, sets), sets.plan.n_rows, sets.device)
            places = self.memory.places(index, len(costs))
            p = project_on_device(costs, sets, warm_start=rows, places=places, **options)
            self.memory.keep(places, p.multipliers)
        self._costs, self._sets, self._last = costs, sets, p
        return p

    def weigh(
        self,
        costs: Tensor,
        sets: DeviceSets,
        p: Projection,
        power: int | str,
        delta: float,
        share: Any,
    ) -> tuple[Tensor, Tensor]:
        """Values (B,) and gradients (B, n) of a projection, times a share: one number or (B,).

        Counts what was not solved.
        """
        missed = self._room_for_missed(p.solved.device)
        if costs.is_cuda and power in WEIGHED and len(costs) and has_triton():
            return weigh_by_kernel(costs, sets, p, power, delta, share, missed)
        missed += (~p.solved).sum()
        value, gradient = distance_on_device(costs, sets, p, power, delta)
        rows = share[:, None] if isinstance(share, Tensor) else share
        return share * value, rows * gradient

    def projection(self) -> Projection | None:
        """Of the last call, in numpy arrays."""
        return None if self._last is None else self._last.each(lambda part: part.cpu().numpy())

    def size(self) -> np.ndarray | None:
        """(B,) as from `length_of`."""
        if self._costs is None or self._sets is None:
            return None
        return length_of(self._costs.double().cpu().numpy(), self._sets.margins.cpu().numpy())

    def unsolved(self) -> int:
        """Projections of all calls so far that ended above their tolerance."""
        return 0 if self._missed is None else int(self._missed)

    def _room_for_missed(self, device: torch.device) -> Tensor:
        if self._missed is None or self._missed.device != device:
            self._missed = torch.full((), self.unsolved(), dtype=torch.int64, device=device)
        return self._missed


def tolerance(costs: Tensor) -> float:
    """The residual that a loss asks for."""
    return FINE if costs.dtype == torch.float64 else COARSE


def distance_on_device(
    q: Tensor, sets: DeviceSets, p: Projection, power: int | str, delta: float
) -> tuple[Tensor, Tensor]:
    """Values (B,) and gradients (B, n) of the samples, float64."""
    size = length_of(q, sets.margins) if power == 1 else None
    return value_and_gradient(q, p, size, power, delta)


WEIGHED = (1, 2, "huber")
"""Forms that have a kernel."""


def weigh_by_kernel(
    costs: Tensor,
    sets: DeviceSets,
    p: Projection,
    power: int | str,
    delta: float,
    share: Any,
    missed: Tensor,
) -> tuple[Tensor, Tensor]:
    """What `OnDevice.weigh` says of at least one sample, in one launch."""
    from ._weigh_kernel import weigh_kernel

    weighted, size = isinstance(share, Tensor), costs.shape[1]
    value = torch.empty_like(p.distance)
    gradient = torch.empty(costs.shape, dtype=working_dtype(costs), device=costs.device)
    kernel: Any = weigh_kernel
    kernel[(len(costs),)](
        costs.contiguous(),
        p.point,
        p.distance,
        p.solved.view(torch.uint8),
        sets.table.margins,
        p.iterations if sets.index is None else sets.index,
        share.contiguous() if weighted else p.distance,  # not looked at
        value,
        gradient,
        missed,
        size,
        int(sets.index is not None),
        1.0 if weighted else share,
        delta,
        POWER=power,
        WEIGHTED=weighted,
        C=1024,
    )
    return value, gradient


def with_device_weights(weights: Any, sets: DeviceSets) -> Any:
    """(B,) weights times those of the sets; None where all are 1."""
    own = sets.weights
    if own is None or weights is None:
        return weights if own is None else own
    return check_weights_shape(torch.as_tensor(weights), len(own)).to(own) * own


def _lines(index: Any, sets: DeviceSets) -> int:
    """How many samples there may be, as far as the host knows."""
    if isinstance(index, Tensor) and index.device == sets.device:
        return len(sets.table)
    highest = int(np.asarray(index).max(initial=0))
    return max(len(sets.table), min(highest + 1, MOST_LINES))
