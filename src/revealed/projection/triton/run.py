"""The entry on the device: chooses between the kernels, plain torch and the CPU's own kernel.

On a GPU nothing here waits for the device, so a call can be captured in a CUDA graph (after one
ordinary call, in which the kernels are compiled). There are two exceptions: the torch version, on
problems whose band is too wide for the kernels, looks whether it is done; and on problems of
extreme scales the host proves the claims, and solves what it cannot prove.

Letters: B instances, n cost entries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._common.device import has_triton
from ...errors import InputError, ShapeError
from ...optimality.protocol import ProjectionOptions
from ..cpu.analysis import analyze
from ..cpu.certificate import Answer
from ..cpu.group import Job
from ..cpu.kernel import Work
from ..cpu.spread import HARMLESS, HOPELESS
from ..cpu.verify import UNPROVED, prove
from ..plain import METHODS as PROJECTED
from ..plain import project_rows
from ..project import check_options
from ..result import ARRAYS, Projection, ProjectionStatus
from .launch import Launch, Start, launch_all
from .plan import WIDEST
from .sets import DeviceSets

METHODS = ("auto", "triton", "torch")
PRECISIONS = ("float64", "float32")


def project_on_device(
    costs: Tensor,
    sets: DeviceSets,
    *,
    tol: float = 1e-8,
    max_iter: int = 500,
    warm_start: Any = None,
    places: Tensor | None = None,
    method: str = "auto",
    precision: str = "float64",
    launch: Launch | None = None,
    out: Projection | None = None,
    threads: int | None = None,
) -> Projection:
    """`revealed.project` for costs (B, n) that are on a device, and stay there.

    The answer's tensors are on the device too: float64, whatever the dtype of the costs, and the
    same codes as the CPU's. `out` is an earlier answer of the same shape, to be overwritten. Costs
    that are not finite are not refused on a GPU, which would mean waiting for it: their instances
    end unsolved.

    `warm_start` is an earlier projection of the same sets, or its multipliers, or, with `places`
    (B,) int64, a table with a line of multipliers for each sample: an instance starts from the line
    at its place, and afresh where that line is not finite.

    `method="auto"` is the Triton kernels on a GPU, the CPU's kernel (on `threads`) on a CPU, and
    plain torch (`"torch"`) where the kernels cannot serve. `precision="float32"` eliminates in
    float32, with offsets, gradients and the certificate in float64 still; what it does not bring
    below `tol` is finished in float64. Only the Triton kernels distinguish.
    """
    sets.check(costs)
    if method not in METHODS:
        raise InputError(f"`method` must be one of {', '.join(METHODS)}; got {method!r}.")
    if precision not in PRECISIONS:
        raise InputError(f"`precision` must be one of {', '.join(PRECISIONS)}; got {precision!r}.")
    costs = costs.detach().contiguous()
    start = _read_start(warm_start, places, sets)
    if out is not None:
        _check_out(out, costs, sets)
    if _by_kernel(sets, method):
        out = out or _empty(costs, sets)
        plain = precision == "float64"
        answer = launch_all(costs, sets, start, out, launch or Launch(), tol, max_iter, plain)
        return _without_doubtful(answer, costs, sets, tol, threads)
    lines = None if start is None else start.lines()
    if method == "auto" and sets.device.type == "cpu":
        answer = _by_cpu(costs, sets, tol, max_iter, lines, threads)
    else:
        from ..torch_dense.newton import project_by_torch

        answer = project_by_torch(costs, sets, tol=tol, max_iter=max_iter, start=lines)
        answer = _without_doubtful(answer, costs, sets, tol, threads)
    return answer if out is None else _copied(answer, out)


def _without_doubtful(
    p: Projection, costs: Tensor, sets: DeviceSets, tol: float, threads: int | None
) -> Projection:
    """Project again on the host, in place, where the scales of rows and columns could hide an error
    and the host cannot prove that they do not (`verify`). For problems of ordinary scales nothing
    is read back; while a graph is captured nothing can be, and doubt is enough to take `solved`
    back."""
    spread = float(analyze(sets.table.host).spread.max(initial=1.0))
    if not spread > HARMLESS:
        return p
    limit = 0.0 if spread > HOPELESS else HARMLESS * tol / spread
    doubtful = p.solved & (p.residual > limit)
    if p.solved.is_cuda and torch.cuda.is_current_stream_capturing():
        p.residual.masked_fill_(doubtful, UNPROVED)
    elif bool(doubtful.any()):
        chosen = torch.nonzero(doubtful).ravel()
        p.residual[chosen] = _proved(p, costs, sets, chosen).to(p.residual)
        _solve_on_host(p, costs, sets, chosen[p.residual[chosen] > tol], tol, threads)
    lost = doubtful & (p.residual > tol)
    p.status.masked_fill_(lost, ProjectionStatus.INACCURATE.value)
    p.solved.logical_and_(~lost)
    return p


def _proved(p: Projection, costs: Tensor, sets: DeviceSets, chosen: Tensor) -> Tensor:
    """The residuals of the chosen instances, raised by the host to what it can prove."""
    own = sets[chosen].on_host()

    def lines(part: Tensor) -> np.ndarray:
        return np.ascontiguousarray(part[chosen].double().cpu().numpy())

    answer = Answer(lines(p.point), lines(p.distance), lines(p.residual))
    work = Work(lines(p.multipliers), np.zeros(len(chosen), np.int64), answer)
    job = Job(lines(costs), own.entry_state, own.row_active, own.margins)
    prove(analyze(own), job, work, np.arange(len(chosen)))
    return torch.from_numpy(answer.residual)


def _solve_on_host(
    p: Projection, costs: Tensor, sets: DeviceSets, chosen: Tensor, tol: float, threads: int | None
) -> None:
    """Replace the answers of the chosen instances by the host's, which has slower solvers too."""
    if not len(chosen):
        return
    options = ProjectionOptions(tol=tol, threads=threads)
    near = project_rows(costs[chosen].double().cpu().numpy(), sets[chosen].on_host(), options)
    for name in ARRAYS:
        part = getattr(p, name)
        part[chosen] = torch.from_numpy(np.asarray(getattr(near, name))).to(part)


def project_tensors(costs: Any, sets: DeviceSets, options: ProjectionOptions) -> Projection:
    """`revealed.project` where the sets are on a device; floating results take the costs' dtype."""
    method, time_limit = options.method, options.time_limit
    check_options(len(costs), len(sets), options, PROJECTED)
    if method not in ("auto", "kernel") or time_limit is not None:
        raise InputError(
            "Sets on a device are projected with method='auto' or 'kernel' and no time limit; got "
            f"method={method!r}, time_limit={time_limit!r}. The OptimalitySet itself takes both."
        )
    if not isinstance(costs, Tensor):
        raise InputError(
            f"Sets on {sets.device} need `costs` as a tensor there; got {type(costs).__name__}."
        )
    p = project_on_device(
        costs,
        sets,
        tol=options.tol,
        max_iter=options.max_iter,
        warm_start=options.warm_start,
        threads=options.threads,
    )
    return p if costs.dtype == torch.float64 else _as_given(p, costs.dtype)


def _as_given(p: Projection, dtype: torch.dtype) -> Projection:
    """`result.as_given` without reading back."""
    cast = p.each(lambda part: part.to(dtype) if part.is_floating_point() else part)
    size = torch.linalg.vector_norm(p.point, dim=1)
    off = torch.linalg.vector_norm(cast.point.double() - p.point, dim=1)
    fits = (off <= torch.finfo(dtype).eps * size) & cast.distance.isfinite()
    lost = ProjectionStatus.OUT_OF_RANGE.value
    status = torch.where(p.solved & ~fits, lost, p.status).to(p.status.dtype)
    return replace(cast, solved=p.solved & fits, status=status)


def _by_kernel(sets: DeviceSets, method: str) -> bool:
    possible = sets.plan.band is not None and has_triton()
    if method == "triton" and not possible:
        raise InputError(
            "The Triton kernels need triton, one matrix for all instances, and a band of at most "
            f"{WIDEST} blocks of 16 rows; use method='auto'."
        )
    if method == "auto":
        return possible and sets.device.type == "cuda" and len(sets) > 0
    return method == "triton" and len(sets) > 0


def _by_cpu(
    costs: Tensor,
    sets: DeviceSets,
    tol: float,
    max_iter: int,
    start: Tensor | None,
    threads: int | None,
) -> Projection:
    warm = None if start is None or not bool(start.isfinite().all()) else start.numpy()
    options = ProjectionOptions(tol=tol, max_iter=max_iter, warm_start=warm, threads=threads)
    p = project_rows(costs.to(torch.float64).numpy(), sets.on_host(), options)
    return p.each(torch.from_numpy)


def _read_start(warm_start: Any, places: Tensor | None, sets: DeviceSets) -> Start | None:
    if warm_start is None:
        return None
    given = getattr(warm_start, "multipliers", warm_start)
    shape = (len(sets) if places is None else len(given), sets.plan.n_rows)
    if not isinstance(given, Tensor) or tuple(given.shape) != shape:
        raise ShapeError(
            f"`warm_start` must be a Projection of the same sets, or its multipliers of shape "
            f"{shape}; got {tuple(given.shape) if isinstance(given, Tensor) else type(given)}."
        )
    if places is not None and tuple(places.shape) != (len(sets),):
        raise ShapeError(
            f"`places` must hold one line of `warm_start` for each of the {len(sets)} instances; "
            f"got shape {tuple(places.shape)}."
        )
    rows = given.detach().to(device=sets.device, dtype=torch.float64).contiguous()
    return Start(rows, None if places is None else places.contiguous())


def _empty(costs: Tensor, sets: DeviceSets) -> Projection:
    B, device = len(costs), costs.device

    def numbers(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float64, device=device)

    return Projection(
        point=numbers(B, sets.plan.n),
        distance=numbers(B),
        residual=numbers(B),
        solved=torch.empty(B, dtype=torch.bool, device=device),
        status=torch.empty(B, dtype=torch.int8, device=device),
        iterations=torch.empty(B, dtype=torch.int64, device=device),
        multipliers=numbers(B, sets.plan.n_rows),
    )


def _check_out(out: Projection, costs: Tensor, sets: DeviceSets) -> None:
    """Refuse an answer to overwrite that a kernel could write beyond the end of."""
    nothing = _empty(costs[:0], sets)
    for name in ARRAYS:
        there, like = getattr(out, name), getattr(nothing, name)
        shape = (len(costs), *like.shape[1:])
        fits = (
            isinstance(there, Tensor)
            and (tuple(there.shape), there.dtype) == (shape, like.dtype)
            and there.device == like.device
            and there.is_contiguous()
        )
        if not fits:
            raise ShapeError(
                f"`out` must be an answer for {len(costs)} costs of the same problem: its `{name}` "
                f"a tensor {shape} {like.dtype} on {like.device}."
            )


def _copied(answer: Projection, out: Projection) -> Projection:
    for name in ARRAYS:
        getattr(out, name).copy_(getattr(answer, name))
    return out
