"""DAQP called directly: a dense dual active-set method.

Rough figures in the comments: 12x12 grid with 8 neighbors (144 rows, 1012 columns), cold.
"""

from __future__ import annotations

import numpy as np

from .cases import Case
from .forms import dual_form


class DaqpDirect:
    """DAQP, a dense dual active-set method, in the dual form with one model kept and updated.

    Quickest of all on the smallest problems (5 us on the knapsack, 11 us on the 5x5 grid), but
    95 ms here and seconds beyond `largest_n` columns. Its soft constraints would allow a form in
    v alone; tried with several proximal terms, it gave points off by 40% and more.
    """

    name = "DAQP"
    largest_n = 1_100

    def __init__(self, primal_tol: float, reduce: int) -> None:
        self.settings = {"form": "dual", "primal_tol": primal_tol, "eq_reduction": reduce}

    def prepare(self, case: Case) -> None:
        import daqp

        self._case = case
        A = np.ascontiguousarray(np.vstack([case.A_eq.toarray(), case.A_ub.toarray()]))
        self._model = daqp.Model()
        self._model.settings = {
            "primal_tol": self.settings["primal_tol"],
            "eq_reduction": self.settings["eq_reduction"],
            "iter_limit": 100_000,
        }
        self._vectors = self._build_vectors(case.costs)
        f, upper, lower, sense = self._vectors[0]
        self._model.setup(np.eye(case.n), f, A, upper, lower, sense)
        if case.previous is not None:
            self._start_from(self._build_vectors(case.previous))

    def solve(self, i: int) -> np.ndarray:
        f, upper, lower, sense = self._vectors[i]
        self._model.update(f=f, bupper=upper, blower=lower, sense=sense)
        return self._case.costs[i] + self._model.solve()[0]

    def _build_vectors(self, costs: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        form = dual_form(self._case, costs)
        big = 1e30  # what DAQP calls infinity
        zero = np.zeros((len(costs), self._case.m_eq))
        upper = np.clip(np.hstack([form.upper, zero, form.row_upper]), None, big)
        lower = np.clip(
            np.hstack([form.lower, zero, np.full(form.row_upper.shape, -big)]), -big, None
        )
        sense = np.where(upper == lower, 5, 0).astype(np.int32)  # 5: equality
        return list(zip(form.linear, upper, lower, sense, strict=True))

    def _start_from(self, previous: list[tuple[np.ndarray, ...]]) -> None:
        """Begin each instance with the active set of its previous solution."""
        for i, (f, upper, lower, sense) in enumerate(previous):
            self._model.update(f=f, bupper=upper, blower=lower, sense=sense)
            dual = self._model.solve()[3]["lam"]
            started = np.where(dual > 0, 1, np.where(dual < 0, 3, 0))  # 1: at upper, 3: at lower
            f_new, _, _, sense_new = self._vectors[i]
            warm = np.where(sense_new == 0, started, sense_new).astype(np.int32)
            self._vectors[i] = (f_new, upper, lower, warm)
