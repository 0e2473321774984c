"""Rivals that ask an oracle: what every loss promises, kept by each of them."""

import copy

import numpy as np
import pytest
import torch
from rivals import (
    ALL,
    RANDOM,
    SHIFTING,
    K,
    knapsack_samples,
    label_of,
    path_samples,
    samples_of,
    value_and_gradient,
)

import revealed as rv
from helpers import catalogue
from revealed.datasets import noisy_paths
from revealed.losses.rivals.blackbox import BlackboxLoss
from revealed.losses.rivals.contrastive import ContrastiveLoss
from revealed.losses.rivals.fenchel_young import FenchelYoungLoss
from revealed.losses.rivals.perturbed import PerturbedLoss
from revealed.losses.rivals.regression import RegressionLoss
from revealed.losses.rivals.spo_plus import SPOPlusLoss
from revealed.losses.rivals.straight_through import StraightThroughLoss

CASES = catalogue()
every_rival = pytest.mark.parametrize("rival", ALL, ids=label_of)


@pytest.fixture
def paths():
    return path_samples()


@pytest.fixture
def knapsacks():
    return knapsack_samples()


# --- what every loss promises --------------------------------------------------------------------


@every_rival
def test_reductions_and_weights(paths, rival):
    each, gradient = paths.ask(rival, reduction="none")
    assert each.shape == (7,)
    weights = np.array([0.0, 1.0, 2.0, 0.5, 1.5, 3.0, 1.0])
    for reduction, given, share in [
        ("mean", None, np.full(7, 1 / 7)),
        ("sum", None, np.ones(7)),
        ("mean", weights, weights / weights.sum()),
        ("sum", weights, weights),
        ("none", weights, weights),
    ]:
        value, slope = paths.ask(rival, reduction=reduction, call={"weights": given})
        expected = share * each.numpy()
        np.testing.assert_allclose(value, expected if reduction == "none" else expected.sum())
        np.testing.assert_allclose(slope, share[:, None] * gradient.numpy())


@every_rival
def test_decisions_as_arrays_tensors_or_sets(paths, rival):
    value, gradient = paths.ask(rival)
    sets = rv.OptimalitySet(paths.problem, paths.decisions)
    for same in (torch.from_numpy(paths.decisions), paths.decisions.tolist(), sets):
        again, slope = paths.ask(rival, decisions=same, call={"index": range(7)})
        assert again == value
        assert torch.equal(slope, gradient)


@every_rival
def test_single_precision(paths, rival):
    single = paths.costs.float()
    exact, slope = paths.ask(rival, costs=single.double())
    value, gradient = paths.ask(rival, costs=single)
    assert value.dtype == gradient.dtype == torch.float32
    np.testing.assert_allclose(value, exact, rtol=1e-6)
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-7)


@every_rival
def test_nothing_given_is_changed(paths, rival):
    before = copy.deepcopy(paths)
    paths.ask(rival)
    assert torch.equal(paths.costs, before.costs)
    for name in ("decisions", "truth", "noise"):
        np.testing.assert_array_equal(getattr(paths, name), getattr(before, name))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@every_rival
def test_batch_equals_loop(case, rival):
    s = samples_of(case.problem, case.costs)
    options = {}
    if rival.kind is ContrastiveLoss:  # whose pool remembers the batch
        options = {"pool": s.decisions, "solve_ratio": 0.0}
    elif rival in RANDOM or rival in SHIFTING:
        options = {"floor": 0.01} if (case.costs > 0).all() else {}
    value, gradient = s.ask(rival, reduction="none", **options)
    assert torch.isfinite(gradient).all()
    for i in range(len(value)):
        part = slice(i, i + 1)
        alone, slope = s[part].ask(rival, reduction="none", **options)
        np.testing.assert_allclose(alone, value[part], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(slope, gradient[part], rtol=1e-12, atol=1e-14)


@every_rival
def test_instances_with_their_own_constraints(knapsacks, rival):
    s, batch = knapsacks, np.array([3, 0, 4])
    truth, sets = s.truth[batch], rv.OptimalitySet(s.problem, s.decisions)

    def ask(problem, decisions, **options):
        loss = rival(problem, noise=s.noise[:, batch])
        return value_and_gradient(loss, s.costs[batch], decisions, true_costs=truth, **options)

    expected = ask(s.problem[batch], s.decisions[batch])
    for found in (
        ask(s.problem, s.decisions[batch], index=batch),
        ask(s.problem, sets[batch]),
        ask(s.problem, sets[batch], index=batch),
    ):
        assert found[0] == expected[0]
        assert torch.equal(found[1], expected[1])
    with pytest.raises(rv.ShapeError, match="5 instances"):
        ask(s.problem, s.decisions[batch])


@every_rival
def test_as_many_oracle_calls_as_said(paths, rival, monkeypatch):
    asked, solve = [], rv.LinearProgram.solve
    loss = rival(paths.problem)
    monkeypatch.setattr(rv.LinearProgram, "solve", lambda p, c: asked.append(len(c)) or solve(p, c))
    value_and_gradient(loss, paths.costs, paths.decisions, true_costs=paths.truth)
    assert sum(asked) == rival.calls * len(paths.costs)
    expected = {0: "none", 1: "one", 2: "two", K: "n_samples"}[rival.calls]
    assert loss.oracle_calls in (expected, "solve_ratio on average")


@every_rival
def test_true_costs_are_asked_for_exactly_where_needed(paths, rival):
    loss = rival(paths.problem)
    assert loss.needs_true_costs == rival.needs_true_costs
    if not loss.needs_true_costs:
        loss(paths.costs, paths.decisions)
        return
    with pytest.raises(rv.InputError, match=r"learns from true costs: give true_costs=, \(B, 12\)"):
        loss(paths.costs, paths.decisions)
    with pytest.raises(rv.ShapeError, match="a row for each of the 7"):
        loss(paths.costs, paths.decisions, true_costs=paths.truth[:3])


@every_rival
def test_an_empty_batch(paths, rival):
    value, gradient = value_and_gradient(
        rival(paths.problem), paths.costs[:0], paths.decisions[:0], true_costs=paths.truth[:0]
    )
    assert value == 0
    assert gradient.shape == (0, 12)


@every_rival
def test_it_is_a_module_that_tells_its_options(paths, rival):
    loss = rival(paths.problem)
    first = value_and_gradient(
        copy.deepcopy(loss), paths.costs, paths.decisions, true_costs=paths.truth
    )
    again = value_and_gradient(loss, paths.costs, paths.decisions, true_costs=paths.truth)
    assert first[0] == again[0]
    assert loss.state_dict() == {}
    for name, option in rival.options.items():
        assert f"{name}={option!r}" in repr(loss)
    text = type(loss).__doc__
    for promise in ("gradient", "rue costs", "oracle"):
        assert promise in text


@every_rival
def test_learning_lowers_the_regret(rival):
    data = noisy_paths((200, 1, 200), degree=2, noise=0.1, seed=3)
    sets, truth = rv.OptimalitySet(data.problem, data.train.decisions), data.train.costs
    torch.manual_seed(0)
    net = torch.nn.Linear(5, data.problem.n_variables).double()
    draws = {"n_samples": 30, "sigma": 1.0} if rival in RANDOM else {}
    loss, z = rival(data.problem, **draws), torch.from_numpy(data.train.contexts)
    optimizer = torch.optim.Adam(net.parameters(), 0.05)
    regret = [_regret(net, data)]
    for epoch in range(12):
        loss.begin_epoch(0, epoch)
        for batch in np.array_split(np.random.default_rng(epoch).permutation(200), 8):
            value = loss(net(z[batch]), sets[batch], true_costs=truth[batch], index=batch)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
    regret.append(_regret(net, data))
    assert regret[1] < 0.5 * regret[0]


def _regret(net, data):
    with torch.no_grad():
        costs = net(torch.from_numpy(data.test.contexts)).numpy()
    return rv.metrics.relative_regret(data.problem, costs=costs, true_costs=data.test.costs)


# --- draws, floors, bad input --------------------------------------------------------------------


@pytest.mark.parametrize("rival", RANDOM, ids=label_of)
def test_a_seed_gives_the_same_draws(paths, rival):
    def gradients(epoch=None, **options):
        loss = rival(paths.problem, **options)
        call = loss, paths.costs, paths.decisions
        if epoch is not None:
            value_and_gradient(*call, true_costs=paths.truth)  # of no consequence for what follows
            loss.begin_epoch(*epoch)
        return [value_and_gradient(*call, true_costs=paths.truth)[1] for _ in range(2)]

    def same(some, others):
        return all(map(torch.equal, some, others))

    first = gradients()
    assert same(first, gradients())
    assert not torch.equal(*first)
    assert not same(first, gradients(seed=2))
    epoch = gradients((0, 3))
    assert same(epoch, gradients((0, 3)))
    for other in (gradients((0, 4)), gradients((1, 3)), gradients((0, 3), seed=2)):
        assert not same(epoch, other)


@pytest.mark.parametrize("rival", SHIFTING, ids=label_of)
def test_a_floor_for_graphs_with_cycles(rival):
    problem = rv.problems.grid_shortest_path(3, 3)
    s = samples_of(problem, np.random.default_rng(0).uniform(0.5, 1.5, (6, problem.n_variables)))
    wild = {"sigma": 3.0} if rival in RANDOM else {}
    costs = s.costs - 0.9
    with pytest.raises(rv.InputError, match=r"sample \d: .* is unbounded .* softplus.*`floor`"):
        s.ask(rival, costs=costs, **wild)
    value, gradient = s.ask(rival, costs=costs, floor=0.01, reduction="none", **wild)
    assert (value >= 0).all()
    assert torch.isfinite(gradient).all()
    assert gradient.any()


@pytest.mark.parametrize(
    "kind, options, complaint",
    [
        (StraightThroughLoss, {"criterion": "cost"}, "'decision', .* 'regret'.* got 'cost'"),
        (StraightThroughLoss, {"normalize": True}, "None, 'mean', 'norm' or 'std'; got True"),
        (BlackboxLoss, {"lam": 0}, "`lam` must be a finite number above 0; got 0"),
        (BlackboxLoss, {"lam": float("nan")}, "above 0; got nan"),
        (BlackboxLoss, {"criterion": None}, "got None"),
        (BlackboxLoss, {"floor": "low"}, "`floor` must be None or a finite number; got 'low'"),
        (SPOPlusLoss, {"floor": float("inf")}, "got inf"),
        (PerturbedLoss, {"n_samples": 0}, "`n_samples` must be a positive integer; got 0"),
        (PerturbedLoss, {"sigma": -1.0}, "`sigma` must be a finite number above 0; got -1.0"),
        (PerturbedLoss, {"criterion": "x"}, "got 'x'"),
        (PerturbedLoss, {"n_samples": 1, "baseline": True}, "needs another draw"),
        (FenchelYoungLoss, {"seed": -1}, "`seed` must be a whole number of at least 0; got -1"),
        (FenchelYoungLoss, {"seed": 0.5}, "got 0.5"),
        (ContrastiveLoss, {"solve_ratio": 1.5}, "`solve_ratio` must be a number from 0 to 1"),
        (ContrastiveLoss, {"pool": np.ones(12)}, r"`pool` must have shape \(B, 12\)"),
        (ContrastiveLoss, {"pool": np.full((2, 12), np.nan)}, "`pool` must be finite"),
        (ContrastiveLoss, {"pool": np.ones((1, 12))}, "decision"),
        (RegressionLoss, {"reduction": "average"}, "mean, sum, none"),
    ],
)
def test_bad_options_meet_a_sentence(paths, kind, options, complaint):
    with pytest.raises(rv.InputError, match=complaint):
        kind(paths.problem, **options)
    with pytest.raises(rv.InputError, match=r"must be a (problem of linear costs|LinearProgram)"):
        kind(paths)


@every_rival
def test_bad_calls_meet_a_sentence(paths, rival):
    loss, truth = rival(paths.problem), {"true_costs": paths.truth}
    refused = [
        ((paths.costs.numpy(), paths.decisions), truth, "must be a torch tensor"),
        ((paths.costs[0], paths.decisions), truth, "use `costs\\[None\\]`"),
        ((paths.costs, paths.decisions[:3]), truth, "a row for each of the 7"),
        ((-paths.costs.log().sqrt(), paths.decisions), truth, "must be finite; got nan"),
        ((paths.costs, paths.decisions), truth | {"weights": [1.0]}, "each of the 7 rows"),
    ]
    for args, options, complaint in refused:
        with pytest.raises(rv.InputError, match=complaint):
            loss(*args, **options)
