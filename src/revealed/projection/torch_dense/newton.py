"""The method of the kernels in plain torch, dense, all instances in step, on any device.

It serves where the band is too wide for the kernels or every instance has a matrix of its own,
and it is what the kernels are tested against. It looks whether it is done after every step, so it
cannot be captured in a graph. Letters as in `instances`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from ..constants import (
    EXACT,
    INTERIOR_STEPS,
    MOVES,
    PATIENCE,
    PENALTY,
    QUICK_STEPS,
    RIDGE,
    SLOPE,
    SOFT_SLOPE,
    SOFT_STEPS,
    SOFTENING,
    STILL,
    TRIALS,
    plan_stages,
)
from ..cpu.newton import Pace
from ..result import ARRAYS, Projection, ProjectionStatus
from .instances import Factor, Instances, conditions, load_instances, residual
from .interior import interior

if TYPE_CHECKING:
    from ..triton.sets import DeviceSets

MOST_NUMBERS = 1 << 28
"""Numbers that the matrices of a chunk of instances may take."""


def project_by_torch(
    costs: Tensor, sets: DeviceSets, *, tol: float, max_iter: int, start: Tensor | None
) -> Projection:
    """`project_on_device` without kernels, in chunks that fit into memory."""
    plan = sets.plan
    m = len(plan.source)
    piece = max(1, MOST_NUMBERS // max(m * plan.n + 3 * m * m, 1))
    parts = []
    for begin in range(0, max(len(costs), 1), piece):
        some = slice(begin, begin + piece)
        first = None if start is None else start[some]
        parts.append(_project(costs[some], sets[some] if len(sets) else sets, tol, max_iter, first))
    return Projection(*(torch.cat([getattr(p, name) for p in parts]) for name in ARRAYS))


def _project(
    costs: Tensor, sets: DeviceSets, tol: float, max_iter: int, start: Tensor | None
) -> Projection:
    plan = sets.plan
    dense = plan.dense if sets.index is None else plan.dense.take(sets.index)
    at = load_instances(costs, *sets.lines(), dense, plan.source, plan.n_equalities)
    v = (dense.start @ at.rows_of_all(at.shift)[:, :, None])[..., 0]
    known = torch.zeros(len(costs), dtype=torch.bool, device=costs.device)
    if start is not None:
        known = start.isfinite().all(dim=1)
        v = torch.where(known[:, None], start[:, plan.source] * at.norm / at.unit, v)
    at.v = _admissible(at, v)
    steps = torch.zeros(len(costs), dtype=torch.int64, device=costs.device)
    # A warm start that is within the tolerance already is an answer; else all aim higher.
    enough = residual(at, _moves(at)) <= torch.where(known, tol, STILL * tol)
    overshoot, stages = plan_stages(bounds=len(plan.source) > plan.n_equalities)
    quick = Pace(min(QUICK_STEPS, max_iter), 0, PATIENCE, overshoot, STILL * tol)
    _improve(at, steps, torch.nonzero(~enough).ravel(), quick)
    for goal, polish in stages:
        reached = residual(at, _moves(at))
        left = torch.nonzero(~(reached <= tol) & (steps < max_iter)).ravel()
        if not len(left):
            break
        before, soft = at.v[left].clone(), SOFT_STEPS if goal is None else 0
        if goal is not None:
            part, cap = at.take(left), max_iter - int(steps[left].max())
            steps[left] += interior(part, min(INTERIOR_STEPS, cap), goal)
            at.v[left] = part.v
        cap = min(soft + polish, max(max_iter - int(steps[left].max()), 0))
        _improve(at, steps, left, Pace(cap, soft, cap + 1, math.inf, STILL * tol))
        worse = ~(residual(at.take(left), _moves(at.take(left))) <= reached[left])
        at.v[left] = torch.where(worse[:, None], before, at.v[left])
    return _answer(costs, at, sets, steps, tol, max_iter)


def _answer(
    costs: Tensor, at: Instances, sets: DeviceSets, steps: Tensor, tol: float, max_iter: int
) -> Projection:
    """From the multipliers alone: the certificate."""
    plan = sets.plan
    multipliers = torch.zeros(len(costs), plan.n_rows, dtype=torch.float64, device=costs.device)
    multipliers[:, plan.source] = at.v / at.norm * at.unit
    at.v = _admissible(at, multipliers[:, plan.source] * at.norm / at.unit)
    r = _moves(at)
    left = residual(at, r)
    distance = torch.linalg.vector_norm(r, dim=1) * at.unit[:, 0]
    solved = (left <= tol) & distance.isfinite()
    status = torch.full_like(solved, ProjectionStatus.INACCURATE, dtype=torch.int8)
    status = torch.where(steps >= max_iter, ProjectionStatus.MAX_ITER.value, status)
    status = torch.where(solved, ProjectionStatus.SOLVED.value, status).to(torch.int8)
    point = costs.to(torch.float64) + r * at.unit
    return Projection(point, distance, left, solved, status, steps, multipliers)


def _admissible(at: Instances, v: Tensor) -> Tensor:
    v = torch.where(at.bounded, torch.maximum(v, at.least), v)
    return v.masked_fill(at.absent, 0.0)


def _moves(at: Instances) -> Tensor:
    t = at.columns(at.v) - at.shift
    return torch.where(at.active(t), t, 0.0)


def _improve(at: Instances, steps: Tensor, chosen: Tensor, pace: Pace) -> None:
    """Newton on the chosen instances; `at.v` and `steps` are updated."""
    part = at.take(chosen)
    taken = _newton(part, pace)
    at.v[chosen] = _admissible(part, part.v)
    steps[chosen] += taken


def _newton(at: Instances, pace: Pace) -> Tensor:
    """Semismooth Newton steps at the given pace; returns how many each instance took."""
    B = len(at.v)
    steps = torch.zeros(B, dtype=torch.int64, device=at.v.device)
    cuts, exact = steps.clone(), steps.clone()
    going = torch.ones(B, dtype=torch.bool, device=at.v.device)
    zeta, mu = torch.zeros_like(at.v), at.size[:, None]
    for step in range(pace.cap):
        soft = step < pace.soft
        t = at.columns(at.v) - at.shift
        r, weight = _pieces(at, t, None)
        if soft:
            if step == 0:
                mu = r.pow(2).mean(dim=1, keepdim=True).sqrt().clamp_min(1e-100)
            r, weight = _pieces(at, t, mu)
        row_gradient, excess = at.rows(r), at.v - at.least
        if step == 0:  # a bound that starts out active starts with the multiplier that holds it
            tight = at.bounded & (excess <= 0)
            zeta = torch.where(tight, row_gradient.clamp_min(0) / PENALTY, 0.0)
        if not soft:
            worst, gap, denominator = conditions(at, r)
            going &= ~(
                torch.maximum(worst * denominator, gap.abs())
                < pace.still * denominator * denominator
            )
        if not bool(going.any()):
            break
        on = at.bounded & (excess < zeta)
        rhs = -row_gradient - torch.where(on, PENALTY * (excess - zeta), 0.0)
        d = Factor(at, weight, torch.where(on, PENALTY + RIDGE, RIDGE)).solve(rhs)
        steps += going
        found = _line_search(at, zeta, t, d, mu if soft else None)
        at.v = at.v + torch.where(going, found.alpha, 0.0)[:, None] * d
        if soft:
            mu = mu * SOFTENING
            continue
        broken = at.v - at.least - zeta
        target = torch.where(at.bounded, (-broken).clamp_min(0), 0.0)
        zeta = torch.where((going & found.whole)[:, None], target, zeta)
        cuts += going & found.cut
        exact += going & found.whole & found.flat
        going &= (exact <= torch.where(at.bounded.any(dim=1), MOVES, 0)) & (cuts < pace.patience)
        going &= ~(found.overshoot > pace.overshoot)
    return steps


def _pieces(at: Instances, t: Tensor, mu: Tensor | None) -> tuple[Tensor, Tensor]:
    """Residuals at offsets t and their derivatives; rounded off unless `mu` (B, 1) is None."""
    active = at.active(t)
    r, weight = torch.where(active, t, 0.0), active.to(t)
    if mu is not None:
        side, root = at.lower.to(t) - at.upper.to(t), (t * t + 4.0 * mu * mu).sqrt()
        r = torch.where(side != 0, 0.5 * (t + side * root), r)
        weight = torch.where(side != 0, 0.5 * (1.0 + side * t / root), weight)
    return r, weight


class Found(NamedTuple):
    """What a line search found, (B,) each."""

    alpha: Tensor
    """The step at which the slope has (nearly) vanished."""
    whole: Tensor
    """Whether the full step stayed within one piece."""
    flat: Tensor
    """Whether it was exact."""
    cut: Tensor
    """Whether it had to be cut."""
    overshoot: Tensor
    """The slope after it, in terms of the one before."""


def _line_search(at: Instances, zeta: Tensor, t: Tensor, d: Tensor, mu: Tensor | None) -> Found:
    dt = at.columns(d)
    active = at.active(t)
    before = at.v - at.least - zeta
    on = at.bounded & (before < 0)

    def slope(alpha: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        now, broken = t + alpha[:, None] * dt, before + alpha[:, None] * d
        (r, weight), held = _pieces(at, now, mu), at.bounded & (broken < 0)
        first = (r * dt).sum(1) + PENALTY * torch.where(held, broken * d, 0.0).sum(1)
        second = (weight * dt * dt).sum(1) + PENALTY * torch.where(held, d * d, 0.0).sum(1)
        return first, second, (at.active(now) == active).all(1) & (held == on).all(1)

    zero = torch.zeros(len(t), dtype=t.dtype, device=t.device)
    start = slope(zero)[0].abs()
    limit = (SLOPE if mu is None else SOFT_SLOPE) * start
    alpha, low, high = zero + 1.0, zero, zero + 1e300
    first, second, same = slope(alpha)
    steep = first.abs() > limit
    whole, flat, cut, overshoot = same & ~steep, first.abs() < EXACT * limit, steep, first / start
    for _ in range(TRIALS - 1):
        if not bool(steep.any()):
            break
        high = torch.where(steep & (first > 0), alpha, high)
        low = torch.where(steep & ~(first > 0), alpha, low)
        guess = alpha - first / second
        bisect = torch.where(high < 1e299, 0.5 * (low + high), 4.0 * alpha)
        guess = torch.where((guess > low) & (guess < high), guess, bisect)
        alpha = torch.where(steep, guess, alpha)
        first, second, _ = slope(alpha)
        steep = steep & (first.abs() > limit)
    return Found(alpha, whole, flat, cut, overshoot)
