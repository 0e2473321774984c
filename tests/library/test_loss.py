"""The loss against its definition: values, gradients, dtypes, warm starts, odd batches."""

import copy
import dataclasses
import warnings

import numpy as np
import pytest
import torch

import revealed as rv
from helpers import catalogue
from revealed.losses import ProjectionLoss, UnsolvedProjectionWarning, projection_loss
from revealed.losses import projection as _projection

CASES = catalogue()
FORMS = [{"power": 2}, {"power": 1}, {"power": "huber", "delta": 0.5}, {"power": "huber"}]
FORMS += [{"power": "welsch", "delta": 0.5}, {"power": "welsch"}]


def form_id(form):
    return f"{form['power']}-{form.get('delta', '')}"


def name_of(case):
    return case.name


@pytest.fixture
def knapsack():
    """A small problem, decisions, and costs of which some explain theirs."""
    problem = rv.problems.knapsack(np.array([3.0, 5, 4, 7, 6]), 12.0)
    rng = np.random.default_rng(0)
    X = problem.solve(-rng.random((6, 5))).x
    costs = torch.from_numpy(-1 - rng.random((6, 5)) * 4)
    costs[2] = torch.from_numpy(
        rv.project(costs[2:3].numpy(), rv.OptimalitySet(problem, X[2:3], 2.0)).point[0]
    )
    return problem, X, costs


def expected(form, distance):
    """The four forms, written out."""
    if form["power"] == 2:
        return distance**2 / 2
    if form["power"] == 1:
        return distance
    delta = form.get("delta", 1.0)
    if form["power"] == "welsch":
        return delta**2 * (1 - np.exp(-((distance / delta) ** 2) / 2))
    return np.where(distance <= delta, distance**2 / 2, delta * (distance - delta / 2))


# --- values and gradients ------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS, ids=form_id)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_value_and_gradient_are_those_of_the_distance(case, form):
    X = case.problem.solve(case.costs).x
    rng = np.random.default_rng(1)
    q = torch.tensor(rng.standard_normal(X.shape), requires_grad=True)
    each = ProjectionLoss(case.problem, reduction="none", **form)(q, X)
    p = rv.project(q.detach().numpy(), rv.OptimalitySet(case.problem, X))
    np.testing.assert_allclose(each.detach(), expected(form, p.distance), rtol=1e-9)
    each.sum().backward()
    residual = q.detach().numpy() - p.point
    delta = form.get("delta", 1.0)
    slope = {
        2: np.ones(len(X)),
        1: 1 / p.distance,
        "huber": np.minimum(1, delta / p.distance),
        "welsch": np.exp(-((p.distance / delta) ** 2) / 2),
    }[form["power"]]
    np.testing.assert_allclose(q.grad, slope[:, None] * residual, atol=1e-8)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("form", FORMS, ids=form_id)
def test_gradcheck(knapsack, form, reduction):
    problem, X, costs = knapsack
    rows = [0, 1, 3, 4]  # off the kink that a plain distance has at the edge of a set
    loss = ProjectionLoss(problem, reduction=reduction, **form)
    weights = torch.tensor([1.0, 2.0, 0.0, 0.5], dtype=torch.float64)
    q = costs[rows].requires_grad_()
    assert torch.autograd.gradcheck(lambda c: loss(c, X[rows], weights=weights), (q,))


@pytest.mark.parametrize("form", FORMS, ids=form_id)
def test_a_cost_that_explains_its_decision_is_left_alone(knapsack, form):
    problem, X, costs = knapsack
    q = costs[2:3].requires_grad_()
    value = ProjectionLoss(problem, **form)(q, X[2:3])
    value.backward()
    assert value.item() == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(q.grad, 0, atol=1e-9)


def test_h_of_a_linear_model_has_the_gradient_of_the_paper(knapsack):
    problem, X, _ = knapsack
    rng = np.random.default_rng(2)
    Z, theta = rng.standard_normal((6, 3)), torch.tensor(rng.standard_normal((5, 3)))
    theta.requires_grad_()
    value = ProjectionLoss(problem)(torch.from_numpy(Z) @ theta.T, X)
    value.backward()
    q = Z @ theta.detach().numpy().T
    p = rv.project(q, rv.OptimalitySet(problem, X))
    assert value.item() == pytest.approx((p.distance**2).mean() / 2)
    np.testing.assert_allclose(theta.grad, (q - p.point).T @ Z / 6, atol=1e-10)


def test_reductions_and_weights(knapsack):
    problem, X, costs = knapsack
    weights = np.array([0.0, 1.0, 2.0, 0.5, 1.5, 3.0])

    def value(reduction, **options):
        return ProjectionLoss(problem, reduction=reduction)(costs, X, **options).numpy()

    each = value("none")
    assert value("sum") == pytest.approx(each.sum())
    assert value("mean") == pytest.approx(each.mean())
    np.testing.assert_allclose(value("none", weights=weights), weights * each)
    assert value("sum", weights=torch.from_numpy(weights)) == pytest.approx((weights * each).sum())
    assert value("mean", weights=list(weights)) == pytest.approx(np.average(each, weights=weights))
    assert value("mean", weights=np.zeros(6)) == 0


def test_the_plain_function_is_the_same(knapsack):
    problem, X, costs = knapsack
    sets = rv.OptimalitySet(problem, X, 2.0)
    q = costs.clone().requires_grad_()
    for form in FORMS:
        module = ProjectionLoss(problem, 2.0, **form)(q, sets)
        tensor = projection_loss(q, sets, **form)
        assert tensor.requires_grad
        assert tensor.item() == module.item()
        assert projection_loss(costs.numpy(), sets, **form) == module.item()
    listed = projection_loss(costs.numpy(), sets, reduction="none", weights=np.ones(6))
    assert isinstance(listed, np.ndarray)
    assert listed.shape == (6,)


# --- dtypes and devices --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(knapsack, dtype):
    problem, X, costs = knapsack
    q = costs.to(dtype).requires_grad_()
    value = ProjectionLoss(problem)(q, torch.from_numpy(X).to(torch.float32))
    value.backward()
    assert value.dtype == (dtype if dtype in (torch.float32, torch.float64) else torch.float32)
    assert q.grad.dtype == dtype
    exact = ProjectionLoss(problem)(q.detach().double(), X)
    assert value.item() == pytest.approx(exact.item(), rel=1e-6)


def test_training_under_autocast(knapsack):
    problem, X, _ = knapsack
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 5))
    z, sets = torch.randn(6, 4), rv.OptimalitySet(problem, X)
    loss_fn, values = ProjectionLoss(problem), []
    optimizer = torch.optim.Adam(net.parameters(), 0.05)
    for _ in range(40):
        with torch.autocast("cpu", torch.bfloat16):
            value = loss_fn(net(z), sets, index=range(6))
        assert value.dtype == torch.float32
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < 0.05 * values[0]
    assert all(p.grad.dtype == torch.float32 for p in net.parameters())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_results_stay_on_the_device(knapsack):
    problem, X, costs = knapsack
    q = costs.cuda().requires_grad_()
    value = ProjectionLoss(problem)(q, torch.from_numpy(X).cuda())
    value.backward()
    assert value.device == q.device == q.grad.device
    assert value.item() == pytest.approx(ProjectionLoss(problem)(costs, X).item())


def test_non_contiguous_costs(knapsack):
    problem, X, costs = knapsack
    q = costs.T.contiguous().T.requires_grad_()
    assert not q.is_contiguous()
    value = ProjectionLoss(problem)(q, X)
    value.backward()
    assert value.item() == ProjectionLoss(problem)(costs, X).item()
    assert torch.isfinite(q.grad).all()


# --- warm starts ---------------------------------------------------------------------------------


@pytest.fixture
def paths():
    problem = rv.problems.grid_shortest_path(5, 5)
    rng = np.random.default_rng(4)
    costs = torch.from_numpy(1 + rng.random((20, problem.n_variables)))
    sets = rv.OptimalitySet(problem, problem.solve(1 + rng.random(costs.shape)).x)
    return problem, sets, costs


def test_a_second_visit_starts_where_the_first_ended(paths):
    problem, sets, costs = paths
    loss, index = ProjectionLoss(problem, reduction="none"), np.arange(100, 120)
    first = loss(costs, sets, index=index)
    steps, cold = loss.steps, loss.projection
    assert steps == int(cold.iterations.sum()) > 0
    again = loss(costs, sets, index=torch.from_numpy(index))
    assert loss.steps <= steps
    assert (loss.projection.iterations <= cold.iterations).all()
    assert loss.projection.solved.all()
    np.testing.assert_allclose(again, first, rtol=1e-7)
    order = np.random.default_rng(0).permutation(20)
    shuffled = loss(costs[order], sets[order], index=index[order])
    np.testing.assert_allclose(shuffled, first[order], rtol=1e-7)
    assert loss.steps <= steps


def test_warm_starts_can_be_refused_or_forgotten(paths):
    problem, sets, costs = paths
    refused = ProjectionLoss(problem, warm_start=False)
    refused(costs, sets, index=range(20))
    steps = refused.steps
    refused(costs, sets, index=range(20))
    assert refused.steps == steps
    loss = ProjectionLoss(problem)
    value = loss(costs, sets, index=range(20))
    loss(costs, sets, index=range(20))
    loss.forget()
    assert loss(costs, sets, index=range(20)).item() == value.item()
    assert loss.steps == steps


def test_a_batch_of_old_and_new_samples(paths):
    problem, sets, costs = paths
    loss = ProjectionLoss(problem)
    loss(costs[:10], sets[:10], index=range(10))
    mixed = loss(costs[5:15], sets[5:15], index=range(5, 15))
    assert mixed.item() == ProjectionLoss(problem)(costs[5:15], sets[5:15]).item()
    twice = loss(costs[[3, 3]], sets[[3, 3]], index=[3, 3])
    assert twice.item() == pytest.approx(ProjectionLoss(problem)(costs[3:4], sets[3:4]).item())


# --- as a module ---------------------------------------------------------------------------------


def test_it_is_a_module_without_state(paths):
    problem, sets, costs = paths
    loss = ProjectionLoss(problem)
    value = loss(costs, sets, index=range(20))
    assert loss.state_dict() == {}
    assert list(loss.parameters()) == []
    twin = copy.deepcopy(loss).eval()
    assert twin(costs, sets).item() == value.item()
    assert not twin(costs, sets).requires_grad
    with torch.inference_mode():
        assert twin(costs, sets).item() == value.item()
    assert "margin=1.0" in repr(loss)
    assert "delta=2" in repr(ProjectionLoss(problem, power="huber", delta=2))


# torch reads .grad of what comes out of a graph break, and hides its own warning about that from
# all but those who make errors of warnings.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_it_survives_torch_compile(paths):
    problem, sets, costs = paths
    net = torch.nn.Linear(costs.shape[1], costs.shape[1]).double()
    loss = ProjectionLoss(problem)

    def objective(c):
        return 2 * loss(net(c), sets, index=np.arange(20))

    plain = objective(costs)
    compiled = torch.compile(objective, backend="eager")(costs)
    compiled.backward()
    assert compiled.item() == pytest.approx(plain.item(), rel=1e-7)
    assert torch.isfinite(net.weight.grad).all()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_an_empty_batch(paths, reduction):
    problem, sets, costs = paths
    q = costs[:0].clone().requires_grad_()
    loss = ProjectionLoss(problem, reduction=reduction)
    for decisions in (sets[:0], sets.decisions[:0]):
        value = loss(q, decisions, index=[], weights=[])
        value.sum().backward()
        assert value.shape == (() if reduction != "none" else (0,))
        assert value.sum() == 0
        assert q.grad.shape == q.shape
        assert loss.steps == 0


def test_unsolved_projections_are_counted_and_told_once(paths, monkeypatch):
    problem, sets, costs = paths

    def first_two_unsolved(*args, **options):
        p = rv.project(*args, **options)
        p.solved[:2] = False
        return dataclasses.replace(p, status=(~p.solved).astype(np.int8))

    monkeypatch.setattr(_projection, "project", first_two_unsolved)
    loss = ProjectionLoss(problem)
    with pytest.warns(UnsolvedProjectionWarning, match="2 of 20 projections .* above `tol`"):
        value = loss(costs.clone().requires_grad_(), sets)
    value.backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss(costs, sets)
    assert loss.unsolved == 4
    with pytest.warns(UnsolvedProjectionWarning, match="used as they are"):
        projection_loss(costs, sets)


# --- margins, instances with their own constraints, bad input ------------------------------------


def test_margins_of_loss_and_sets(knapsack):
    problem, X, costs = knapsack
    sets = rv.OptimalitySet(problem, X, 0.1)
    with pytest.raises(rv.InputError, match=r"margin 1, the sets 0\.1"):
        ProjectionLoss(problem)(costs, sets)
    own = ProjectionLoss(problem, margin=None)
    assert own(costs, sets).item() == ProjectionLoss(problem, 0.1)(costs, X).item()
    assert own(costs, X).item() == ProjectionLoss(problem)(costs, X).item()
    margins = np.linspace(0, 2, 6)
    mixed = rv.OptimalitySet(problem, X, margins)
    with pytest.raises(rv.InputError, match="6 different ones"):
        ProjectionLoss(problem)(costs, mixed)
    each = ProjectionLoss(problem, None, reduction="none")(costs, mixed)
    alone = [ProjectionLoss(problem, m)(costs[[i]], X[[i]]) for i, m in enumerate(margins)]
    np.testing.assert_allclose(each, alone, rtol=1e-9, atol=1e-15)


def test_instances_with_their_own_constraints():
    problem = rv.problems.knapsack(np.array([3.0, 5, 4, 7]), np.array([6.0, 9, 11, 14, 7]))
    rng = np.random.default_rng(0)
    X = problem.solve(-rng.random((5, 4))).x
    sets, costs = rv.OptimalitySet(problem, X), torch.from_numpy(-rng.random((5, 4)))
    loss = ProjectionLoss(problem, reduction="none")
    whole = loss(costs, X)
    np.testing.assert_array_equal(whole, loss(costs, sets))
    batch = np.array([3, 0, 4])
    np.testing.assert_allclose(loss(costs[batch], sets[batch]), whole[batch], rtol=1e-9)
    np.testing.assert_allclose(loss(costs[batch], X[batch], index=batch), whole[batch], rtol=1e-9)
    with pytest.raises(rv.ShapeError, match="5 instances"):
        loss(costs[batch], X[batch])
    with pytest.raises(IndexError, match="outside the 5"):
        loss(costs[batch], X[batch], index=[0, 1, 5])


@pytest.mark.parametrize(
    "options, complaint",
    [
        ({"power": 3}, "1, 2, 'huber', 'welsch'"),
        ({"power": True}, "1, 2, 'huber', 'welsch'"),
        ({"delta": 0.0}, "above 0"),
        ({"reduction": "average"}, "mean, sum, none"),
        ({"margin": -1.0}, "at least 0"),
        ({"margin": np.nan}, "at least 0"),
        ({"margin": [1.0, 2.0]}, "one finite number"),
    ],
)
def test_bad_settings_meet_a_sentence(knapsack, options, complaint):
    with pytest.raises(rv.InputError, match=complaint):
        ProjectionLoss(knapsack[0], **options)


def test_bad_calls_meet_a_sentence(knapsack):
    problem, X, costs = knapsack
    loss, sets = ProjectionLoss(problem), rv.OptimalitySet(problem, X)
    refused = [
        ((costs.numpy(), X), {}, "must be a torch tensor"),
        ((costs[0], X[0]), {}, "use `costs\\[None\\]`"),
        ((costs, X[:3]), {}, "one row for each of the 3"),
        ((costs.log(), X), {}, "must be finite; got nan in row 0"),
        ((costs, X), {"weights": np.ones(3)}, "each of the 6 rows"),
        ((costs, X), {"weights": [1, 1, -1, 1, 1, 1]}, "got -1.0 at entry 2"),
        ((costs, X), {"weights": torch.ones(6, requires_grad=True)}, "must be constants"),
        ((costs, X), {"index": [1, 2]}, "one sample number"),
        ((costs, X), {"index": np.ones(6)}, "whole numbers"),
        ((costs, sets[[0]]), {}, "one row for each of the 1"),
    ]
    for args, options, complaint in refused:
        with pytest.raises(rv.InputError, match=complaint):
            loss(*args, **options)
    with pytest.raises(rv.ShapeError, match="another problem"):
        ProjectionLoss(rv.LinearProgram(A_eq=np.ones((1, 5)), b_eq=[1.0]))(costs, sets)
    with pytest.raises(rv.InputError, match="must be a LinearProgram"):
        ProjectionLoss(sets)
    with pytest.raises(rv.InputError, match="must be an OptimalitySet"):
        projection_loss(costs, X)
