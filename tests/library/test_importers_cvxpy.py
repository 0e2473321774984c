"""CVXPY problems: the imported one has the same optimal value and decisions at every parameter."""

from itertools import product

import numpy as np
import pytest

import revealed as rv
from revealed.errors import InfeasibleDecisionError, InputError
from revealed.importers import RelaxationWarning

cp = pytest.importorskip("cvxpy")
Q = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])


def simplex(n, **kind):
    x = cp.Variable(n, name="x", **kind)
    return x, [cp.sum(x) == 1, x >= 0, x <= 0.7]


def plain():
    x, rows = simplex(3)
    c = cp.Parameter(3, name="c")
    return cp.Problem(cp.Minimize(c @ x), rows), c


def other_order():
    """The parameter lists the variables backwards, and part of them is in another variable."""
    x, y = cp.Variable(2, name="x", nonneg=True), cp.Variable(name="y")
    c = cp.Parameter(3, name="c")
    rows = [cp.sum(x) + y == 2, y <= 1.5, y >= 0]
    return cp.Problem(cp.Minimize(c[2] * x[0] + c[1] * x[1] + c[0] * y), rows), c


def maximized():
    x, rows = simplex(3)
    c = cp.Parameter(3, name="c")
    return cp.Problem(cp.Maximize(c @ x - 0.5 * x[0] + 4), rows), c


def matrix():
    x = cp.Variable((2, 3), name="x")
    c = cp.Parameter((2, 3), name="c")
    rows = [cp.sum(x, axis=1) == [3, 2], cp.sum(x, axis=0) <= 2, x >= 0]
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(c, x))), rows), c


def symmetric():
    x = cp.Variable((2, 2), name="x", symmetric=True)
    c = cp.Parameter((2, 2), name="c")
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(c, x))), [cp.abs(x) <= 1, cp.sum(x) >= 0]), c


def absolute():
    x = cp.Variable(3, name="x")
    c = cp.Parameter(3, name="c")
    rows = [cp.sum(x) == 1, x >= -1, x <= 1]
    return cp.Problem(cp.Minimize(c @ x + 0.3 * cp.norm1(x)), rows), c


def shared():
    """One price for several amounts, and a parameter that is a constant here."""
    x, rows = simplex(4)
    c, limit = cp.Parameter(2, name="c"), cp.Parameter(name="limit", value=0.9)
    objective = c[0] * (x[0] + 2 * x[1]) + c[1] * x[2]
    return cp.Problem(cp.Minimize(objective), [*rows, x[0] + x[1] <= limit]), c


def declared():
    """Costs that may not be negative, of terms that are convex only then."""
    x = cp.Variable(3, name="x")
    c = cp.Parameter(3, name="c", nonneg=True)
    return cp.Problem(cp.Minimize(c @ cp.abs(x)), [cp.sum(x) == 1, x >= -0.5, x <= 0.6]), c


def quadratic():
    x, rows = simplex(3)
    c = cp.Parameter(3, name="c")
    return cp.Problem(cp.Maximize(c @ x - cp.quad_form(x, Q)), rows), c


def least_squares():
    """A quadratic term that CVXPY writes with columns of its own."""
    x, rows = simplex(3)
    c = cp.Parameter(3, name="c")
    return cp.Problem(cp.Minimize(c @ x + cp.sum_squares(Q[:2] @ x - 0.3)), rows), c


CASES = [plain, other_order, maximized, matrix, symmetric, absolute, shared, declared, quadratic]
CASES += [least_squares]
AUXILIARY = {symmetric, absolute, declared, least_squares}


def costs_of(model, w):
    return w if model.form is None else model.form.costs(w)


def own_values(model, problem):
    """Values of the user's variables, entry by entry, in the order of the model."""
    found = {}
    for variable in problem.variables():
        for place, value in np.ndenumerate(np.asarray(variable.value)):
            inside = f"[{','.join(map(str, place))}]" if place else ""
            found[f"{variable.name()}{inside}"] = float(value)
    return np.array([found[name] for name in model.own_names])


def draws(parameter, size, seed=0):
    values = np.random.default_rng(seed).normal(size=(size, parameter.size))
    return np.abs(values) if parameter.attributes["nonneg"] else values


def solve_there(problem, parameter, w):
    parameter.value = w.reshape(parameter.shape, order="F")
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_values_and_decisions_are_cvxpys(case):
    problem, c = case()
    model = rv.from_cvxpy(problem, c)
    W = draws(c, 6)
    constant = None
    for w in W:
        value = solve_there(problem, c, w)
        answer = model.problem.solve(costs_of(model, w[None]))
        ours = -answer.objective[0] if model.maximized else answer.objective[0]
        constant = value - ours if constant is None else constant
        assert value - ours == pytest.approx(constant, abs=1e-6)  # the same one at every w
        own = own_values(model, problem)
        completed = model.decisions(own[None])
        np.testing.assert_allclose(answer.x, completed, atol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_parameters_that_explain_are_explained(case):
    """What CVXPY's own decisions came from lies in their sets, and projections give them back."""
    problem, c = case()
    model = rv.from_cvxpy(problem, c)
    W, own = draws(c, 6), []
    for w in W:
        solve_there(problem, c, w)
        own.append(own_values(model, problem))
    X = model.decisions(np.array(own))
    sets = rv.OptimalitySet(model.problem, X, margin=0.0, form=model.form)
    np.testing.assert_allclose(rv.project(W, sets).distance, 0.0, atol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_names_and_shapes(case):
    problem, c = case()
    model = rv.from_cvxpy(problem, c)
    assert len(model.parameter_names) == c.size
    assert model.parameter_names[0] == ("c[0,0]" if c.ndim == 2 else "c[0]")
    assert (model.completion is not None) == (case in AUXILIARY)
    assert len(model.variable_names) == model.problem.n_variables
    assert len(set(model.variable_names)) == len(model.variable_names)
    assert c.value is None  # the user's parameters are left as they were


def test_a_cost_for_each_column_needs_no_form_and_follows_the_parameter():
    for case, names in [(plain, ("x[0]", "x[1]", "x[2]")), (other_order, ("y", "x[1]", "x[0]"))]:
        model = rv.from_cvxpy(*case())
        assert model.form is None
        assert model.variable_names == names


def test_rows_of_one_variable_are_bounds():
    problem = rv.from_cvxpy(*plain()).problem
    assert problem.ub_rows.shape[0] == 0
    np.testing.assert_array_equal(problem.lb, 0)
    np.testing.assert_array_equal(problem.ub, 0.7)


def test_a_declared_sign_is_a_limit_of_what_explains():
    model = rv.from_cvxpy(*declared())
    np.testing.assert_array_equal(model.form.lower, 0.0)


def test_the_models_own_cost_is_that_of_the_parameters_value():
    problem, c = shared()
    c.value = np.array([2.0, 5.0])
    model = rv.from_cvxpy(problem, c)
    np.testing.assert_array_equal(model.cost, [2, 4, 5, 0])
    np.testing.assert_array_equal(c.value, [2, 5])


def test_several_parameters():
    x, rows = simplex(3)
    a, b = cp.Parameter(2, name="a"), cp.Parameter(name="b")
    model = rv.from_cvxpy(cp.Problem(cp.Minimize(a @ x[:2] + b * x[2]), rows), [a, b])
    assert model.parameter_names == ("a[0]", "a[1]", "b")
    assert model.form is None


def test_integers_are_relaxed_with_a_warning():
    x, z = cp.Variable(3, name="x", boolean=True), cp.Variable(name="z", integer=True)
    c = cp.Parameter(4, name="c")
    objective = cp.Maximize(c @ cp.hstack([x, z]))
    with pytest.warns(RelaxationWarning, match="4 of 4 variables must be whole numbers"):
        model = rv.from_cvxpy(cp.Problem(objective, [cp.sum(x) + z <= 2.5, z >= 0]), c)
    np.testing.assert_array_equal(model.problem.ub, [1, 1, 1, np.inf])
    assert model.integer.all()


def test_whole_decisions_are_the_best_of_all_that_can_be_listed():
    x, z = cp.Variable(3, name="x", boolean=True), cp.Variable(name="z", integer=True)
    c = cp.Parameter(4, name="c")
    rows = [2 * cp.sum(x) + 3 * z <= 5.5, z >= -1, x[0] + z <= 1]
    with pytest.warns(RelaxationWarning):
        model = rv.from_cvxpy(cp.Problem(cp.Maximize(c @ cp.hstack([x, z])), rows), c)
    values = np.random.default_rng(0).normal(size=(20, 4))
    answer = model.integer_problem.solve(model.form.costs(values))
    every = [np.array(point, float) for point in product((0, 1), (0, 1), (0, 1), (-1, 0, 1, 2))]
    allowed = [p for p in every if 2 * p[:3].sum() + 3 * p[3] <= 5.5 and p[0] + p[3] <= 1]
    assert answer.optimal.all()
    np.testing.assert_allclose(-answer.objective, (values @ np.array(allowed).T).max(axis=1))


def test_decisions_by_name_and_infeasible_ones():
    model = rv.from_cvxpy(*absolute())
    X = model.decisions({"x[2]": [0.5], "x[0]": [-0.5], "x[1]": [1.0]})
    np.testing.assert_allclose(X, [[-0.5, 1.0, 0.5, 0.5, 1.0, 0.5]])
    with pytest.raises(InfeasibleDecisionError, match="Row 1"):
        model.decisions([[0.5, 0.5, 0.0], [0.5, 0.5, 0.5]])


def unfit(objective, more=()):
    x, c, d = cp.Variable(3), cp.Parameter(3, name="c"), cp.Parameter(3, name="d")
    return cp.Problem(objective(c, x, d), [x >= 0, cp.sum(x) == 1, *(row(c, x) for row in more)]), c


@pytest.mark.parametrize(
    "objective, more, words",
    [
        (lambda c, x, d: cp.Minimize(c @ x), [lambda c, x: c @ x <= 1], "constraint 2 too"),
        (lambda c, x, d: cp.Minimize(cp.abs(c @ x)), [], "inside a function"),
        (lambda c, x, d: cp.Minimize(cp.max(cp.multiply(c, x))), [], "inside a function"),
        (lambda c, x, d: cp.Minimize(cp.sum_squares(x - c)), [], "or a square"),
        (lambda c, x, d: cp.Minimize(cp.norm(c) * cp.sum(x)), [], r"linear in its parameters"),
        (lambda c, x, d: cp.Minimize(c @ x + d @ x), [], "d has none"),
        (lambda c, x, d: cp.Minimize(c @ x + cp.norm(x)), [], "it has norms"),
        (lambda c, x, d: cp.Minimize(c @ x + cp.sum(cp.exp(x))), [], "exponential cones"),
        (lambda c, x, d: cp.Maximize(c @ x + cp.norm(x)), [], "convex"),
        (lambda c, x, d: cp.Minimize(cp.sum(x)), [], "must be a cvxpy.Parameter of the problem"),
    ],
)
def test_a_parameter_that_is_no_cost_is_refused_with_the_reason(objective, more, words):
    with pytest.raises(InputError, match=words):
        rv.from_cvxpy(*unfit(objective, more))


def test_what_is_no_problem_or_no_plain_parameter_is_refused():
    problem, c = plain()
    with pytest.raises(InputError, match=r"must be a cvxpy\.Problem"):
        rv.from_cvxpy("problem", c)
    with pytest.raises(InputError, match="The problem has: c"):
        rv.from_cvxpy(problem, cp.Parameter(3))
    x, square = cp.Variable((2, 2)), cp.Parameter((2, 2), symmetric=True, name="square")
    with pytest.raises(InputError, match="square is declared symmetric"):
        rv.from_cvxpy(cp.Problem(cp.Minimize(cp.trace(square @ x)), [x >= 0]), square)


@pytest.mark.parametrize("case", [plain, maximized, shared, quadratic], ids=lambda c: c.__name__)
def test_parameters_are_learned_end_to_end(case):
    problem, c = case()
    model = rv.from_cvxpy(problem, c)
    rng = np.random.default_rng(1)
    Z = rng.uniform(-1, 1, (20, 2))
    W = 1 + 0.8 * Z @ rng.uniform(-1, 1, (2, c.size))
    X = model.problem.solve(costs_of(model, W)).x
    options = {"cost_map": model.form, "margin": 0.02, "noise": 0.0, "threads": 1}
    est = rv.InverseRegressor(model.problem, **options).fit(Z, X)
    assert est.history_["h"][-1] < 0.1 * est.history_["h"][0]
    assert ((est.predict(Z) - X) ** 2).sum(axis=1).mean() < 0.05


def test_decisions_as_a_solver_leaves_them_are_completed():
    problem, parameter = least_squares()
    model = rv.from_cvxpy(problem, parameter)
    w = draws(parameter, 4)
    own = []
    for row in w:
        parameter.value = row
        problem.solve(solver=cp.CLARABEL)  # to its usual accuracy: sums are 1 but for 1e-9
        own.append(own_values(model, problem))
    X = model.decisions(np.array(own))
    assert model.problem.constraint_violation(X).max() <= 1e-5
    sets = rv.OptimalitySet(model.problem, X, 0.0, form=model.form)
    assert rv.project(w, sets).distance.max() <= 1e-4


def test_a_parameter_that_multiplies_a_curvature_is_refused_with_the_reason():
    x, c = cp.Variable(3), cp.Parameter(nonneg=True)
    problem = cp.Problem(cp.Minimize(c * cp.sum_squares(x) + x[0]), [x >= 0, cp.sum(x) == 1])
    with pytest.raises(InputError, match=r"multiplies a quadratic term .* rv\.QuadraticProgram"):
        rv.from_cvxpy(problem, c)
