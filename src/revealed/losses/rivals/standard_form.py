"""Problems in standard form, as dense tensors on the device of the costs.

    rows z = rhs,   low <= z <= high,   z the entries of the problem and a slack for each inequality

Letters: B instances, m rows (equalities first), n entries, N = n + inequalities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...problems.linear import LinearProgram


class Form(NamedTuple):
    """A leading 1 where all samples share a part, B where each has its own."""

    rows: Tensor
    """(1 or B, m, N)"""
    rhs: Tensor
    """(1 or B, m)"""
    low: Tensor
    """(1 or B, N), -inf where there is no bound."""
    high: Tensor
    """(1 or B, N), inf where there is no bound."""
    curve: Tensor
    """(1, N), at least 0: the second derivative of the objective."""
    slacks: int
    """How many of the last entries are slacks."""


def standard_form(problem: LinearProgram, curve: float, device: torch.device) -> Form:
    """The constraints of a problem; `curve` goes with its entries, none with the slacks."""
    if problem.n_instances is not None:
        return _build(problem, curve, device)
    return problem.cached(f"form-{curve!r}-{device}", lambda: _build(problem, curve, device))


def times(rows: Tensor, z: Tensor) -> Tensor:
    """(B, m): each sample's rows times its z."""
    if len(rows) == 1:  # much faster as one product of matrices
        return z @ rows[0].T
    return torch.bmm(rows, z[:, :, None])[:, :, 0]


def times_transposed(rows: Tensor, y: Tensor) -> Tensor:
    """(B, N): each sample's transposed rows times its y."""
    return y @ rows[0] if len(rows) == 1 else torch.bmm(y[:, None], rows)[:, 0]


def with_slacks(costs: Tensor, form: Form) -> Tensor:
    """(B, N): costs, or slopes, of the entries with 0 for every slack."""
    return torch.nn.functional.pad(costs, (0, form.slacks))


def add_slacks(rows: Tensor, n_inequalities: int) -> Tensor:
    """(1 or B, m, N): the last rows get an entry each that makes up what they are short of.

    Where there is no row at all, an empty one spares the linear algebra that case.
    """
    m = rows.shape[1]
    if m == 0:
        return rows.new_zeros(1, 1, rows.shape[2])
    slack = torch.eye(m, dtype=rows.dtype, device=rows.device)[:, m - n_inequalities :]
    return torch.cat([rows, slack.expand(len(rows), -1, -1)], dim=2)


def _build(problem: LinearProgram, curve: float, device: torch.device) -> Form:
    n, k = problem.n_variables, problem.ub_rows.shape[0]
    b_eq, b_ub, lb, ub = (
        torch.tensor(np.atleast_2d(part), device=device)
        for part in (problem.b_eq, problem.b_ub, problem.lb, problem.ub)
    )
    rows = add_slacks(dense_rows(problem, device), k)
    if not problem.eq_rows.shape[0] + k:
        b_eq = b_eq.new_zeros(1, 1)
    return keep_binding(
        Form(
            rows,
            _beside(b_eq, b_ub),
            _beside(lb, torch.zeros_like(b_ub)),
            _beside(ub, torch.full_like(b_ub, torch.inf)),
            torch.cat([lb.new_full((1, n), curve), lb.new_zeros(1, k)], dim=1),
            k,
        ),
        b_ub.isfinite(),
    )


def keep_binding(form: Form, binds: Tensor) -> Form:
    """Without the inequalities that cannot bind; `binds` is (1 or B, m_ub).

    Their rows are emptied and their slacks put amid two bounds, so that the shapes stay.
    """
    if bool(binds.all()):
        return form
    k = binds.shape[1]
    n, first = form.rows.shape[2] - k, form.rows.shape[1] - k
    size = max(len(form.rows), len(binds))
    rows, rhs, low, high = (
        part.expand(max(size, len(part)), *part.shape[1:]).clone()
        for part in (form.rows, form.rhs, form.low, form.high)
    )
    rows[:, first:, :n] *= binds[:, :, None]
    rhs[:, first:] = rhs[:, first:].where(binds, 0.0)
    low[:, n:], high[:, n:] = low[:, n:].where(binds, -1.0), high[:, n:].where(binds, 1.0)
    return Form(rows, rhs, low, high, form.curve, k)


def _beside(left: Tensor, right: Tensor) -> Tensor:
    """(1 or B, .): side by side, what is shared repeated where its neighbor is not."""
    size = max(len(left), len(right))
    return torch.cat([left.expand(size, -1), right.expand(size, -1)], dim=1)


def dense_rows(problem: LinearProgram, device: torch.device) -> Tensor:
    """(1 or B, m, n): the rows of all instances, or of each; shared ones are built once."""
    if problem.eq_rows.per_instance or problem.ub_rows.per_instance:
        return torch.from_numpy(_stacked(problem)).to(device)
    return problem.cached(
        f"dense-rows-{device}", lambda: torch.from_numpy(_stacked(problem)).to(device)
    )


def _stacked(problem: LinearProgram) -> np.ndarray:
    parts = []
    for rows in (problem.eq_rows, problem.ub_rows):
        dense = np.zeros((len(rows.data), *rows.shape))
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        dense[:, row, rows.indices] = rows.data
        parts.append(dense)
    count = max(len(part) for part in parts)
    return np.concatenate([np.broadcast_to(p, (count, *p.shape[1:])) for p in parts], axis=1)
