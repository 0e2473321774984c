"""The cone of costs that explain a decision: a point inside it near a cost, and its middle.

    c = A_eq^T v - A_ub^T mu + s,   signs of mu and s as in `OptimalitySet` with margin 0

Letters: B samples, n entries, m rows (equalities first, then inequalities), N = n + inequalities.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ...optimality.sets import EntryState, OptimalitySet
from .interior import central_point
from .standard_form import Form, add_slacks, dense_rows, keep_binding, times_transposed, with_slacks

SMALL = 1e-8
"""The barrier weight the method is on its way to."""


def inner_projection(costs: Tensor, sets: OptimalitySet, max_iter: int) -> Tensor:
    """(B, n): where the interior-point method is after `max_iter` steps toward the projection.

    The move r from a cost q to its projection is the shortest one from q in the polar cone: it
    minimizes 1/2 |r|^2 + <q, r> with A_eq r = 0, A_ub r <= 0 on binding rows, r >= 0 where the
    decision is at a lower bound, r <= 0 at an upper one. The multipliers of that problem make up
    the point in the cone, and an interior-point method keeps them strictly inside.
    """
    form = _polar(sets, costs.device)
    size = costs.square().mean(1, keepdim=True).sqrt()
    scaled = costs / size.where(size > 0, 1.0)
    mu = torch.full_like(costs[:, 0], SMALL)
    point = central_point(form, with_slacks(scaled, form), mu, sharp=1.0, max_iter=max_iter)
    n = costs.shape[1]
    y = point.y.clone()
    y[:, y.shape[1] - form.slacks :] = -point.reduced[:, n:]
    inside = times_transposed(form.rows, y)[:, :n] + point.reduced[:, :n]
    return torch.where(form.low[:, :n] == form.high[:, :n], scaled, inside)  # fixed: any cost


def mean_generator(sets: OptimalitySet) -> Tensor:
    """(B, n): the mean of the unit vectors that generate each cone.

    An equality contributes two that cancel, so it only counts.
    """
    rows = sets.rows.ub_rows
    state, active = sets.entry_state, sets.row_active
    total = (state == EntryState.AT_LOWER).astype(float) - (state == EntryState.AT_UPPER)
    if rows.shape[0]:
        dense = dense_rows(sets.rows, torch.device("cpu")).numpy()[:, -rows.shape[0] :]
        length = np.linalg.norm(dense, axis=2)
        weight = active / np.where(length > 0, length, 1.0)
        total = total - np.matmul(weight[:, None], dense)[:, 0]
    fixed = (state == EntryState.FIXED).sum(1)
    at_bound = (state != EntryState.FREE).sum(1) - fixed
    count = 2 * (sets.rows.eq_rows.shape[0] + fixed) + at_bound + active.sum(1)
    return torch.from_numpy(total / np.maximum(count, 1)[:, None])


def _polar(sets: OptimalitySet, device: torch.device) -> Form:
    """The constraints on the move, in standard form."""
    state = torch.from_numpy(sets.entry_state).to(device)
    binds = torch.from_numpy(sets.row_active).to(device)
    rows = add_slacks(dense_rows(sets.rows, device), binds.shape[1])
    fixed = state == EntryState.FIXED
    low = torch.where(fixed | (state == EntryState.AT_LOWER), 0.0, -torch.inf).to(rows)
    high = torch.where(fixed | (state == EntryState.AT_UPPER), 0.0, torch.inf).to(rows)
    slack = torch.zeros_like(binds, dtype=rows.dtype)
    form = Form(
        rows,
        rows.new_zeros(1, rows.shape[1]),
        torch.cat([low, slack], dim=1),
        torch.cat([high, slack + torch.inf], dim=1),
        torch.cat([torch.ones_like(state[:1], dtype=rows.dtype), slack[:1]], dim=1),
        binds.shape[1],
    )
    return keep_binding(form, binds)
