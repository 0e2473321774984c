"""How the kernels are laid out on the device, and their launches.

Nothing here waits for the device: no size, flag or result is read back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..._common.device import processors
from ..constants import (
    DEVICE_ALL_STEPS,
    DEVICE_INTERIOR_RIDGE,
    DEVICE_PATIENCE,
    DEVICE_QUICK_STEPS,
    DEVICE_RIDGE,
    DEVICE_RIDGE_32,
    FAIR,
    FAR,
    STILL,
    plan_stages,
)
from ..result import Projection
from .plan import Band
from .sets import DeviceSets


@dataclass(frozen=True)
class Launch:
    """How the kernels are laid out on the device; the defaults were measured on an H200."""

    warps: int | None = None
    """Warps of a program, 4 or 8; None for 8 while the batch does not fill the device, else 4. A
    tile has one number for each thread of 8 warps."""
    chunk: int = 1024
    """Most columns handled at a time; a power of two."""
    rows: int = 512
    """Most rows handled at a time; a power of two."""
    per_processor: int = 4
    """Programs for each multiprocessor: enough to fill it, few enough to stay in the cache."""
    registers: int | None = None
    """Most registers of a thread; None leaves it to the compiler."""

    def warps_for(self, batch: int, processors: int) -> int:
        return self.warps or (8 if batch <= 2 * processors else 4)


class Start(NamedTuple):
    """Multipliers to start from."""

    rows: Tensor
    """(N, m) float64; a line that is not finite stands for none."""
    places: Tensor | None
    """(B,) int64: which line each instance starts from; None for its own."""

    def lines(self) -> Tensor:
        """(B, m) in the order of the instances."""
        return self.rows if self.places is None else self.rows[self.places]


def launch_all(
    costs: Tensor,
    sets: DeviceSets,
    start: Start | None,
    out: Projection,
    launch: Launch,
    tol: float,
    max_iter: int,
    plain: bool,
) -> Projection:
    """First try, certificate, fallback for what is left, certificate of its result."""
    plan, band = sets.plan, sets.plan.band
    assert band is not None  # `project_on_device` saw to it
    if len(plan.source) < plan.n_rows:  # the kernels fill the others
        out.multipliers.zero_()
    due = torch.empty(len(costs), dtype=torch.int8, device=costs.device)
    programs = min(len(costs), processors(costs.device) * launch.per_processor)
    grid = (programs,)
    shared = _instances(costs, sets, out, launch, programs) | _lists(band)
    bounds = len(plan.source) > plan.n_equalities
    config = _config(launch, band, bounds=bounds, on_device=costs.device.type == "cuda")
    solver = _matrix(band)
    solver["fair"] = FAIR * tol
    judged = {
        "due_ptr": due,
        "point_ptr": out.point,
        "distance_ptr": out.distance,
        "residual_ptr": out.residual,
        "solved_ptr": out.solved.view(torch.uint8),
        "status_ptr": out.status,
        "max_iter": max_iter,
        "tol": tol,
    }
    kernels, tl = _kernels()
    kernels.first[grid](
        **shared,
        **solver,
        first_inverse=band.first_inverse,
        first_below=band.first_below,
        first_above=band.first_above,
        cap=min(DEVICE_QUICK_STEPS if bounds else DEVICE_ALL_STEPS, max_iter),
        patience=DEVICE_PATIENCE,
        overshoot=plan_stages(bounds)[0],
        far=FAR,
        tol=tol,
        still=(STILL if plain else FAIR) * tol,
        ridge=DEVICE_RIDGE if plain else DEVICE_RIDGE_32,
        config=config if plain else replace(config, KIND=tl.float32),
        **_start(start, out),
    )
    kernels.certify[grid](**shared, **judged, config=config.of_passes(), all_due=1)
    kernels.fallback[grid](
        **shared,
        **solver,
        residual_ptr=out.residual,
        due_ptr=due,
        max_iter=max_iter,
        tol=tol,
        still=STILL * tol,
        ridge=DEVICE_RIDGE,
        inner_ridge=DEVICE_INTERIOR_RIDGE,
        config=config,
    )
    kernels.certify[grid](**shared, **judged, config=config.of_passes(), all_due=0)
    return out


def _start(start: Start | None, out: Projection) -> dict[str, Any]:
    """Pointers that are not looked at stand in for those that are not there."""
    if start is None:
        rows, places = out.multipliers, None
    else:
        rows, places = start
    return {
        "start_ptr": rows,
        "places_ptr": out.iterations if places is None else places,
        "warm": int(start is not None),
        "placed": int(places is not None),
    }


def _kernels() -> tuple[Any, Any]:
    """The Triton kernels and Triton's language, imported when first needed."""
    import triton.language as tl  # pyright: ignore[reportMissingImports]

    from .certify import certify_kernel
    from .fallback import fallback_kernel
    from .first import first_kernel

    kernels = SimpleNamespace(first=first_kernel, certify=certify_kernel, fallback=fallback_kernel)
    return kernels, tl


def _instances(
    costs: Tensor, sets: DeviceSets, out: Projection, launch: Launch, programs: int
) -> dict[str, Any]:
    """What every kernel needs to know of the batch and of its own shape."""
    plan, band = sets.plan, sets.plan.band
    assert band is not None
    from .layout import scratch_size  # triton is imported when first needed

    stride = scratch_size(band)
    given: dict[str, Any] = {
        "cost_ptr": costs,
        "states_ptr": sets.table.states,
        "active_ptr": sets.table.active,
        "margin_ptr": sets.table.margins,
        "index_ptr": out.iterations if sets.index is None else sets.index,
        "indexed": int(sets.index is not None),
        "multipliers_ptr": out.multipliers,
        "steps_ptr": out.iterations,
        "scratch_ptr": torch.empty(programs * stride, dtype=torch.float64, device=costs.device),
        "stride": stride,
        "B": len(costs),
        "n": plan.n,
        "n_eq": plan.n_equalities,
        "n_ub": plan.n_rows - plan.n_equalities,
        "num_warps": launch.warps_for(len(costs), processors(costs.device)),
        "num_stages": 1,  # the loops are for latency, not for pipelines
    }
    if launch.registers is not None and costs.device.type == "cuda":
        given["maxnreg"] = launch.registers
    return given


def _lists(band: Band) -> dict[str, Any]:
    """The problem's rows and columns, as the passes want them."""
    return {
        "col_take": band.columns.take,
        "col_weight": band.columns.weight,
        "col_length": band.columns.length,
        "row_take": band.rows.take,
        "row_weight": band.rows.weight,
        "row_length": band.rows.length,
        "norm": band.norm,
        "source": band.source,
        "N": band.columns.size,
        "M": band.rows.size,
    }


def _matrix(band: Band) -> dict[str, Any]:
    """What is needed to assemble and eliminate A D A^T."""
    return {
        "pair_take": band.pairs.take,
        "pair_weight": band.pairs.weight,
        "pair_length": band.pairs.length,
        "pair_rows": band.pair_rows,
        "opening": band.opening,
        "entering": band.entering,
        "middle": band.middle,
        "P": band.pairs.size,
        "H": band.steps,
        "one": 1,
    }


def _config(launch: Launch, band: Band, *, bounds: bool, on_device: bool) -> Any:
    """The `layout.Config` of the kernels that solve."""
    from .layout import Config
    from .memory import LIMIT

    rows = (4 if bounds else 3) * band.rows.size
    exchange = _exchange_size(band.width)
    shared = on_device and 8 * (rows + exchange) <= LIMIT
    near = shared and 8 * (rows + max(exchange, band.columns.size)) <= LIMIT
    words = rows + max(exchange, band.columns.size if near else 0)
    return Config(
        C=min(launch.chunk, band.chunk),
        G=_power_of_two(band.rows.size, launch.rows),
        UC=2,
        UR=min(band.rows.length, 16),
        GP=_power_of_two(band.pairs.size, 1024),
        W=band.width,
        BOUNDS=bounds,
        FAST=on_device,
        SHARED=shared,
        NEAR=near,
        WORDS=min(_coarse(words), LIMIT // 8) if shared else 0,
    )


def _power_of_two(size: int, most: int) -> int:
    return min(1 << max(size - 1, 255).bit_length(), most)


def _coarse(words: int) -> int:
    """Rounded up, so that problems of similar size share a compiled kernel."""
    return -(-words // 1024) * 1024


def _exchange_size(W: int) -> int:
    """Words of the board that an elimination exchanges pivots over, and of the middle tiles where
    they are few."""
    return 128 * (W + 1) + (256 * W * (W + 1) if W <= 2 else 0)
