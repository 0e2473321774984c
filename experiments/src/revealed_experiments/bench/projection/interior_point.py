"""PIQP and Clarabel called directly: interior-point methods, one factorization for every step.

Rough figures in the comments: 12x12 grid with 8 neighbors (144 rows, 1012 columns), cold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from revealed.optimality.sets import EntryState

from .cases import Case
from .forms import compact_form, dual_form, hessian

AT_BOUND = (EntryState.AT_LOWER, EntryState.AT_UPPER)


class PiqpDirect:
    """PIQP in the dual form, whose bounds it treats apart from its rows.

    Updating keeps the symbolic work: 0.75 ms against 1.0 ms for a fresh set-up. The compact form
    takes 1.1 ms, and condensing the rows first 15 ms. The dense solver wins nowhere, not even on
    the knapsack (28 us against 13 us). It has no warm start.
    """

    name = "PIQP"

    def __init__(self, eps: float) -> None:
        self.settings = {"form": "dual", "eps": eps}

    def prepare(self, case: Case) -> None:
        self._case, m_eq = case, case.m_eq
        self._solver = _new_piqp(self.settings["eps"])
        self._solver.settings.preconditioner_reuse_on_update = True
        self._updates = self._build_updates(case)
        rows = {"A": sparse.csc_matrix(case.A_eq), "b": np.zeros(m_eq)} if m_eq else {}
        self._solver.setup(P=hessian(case.n), **self._updates[0], **rows)
        if "G" in self._updates[0] and case.row_active[:, self._used].all():
            for update in self._updates:
                del update["G"]  # the same for every instance

    def solve(self, i: int) -> np.ndarray:
        self._solver.update(**self._updates[i])
        self._solver.solve()
        self._last = i
        return self._case.costs[i] + self._solver.result.x

    def multipliers(self) -> tuple[np.ndarray, np.ndarray]:
        """(v, mu) of the last solve."""
        result, case = self._solver.result, self._case
        mu = np.zeros(case.m_ub)
        if len(self._used):
            mu[self._used] = case.margin + np.array(result.z_u)
        mu[~case.row_active[self._last]] = 0.0
        return -np.array(result.y)[: case.m_eq], mu

    def _build_updates(self, case: Case) -> list[dict[str, Any]]:
        """What changes with the instance, lengths checked: PIQP reads past the end of a short one.

        A row with an infinite bound is zeroed by PIQP for good, so an inactive row is handed over
        as 0 r <= 1, and rows that are never active not at all.
        """
        form = dual_form(case)
        self._used = np.flatnonzero(case.row_active.any(axis=0))
        active = case.row_active[:, self._used]
        G = sparse.csc_matrix(case.A_ub[self._used])
        updates: list[dict[str, Any]] = []
        for i in range(len(case)):
            update = {"c": form.linear[i], "x_l": form.lower[i], "x_u": form.upper[i]}
            if len(self._used):
                update["h_u"] = np.where(active[i], 0.0, 1.0)
                values = (G.data * active[i, G.indices], G.indices, G.indptr)
                update["G"] = sparse.csc_matrix(values, shape=G.shape)
            for key in ("c", "x_l", "x_u"):
                if update[key].shape != (case.n,):
                    raise ValueError(f"PIQP's {key} must be ({case.n},), not {update[key].shape}")
            updates.append(update)
        return updates


class PiqpCompact:
    """PIQP in the compact form, set up afresh: slower, but it copes where the dual form fails.

    On NETLIB's fffff800 the dual form is called infeasible, although r = 0 satisfies it.
    """

    name = "PIQP"

    def __init__(self, eps: float) -> None:
        self.settings = {"form": "compact", "eps": eps}

    def prepare(self, case: Case) -> None:
        self._case, self._form = case, compact_form(case)
        self._P = hessian(case.n, case.m_eq + case.m_ub)

    def solve(self, i: int) -> np.ndarray:
        form, n = self._form, self._case.n
        active = self._case.row_active[i]
        present = np.concatenate([np.ones(n + self._case.m_eq, bool), active])
        rows = self._case.entry_state[i] != EntryState.FIXED  # a fixed entry may go anywhere
        P = sparse.csc_matrix(self._P[present][:, present])
        G = sparse.csc_matrix(form.matrix[rows][:, present])
        x_l = np.concatenate([np.full(n, -np.inf), form.w_lower[i]])[present]
        h_l, h_u = form.row_lower[i][rows], form.row_upper[i][rows]
        solver = _new_piqp(self.settings["eps"])
        solver.setup(P=P, c=np.zeros(len(x_l)), G=G, h_l=h_l, h_u=h_u, x_l=x_l)
        solver.solve()
        self._found = np.zeros(len(present))
        self._found[present] = solver.result.x
        return self._case.costs[i] + self._found[:n]

    def multipliers(self) -> tuple[np.ndarray, np.ndarray]:
        """(v, mu) of the last solve."""
        w = self._found[self._case.n :]
        return w[: self._case.m_eq], w[self._case.m_eq :]


def _new_piqp(eps: float) -> Any:
    import piqp

    solver = piqp.SparseSolver()
    for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
        setattr(solver.settings, name, eps)
    return solver


class ClarabelDirect:
    """Clarabel in the dual form, set up afresh: its cones cannot change with the states.

    The compact form takes 1.2 times as long. Matrices are assembled beforehand, so what is timed
    is the solver's own set-up and solve. It has no warm start.
    """

    name = "Clarabel"

    def __init__(self, eps: float) -> None:
        self.settings = {"form": "dual", "eps": eps}

    def prepare(self, case: Case) -> None:
        from clarabel import DefaultSettings  # type: ignore[attr-defined]

        self._case = case
        self._linear = dual_form(case).linear
        self._P = hessian(case.n)
        self._options = DefaultSettings()
        self._options.verbose = False
        self._options.presolve_enable = False  # there is nothing for it to remove
        self._options.tol_gap_abs = self._options.tol_gap_rel = self.settings["eps"]
        self._options.tol_feas = self.settings["eps"]
        self._data = [_clarabel_rows(case, i) for i in range(len(case))]

    def solve(self, i: int) -> np.ndarray:
        from clarabel import DefaultSolver  # type: ignore[attr-defined]

        A, zero, cones = self._data[i]
        solver = DefaultSolver(self._P, self._linear[i], A, zero, cones, self._options)
        self._solution, self._last = solver.solve(), i
        return self._case.costs[i] + np.asarray(self._solution.x)

    def multipliers(self) -> tuple[np.ndarray, np.ndarray]:
        """(v, mu) of the last solve."""
        case, z = self._case, np.asarray(self._solution.z)
        active = np.flatnonzero(case.row_active[self._last])
        m_eq, n_zero = case.m_eq, self._data[self._last][2][0].dim
        mu = np.zeros(case.m_ub)
        mu[active] = case.margin + z[n_zero : n_zero + len(active)]
        return -z[:m_eq], mu


def _clarabel_rows(case: Case, i: int) -> tuple[Any, np.ndarray, list]:
    """Rows in the order equalities, fixed entries | active rows, entries at lower, at upper."""
    from clarabel import NonnegativeConeT, ZeroConeT  # type: ignore[attr-defined]

    state, unit = case.entry_state[i], sparse.csr_array(sparse.eye_array(case.n))
    fixed = unit[state == EntryState.FIXED]
    low, high = unit[state == EntryState.AT_LOWER], unit[state == EntryState.AT_UPPER]
    active = case.A_ub[np.flatnonzero(case.row_active[i])]
    A = sparse.csc_matrix(sparse.vstack([case.A_eq, fixed, active, -low, high]))
    n_zero = case.m_eq + int((state == EntryState.FIXED).sum())
    n_positive = int(case.row_active[i].sum() + np.isin(state, AT_BOUND).sum())
    return A, np.zeros(n_zero + n_positive), [ZeroConeT(n_zero), NonnegativeConeT(n_positive)]
