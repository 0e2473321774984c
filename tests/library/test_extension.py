"""A new kind of problem and a new kind of set, added from outside: implement a protocol, register.

    PickOne   a decision maker takes one of n items; decisions are explained by costs under which
              every other item costs more by the margin (the sets of the simplex, in closed form)
    Balls     sets that come with no problem: all costs within a radius of a center

Nothing in `src` knows of them.
"""

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import revealed as rv
from revealed.fit import LinearModel, pocs
from revealed.fit.solvers import SOLVERS
from revealed.optimality.protocol import PROJECTORS, READERS, CostSet
from revealed.problems.protocol import ORACLES, Problem

# --- a kind of problem -----------------------------------------------------------------------


@dataclass(frozen=True)
class PickOne(Problem):
    n_variables: int
    n_instances = None

    @property
    def n_parameters(self):
        return self.n_variables

    def constraint_violation(self, decisions):
        X = np.asarray(decisions)
        return np.maximum(np.abs(X.sum(1) - 1.0), np.abs(X - np.round(X)).max(1, initial=0.0))

    def check_batch(self, size, name):
        pass

    def __getitem__(self, index):
        return self


def cheapest(problem, costs, *, time_limit=None, threads=None):
    X = np.eye(problem.n_variables)[np.argmin(costs, axis=1)]
    return rv.Solution(X, (X * costs).sum(1), np.zeros(len(X), np.int8))


@dataclass(frozen=True, eq=False)
class Picks:
    """The kind of its sets: which item was taken."""

    taken: np.ndarray
    n_parameters: int

    def take(self, index, problem):
        return replace(self, taken=self.taken[index])


def read_picks(problem, X, terms):
    return Picks(np.argmax(X, axis=1), problem.n_variables)


def project_picks(costs, sets, options):
    """With t the cost of the taken item, the others are max(q, t + margin); t is the mean of its
    own q and of q - margin of those that must move."""
    q = np.asarray(costs)
    line = np.arange(len(q))
    own, margin = q[line, sets.kind.taken], sets.margins[:, None]
    others = np.sort(np.where(np.eye(q.shape[1], dtype=bool)[sets.kind.taken], np.inf, q) - margin)
    t = own.copy()
    for k in range(q.shape[1] - 1):  # the k + 1 cheapest must move as long as they lie below t
        t = np.where(others[:, k] < t, (own + others[:, : k + 1].sum(1)) / (k + 2), t)
    point = np.maximum(q, t[:, None] + margin)
    point[line, sets.kind.taken] = t
    return exactly(q, point)


def exactly(q, point):
    B = len(q)
    distance = np.linalg.norm(point - q, axis=1)
    status, steps = np.zeros(B, np.int8), np.ones(B, np.int64)
    return rv.Projection(
        point, distance, np.zeros(B), np.ones(B, bool), status, steps, np.zeros((B, 0))
    )


ORACLES.register(PickOne, cheapest)
READERS.register(PickOne, read_picks)
PROJECTORS.register(Picks, project_picks)


# --- sets of their own -----------------------------------------------------------------------


class Balls(CostSet):
    problem = None

    def __init__(self, centers, radius):
        self.decisions, self.radius = np.asarray(centers), radius
        self.margins, self.weights = np.zeros(len(self)), np.ones(len(self))
        self.n_parameters = self.decisions.shape[1]

    def __len__(self):
        return len(self.decisions)

    def __getitem__(self, index):
        return Balls(self.decisions[index], self.radius)


def project_balls(costs, sets, options):
    q = np.asarray(costs)
    away = q - sets.decisions
    length = np.linalg.norm(away, axis=1, keepdims=True)
    shrunk = sets.decisions + away * (sets.radius / np.maximum(length, sets.radius))
    return exactly(q, np.where(length > sets.radius, shrunk, q))


PROJECTORS.register(Balls, project_balls)


# --- tests -----------------------------------------------------------------------------------


@pytest.fixture
def case():
    """Contexts, decisions, and the simplex: the same problem as a linear program."""
    n, rng = 5, np.random.default_rng(31)
    Z = rng.standard_normal((60, 3))
    C = Z @ rng.standard_normal((3, n)) + 0.2 * rng.standard_normal((60, n))
    problem = PickOne(n)
    return problem, Z, C, problem.solve(C).x, rv.LinearProgram(A_eq=np.ones((1, n)), b_eq=[1.0])


def test_a_new_problem_is_solved_by_its_oracle(case):
    problem, _, C, X, simplex = case
    assert isinstance(problem, Problem)
    assert np.array_equal(X, simplex.solve(C).x)
    assert np.array_equal(rv.metrics.decision_loss(problem, costs=C, decisions=X), np.zeros(60))


@pytest.mark.parametrize("margin", [0.0, 1.0, np.linspace(0.1, 2.0, 60)])
def test_its_sets_are_projected_onto_as_those_of_the_simplex(case, margin):
    problem, _, C, X, simplex = case
    q = np.random.default_rng(32).standard_normal(C.shape)
    own, known = rv.OptimalitySet(problem, X, margin), rv.OptimalitySet(simplex, X, margin)
    p, expected = rv.project(q, own), rv.project(q, known)
    assert p.point == pytest.approx(expected.point, abs=1e-9)
    assert np.array_equal(p.lower_bound, p.distance)
    assert rv.project(q[3:9], own[3:9]).point == pytest.approx(p.point[3:9], abs=0)
    assert np.array_equal(own.contains(q), known.contains(q))
    assert own.contains(p.point, tol=1e-7).all()


@pytest.mark.parametrize("as_sets", [False, True])
def test_the_loss_trains_on_it(case, as_sets):
    problem, _, _, X, simplex = case
    q = torch.randn(X.shape, dtype=torch.float64, requires_grad=True)
    gradients = []
    for each in (problem, simplex):
        loss = rv.ProjectionLoss(each, margin=1.0)
        value = loss(q, rv.OptimalitySet(each, X) if as_sets else X)
        gradients.append((value.detach(), *torch.autograd.grad(value, q)))
    for own, expected in zip(*gradients, strict=True):
        assert torch.allclose(own, expected, atol=1e-9)


@pytest.mark.parametrize("solver", ["lbfgs", "pocs"])
@pytest.mark.filterwarnings("ignore:Not converged")  # POCS is far from its minimum after 30 steps
def test_the_estimator_learns_it_and_is_kept(case, solver):
    problem, Z, _, X, simplex = case
    ridge, steps = {"lbfgs": (0.1, 500), "pocs": (0.0, 30)}[solver]
    method = SOLVERS[solver](max_iter=steps)
    options = {"solver": method, "noise": 0.0, "ridge": ridge}
    own = rv.InverseRegressor(problem, **options).fit(Z, X)
    known = rv.InverseRegressor(simplex, **options).fit(Z, X)
    last, expected = own.history_.rows[-1]["loss"], known.history_.rows[-1]["loss"]
    assert last == pytest.approx(expected, rel=1e-5)
    assert own.score(Z, X) == pytest.approx(known.score(Z, X))
    again = pickle.loads(pickle.dumps(own))
    assert np.array_equal(again.predict(Z), own.predict(Z))


def test_sets_of_their_own_are_projected_onto_and_trained_with(case):
    _, Z, C, _, _ = case
    sets = Balls(C, 0.1)
    assert isinstance(sets, CostSet)
    near = rv.project(C + 3.0, sets)
    assert np.linalg.norm(near.point - C, axis=1) == pytest.approx(np.full(60, 0.1))
    assert sets.contains(near.point, tol=1e-9).all()
    assert not sets.contains(C + 3.0).any()
    q = torch.tensor(C + 3.0, requires_grad=True)
    rv.losses.projection_loss(q, sets, reduction="sum").backward()
    assert q.grad.numpy() == pytest.approx(C + 3.0 - near.point)
    model = LinearModel()
    history = pocs(model, Z, sets, max_iter=300)
    missed = rv.project(model.predict_cost(Z), sets).distance
    assert history.rows[-1]["h"] < 0.1 * history.rows[0]["h"]
    assert 0.5 * (missed**2).mean() <= history.rows[-1]["h"] * (1 + 1e-6)


def test_what_is_not_registered_is_named():
    class Unknown(PickOne):
        pass

    @dataclass(frozen=True)
    class Alone(Problem):
        n_variables: int = 3

    assert np.array_equal(Unknown(2).solve(np.array([[2.0, 1.0]])).x, [[0.0, 1.0]])  # as its base
    with pytest.raises(rv.InputError, match=r"no oracle for Alone, only for .*LinearProgram"):
        Alone().solve(np.zeros((1, 3)))
    with pytest.raises(rv.InputError, match="`sets` must be an OptimalitySet; got list"):
        rv.project(np.zeros((1, 3)), [1])
