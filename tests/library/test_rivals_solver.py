"""What holds for MOM, QPTL, IntOpt and CaVE alike: reductions, dtypes, instances, bad input."""

import copy

import numpy as np
import pytest
import torch
from solver_cases import one_thread as one_thread
from solver_cases import paths as paths

import revealed as rv
from revealed.losses import (
    BarrierLoss,
    CaveLoss,
    OptimalityMarginLoss,
    OptNetLoss,
    QPTLLoss,
    make_loss,
)

LOSSES = {
    "mom": (OptimalityMarginLoss, {"margin": 0.7}),
    "mom true": (OptimalityMarginLoss, {"basis": "true"}),
    "qptl": (QPTLLoss, {"tau": 0.5}),
    "qptl regret": (QPTLLoss, {"criterion": "regret"}),
    "optnet": (OptNetLoss, {"tau": 0.5}),
    "optnet regret": (OptNetLoss, {"criterion": "regret"}),
    "intopt": (BarrierLoss, {"mu": 0.3}),
    "intopt regret": (BarrierLoss, {"criterion": "regret"}),
    "cave": (CaveLoss, {}),
    "cave+": (CaveLoss, {"variant": "plus"}),
    "cave hybrid": (CaveLoss, {"variant": "hybrid", "solve_ratio": 0.0}),
}


@pytest.fixture(params=LOSSES)
def build(request):
    """One of the losses, still to be told its problem."""
    kind, options = LOSSES[request.param]
    return lambda problem, **more: kind(problem, **(options | more))


def test_reductions_weights_and_sets(build, paths):
    problem, X, truth, costs = paths
    weights = np.array([0.0, 1.0, 2.0, 0.5, 1.5, 3.0])
    each = build(problem, reduction="none")(costs, X, true_costs=truth)
    for margin in (0.0, 1.0):  # a margin of the sets is none of their business
        sets = rv.OptimalitySet(problem, X, margin)
        same = build(problem, reduction="none")(costs, sets, true_costs=truth)
        np.testing.assert_allclose(same, each)
    mean, total = (build(problem, reduction=r) for r in ("mean", "sum"))
    call = {"true_costs": truth, "weights": weights}
    assert mean(costs, X, **call).item() == pytest.approx(np.average(each, weights=weights))
    assert total(costs, X, **call).item() == pytest.approx((weights * each.numpy()).sum())
    q = costs.clone().requires_grad_()
    mean(q, X, **call).backward()
    alone = costs.clone().requires_grad_()
    (
        build(problem, reduction="none")(alone, X, true_costs=truth) @ torch.from_numpy(weights)
    ).backward()
    np.testing.assert_allclose(q.grad, alone.grad / weights.sum(), atol=1e-12)


def test_batch_equals_loop(build, paths):
    problem, X, truth, costs = paths
    loss = build(problem, reduction="none")
    whole = loss(costs, X, true_costs=truth)
    for b in range(6):
        alone = build(problem)(costs[[b]], X[[b]], true_costs=truth[[b]])
        assert alone.item() == pytest.approx(whole[b].item(), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtypes(build, paths, dtype):
    problem, X, truth, costs = paths
    q = costs.to(dtype).requires_grad_()
    value = build(problem)(q, torch.from_numpy(X).float(), true_costs=truth)
    value.backward()
    assert value.dtype == torch.float32
    assert q.grad.dtype == dtype
    assert torch.isfinite(q.grad).all()
    exact = build(problem)(q.detach().double(), X, true_costs=truth)
    assert value.item() == pytest.approx(exact.item(), rel=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_an_empty_batch(build, paths, reduction):
    problem, X, truth, costs = paths
    q = costs[:0].clone().requires_grad_()
    value = build(problem, reduction=reduction)(q, X[:0], true_costs=truth[:0])
    value.sum().backward()
    assert value.shape == (() if reduction == "mean" else (0,))
    assert value.sum() == 0
    assert q.grad.shape == q.shape


@pytest.mark.parametrize("own", ["right-hand sides", "matrices"])
def test_instances_with_their_own_constraints(build, own):
    rng = np.random.default_rng(0)
    if own == "matrices":
        weights = rng.integers(2, 7, (5, 1, 4)) * 1.0
        problem = rv.LinearProgram(A_ub=weights, b_ub=8.0, ub=1.0)
    else:
        problem = rv.problems.knapsack(np.array([3.0, 5, 4, 7]), np.array([6.0, 9, 11, 14, 7]))
    truth = -0.2 - rng.random((5, 4))
    X, costs = problem.solve(truth).x, torch.from_numpy(-0.2 - rng.random((5, 4)))
    loss = build(problem, reduction="none")
    whole = loss(costs, X, true_costs=truth)
    some = np.array([3, 0, 4])
    for part in (X[some], rv.OptimalitySet(problem, X)[some]):
        again = loss(costs[some], part, true_costs=truth[some], index=some)
        np.testing.assert_allclose(again, whole[some], rtol=1e-7, atol=1e-9)
    for b in range(5):
        alone = build(problem[[b]])(costs[[b]], X[[b]], true_costs=truth[[b]])
        assert alone.item() == pytest.approx(whole[b].item(), rel=1e-7, abs=1e-9)
    with pytest.raises(rv.ShapeError, match="5 instances"):
        loss(costs[some], X[some], true_costs=truth[some])


def test_no_oracle_is_called(build, paths, monkeypatch):
    problem, X, truth, costs = paths
    loss = build(problem)
    if getattr(loss, "basis", "") == "true":
        loss(costs, X, true_costs=truth)  # the first time it is
    monkeypatch.setattr(rv.LinearProgram, "solve", lambda *args, **options: 1 / 0)
    assert torch.isfinite(loss(costs, X, true_costs=truth))


def test_true_costs_are_asked_for_where_they_are_needed(build, paths):
    problem, X, _, costs = paths
    loss = build(problem)
    if loss.needs_true_costs:
        with pytest.raises(rv.InputError, match="learns from true costs"):
            loss(costs, X)
    else:
        assert torch.isfinite(loss(costs, X))


def test_they_are_modules_without_state(build, paths):
    problem, X, truth, costs = paths
    loss = build(problem)
    value = loss(costs, X, true_costs=truth)
    assert loss.state_dict() == {}
    assert copy.deepcopy(loss)(costs, X, true_costs=truth) == value
    for _, option in LOSSES.values():
        for name in option.keys() & vars(loss).keys():
            assert f"{name}=" in repr(loss)


@pytest.mark.parametrize(
    "kind, options, complaint",
    [
        (OptimalityMarginLoss, {"margin": -1.0}, "at least 0"),
        (OptimalityMarginLoss, {"margin": True}, "at least 0"),
        (OptimalityMarginLoss, {"basis": "optimal"}, "'decision', read off"),
        (QPTLLoss, {"tau": 0.0}, "above 0"),
        (QPTLLoss, {"criterion": "cost"}, "'regret'"),
        (BarrierLoss, {"mu": np.inf}, "above 0"),
        (BarrierLoss, {"criterion": None}, "'regret'"),
        (CaveLoss, {"variant": "inner"}, "'exact', 'plus' or 'hybrid'"),
        (CaveLoss, {"max_iter": 0}, "max_iter"),
        (CaveLoss, {"solve_ratio": 1.5}, "from 0 to 1"),
        (CaveLoss, {"inner_ratio": -0.1}, "from 0 to 1"),
        (CaveLoss, {"seed": -1}, "at least 0"),
        (QPTLLoss, {"reduction": "average"}, "mean, sum, none"),
    ],
)
def test_bad_settings_meet_a_sentence(paths, kind, options, complaint):
    with pytest.raises(rv.InputError, match=complaint):
        kind(paths[0], **options)


def test_infeasible_decisions_are_refused_where_their_states_matter(paths):
    problem, X, _, costs = paths
    for name in ("mom", "cave", "cave+"):
        with pytest.raises(rv.InfeasibleDecisionError, match="Decision 0 breaks"):
            make_loss(name, problem)(costs, X + 0.2)
