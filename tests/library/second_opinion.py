"""Nearest parameters by CVXPY, written from the definition: what the tests of quadratic and convex
problems and of forms are held against.

The gradient of the objective at a decision, an expression in w, must be a combination of the
normals of whatever binds there. Nothing of the library is used but the decision itself.
"""

import warnings
from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np

TIGHT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
REFINED = {
    "iterative_refinement_reltol": 1e-16,
    "iterative_refinement_abstol": 1e-16,
    "iterative_refinement_max_iter": 50,
}
# With tolerances that nobody reaches Clarabel goes on until rounding stops it, which for
# semidefinite programs is at a gap of 1e-9 with one setting and 1e-13 with another. The answer with
# the smallest gap, as Clarabel itself gives it, is the one to trust.
ATTEMPTS = (
    REFINED,
    {},
    REFINED | {"equilibrate_enable": False},
    REFINED | {"max_step_fraction": 0.999},
    REFINED | {"static_regularization_constant": 1e-12},
    REFINED | {"max_step_fraction": 0.9},
    REFINED | {"equilibrate_enable": False, "max_step_fraction": 0.999},
)


@dataclass
class Explained:
    """Collects what a gradient may be made of, then finds the nearest w for which it is."""

    w: cp.Variable
    gradient: cp.Expression
    margin: float = 0.0
    rules: list = field(default_factory=list)

    def equality(self, row):
        """A row that holds with equality: any multiple."""
        self.gradient -= cp.Variable() * np.asarray(row)
        return self

    def binding(self, row):
        """row x <= b that binds: minus a multiple of at least the margin."""
        multiplier = cp.Variable()
        self.rules.append(multiplier >= self.margin)
        self.gradient += multiplier * np.asarray(row)
        return self

    def corner(self, matrix, multiplier, rule):
        """Normals matrix @ multiplier under a rule of their own."""
        self.rules.append(rule)
        self.gradient -= matrix @ multiplier
        return self

    def bounds(self, x, lb, ub, tol=1e-7):
        """Bounds of entries that bind; with all rows in, call this last."""
        for j in range(len(x)):
            if x[j] - lb[j] <= tol:
                self.rules.append(self.gradient[j] >= self.margin)
            elif ub[j] - x[j] <= tol:
                self.rules.append(self.gradient[j] <= -self.margin)
            else:
                self.rules.append(self.gradient[j] == 0)
        return self

    def nearest(self, q, *rules):
        """The nearest w to q, or None where there is none."""
        goal = cp.Minimize(cp.sum_squares(self.w - q))
        problem = cp.Problem(goal, [*self.rules, *rules])
        best, least = None, np.inf
        unknown = {"accept_unknown": True}  # stopped by rounding, see above
        data, chain, way_back = problem.get_problem_data("CLARABEL", solver_opts=unknown)
        for settings in ATTEMPTS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of inaccuracy, see above
                told = chain.solve_via_data(problem, data, solver_opts=TIGHT | settings)
                problem.unpack_results(told, chain, way_back)
            if self.w.value is None:
                return None
            gap = abs(told.obj_val - told.obj_val_dual) + told.r_prim + told.r_dual
            if gap < least:
                best, least = self.w.value, gap
            if least <= 1e-12:
                break
        return best


def symmetric(w, n):
    """The symmetric matrix in the last n (n + 1) / 2 entries of w: upper triangle by columns,
    entries off the diagonal times sqrt(2)."""
    total, k = 0, w.shape[0] - n * (n + 1) // 2
    for column in range(n):
        for row in range(column + 1):
            unit = np.zeros((n, n))
            unit[row, column] = unit[column, row] = 1.0 if row == column else np.sqrt(0.5)
            total = total + w[k] * unit
            k += 1
    return total
