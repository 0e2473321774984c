"""Implicit differentiation of the best portfolio, the rival of `revealed bench portfolio`.

    x(c, Q) = argmax <c, x> - gamma/2 x^T Q x   over   x >= 0, sum x = 1

The forward pass is a primal-dual interior-point method on the whole batch. The backward pass
differentiates the conditions of optimality at its end (OptNet; QPTL is the same with a quadratic
term that is not there otherwise). With z the multipliers of x >= 0,

    (gamma Q + diag(z / x)) dx + 1 dy = dc - gamma dQ x,   sum dx = 0

so one system, already factored, gives the derivative in c and in Q. Letters: B samples, n assets.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from revealed.errors import RevealedError

STEPS, GAP = 60, 1e-11
"""Most steps of the interior point, and the mean of x z (costs scaled to 1) at which it ends."""


def best_portfolios(c: Tensor, Q: Tensor, gamma: float) -> Tensor:
    """(B, n) portfolios of returns (B, n) and covariances (B, n, n), with a gradient in both."""
    return _BestPortfolio.apply(c, Q, gamma)


class _BestPortfolio(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, c: Tensor, Q: Tensor, gamma: float) -> Tensor:
        x, z = interior_point(c, gamma * Q)
        ctx.save_for_backward(Q, x, z)
        ctx.gamma = gamma
        return x

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor, None]:
        Q, x, z = ctx.saved_tensors
        root = torch.linalg.cholesky(ctx.gamma * Q + torch.diag_embed(z / x))
        moved = _solve(root, torch.stack([slopes[0], torch.ones_like(x)], dim=2))
        u, v = moved.unbind(dim=2)
        dx = u - v * (u.sum(1) / v.sum(1))[:, None]
        outer = dx[:, :, None] * x[:, None, :]
        return dx, -0.5 * ctx.gamma * (outer + outer.transpose(1, 2)), None


def interior_point(c: Tensor, P: Tensor) -> tuple[Tensor, Tensor]:
    """(B, n) portfolios and multipliers of x >= 0, by Mehrotra's method."""
    size = torch.maximum(c.abs().amax(1), P.abs().amax((1, 2))).clamp_min(1e-12)
    c, P = c / size[:, None], P / size[:, None, None]
    n = c.shape[1]
    x, z = torch.full_like(c, 1.0 / n), torch.ones_like(c)
    y = torch.zeros_like(size)
    for _ in range(STEPS):
        dual = (P @ x[:, :, None])[:, :, 0] - c + y[:, None] - z
        primal = x.sum(1) - 1.0
        mu = (x * z).mean(1)
        if bool((mu < GAP).all()) and float(dual.abs().max()) < 1e-10:
            break
        root = torch.linalg.cholesky(P + torch.diag_embed(z / x))
        dx, dy, dz = _direction(root, x, z, dual, primal, -x * z)
        aimed = (x + _length(x, dx) * dx) * (z + _length(z, dz) * dz)
        sigma = (aimed.mean(1) / mu.clamp_min(1e-300)) ** 3
        push = (sigma * mu)[:, None] - x * z - dx * dz
        dx, dy, dz = _direction(root, x, z, dual, primal, push)
        step = 0.995 * torch.minimum(_length(x, dx), _length(z, dz))
        x, y, z = x + step * dx, y + step[:, 0] * dy, z + step * dz
    else:
        raise RevealedError(f"Portfolios are still inexact after {STEPS} steps; no figure is told.")
    return x, z * size[:, None]


def _direction(
    root: Tensor, x: Tensor, z: Tensor, dual: Tensor, primal: Tensor, push: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Newton's step for given x z + z dx + x dz = x z + push."""
    both = _solve(root, torch.stack([push / x - dual, torch.ones_like(x)], dim=2))
    u, v = both.unbind(dim=2)
    dy = (u.sum(1) + primal) / v.sum(1)
    dx = u - v * dy[:, None]
    return dx, dy, (push - z * dx) / x


def _solve(root: Tensor, right: Tensor) -> Tensor:
    return torch.cholesky_solve(right, root)


def _length(value: Tensor, move: Tensor) -> Tensor:
    """(B, 1): how far `value` may follow `move` and stay above 0, at most 1."""
    ratio = torch.where(move < 0, -value / move, torch.inf)
    return ratio.amin(1, keepdim=True).clamp_max(1.0)
