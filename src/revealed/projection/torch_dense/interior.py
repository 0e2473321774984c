"""The interior point in plain torch: Mehrotra's predictor and corrector, as in `cpu.interior`.

Letters as in `instances`; z is the residual of an entry at a bound, w its distance from it, y
and f what a bounded multiplier has above its least and the multiplier of that bound.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..constants import INSIDE, INTERIOR_RIDGE, START
from .instances import Factor, Instances


def interior(at: Instances, cap: int, goal: float) -> Tensor:
    """Improve at.v until the mean product is below `goal`, relative to the squared move; returns
    how many steps each instance took, `cap` at most."""
    sign = at.lower.to(at.v) - at.upper.to(at.v)
    limited, free = sign != 0, ~(at.lower | at.upper)
    t, z, w, y, f = _enter(at, sign, limited)
    steps = torch.zeros(len(at.v), dtype=torch.int64, device=at.v.device)
    going = torch.ones_like(steps, dtype=torch.bool)
    for _ in range(cap):
        share = z / (z + w)
        move = torch.where(free, t, sign * z)
        total = torch.where(limited, z * w, 0.0).sum(1) + torch.where(at.bounded, y * f, 0.0).sum(1)
        count = (limited.sum(1) + at.bounded.sum(1)).clamp_min(1)
        denominator = torch.maximum(move.square().sum(1), 1e-12 * at.size.square())
        going &= ~(total < goal * denominator)
        if not bool(going.any()):
            break
        steps += going
        weight = torch.where(limited, share, free.to(t))
        factor = Factor(at, weight, torch.where(at.bounded, f / y, 0.0) + INTERIOR_RIDGE)
        d = factor.solve(-at.rows(torch.where(free, t, sign * share * z)))
        s = sign * at.columns(d)
        dz = (s - w) * share
        dw, df = dz - s, -f - f * d / y
        rate = _rate(at, limited, -dz / z, -dw / w, -d / y, -df / f.clamp_min(1e-300))
        alpha, mu = 1.0 / rate.clamp_min(1.0), total / count
        linear = torch.where(limited, z * dw + w * dz, 0.0).sum(1)
        linear = linear + torch.where(at.bounded, y * df + f * d, 0.0).sum(1)
        second = torch.where(limited, dz * dw, 0.0).sum(1)
        second = second + torch.where(at.bounded, d * df, 0.0).sum(1)
        after = mu + alpha * (linear + alpha * second) / count
        target = (after / torch.where(mu > 0, mu, 1.0)).clamp(0, 1) ** 3 * mu
        constant = (target[:, None] - z * w - dz * dw) / (z + w)
        pull = torch.where(at.bounded, (target[:, None] - d * df) / y, 0.0)
        aim = torch.where(free, t, sign * (z + constant))
        d = factor.solve((pull - at.rows(aim)).masked_fill(at.absent, 0.0))
        dt = at.columns(d)
        s = sign * dt
        dz = share * s + constant
        dw, df = dz - s, pull - f - f * d / y
        rate = _rate(at, limited, -dz / z, -dw / w, -d / y, -df / f.clamp_min(1e-300))
        alpha = (INSIDE / rate.clamp_min(1e-30)).clamp_max(1.0)
        alpha = torch.where(going, alpha, 0.0)[:, None]
        t = t + alpha * dt
        z, w = (torch.where(limited, a + alpha * b, 1.0) for a, b in ((z, dz), (w, dw)))
        at.v = at.v + alpha * d
        y, f = (torch.where(at.bounded, a + alpha * b, a) for a, b in ((y, d), (f, df)))
    return steps


def _enter(at: Instances, sign: Tensor, limited: Tensor) -> tuple[Tensor, ...]:
    """A first point on z - w = +-t with equal products, from the multipliers at hand."""
    t = at.columns(at.v) - at.shift
    total, count = torch.where(limited, t.abs(), 0.0).sum(1), limited.sum(1)
    mean = START * torch.maximum(total / count.clamp_min(1), 1e-6 * at.size)
    mean = torch.where(mean > 0, mean, 1.0)[:, None]
    gap = torch.maximum(at.v - at.least, mean)
    y, f = torch.where(at.bounded, gap, 1.0), torch.where(at.bounded, mean * mean / gap, 0.0)
    # Lifting a multiplier off its bound moves the offsets of its row.
    at.v = torch.where(at.bounded, at.least + gap, at.v)
    t = at.columns(at.v) - at.shift
    offset = sign * t
    big = 0.5 * (offset.abs() + (offset * offset + 4.0 * mean * mean).sqrt())
    small = mean * mean / big
    z = torch.where(limited, torch.where(offset > 0, big, small), 1.0)
    w = torch.where(limited, torch.where(offset > 0, small, big), 1.0)
    return t, z, w, y, f


def _rate(at: Instances, limited: Tensor, z: Tensor, w: Tensor, y: Tensor, f: Tensor) -> Tensor:
    """(B,) the largest relative decrease of anything that must stay positive."""
    columns = torch.where(limited, torch.maximum(z, w), 0.0).amax(1)
    if not at.bounded.shape[1]:
        return columns
    rows = torch.where(at.bounded, torch.maximum(y, f), 0.0).amax(1)
    return torch.maximum(columns, rows)
