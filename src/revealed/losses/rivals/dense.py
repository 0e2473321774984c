"""Constraints as dense tensors, for losses that do linear algebra on a whole batch at once.

Letters: B instances, m rows (equalities first, then inequalities), n entries.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ...problems.linear import LinearProgram


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
