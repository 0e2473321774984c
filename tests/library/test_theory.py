"""The theorems as tests on random data: h by its definition, constants against what they promise.

POCS iterates have their own file; here POCS appears only as gradient descent in another metric.
"""

import numpy as np
import pytest

import revealed as rv
from helpers import catalogue, direct_projection, per_instance_matrices
from revealed import metrics, theory
from revealed.theory import LemmaStatus

CASES = catalogue()
IN_UNIT_BOX = [case for case in CASES if case.name != "two knapsacks"]


def name_of(case):
    return case.name


class Learning:
    """Contexts with |z| <= 1, decisions of a linear model of them, and h with its gradient."""

    def __init__(self, problem, B, d, seed=0, margin=1.0, noise=0.0):
        rng = np.random.default_rng(seed)
        self.Z = rng.standard_normal((B, d))
        self.Z /= np.linalg.norm(self.Z, axis=1).max()
        self.truth = rng.standard_normal((problem.n_variables, d))
        costs = self.Z @ self.truth.T + noise * rng.standard_normal((B, problem.n_variables))
        self.sets = rv.OptimalitySet(problem, problem.solve(costs).x, margin)

    def h(self, theta):
        q = self.Z @ theta.T
        p = rv.project(q, self.sets)
        assert p.solved.all()
        return 0.5 * (p.distance**2).mean(), (q - p.point).T @ self.Z / len(q)


def bounded_problems():
    """Problems with a decision for every cost, whatever its sign."""
    return {
        "path": rv.problems.grid_shortest_path(4, 4, directed="right-down"),
        "knapsack": rv.problems.knapsack(np.array([3.0, 5, 4, 7, 6]), 12.0),
        "matching": rv.problems.grid_matching(4, 4),
        "simplex": rv.LinearProgram(A_eq=np.ones((1, 4)), b_eq=[1.0]),
    }


BOUNDED = bounded_problems()


def random_thetas(learning, rng, count):
    shape = learning.truth.shape
    return [10.0 ** rng.uniform(-2, 2) * rng.standard_normal(shape) for _ in range(count)]


# --- h is convex and smooth ----------------------------------------------------------------------


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_h_is_convex(name, margin):
    learning = Learning(BOUNDED[name], B=12, d=3, margin=margin, noise=1.0)
    rng = np.random.default_rng(1)
    for a, b in zip(*(random_thetas(learning, rng, 12) for _ in range(2)), strict=True):
        t = rng.random()
        (ha, ga), (hb, _), (hm, _) = (learning.h(x) for x in (a, b, t * a + (1 - t) * b))
        assert hm <= (t * ha + (1 - t) * hb) * (1 + 1e-12)
        assert hb >= ha + (ga * (b - a)).sum() - 1e-10 * (ha + hb)


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_h_is_smooth_with_the_constant_and_so_1_smooth(name, margin):
    learning = Learning(BOUNDED[name], B=12, d=3, margin=margin, noise=1.0)
    L = theory.smoothness(learning.Z)
    assert 0 < L <= (learning.Z**2).sum(axis=1).max() <= 1 + 1e-12
    rng = np.random.default_rng(2)
    for a in random_thetas(learning, rng, 12):
        b = a + 10.0 ** rng.uniform(-3, 1) * rng.standard_normal(a.shape)
        (ha, ga), (hb, gb) = learning.h(a), learning.h(b)
        step = np.linalg.norm(b - a)
        rounding = 1e-9 * (np.linalg.norm(ga) + np.linalg.norm(gb))
        assert np.linalg.norm(gb - ga) <= L * step + rounding
        assert hb <= ha + (ga * (b - a)).sum() + L / 2 * step**2 + 1e-10 * (ha + hb)


def test_smoothness_is_attained():
    """All samples far from their sets along one direction: h is the quadratic of least squares."""
    simplex = BOUNDED["simplex"]
    learning = Learning(simplex, B=9, d=3)
    X = np.tile([1.0, 0, 0, 0], (9, 1))
    learning.sets = rv.OptimalitySet(simplex, X)
    learning.Z = np.abs(learning.Z)
    direction = np.linalg.eigh(learning.Z.T @ learning.Z)[1][:, -1]
    move = np.outer([1.0, -1 / 3, -1 / 3, -1 / 3], np.abs(direction))
    a, b = 10 * move, 11 * move  # the used entry is the dearest for every sample
    change = learning.h(b)[1] - learning.h(a)[1]
    L = theory.smoothness(learning.Z)
    assert np.linalg.norm(change) == pytest.approx(L * np.linalg.norm(b - a), rel=1e-9)


# --- the Polyak-Lojasiewicz inequality -----------------------------------------------------------


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("B, d", [(1, 1), (4, 9), (6, 6)])
def test_pl_inequality_where_contexts_are_independent(name, B, d):
    learning = Learning(BOUNDED[name], B, d, noise=1.0)
    mu = theory.pl_constant(learning.Z)
    assert mu > 0
    if B == d:
        assert mu == pytest.approx(theory.stated_pl_constant(learning.Z), rel=1e-9)
    for theta in random_thetas(learning, np.random.default_rng(3), 15):
        h, gradient = learning.h(theta)
        assert 0.5 * (gradient**2).sum() >= mu * h * (1 - 1e-7)


def test_pl_constant_is_attained():
    """Residuals along the weakest direction of the contexts reach it: it cannot be raised."""
    Z = np.array([[1.0, 0.0], [0.9, 0.1]])
    simplex = rv.LinearProgram(A_eq=np.ones((1, 2)), b_eq=[1.0])
    weakest = np.linalg.eigh(Z @ Z.T)[1][:, 0]
    X = np.where(weakest[:, None] > 0, [1.0, 0.0], [0.0, 1.0])
    learning = Learning(simplex, 2, 2, margin=0.0)
    learning.Z, learning.sets = Z, rv.OptimalitySet(simplex, X, 0.0)
    theta = (np.linalg.inv(Z) @ np.outer(weakest, [1.0, -1.0])).T  # residuals are these predictions
    h, gradient = learning.h(theta)
    assert 0.5 * (gradient**2).sum() / h == pytest.approx(theory.pl_constant(Z), rel=1e-6)


def test_stated_constant_fails_with_more_samples_than_features():
    """The example in the docstring of `stated_pl_constant`: interpolation, and yet no such mu."""
    Z = np.array([[1.0], [-0.5]])
    simplex = rv.LinearProgram(A_eq=[[1.0, 1.0]], b_eq=[1.0])
    learning = Learning(simplex, 2, 1)
    learning.Z = Z
    learning.sets = rv.OptimalitySet(simplex, [[1.0, 0.0], [0.0, 1.0]])
    assert learning.h(np.array([[0.0], [2.0]]))[0] == pytest.approx(0, abs=1e-15)
    assert theory.stated_pl_constant(Z) == pytest.approx(0.625)
    h, gradient = learning.h(np.array([[0.0], [1.5]]))
    assert 0.5 * (gradient**2).sum() / h == pytest.approx(0.125, rel=1e-6)
    assert theory.pl_constant(Z) == 0
    assert theory.contraction(Z) == 1


def test_no_constant_of_the_contexts_alone_serves_more_samples_than_features():
    """Two half-planes that meet at an ever sharper angle, with the one context z = 1 for both."""
    learning = Learning(BOUNDED["simplex"], 2, 1)
    learning.Z = np.ones((2, 1))
    ratios = []
    for slope in (2.0, 1.1, 1.01):
        problem = rv.LinearProgram(A_eq=[[[1.0, 1.0]], [[1.0, slope]]], b_eq=1.0)
        learning.sets = rv.OptimalitySet(problem, [[1.0, 0.0], [0.0, 1.0 / slope]], 0.0)
        between = np.array([[1.0], [(slope + 1) / 2]])
        assert 1.0 < between[1, 0] < slope  # both sets hold it: a model that interpolates
        assert learning.sets.contains(learning.Z @ between.T).all()
        h, gradient = learning.h(-between)
        ratios.append(0.5 * (gradient**2).sum() / h)
    assert ratios[0] < 0.1
    assert ratios[1] < 0.01
    assert ratios[2] < 1e-4


# --- rates ---------------------------------------------------------------------------------------


def descend(learning, steps, precondition=False):
    """h by iteration of gradient descent with step 1/L, or with step 1 in the metric Z^T Z / B."""
    gram = learning.Z.T @ learning.Z / len(learning.Z)
    scale = np.linalg.pinv(gram) if precondition else 1.0 / theory.smoothness(learning.Z)
    theta, values = np.zeros_like(learning.truth), []
    for _ in range(steps + 1):
        h, gradient = learning.h(theta)
        values.append(h)
        theta = theta - (gradient @ scale if precondition else gradient * scale)
    return np.array(values), theta


def test_gradient_descent_keeps_the_linear_rate_where_contexts_are_independent():
    learning = Learning(BOUNDED["path"], B=4, d=8, noise=1.0)
    h, _ = descend(learning, 60)
    promised = theory.expected_h(learning.Z, h0=h[0], steps=60)
    assert theory.contraction(learning.Z) < 1
    assert (h <= promised * (1 + 1e-9) + 1e-18).all()
    assert theory.contraction(learning.Z, method="pocs") == 0
    one, _ = descend(learning, 1, precondition=True)
    assert one[1] < 1e-18 * one[0]


@pytest.mark.parametrize("method", ["gd", "pocs"])
def test_descent_keeps_the_sublinear_rate_where_they_are_not(method):
    learning = Learning(BOUNDED["knapsack"], B=25, d=3)
    best = 1e3 * learning.truth  # far inside every set, so that it interpolates with the margin
    assert learning.h(best)[0] < 1e-20
    h, end = descend(learning, 40, precondition=method == "pocs")
    moved = learning.Z @ end.T  # from a start at 0
    travel = np.linalg.norm(end) if method == "gd" else np.sqrt((moved**2).sum(axis=1).mean())
    promised = theory.expected_h(learning.Z, h0=h[0], steps=40, method=method, travel=travel)
    assert (np.diff(h) <= 1e-12 * h[0]).all()
    assert (h[:-1] - h[-1] <= promised[:-1] * (1 + 1e-9)).all()
    assert promised[0] == h[0]
    assert promised[-1] < h[0]


# --- delta ---------------------------------------------------------------------------------------


def random_standard_form(seed, m=3, n=7, B=4):
    """Nondegenerate vertices of A x = b, x >= 0, each with a right-hand side of its own."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n))
    X = np.zeros((B, n))
    for x in X:
        x[rng.permutation(n)[:m]] = 0.5 + rng.random(m)
    return rv.LinearProgram(A_eq=A, b_eq=X @ A.T), X


def random_general_form(seed, n=6, B=4):
    """Vertices of A_eq x = b_eq, A_ub x <= b_ub, 0 <= x <= u for random costs."""
    rng = np.random.default_rng(seed)
    A_eq, A_ub = rng.standard_normal((1, n)), rng.random((2, n))
    inner = 0.3 + rng.random((B, n))
    problem = rv.LinearProgram(
        A_eq=A_eq, b_eq=inner @ A_eq.T, A_ub=A_ub, b_ub=inner @ A_ub.T, lb=0.0, ub=1.5
    )
    return problem, problem.solve(rng.standard_normal((B, n)) - 1.0).x


@pytest.mark.parametrize("case", CASES, ids=name_of)
@pytest.mark.parametrize("margin", [0.01, 1.0])
def test_delta_is_the_least_norm_in_the_set(case, margin):
    sets = rv.OptimalitySet(case.problem, case.problem.solve(case.costs).x, margin)
    deltas = theory.delta(sets)
    zero = np.zeros(case.problem.n_variables)
    other = [np.linalg.norm(direct_projection(sets, b, zero, "clarabel")) for b in range(len(sets))]
    np.testing.assert_allclose(deltas, other, rtol=1e-8)


def test_delta_is_0_without_a_margin():
    sets = rv.OptimalitySet(BOUNDED["path"], BOUNDED["path"].solve(np.ones((1, 24))).x, 0.0)
    assert theory.delta(sets) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("build", [random_standard_form, random_general_form])
def test_lemma_is_a_lower_bound_on_delta(build, seed):
    sets = rv.OptimalitySet(*build(seed), margin=[0.1, 1.0, 2.0, 5.0])
    bound = theory.delta_lemma(sets)
    assert (bound.status == LemmaStatus.HOLDS).all()
    assert (bound.value > 0).all()
    assert (bound.value <= theory.delta(sets) * (1 + 1e-9)).all()
    np.testing.assert_allclose(
        bound.value / sets.margins,
        theory.delta_lemma(rv.OptimalitySet(sets.problem, sets.decisions, 1.0)).value,
    )


def test_lemma_on_the_knapsack_with_its_binding_row():
    """minimize <c, x>, 2 x1 + x2 <= 2, 0 <= x <= 1, at x = (1/2, 1): by hand.

    mu = -c1/2 >= 1 and c2 = -mu + s2, s2 <= -1: the smallest cost is (-2, -2). The lemma's rows
    are M = [-1/2, 0; 1/2, -1].
    """
    problem = rv.LinearProgram(A_ub=[[2.0, 1.0]], b_ub=[2.0], ub=1.0)
    sets = rv.OptimalitySet(problem, [[0.5, 1.0]])
    M = np.array([[-0.5, 0.0], [0.5, -1.0]])
    by_hand = max(2.0, np.sqrt(2) / np.linalg.svd(M)[1][0])
    assert theory.delta_lemma(sets).value == pytest.approx(by_hand)
    assert theory.delta(sets) == pytest.approx(np.sqrt(8))


def test_lemma_is_exact_on_a_segment():
    problem = rv.LinearProgram(A_eq=[[1.0, 1.0]], b_eq=[1.0])
    sets = rv.OptimalitySet(problem, [[1.0, 0.0]], 3.0)
    assert theory.delta_lemma(sets).value == pytest.approx(3 / np.sqrt(2))
    assert theory.delta(sets) == pytest.approx(3 / np.sqrt(2))


def test_dependent_equalities_do_not_cost_the_lemma_its_ground():
    A, b = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]]), np.array([1.0, 1.0])
    lone = rv.OptimalitySet(rv.LinearProgram(A_eq=A, b_eq=b), [[1.0, 0.0, 0.5]])
    twice = rv.LinearProgram(A_eq=np.vstack([A, A.sum(0)]), b_eq=[*b, b.sum()])
    doubled = theory.delta_lemma(rv.OptimalitySet(twice, [[1.0, 0.0, 0.5]]))
    assert doubled.status == LemmaStatus.HOLDS
    assert doubled.value == pytest.approx(theory.delta_lemma(lone).value[0])


def test_lemma_says_where_its_ground_is_gone():
    path = rv.problems.grid_shortest_path(4, 4)
    degenerate = theory.delta_lemma(rv.OptimalitySet(path, path.solve(np.ones((1, 48))).x))
    assert np.isnan(degenerate.value)
    assert degenerate.status == LemmaStatus.DEGENERATE
    assert "degenerate" in degenerate.reason[0]
    simplex = BOUNDED["simplex"]
    middle = theory.delta_lemma(rv.OptimalitySet(simplex, [[0.5, 0.5, 0, 0], [1.0, 0, 0, 0]]))
    assert list(middle.status) == [LemmaStatus.NOT_A_VERTEX, LemmaStatus.HOLDS]
    assert np.isnan(middle.value[0])
    assert middle.value[1] > 0
    assert "no vertex" in middle.reason[0]


def test_lemma_with_a_matrix_for_each_instance_and_fixed_entries():
    parts = per_instance_matrices()
    problem = rv.LinearProgram(**parts)
    X = problem.solve(np.random.default_rng(1).standard_normal((5, 7))).x
    sets = rv.OptimalitySet(problem, X)
    bound = theory.delta_lemma(sets)
    alone = [theory.delta_lemma(sets[b]).value[0] for b in range(5)]
    np.testing.assert_array_equal(bound.value, alone)
    holds = bound.status == LemmaStatus.HOLDS
    assert (bound.value[holds] <= theory.delta(sets)[holds] * (1 + 1e-9)).all()
    fixed = rv.LinearProgram(A_eq=np.ones((1, 3)), b_eq=[1.0], lb=[0.0, 0, 0.25], ub=[2, 2, 0.25])
    at = rv.OptimalitySet(fixed, [[0.75, 0.0, 0.25]])
    assert theory.delta_lemma(at).value == pytest.approx(1 / np.sqrt(2))
    assert theory.delta(at) == pytest.approx(1 / np.sqrt(2))


# --- Gamma ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", IN_UNIT_BOX, ids=name_of)
@pytest.mark.parametrize("margin", [0.05, 1.0])
def test_gamma_is_below_its_bound(case, margin):
    sets = rv.OptimalitySet(case.problem, case.problem.solve(case.costs).x, margin)
    rng = np.random.default_rng(5)
    sign = np.sign(case.costs[0, 0])
    for spread in (0.1, 1.0, 10.0):
        costs = sign * (0.5 + spread * rng.random(case.costs.shape))
        gamma = metrics.suboptimality(case.problem, costs=costs, decisions=sets, margin=None)
        each = 0.5 * rv.project(costs, sets).distance ** 2
        assert (gamma >= -1e-12).all()
        assert (gamma <= theory.gamma_bound(each, sets) * (1 + 1e-9) + 1e-12).all()
        assert gamma.mean() <= theory.gamma_bound(each.mean(), sets) * (1 + 1e-9)


def test_gamma_bound_outside_the_unit_box():
    problem = rv.LinearProgram(A_eq=np.ones((1, 3)), b_eq=[2.0])
    sets = rv.OptimalitySet(problem, [[0.0, 2.0, 0.0]])
    with pytest.raises(rv.InputError, match=r"decision 0 has 2 in entry 1"):
        theory.gamma_bound(0.1, sets)
    costs = np.array([[1.0, 3.0, 2.0]])
    gamma = metrics.suboptimality(problem, costs=costs, decisions=sets)
    h = 0.5 * rv.project(costs, sets).distance ** 2
    assert 0 < gamma <= theory.gamma_bound(h, sets, diameter=2 * np.sqrt(2))


def test_gamma_bound_at_nothing():
    sets = rv.OptimalitySet(BOUNDED["simplex"], [[1.0, 0, 0, 0]])
    assert theory.gamma_bound(0.0, sets) == 0.0
    no_margin = rv.OptimalitySet(BOUNDED["simplex"], [[1.0, 0, 0, 0]], 0.0)
    assert theory.gamma_bound(0.5, no_margin) == np.inf
    with pytest.raises(rv.ShapeError, match="one for each set"):
        theory.gamma_bound([0.1, 0.2], sets)


# --- contexts and the table ----------------------------------------------------------------------


def test_constants_of_contexts():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((20, 3))
    values = np.linalg.eigvalsh(Z.T @ Z / 20)
    assert theory.smoothness(Z) == pytest.approx(values[-1])
    assert theory.stated_pl_constant(Z) == pytest.approx(values[0])
    assert theory.pl_constant(Z[:2]) == pytest.approx(np.linalg.eigvalsh(Z[:2] @ Z[:2].T / 2)[0])
    ones = np.hstack([Z, np.ones((20, 1))])
    assert theory.smoothness(Z, intercept=True) == pytest.approx(theory.smoothness(ones))
    shared = rng.standard_normal((5, 6, 2))
    stacked = np.linalg.eigvalsh(np.einsum("bnp,bnq->pq", shared, shared) / 5)
    assert theory.smoothness(shared) == pytest.approx(stacked[-1])
    assert theory.stated_pl_constant(shared) == pytest.approx(stacked[0])
    assert theory.pl_constant(np.ones((2, 5))) == 0  # two samples with one context
    assert theory.contraction(np.zeros((2, 5))) == 1


@pytest.mark.parametrize(
    "Z, complaint", [(np.ones(3), "shape"), (np.ones((0, 2)), "shape"), ([[np.nan]], "finite")]
)
def test_bad_contexts_meet_a_sentence(Z, complaint):
    with pytest.raises(rv.InputError, match=complaint):
        theory.smoothness(Z)


def test_unknown_method_and_empty_history_meet_a_sentence():
    with pytest.raises(rv.InputError, match="gd, pocs"):
        theory.contraction(np.ones((2, 2)), method="newton")
    sets = rv.OptimalitySet(BOUNDED["simplex"], [[1.0, 0, 0, 0]])
    with pytest.raises(rv.ShapeError, match="at least one"):
        theory.Guarantees.measure(np.ones((1, 1)), sets, [])


def test_numbers_that_mean_nothing_meet_a_sentence():
    sets = rv.OptimalitySet(BOUNDED["simplex"], np.eye(4)[:2])
    Z, form = np.ones((2, 2)), rv.CostForm(np.eye(4)[:, :2])
    formed = rv.OptimalitySet(BOUNDED["simplex"], np.eye(4)[:2], form=form)
    refused = [
        (lambda: theory.smoothness(1e200 * Z), "cannot be squared"),
        (lambda: theory.expected_h(Z, h0=-1.0, steps=2), "`h0` must be"),
        (lambda: theory.expected_h(Z, h0=1.0, steps=2.5), "`steps` must be a whole number"),
        (lambda: theory.expected_h(Z, h0=1.0, steps=2, travel=np.nan), "`travel` must be"),
        (lambda: theory.delta(sets.decisions), "must be an OptimalitySet .* got ndarray"),
        (lambda: theory.delta(formed), "without a form"),
        (lambda: theory.delta_lemma(formed), "without a form"),
        (lambda: theory.gamma_bound(-1.0, sets), "`h` must be at least 0; got -1"),
        (lambda: theory.gamma_bound(1.0, sets, deltas=np.ones(3)), r"`deltas` must be \(2,\)"),
        (lambda: theory.gamma_bound(1.0, sets, diameter=-1.0), "`diameter` must be"),
        (lambda: theory.Guarantees.measure(np.ones((3, 1)), sets, [1.0]), "each of the 2 sets"),
    ]
    for call, words in refused:
        with pytest.raises(rv.InputError, match=words):
            call()


def test_guarantees_stand_next_to_what_happened():
    learning = Learning(BOUNDED["knapsack"], B=4, d=6)
    h, theta = descend(learning, 30)
    costs = learning.Z @ theta.T
    gamma = metrics.suboptimality(BOUNDED["knapsack"], costs=costs, decisions=learning.sets)
    got = theory.Guarantees.measure(learning.Z, learning.sets, h, method="gd", gamma=gamma)
    assert got.rises == 0
    assert 0 < got.observed_contraction <= got.contraction < 1
    assert got.gamma <= got.gamma_bound
    assert np.nanmin(got.lemma.value) <= got.deltas.min() * (1 + 1e-9)
    lines = str(got).splitlines()
    assert "mu = " in lines[0]
    assert lines[1].startswith("theory says")
    assert f"{got.contraction:.4g} of h" in str(got)
    assert "rose in 0 of 30 steps" in str(got)


def test_guarantees_say_what_they_cannot_promise():
    problem = rv.LinearProgram(A_eq=np.ones((1, 2)), b_eq=[2.0])
    sets = rv.OptimalitySet(problem, [[1.0, 1.0], [2.0, 0.0]])[[0, 0, 1]]
    table = str(theory.Guarantees.measure(np.ones((3, 1)), sets, [1.0, 1.5, 0.5], h_min=0.5))
    assert "no rate but 1/steps" in table
    assert "decisions leave [0, 1]" in table
    assert "rose in 1 of 2 steps" in table
    assert "not measured" in table
    assert "at 1 of 3 decisions" in table
    none = str(theory.Guarantees.measure(np.ones((1, 1)), sets[:1], [1.0]))
    assert "no lemma on delta" in none
