"""Optimality sets on a device, uploaded once and sliced there.

`sets.to(device)` copies the active sets of a whole data set; `device_sets[index]` with an index on
the device only keeps the index: choosing a batch costs nothing, and nothing goes to the host.
Letters: D decisions uploaded, B of them chosen, n cost entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ...errors import InputError, ShapeError
from ...optimality.protocol import CostSet
from ...optimality.sets import OptimalitySet
from ...problems.linear import LinearProgram
from ...problems.solution import Solution
from .plan import Plan, plan_of

T = TypeVar("T")
_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@dataclass(frozen=True, eq=False)
class Table:
    """The sets of D decisions, as the device kernels want them."""

    host: OptimalitySet
    """What was uploaded."""
    plan: Plan
    states: Tensor
    """(D, n) int8 codes of EntryState."""
    active: Tensor
    """(D, m_ub) uint8: whether each inequality binds."""
    margins: Tensor
    """(D,) float64."""

    _cache: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.states)

    def cached(self, key: str, build: Callable[[], T]) -> T:
        """The result of `build()`, computed once for all decisions, for as long as the table
        lives."""
        if key not in self._cache:
            self._cache[key] = build()
        return self._cache[key]

    @cached_property
    def decisions(self) -> Tensor:
        """(D, n) float64, uploaded when first asked for: projections do without."""
        # Torch warns of arrays that cannot be written to, as those mapped from a file.
        decisions = np.require(self.host.decisions, requirements="W")
        return torch.as_tensor(decisions, device=self.states.device)

    @cached_property
    def weights(self) -> Tensor | None:
        """(D,) what each sample counts in a loss; None where all count 1."""
        weights = self.host.weights
        return (
            None if (weights == 1.0).all() else torch.as_tensor(weights, device=self.states.device)
        )

    @cached_property
    def margin(self) -> float | None:
        """The margin of all decisions, None where they differ."""
        margins = self.host.margins
        same = len(margins) == 0 or (margins == margins[0]).all()
        return self.host.margin if same else None


@dataclass(frozen=True, eq=False)
class DeviceSets(CostSet):
    """The sets of B decisions on a device: an OptimalitySet that never leaves it."""

    table: Table
    index: Tensor | None = None
    """(B,) int64: which of the table's decisions; None for all in order."""

    @classmethod
    def upload(cls, sets: OptimalitySet, device: Any) -> DeviceSets:
        """Copy `sets` to `device`; the analysis of their problem is kept with the problem."""
        device = exact_device(device)
        # Without what the sets keep of themselves: a circle would hold on to device memory.
        host = sets.replaced()
        return cls(
            Table(
                host,
                plan_of(sets, device),
                # The kernels read line after line, whatever order the arrays came in.
                torch.as_tensor(sets.entry_state, device=device).contiguous(),
                torch.as_tensor(sets.row_active, device=device).to(torch.uint8).contiguous(),
                torch.as_tensor(sets.margins, device=device).contiguous(),
            )
        )

    def __len__(self) -> int:
        return len(self.table) if self.index is None else len(self.index)

    @property
    def device(self) -> torch.device:
        return self.table.states.device

    @property
    def plan(self) -> Plan:
        return self.table.plan

    @property
    def problem(self) -> LinearProgram:
        """Of the chosen decisions; asking costs a trip to the host where constraints differ."""
        problem = self.table.host.rows
        if problem.n_instances is None or self.index is None:
            return problem
        return problem[self.index.cpu().numpy()]

    @property
    def decisions(self) -> Tensor:
        """(B, n) float64."""
        return self._chosen(self.table.decisions)

    @property
    def margins(self) -> Tensor:
        """(B,) float64."""
        return self._chosen(self.table.margins)

    @property
    def weights(self) -> Tensor | None:
        """(B,) float64; None where all samples count 1."""
        return None if self.table.weights is None else self._chosen(self.table.weights)

    def __getitem__(self, index: Any) -> DeviceSets:
        """The sets of the chosen decisions: a slice, or an integer tensor, best on the device.

        Positions on a GPU must be from 0 to B - 1; they are not checked, for that would mean
        waiting for it.
        """
        if isinstance(index, slice):
            index = torch.arange(len(self), device=self.device)[index]
        if not isinstance(index, Tensor) or index.ndim != 1 or index.dtype not in _WHOLE:
            given = f"{tuple(index.shape)} {index.dtype}" if isinstance(index, Tensor) else index
            raise InputError(
                "Sets on a device are chosen by a slice or a one-dimensional integer tensor; "
                f"got {given!s}."
            )
        if index.device.type == "cpu":
            _check_places(index, len(self))
        index = index.to(device=self.device, dtype=torch.int64).contiguous()
        return DeviceSets(self.table, index if self.index is None else self.index[index])

    def lines(self) -> tuple[Tensor, Tensor, Tensor]:
        """Codes of the entries, active rows and margins of the chosen decisions, in order."""
        table = self.table
        return self._chosen(table.states), self._chosen(table.active), self.margins

    @property
    def tol(self) -> float:
        """As of the sets that were uploaded."""
        return self.table.host.tol

    @property
    def n_parameters(self) -> int:
        """Length of what is predicted: a cost for each entry."""
        return self.plan.n

    def solve(self, parameters: Any, **options: Any) -> Solution:
        """Decisions of minimum cost under other costs (B, n); see `Problem.solve`."""
        return self.problem.solve(parameters, **options)

    def on_host(self) -> OptimalitySet:
        """The chosen sets as they were before the upload."""
        host = self.table.host
        return host if self.index is None else host[self.index.cpu().numpy()]

    def check(self, costs: Tensor) -> None:
        """Refuse costs that cannot belong to these sets; what only the device knows is not
        looked at."""
        if costs.ndim != 2 or tuple(costs.shape) != (len(self), self.plan.n):
            raise ShapeError(
                f"`costs` must have shape ({len(self)}, {self.plan.n}), one row for each decision; "
                f"got {tuple(costs.shape)}. Choose the sets of a batch with `device_sets[index]`."
            )
        if costs.device != self.device:
            raise InputError(
                f"`costs` are on {costs.device}, the sets on {self.device}. Move one of them."
            )
        if not costs.is_floating_point():
            raise InputError(f"`costs` must be of a floating dtype; got {costs.dtype}.")

    def __repr__(self) -> str:
        return f"DeviceSets({len(self)} decisions on {self.device}, {self.table.host.problem!r})"

    def _chosen(self, lines: Tensor) -> Tensor:
        return lines if self.index is None else lines[self.index]


def _check_places(index: Tensor, size: int) -> None:
    outside = index[(index < 0) | (index >= size)]
    if len(outside):
        raise InputError(
            f"Sets on a device are chosen by positions from 0 to {size - 1}; got {int(outside[0])}."
        )


def on_device(sets: OptimalitySet, device: Any) -> DeviceSets:
    """`OptimalitySet.to`: uploaded once for each device and kept with the sets."""
    device = exact_device(device)
    return sets.cached(device, lambda: DeviceSets.upload(sets, device))


def exact_device(device: Any) -> torch.device:
    """With the number of the GPU, for "cuda" alone is not equal to any tensor's device."""
    device = torch.device(device)
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device
