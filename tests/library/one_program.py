"""The least penalized mean loss by one conic program over all samples and draws at once, written
from the definition for CVXPY and Clarabel: what tests of the minimum are held against.

Nothing of the fitting code is used but its draws of noise. Letters: B samples, K draws, N = K B of
both, n cost entries, p parameters (n without a form), k features.
"""

import warnings
from dataclasses import dataclass, field

import cvxpy as cp
import numpy as np
from scipy.linalg import null_space
from second_opinion import ATTEMPTS

from helpers import parts_of
from revealed.fit.evaluation import Evaluator

TIGHT = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
EXACT = 1e-8
"""What the values found here are relatively exact to."""


# --- models: costs that are linear in unknown weights --------------------------------------------


def standardized(Z, like=None, weights=None):
    """Shifted and scaled such that `like` (Z itself unless given) has mean 0 and standard deviation
    1, its rows counted by their weights; a constant feature becomes 0."""
    like = Z if like is None else like
    mean = np.average(like, axis=0, weights=weights)
    spread = np.sqrt(np.average((like - mean) ** 2, axis=0, weights=weights))
    return (Z - mean) / np.where(spread > 1e-12 * abs(like).max(0), spread, np.inf)


@dataclass
class Linear:
    """Costs that are linear in features (B, k), with a weight for each pair of them."""

    features: np.ndarray
    intercept: bool = True

    def costs(self, p):
        """(B, p), and the weights that are penalized."""
        weights = cp.Variable((self.features.shape[1], p))
        level = cp.Variable((1, p)) if self.intercept else np.zeros((1, p))
        return self.features @ weights + np.ones((len(self.features), 1)) @ level, weights


def linear(Z, weights=None):
    return Linear(standardized(Z, weights=weights))


def without_intercept(Z, weights=None):
    """Features of mean square 1, about 0."""
    return Linear(Z / np.sqrt(np.average(Z**2, axis=0, weights=weights)), intercept=False)


def quadratic(Z, weights=None):
    """Features and all their products, each brought to a standard deviation of 1."""
    u = standardized(Z, weights=weights)
    i, j = np.triu_indices(Z.shape[1])
    return Linear(standardized(np.hstack([u, u[:, i] * u[:, j]]), weights=weights))


def kernel(Z, marks, gamma, weights=None):
    """sum_m a_m k(z, mark_m) with the Gaussian kernel, and its norm a^T K a as the penalty."""
    z, m = standardized(Z, weights=weights), standardized(marks, Z, weights)

    def gauss(one, other):
        return np.exp(-gamma * ((one[:, None] - other[None]) ** 2).sum(axis=2))

    return Linear(np.linalg.solve(np.linalg.cholesky(gauss(m, m)), gauss(m, z)).T)


@dataclass
class Shared:
    """Costs by weights that all entries share: features (B, n, k), some weights known."""

    Z: np.ndarray
    given: dict = field(default_factory=dict)
    weights: np.ndarray | None = None

    def costs(self, p):
        rows, names = self.Z.reshape(-1, self.Z.shape[2]), list(self.given)
        known = rows[:, names] @ np.array(list(self.given.values()), float)
        weights = cp.Variable(rows.shape[1] - len(names))
        counted = None if self.weights is None else np.repeat(self.weights, self.Z.shape[1])
        learned = standardized(np.delete(rows, names, axis=1), weights=counted)
        costs = learned @ weights + cp.Variable() + known
        return cp.reshape(costs, (len(self.Z), p), order="C"), weights


# --- costs that explain decisions ----------------------------------------------------------------


def residuals(costs, sets, copies):
    """(N, .) what `costs` (N, p) lack to explain the decisions, and the rules for the unknowns in
    it: costs are explained by A_eq^T v - A_ub^T mu + slack with any v.

    Instead of the v, for which rows that depend on each other leave a choice, all is looked at
    across the rows of A_eq.
    """
    every = [parts_of(sets, b) for b in range(len(sets))] * copies
    A_ub, margin = every[0].A_ub, every[0].margin
    across = null_space(every[0].A_eq) if len(every[0].A_eq) else np.eye(A_ub.shape[1])
    lower, upper, free, active = (
        np.array([getattr(part, name) for part in every])
        for name in ("lower", "upper", "free", "active")
    )
    slack = cp.Variable(lower.shape)
    rules, pull = [slack[lower] >= margin, slack[upper] <= -margin, slack[free] == 0], slack
    if len(A_ub):
        mu = cp.Variable((len(every), len(A_ub)))
        rules += [mu[active] >= margin, mu[~active] == 0]
        pull = slack - mu @ A_ub
    rules = [rule for rule in rules if rule.size]
    if sets.form is None:
        return (costs - pull) @ across, rules
    point, form = cp.Variable((len(every), sets.form.n_parameters)), sets.form
    known = np.tile(form.map.offset, (len(every), 1))
    rules.append((point @ form.map.rows.matrix(0).toarray().T + known - pull) @ across == 0)
    if np.isfinite(form.lower).all():
        rules.append(point >= np.tile(form.lower, (len(every), 1)))
    return costs - point, rules


# --- the program ---------------------------------------------------------------------------------


class Nothing:
    """A model that says 0, to see what noise an Evaluator adds."""

    def __init__(self, p):
        self.p = p

    def cost(self, features):
        return np.zeros((len(features), self.p))


def draws_of(sets, loss):
    """(K, B, p): the noise on each prediction; 0 for the plain distance."""
    B, p = len(sets), sets.n_parameters
    evaluator, all_of_them = Evaluator(sets, loss), np.arange(B)
    return np.stack(
        [
            evaluator.sample(Nothing(p), np.zeros(B), all_of_them, np.full(B, k))[0]
            for k in range(loss.count)
        ]
    )


def least_loss(design, sets, loss, *, ridge=0.0, weights=None):
    """min mean_i mean_k phi(dist(f(z_i) + noise_ik, C_i)) + ridge/2 |weights|^2, samples counted
    by `weights` (B,)."""
    draws = draws_of(sets, loss)
    K, B, p = draws.shape
    costs, penalized = design.costs(p)
    residual, rules = residuals(cp.vstack([costs] * K) + draws.reshape(K * B, p), sets, K)
    share = np.ones(B) if weights is None else np.asarray(weights, float)
    share = np.tile(share / share.sum() / K, K)
    mean = 0.0
    if loss.power != 2:  # Huber's form: the least 1/2 |near|^2 + delta |far| with both adding up
        far = residual if loss.power == 1 else cp.Variable(residual.shape)
        factor = 1.0 if loss.power == 1 else loss.delta
        mean, residual = factor * (share @ cp.norm(far, 2, axis=1)), residual - far
    if loss.power != 1:
        mean += 0.5 * cp.sum_squares(cp.multiply(np.sqrt(share)[:, None], residual))
    return _solved(cp.Problem(cp.Minimize(mean + 0.5 * ridge * cp.sum_squares(penalized)), rules))


def _solved(problem):
    """The least value, as Clarabel finds it with two settings and proves it with both.

    Its own words say too little: an answer that rounding has stopped short of the tolerances may be
    good, and one within them wrong in the second digit, where an unknown can grow without limit.
    """
    options, values = {"accept_unknown": True}, []
    data, chain, way_back = problem.get_problem_data("CLARABEL", solver_opts=options)
    for settings in ATTEMPTS:
        told = chain.solve_via_data(problem, data, solver_opts=options | TIGHT | settings)
        if told.x is None or not np.isfinite(told.obj_val):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of inaccuracy, see above
            problem.unpack_results(told, chain, way_back)
        gap = abs(told.obj_val - told.obj_val_dual) / problem.value
        if max(gap, told.r_prim, told.r_dual) > EXACT:
            continue
        if any(abs(problem.value - other) <= EXACT * other for other in values):
            return problem.value
        values.append(problem.value)
    raise AssertionError(f"Clarabel does not solve this; choose another case. It found {values}.")
