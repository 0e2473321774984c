"""Valid inequalities that hold with equality at a whole decision: they enlarge its inner set.

A row G y <= G x* that every feasible y obeys lets c = -mu G, mu >= 0, explain x*. Beside the
relaxation's own active rows there are:

    rounded rows   a y <= floor(b) where coefficients and variables are whole
    covers         of a 0/1 row: what is chosen and one more item that does not fit cannot all be
                   chosen, nor can as many of these and of items at least as heavy (Balas 1975)
    structures     what a special problem knows: subtours, capacities (`IntegerStructure.tight`)

Letters: n variables, k rows.
"""

from __future__ import annotations

import numpy as np

from ..problems.integer import IntegerProgram

_SAME = 1e-9
"""Of a right-hand side: by how much a cover must exceed it, and a row may differ from it."""


def tight_rows(problem: IntegerProgram, x: np.ndarray, instance: int) -> np.ndarray:
    """(k, n) rows G with G y <= G x for every feasible decision y of an instance, of which x is
    one."""
    rows = problem.relaxation
    A = rows.ub_rows.matrix(instance if rows.ub_rows.per_instance else 0)
    b, lb, ub = (
        part[instance] if part.ndim == 2 else part for part in (rows.b_ub, rows.lb, rows.ub)
    )
    dense = np.asarray(A.todense())
    binary = problem.integer & (lb == 0) & (ub == 1)
    found = [np.zeros((0, problem.n_variables))]
    if problem.structure is not None:
        found.append(problem.structure.tight(x))
    for a, right in zip(dense, b, strict=True):
        used = a != 0
        if not used.any() or not np.isfinite(right):
            continue
        if (binary | ~used).all():
            found.append(_covers(a, float(right), x))
        if (problem.integer | ~used).all() and _is_rounded(a[used], float(right), float(a @ x)):
            found.append(a[None])
    return np.concatenate(found)


def _is_rounded(a: np.ndarray, right: float, value: float) -> bool:
    """Whether a y <= `right` means a y <= `value` for whole y."""
    if (a != np.round(a)).any() or np.abs(a).max() > 2**31:
        return False
    step = float(np.gcd.reduce(np.abs(a).astype(np.int64)))
    return abs(np.floor((right * (1 + np.sign(right) * _SAME)) / step) * step - value) <= _SAME


def _covers(a: np.ndarray, right: float, x: np.ndarray) -> np.ndarray:
    """(k, n) extended covers of a y <= right for 0/1 variables, tight at x."""
    weight = np.abs(a)
    # An item is chosen where it adds to the load: y_j where a_j > 0, else 1 - y_j.
    chosen = np.where(a < 0, x < 0.5, x > 0.5) & (a != 0)
    room = right + weight[a < 0].sum()
    load = weight[chosen].sum()
    others = np.flatnonzero(~chosen & (load + weight > room + _SAME * (1.0 + abs(room))))
    sign = np.where(a < 0, -1.0, 1.0)
    found = {}
    for k in others:
        cover = chosen.copy()
        cover[k] = True
        cover |= (weight >= weight[cover].max()) & (a != 0)
        found[cover.tobytes()] = np.where(cover, sign, 0.0)
    return np.array(list(found.values())).reshape(-1, len(a))
