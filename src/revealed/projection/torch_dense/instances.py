"""A batch of projections on its way and its linear algebra: all in step, dense, in plain torch.

Letters: B instances, n columns, m rows. Entries and rows are in the CPU kernel's units: rows of
length 1, costs divided by a power of two.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from ..constants import SHORT
from ..triton.plan import Dense


@dataclass(eq=False)
class Instances:
    """B projections on their way; all of it can be sliced with `take`."""

    A: Tensor
    """(1 or B, m, n) rows of length 1."""
    norm: Tensor
    """(1 or B, m)"""
    shift: Tensor
    """(B, n) costs with the margin folded in."""
    lower: Tensor
    """(B, n) bool: the residual must not be negative."""
    upper: Tensor
    """(B, n) bool: the residual must not be positive."""
    v: Tensor
    """(B, m) multipliers."""
    least: Tensor
    """(B, m) smallest admissible multiplier of a bounded row."""
    bounded: Tensor
    """(B, m) bool: an active inequality."""
    absent: Tensor
    """(B, m) bool: an inactive one."""
    unit: Tensor
    """(B, 1) power of two by which the costs were divided."""
    size: Tensor
    """(B,) length of the scaled cost, or the margin if that is larger."""

    def take(self, index: Tensor) -> Instances:
        """The chosen instances; a matrix that all share is not copied."""
        parts = []
        for field in fields(self):
            part = getattr(self, field.name)
            shared = field.name in ("A", "norm") and len(part) == 1
            parts.append(part if shared else part[index])
        return Instances(*parts)

    def columns(self, v: Tensor) -> Tensor:
        """A^T v, (B, n)."""
        return v @ self.A[0] if len(self.A) == 1 else torch.einsum("bmn,bm->bn", self.A, v)

    def rows(self, r: Tensor) -> Tensor:
        """A r, (B, m); 0 on absent rows."""
        return self.rows_of_all(r).masked_fill(self.absent, 0.0)

    def rows_of_all(self, r: Tensor) -> Tensor:
        """A r, (B, m), absent rows included."""
        return r @ self.A[0].mT if len(self.A) == 1 else torch.einsum("bmn,bn->bm", self.A, r)

    def active(self, t: Tensor) -> Tensor:
        """(B, n) bool: where an entry with offset t may move."""
        return ~((self.lower & (t <= 0)) | (self.upper & (t >= 0)))


def load_instances(
    costs: Tensor,
    states: Tensor,
    active: Tensor,
    margins: Tensor,
    dense: Dense,
    source: Tensor,
    n_eq: int,
) -> Instances:
    """Scaled instances with v = 0, or at least what bounded rows ask for."""
    q = costs.to(torch.float64)
    largest = torch.maximum(q.abs().amax(dim=1), margins)
    exponent = torch.frexp(largest).exponent.clamp(-1000, 1000)
    unit = torch.ldexp(torch.ones_like(largest), exponent)
    unit = torch.where(largest > 0, unit, 1.0)[:, None]
    q, margin = q / unit, margins[:, None] / unit
    lower, upper = (states & 1) != 0, (states & 2) != 0
    bound = source >= n_eq
    binds = (
        active[:, (source - n_eq).clamp_min(0)].bool()
        if active.shape[1]
        else bound.expand(len(q), -1)
    )
    bounded = bound & binds
    least = torch.where(bounded, margin * dense.norm, 0.0)
    return Instances(
        A=dense.matrix,
        norm=dense.norm,
        shift=q - margin * (lower.to(q) - upper.to(q)),
        lower=lower,
        upper=upper,
        v=least.clone(),
        least=least,
        bounded=bounded,
        absent=bound & ~binds,
        unit=unit,
        size=torch.maximum(torch.linalg.vector_norm(q, dim=1), margin[:, 0]),
    )


def residual(at: Instances, r: Tensor) -> Tensor:
    """(B,) the residual of `projection.certificate` for moves r and multipliers at.v."""
    worst, gap, denominator = conditions(at, r)
    missed = torch.maximum(worst / denominator, gap.abs() / (denominator * denominator))
    missed = torch.minimum(missed, torch.linalg.vector_norm(r, dim=1) / denominator)
    lacking = torch.where(at.bounded, at.least - at.v, 0.0)
    below = lacking.amax(dim=1) if lacking.shape[1] else torch.zeros_like(denominator)
    return torch.maximum(missed, below / denominator)


def conditions(at: Instances, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The largest row condition broken, the duality gap, and the yardstick, (B,) each."""
    row_gradient, excess = at.rows(r), at.v - at.least
    allowed = torch.minimum(row_gradient.clamp_min(0), excess.clamp_min(0))
    broken = allowed + (-row_gradient).clamp_min(0) + (-excess).clamp_min(0)
    off = torch.where(at.bounded, broken, row_gradient.abs())
    denominator = torch.maximum(torch.linalg.vector_norm(r, dim=1), SHORT * at.size)
    denominator = torch.where(denominator == 0, 1.0, denominator)
    worst = off.amax(dim=1) if off.shape[1] else torch.zeros_like(denominator)
    return worst, (excess * row_gradient).sum(dim=1), denominator


class Factor:
    """A D A^T plus a diagonal, factorized; rows are scaled to a unit diagonal, absent ones taken
    out."""

    def __init__(self, at: Instances, weight: Tensor, extra: Tensor):
        lines = at.A * weight[:, None, :]
        gram = lines @ (at.A[0].mT if len(at.A) == 1 else at.A.mT)
        diagonal = gram.diagonal(dim1=1, dim2=2) + extra
        self.scale = torch.where(at.absent, 0.0, diagonal.rsqrt())
        gram = gram * self.scale[:, :, None] * self.scale[:, None, :]
        gram.diagonal(dim1=1, dim2=2).fill_(1.0)
        self.lower, info = torch.linalg.cholesky_ex(gram)
        for jitter in (1e-12, 1e-9, 1e-6):
            if not bool(info.any()):
                break
            gram.diagonal(dim1=1, dim2=2).add_(jitter * (info > 0)[:, None])
            self.lower, info = torch.linalg.cholesky_ex(gram)

    def solve(self, rhs: Tensor) -> Tensor:
        """(B, m) for right-hand sides (B, m)."""
        x = torch.cholesky_solve((rhs * self.scale)[:, :, None], self.lower)
        return x[:, :, 0] * self.scale
