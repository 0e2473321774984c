"""The gradient rival: descend the squared error of decisions through the linear program.

A linear program has no gradient in its costs, so 1/2 smooth |x|^2 is added to what is
differentiated, as with cvxpylayers. The smoothed decision is then the point of the polytope nearest
to -c / smooth, found by least-distance programming (Lawson and Hanson), and on the rows M that are
active there

    dx = -P dc / smooth + M^+ db,      P = I - M^+ M,

which is the derivative that cvxpylayers takes. Letters: B samples, n variables, m rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.linalg import null_space
from scipy.optimize import nnls

STEPS, RATE, SMOOTH, STARTS = 200, 0.1, 0.1, 3

Guess = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""(w,) parameters -> costs (B, n) and right-hand sides (B, m)"""


class Layer:
    """Smoothed decisions of min <c, x> subject to A x <= b and known equalities, and their
    derivatives."""

    def __init__(self, A: np.ndarray, A_eq: np.ndarray | None = None, b_eq: Any = None) -> None:
        n = A.shape[1]
        self._origin, self._space = np.zeros(n), np.eye(n)
        if A_eq is not None:
            self._origin = np.linalg.lstsq(A_eq, b_eq, rcond=None)[0]
            self._space = null_space(A_eq)
        self._rows, self._offset = A @ self._space, A @ self._origin

    def solve(self, costs: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        """(B, n) decisions, NaN where there is none, and what `pull_back` needs of each."""
        found = [self._one(c, b) for c, b in zip(costs, limits, strict=True)]
        return np.array([x for x, _ in found]), [kept for _, kept in found]

    def pull_back(self, gradient: np.ndarray, kept: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """From a gradient in decisions (B, n) to those in costs (B, n) and limits (B, m)."""
        in_costs, in_limits = np.zeros_like(gradient), np.zeros((len(gradient), len(self._rows)))
        for b, one in enumerate(kept):
            if one is None:
                continue
            active, M = one
            g = self._space.T @ gradient[b]
            inverse = np.linalg.pinv(M)
            in_costs[b] = -self._space @ (g - inverse @ (M @ g)) / SMOOTH
            in_limits[b, active] = inverse.T @ g
        return in_costs, in_limits

    def _one(self, c: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Any]:
        center = -self._space.T @ c / SMOOTH
        room = b - self._offset - self._rows @ center
        E = np.vstack([-self._rows.T, -room])
        goal = np.zeros(len(E))
        goal[-1] = 1.0
        weights, left = nnls(E, goal, maxiter=50 * E.shape[1])
        if left < 1e-9:  # nothing obeys these limits
            return np.full(len(self._origin), np.nan), None
        active = np.flatnonzero(weights > 1e-12)
        M = self._rows[active]
        y = center + np.linalg.lstsq(M, room[active], rcond=None)[0] if len(M) else center
        return self._origin + self._space @ y, (active, M)


class _Decide(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, costs: Any, limits: Any, layer: Layer) -> Any:  # pyright: ignore
        X, ctx.kept = layer.solve(costs.detach().numpy(), limits.detach().numpy())
        ctx.layer = layer
        return torch.as_tensor(X)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:  # pyright: ignore
        in_costs, in_limits = ctx.layer.pull_back(gradient.numpy(), ctx.kept)
        return torch.as_tensor(in_costs), torch.as_tensor(in_limits), None


def descend(
    layer: Layer,
    X: np.ndarray,
    guess: Guess,
    starts: list[np.ndarray],
    look: np.ndarray | None = None,
) -> np.ndarray:
    """The parameters of least squared error that Adam met, from several starts; the error is that
    of decisions X (B, n), or of what `look` (n, q) makes of decisions."""
    best, kept, seen = np.inf, starts[0], torch.as_tensor(X)
    view = torch.as_tensor(np.eye(X.shape[1]) if look is None else look)
    for start in starts:
        w = torch.as_tensor(start.copy()).requires_grad_()
        optimizer = torch.optim.Adam([w], lr=RATE)
        slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
        for _ in range(STEPS):
            optimizer.zero_grad()
            costs, limits = guess(w)
            found = _Decide.apply(costs, limits, layer)
            error = ((found @ view - seen) ** 2).sum(dim=1)  # pyright: ignore
            there = torch.isfinite(error)
            loss = error[there].mean() if there.any() else error.sum()
            if there.all() and (value := loss.item()) < best:
                best, kept = value, w.detach().numpy().copy()
            if not there.any():
                break
            loss.backward()
            optimizer.step()
            slower.step()
    return kept
