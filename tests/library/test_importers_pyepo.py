"""PyEPO's models train with our losses, and our losses stand in PyEPO's loops.

Real models are tested where PyEPO is installed (`make pyepo` makes such an environment); everywhere
else stand-ins with the same attributes.
"""

from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

import revealed as rv
from revealed.errors import InputError
from revealed.importers import RelaxationWarning

WEIGHTS = np.array([[3.0, 4.0, 3.0, 6.0, 4.0], [4.0, 5.0, 2.0, 3.0, 5.0]])
CAPACITY = np.array([12.0, 10.0])


class ArrayModel:
    """A model like those that PyEPO builds on MPAX: the arrays are the model."""

    _model, x = None, ()
    c_pred_index = None
    modelSense = 1

    def __init__(self, A, b, G, h, l, u, **changes):
        self.A, self.b, self.G, self.h, self.l, self.u = A, b, G, h, l, u
        self.num_cost = len(l)
        self.__dict__.update(changes)

    def setObj(self, c):
        self.c = np.asarray(c)

    def solve(self):
        rows = {"A_ub": -self.G, "b_ub": -self.h, "A_eq": self.A, "b_eq": self.b}
        bounds = np.stack([self.l, self.u], axis=1)
        found = linprog(self.modelSense * self.c, **rows, bounds=bounds)
        return found.x, self.modelSense * found.fun


def knapsack_arrays(**changes):
    """Values are maximized under two capacities."""
    n = WEIGHTS.shape[1]
    none = np.zeros((0, n)), np.zeros(0)
    limits = -WEIGHTS, -CAPACITY, np.zeros(n), np.ones(n)
    return ArrayModel(*none, *limits, **{"modelSense": -1} | changes)


def path_arrays():
    grid = rv.problems.grid_shortest_path(3, 3, directed="right-down")
    n = grid.n_variables
    none = np.zeros((0, n)), np.zeros(0)
    return ArrayModel(grid.A_eq.toarray(), grid.b_eq, *none, np.zeros(n), np.ones(n))


def real(name):
    pytest.importorskip("pyepo")
    if name == "grb path":
        return pytest.importorskip("pyepo.model.grb").shortestPathModel((3, 3))
    if name == "grb knapsack":
        return pytest.importorskip("pyepo.model.grb").knapsackModel(WEIGHTS, CAPACITY).relax()
    if name == "ort path":
        return pytest.importorskip("pyepo.model.ort").shortestPathModel((3, 3))
    return pytest.importorskip("pyepo.model.ort").knapsackModel(WEIGHTS, CAPACITY).relax()


MODELS = {
    "arrays path": path_arrays,
    "arrays knapsack": knapsack_arrays,
    **{
        name: partial(real, name)
        for name in ("grb path", "grb knapsack", "ort path", "ort knapsack")
    },
}


def costs_of(model, w):
    return w if model.form is None else model.form.costs(w)


@pytest.fixture(params=MODELS, ids=str)
def optmodel(request):
    return MODELS[request.param]()


def test_decisions_are_those_of_the_model(optmodel):
    model = rv.from_pyepo(optmodel)
    C = np.random.default_rng(0).uniform(1, 3, (5, optmodel.num_cost))
    X = model.problem.solve(costs_of(model, C)).x
    assert model.maximized == (optmodel.modelSense == -1)
    for c, x in zip(C, X, strict=True):
        optmodel.setObj(c)
        expected, value = optmodel.solve()
        np.testing.assert_allclose(x, np.asarray(expected), atol=1e-6)
        assert c @ x == pytest.approx(value)


def test_our_loss_stands_in_a_loop_of_pyepo(optmodel):
    """A batch is (features, costs, decisions, objectives); losses are called with costs first."""
    model = rv.from_pyepo(optmodel)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (64, 3))
    costs = 2 + features @ rng.uniform(-1, 1, (3, optmodel.num_cost))
    decisions = model.problem.solve(costs_of(model, costs)).x
    batch = [torch.tensor(part, dtype=torch.float32) for part in (features, costs, decisions)]
    predictor = torch.nn.Linear(3, optmodel.num_cost)
    optimizer = torch.optim.Adam(predictor.parameters(), lr=0.1)
    loss_fn = rv.ProjectionLoss(model.problem, form=model.form, margin=0.1)
    losses = []
    for _ in range(60):
        x, _, w = batch
        loss = loss_fn(predictor(x), w)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.02 * losses[0]
    predicted = predictor(batch[0]).detach().double().numpy()
    found = model.problem.solve(costs_of(model, predicted)).x
    assert (np.abs(found - decisions).max(axis=1) < 1e-6).mean() > 0.7


@pytest.mark.parametrize("name", ["grb path", "grb knapsack"])
def test_pyepos_own_data_loader_and_metric(name):
    optmodel = real(name)
    from pyepo.data.dataset import optDataset
    from pyepo.metric import regret

    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (60, 3))
    costs = 2 + features @ rng.uniform(-1, 1, (3, optmodel.num_cost))
    loader = torch.utils.data.DataLoader(optDataset(optmodel, features, costs), batch_size=20)
    model = rv.from_pyepo(optmodel)
    loss_fn = rv.ProjectionLoss(model.problem, form=model.form, margin=0.1)
    torch.manual_seed(0)
    predictor = torch.nn.Linear(3, optmodel.num_cost)
    optimizer = torch.optim.Adam(predictor.parameters(), lr=0.1)
    before = regret(predictor, optmodel, loader)
    for _ in range(30):
        for x, _, w, _ in loader:
            optimizer.zero_grad()
            loss_fn(predictor(x), w).backward()
            optimizer.step()
    assert regret(predictor, optmodel, loader) < 0.05 * before


def test_values_that_are_maximized_are_learned_as_values():
    model = rv.from_pyepo(knapsack_arrays())
    values = np.array([[5.0, 1.0, 4.0, 1.0, 1.0]])
    X = model.problem.solve(model.form.costs(values)).x
    assert X[0, 0] == X[0, 2] == 1.0
    sets = rv.OptimalitySet(model.problem, X, margin=0.0, form=model.form)
    assert rv.project(values, sets).distance == pytest.approx([0.0], abs=1e-9)
    assert rv.project(-values, sets).distance > 1.0


def test_partial_prediction_and_known_costs():
    """PyEPO's language lets a model predict the costs of some variables and know the others."""
    fixed = np.array([0.0, 2.0, 0.0, 0.0, 3.0])

    def full_cost(w):
        full = fixed.copy()
        full[[0, 2, 3]] += w
        return full

    some = knapsack_arrays(num_cost=3, c_pred_index=np.array([0, 2, 3]), _fullCost=full_cost)
    model = rv.from_pyepo(some)
    np.testing.assert_array_equal(model.form.costs([[7.0, 8.0, 9.0]]), [[-7, -2, -8, -9, -3]])
    assert model.parameter_names == ("x0", "x2", "x3")


def test_integers_are_relaxed_with_a_warning():
    pytest.importorskip("pyepo")
    knapsack = pytest.importorskip("pyepo.model.grb").knapsackModel(WEIGHTS, CAPACITY)
    with pytest.warns(RelaxationWarning, match="PyEPO's knapsackModel 5 of 5"):
        model = rv.from_pyepo(knapsack)
    knapsack.setObj([5.0, 1.0, 4.0, 1.0, 1.0])
    decision, _ = knapsack.solve()
    assert len(rv.OptimalitySet(model.problem, [decision], form=model.form)) == 1


def test_whole_decisions_of_arrays_are_the_best_of_all_that_can_be_listed():
    model = rv.from_pyepo(knapsack_arrays())
    whole = rv.IntegerProgram.of(model.problem, np.ones(5, bool))
    every = np.array(list(product((0.0, 1.0), repeat=5)))
    allowed = every[(every @ WEIGHTS.T <= CAPACITY).all(axis=1)]
    values = np.random.default_rng(0).uniform(size=(20, 5))
    answer = whole.solve(model.form.costs(values))
    assert answer.optimal.all()
    np.testing.assert_allclose(-answer.objective, (values @ allowed.T).max(axis=1))


def test_pyepos_own_language():
    dsl = pytest.importorskip("pyepo.dsl")
    x, c = dsl.Variable(5, lb=np.zeros(5), ub=np.ones(5)), dsl.Parameter(5)
    written = dsl.Problem(dsl.Maximize(c @ x), [WEIGHTS @ x <= CAPACITY]).compile("gurobi")
    model, plain = rv.from_pyepo(written), rv.from_pyepo(knapsack_arrays())
    np.testing.assert_array_equal(model.problem.A_ub.toarray(), plain.problem.A_ub.toarray())
    np.testing.assert_array_equal(model.problem.b_ub, plain.problem.b_ub)
    np.testing.assert_array_equal(model.form.costs(np.eye(5)), -np.eye(5))


@pytest.mark.parametrize(
    "optmodel, words",
    [
        ("model", "PyEPO optModel; got str"),
        (knapsack_arrays(_model=object()), "must be built on Gurobi"),
        (knapsack_arrays(_cost_vars=[1] * 10), "5 predicted costs for 10 variables"),
    ],
    ids=["no model", "unknown solver", "two variables a cost"],
)
def test_what_cannot_be_read_is_refused(optmodel, words):
    with pytest.raises(InputError, match=words):
        rv.from_pyepo(optmodel)


def test_a_quadratic_objective_that_is_maximized_is_turned():
    from types import SimpleNamespace

    from scipy import sparse
    from test_importers_gurobi import FakeModel

    solver = FakeModel(NumQNZs=1, quadratic=sparse.coo_matrix(-np.eye(3)))  # - |x|^2
    columns = dict(enumerate(solver.getVars()))
    model = SimpleNamespace(_model=solver, x=columns, num_cost=3, modelSense=-1, setObj=None)
    np.testing.assert_array_equal(rv.from_pyepo(model).problem.Q, 2 * np.eye(3))
