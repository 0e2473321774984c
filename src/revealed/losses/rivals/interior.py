"""Points inside a polyhedron that balance cost against distance from its sides, a batch at once.

    z(c) = argmin <c, z> + 1/2 <curve z, z> - mu sum log(z - low) - mu sum log(high - z)
           subject to   rows z = rhs

With mu near 0 it is the quadratic program itself; without curve, a point of the central path of a
linear one. A primal-dual interior-point method (Mehrotra's predictor and corrector) in dense
float64: one Cholesky factor of the m x m normal equations for each sample and step.

Letters: B samples, m rows, N entries (those of the problem, then a slack for each inequality),
S sides: the lower bounds and the upper bounds, each only if any entry has one.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ...errors import InputError
from .standard_form import Form, times, times_transposed

TOL = 1e-9
"""Residuals at which the method ends, relative to costs and right-hand sides."""
SOLVED = 1e-6
"""Residuals up to which a point is called solved, where rounding ends the method earlier."""
SHORT_OF_BOUND = 0.995
"""Share of the way to the nearest bound that a step goes at most."""
STUCK = 0.1
"""A step this short has run into a bound: the next one goes back to the middle."""
BACK = 10.0
"""How much farther from the bounds that is, as a factor of the mean product."""
RIDGE = 1e-14
"""Share by which the diagonal of the normal equations is raised. Dependent rows make them singular;
what the ridge changes there is a multiplier on which nothing depends."""
CALM_AFTER = 20
"""Steps after which no more is guessed; most samples need about ten. The guesses can go round in a
circle, as on one knapsack in a few thousand."""
CALM = 0.2
"""What is left of the mean product after a calm step that need not be cut."""
LOOSE = 1e-9
"""Stiffness of an entry with neither bounds nor curve, which has none of its own."""


class Point(NamedTuple):
    """Where the method ended, for each sample."""

    z: Tensor
    """(B, N)"""
    y: Tensor
    """(B, m): multipliers of the rows."""
    reduced: Tensor
    """(B, N): multipliers of the lower bounds less those of the upper ones. Their signs are right
    at any time; at the end c + curve z = rows^T y + reduced."""
    soft: Tensor
    """(B, N): 1 / H, with H the curve and what the bounds add to it; 0 where an entry is fixed."""
    tight: Tensor
    """(B, N) bool: entries that go to a bound as mu goes to 0, or are fixed."""
    snapped: Tensor
    """(B, N): z with those entries at their bounds."""
    solved: Tensor
    """(B,) bool"""


@torch.inference_mode()  # many small operations, each a tenth faster
def central_point(
    form: Form, cost: Tensor, mu: Tensor, *, sharp: float, max_iter: int = 60
) -> Point:
    """z(c) for costs (B, N) and mu (B,), above 0.

    It ends when the residuals are small and each multiplier times its distance from the bound is
    mu, give or take the share `sharp`.
    """
    method = _Method(form, cost, mu)
    at = method.start()
    for k in range(max_iter):
        left = method.residual(at)
        if bool(((left.size <= TOL) & (left.spread <= sharp * mu)).all()):
            break
        at = method.calm_step(at, left) if k >= CALM_AFTER else method.step(at, left)
    return method.point(at)


def check_solved(point: Point, causes: str) -> None:
    """Refuse a batch in which some sample has no such point."""
    if not bool(point.solved.all()):
        raise InputError(
            f"The smoothed problem of sample {int(torch.nonzero(~point.solved)[0])} has not been "
            f"solved ({int((~point.solved).sum())} of {len(point.solved)} samples). Look for "
            f"{causes}."
        )


@torch.inference_mode()
def pull_back(form: Form, soft: Tensor, gradient: Tensor) -> Tensor:
    """(B, N): the derivative in c of a function of z(c) that has the derivative `gradient` in z.

    The optimality conditions, differentiated, say dz = -(H^-1 - H^-1 A^T (A H^-1 A^T)^-1 A H^-1) dc
    with H^-1 = diag(soft); the matrix is symmetric, so it carries derivatives back just as well.
    """
    direct = soft * gradient
    y = solve_with(factorize(form, soft), times(form.rows, direct))
    return soft * times_transposed(form.rows, y) - direct


def factorize(form: Form, soft: Tensor) -> Tensor:
    """(B, m, m): Cholesky factors of rows diag(soft) rows^T."""
    scaled, m = form.rows * soft[:, None], form.rows.shape[1]
    if len(form.rows) == 1:
        normal = (scaled.flatten(0, 1) @ form.rows[0].T).view(-1, m, m)
    else:
        normal = torch.bmm(scaled, form.rows.transpose(1, 2))
    # Next to nothing for rows that are empty, and ask for nothing; no other row feels it.
    normal.diagonal(dim1=1, dim2=2).mul_(1.0 + RIDGE).add_(1e-300)
    return torch.linalg.cholesky_ex(normal).L


def solve_with(factors: Tensor, right: Tensor) -> Tensor:
    """(B, m): the solution for right-hand sides (B, m)."""
    return torch.cholesky_solve(right[:, :, None], factors)[:, :, 0]


# --- the method ----------------------------------------------------------------------------------


class _State(NamedTuple):
    """Where a batch stands, or a step from there."""

    z: Tensor
    y: Tensor
    gap: Tensor
    """(B, S, N) distances from the bounds, above 0; 1 where there is none. Carried along rather
    than computed from z, as a difference of nearly equal numbers would have few digits."""
    force: Tensor
    """(B, S, N) multipliers of the bounds, above 0; 0 where there is none."""


class _Residual(NamedTuple):
    primal: Tensor
    """(B, m)"""
    dual: Tensor
    """(B, N)"""
    product: Tensor
    """(B, S, N): force times gap."""
    size: Tensor
    """(B,): the largest of all, each in its own units."""
    spread: Tensor
    """(B,): how far products are from mu at most."""


class _Newton(NamedTuple):
    """The linearized conditions at a state, factorized."""

    rows: Tensor
    toward: Tensor
    stiff: Tensor
    """(B, S, N): force over gap."""
    soft: Tensor
    """(B, N): 1 / H."""
    factors: Tensor

    def step(self, at: _State, left: _Residual, target: Tensor) -> _State:
        """The step that would end all residuals and make the products equal to `target`."""
        push = (target - left.product) / at.gap
        pull = (self.toward * push).sum(1) - left.dual
        y = solve_with(self.factors, -left.primal - times(self.rows, self.soft * pull))
        z = self.soft * (pull + times_transposed(self.rows, y))
        gap = self.toward * z[:, None]
        return _State(z, y, gap, push - self.stiff * gap)


class _Method:
    """One batch, and what stays the same from step to step."""

    def __init__(self, form: Form, cost: Tensor, mu: Tensor) -> None:
        self.form, self.cost = form, cost
        bound = torch.stack(torch.broadcast_tensors(form.low, form.high), dim=1)
        present = bound.isfinite() & (form.low < form.high)[:, None]
        used = present.any(2).any(0)
        used[0] = True  # with no bound at all, one empty side keeps the arithmetic going
        self.movable = (form.low < form.high).to(cost)
        self.present = present[:, used].to(cost)
        self.missing = 1.0 - self.present
        self.toward = self.present * cost.new_tensor([1.0, -1.0])[used][:, None]
        self.offset = self.missing - torch.where(present, bound, 0.0)[:, used] * self.toward
        self.count = self.present.sum((1, 2)).clamp_min(1.0)
        loose = (form.curve == 0) & ~present.any(1)
        own = form.curve + LOOSE * loose.to(cost)
        self.curve = torch.where(self.movable > 0, own, torch.inf)  # fixed: as stiff as can be
        self.mu, self.end = mu[:, None, None], mu[:, None, None] * self.present
        self.rhs_size = 1.0 + _largest(form.rhs)
        self.cost_size = _largest(cost) + _largest(form.curve) + mu

    def start(self) -> _State:
        """Near 0, but 1 away from bounds that leave room for it; products all alike."""
        form = self.form
        room = ((form.high - form.low) / 2).clamp_max(1.0)
        least, most = form.low + room, form.high - room
        z = torch.zeros_like(self.cost).clamp(least, most)
        if form.slacks:
            n = z.shape[1] - form.slacks
            z[:, n:] = 0.0
            slack = (form.rhs - times(form.rows, z))[:, -form.slacks :]
            z[:, n:] = slack.clamp(least[:, n:], most[:, n:])
        gap = self.toward * z[:, None] + self.offset
        size = self.cost_size + _largest(form.curve * z)
        y = z.new_zeros(len(z), form.rows.shape[1])
        return _State(z, y, gap, self.present * size[:, None, None] / gap)

    def residual(self, at: _State) -> _Residual:
        form = self.form
        primal = times(form.rows, at.z) - form.rhs
        pushed = times_transposed(form.rows, at.y) + (self.toward * at.force).sum(1)
        dual = (form.curve * at.z + self.cost - pushed) * self.movable
        product = at.gap * at.force
        spread = _largest((product - self.end).flatten(1))
        in_costs = torch.maximum(_largest(dual), spread / self.rhs_size) / self.cost_size
        size = torch.maximum(_largest(primal) / self.rhs_size, in_costs)
        return _Residual(primal, dual, product, size, spread)

    def newton(self, at: _State) -> _Newton:
        stiff = at.force / at.gap
        soft = 1.0 / (self.curve + stiff.sum(1))
        return _Newton(self.form.rows, self.toward, stiff, soft, factorize(self.form, soft))

    def calm_step(self, at: _State, left: _Residual) -> _State:
        """Down the central path by a fixed share: slower, and sure to arrive."""
        now = left.product.sum((1, 2)) / self.count
        aim = torch.maximum(CALM * now[:, None, None], self.mu)
        step = self.newton(at).step(at, left, aim * self.present)
        return _moved(at, step, self._room(at, step))

    def step(self, at: _State, left: _Residual) -> _State:
        """Try to go all the way to mu, see how far that gets, and choose how low to aim."""
        newton = self.newton(at)
        trial = newton.step(at, left, self.end)
        far = self._room(at, trial)
        now = left.product.sum((1, 2)) / self.count
        then = ((at.gap + far * trial.gap) * (at.force + far * trial.force)).sum((1, 2))
        share = (then / (self.count * now)).clamp(0.0, 1.0)
        aim = torch.maximum((share * share * share * now)[:, None, None], self.mu)
        # Mehrotra's correction for what is not linear, trusted only as far as the trial went:
        # taken in full after a short one, it can send the products up and down without end.
        trust = (2.0 * far).clamp_max(1.0).square()
        step = newton.step(at, left, aim * self.present - trust * trial.gap * trial.force)
        reach = self._room(at, step)
        step, reach = _either(far > reach, (trial, far), (step, reach))
        stuck = reach < STUCK
        if bool(stuck.any()):
            middle = BACK * torch.maximum(now[:, None, None], self.mu)
            back = newton.step(at, left, middle * self.present)
            step, reach = _either(stuck, (back, self._room(at, back)), (step, reach))
        return _moved(at, step, reach)

    def point(self, at: _State) -> Point:
        soft = 1.0 / (self.curve + (at.force / at.gap).sum(1))
        reduced = (self.toward * at.force).sum(1)
        in_units = self.rhs_size[:, None, None], self.cost_size[:, None, None]
        near = (at.force * in_units[0] > at.gap * in_units[1]).to(at.z)
        snapped = at.z - (self.toward * at.gap * near).sum(1)
        tight = (near.sum(1) > 0) | (self.movable == 0)
        solved = self.residual(at).size <= SOLVED
        return Point(at.z, at.y, reduced, soft, tight, snapped, solved)

    def _room(self, at: _State, step: _State) -> Tensor:
        """(B, 1, 1): how much of a step each sample can go, 1 at most, and not quite to where a gap
        or a force is 0."""
        fall = torch.minimum(step.gap / at.gap, step.force / (at.force + self.missing))
        deepest = fall.flatten(1).amin(1).clamp_max(-SHORT_OF_BOUND)
        return (-SHORT_OF_BOUND / deepest)[:, None, None]


def _moved(at: _State, step: _State, reach: Tensor) -> _State:
    pairs = zip(at, step, strict=True)
    return _State(*(torch.addcmul(part, _beside(reach, part), way) for part, way in pairs))


def _either(
    first: Tensor, one: tuple[_State, Tensor], other: tuple[_State, Tensor]
) -> tuple[_State, Tensor]:
    """Steps and how far they go: `one` where `first` (B, 1, 1) is true, else the `other`."""
    if not bool(first.any()):
        return other
    pairs = zip(one[0], other[0], strict=True)
    step = _State(*(torch.where(_beside(first, a), a, b) for a, b in pairs))
    return step, torch.where(first, one[1], other[1])


def _beside(each: Tensor, part: Tensor) -> Tensor:
    """One number for each sample, (B, 1, 1), in as many dimensions as `part`."""
    return each if part.ndim == 3 else each[:, :, 0]


def _largest(rows: Tensor) -> Tensor:
    return torch.linalg.vector_norm(rows, torch.inf, dim=1)
