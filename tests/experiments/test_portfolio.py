"""Portfolios: the problem, the prices behind it, the rival's gradient, and the benchmark."""

import gzip
import json
import sys

import numpy as np
import pytest
import torch

import revealed as rv
from revealed.cli import main
from revealed.datasets.prices import (
    QUARTER,
    YEAR,
    Prices,
    load_sp500,
    portfolio_periods,
    read_prices,
    synthetic_prices,
)
from revealed.errors import InputError, MissingDependencyError, ShapeError
from revealed_experiments.bench.portfolio import command as bench
from revealed_experiments.bench.portfolio import learners
from revealed_experiments.bench.portfolio.implicit import best_portfolios, interior_point

RNG = np.random.default_rng(0)
N = 5
ROOTS = RNG.normal(size=(6, N, N))
Q = ROOTS @ ROOTS.transpose(0, 2, 1) + 0.1 * np.eye(N)
C = RNG.normal(size=(6, N))


@pytest.fixture(scope="module")
def periods():
    return portfolio_periods(synthetic_prices(700, N, seed=1))


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_two_assets_by_hand():
    # x = (t, 1 - t) is worth c t - t^2 - (1 - t)^2, which is best at t = (2 + c) / 4, or at 1.
    problem = rv.problems.portfolio(2 * np.eye(2))
    np.testing.assert_allclose(problem.solve(np.array([[1.0, 0.0]])).x, [[0.75, 0.25]], atol=1e-7)
    np.testing.assert_allclose(problem.solve(np.array([[9.0, 0.0]])).x, [[1.0, 0.0]], atol=1e-7)
    capped = rv.problems.portfolio(2 * np.eye(2), cap=0.6)
    np.testing.assert_allclose(capped.solve(np.array([[9.0, 0.0]])).x, [[0.6, 0.4]], atol=1e-7)


def test_covariances_count_and_not_the_variances_alone():
    problem = rv.problems.portfolio(Q)
    x = problem.solve(C).x
    plain = rv.problems.portfolio(Q * np.eye(N)).solve(C).x
    assert np.abs(x - plain).max() > 0.05
    worth = (C * x).sum(axis=1) - 0.5 * np.einsum("bi,bij,bj->b", x, Q, x)
    np.testing.assert_allclose(problem.objective(C, x), worth, rtol=1e-12)


def test_a_covariance_or_a_number_of_assets_is_needed():
    with pytest.raises(ShapeError, match="give one of the two"):
        rv.problems.portfolio()
    with pytest.raises(ShapeError, match="give one of the two"):
        rv.problems.portfolio(np.eye(2), n_assets=2)
    with pytest.raises(ShapeError, match="`Q` must be"):
        rv.problems.portfolio(1.0)
    with pytest.raises(InputError, match=r"at least 0\.2; got 0\.1"):
        rv.problems.portfolio(np.eye(5), cap=0.1)


# --- learning ------------------------------------------------------------------------------------


def test_returns_are_learned_exactly_where_the_model_is_right(periods):
    worth = np.array([-0.6, 0.0, 0.4, 0.8, -0.3, 0.5])
    problem = rv.problems.portfolio(periods.covariance)
    mixes = problem.solve(periods.features @ worth).x
    past, future = slice(40), slice(40, None)
    shared, solver = rv.fit.SharedModel(fit_intercept=False), rv.fit.LBFGS(max_iter=400)
    model = rv.InverseRegressor(problem[past], model=shared, solver=solver, margin=0.0)
    model.fit(periods.features[past], mixes[past])
    np.testing.assert_allclose(model.coef_, worth, atol=1e-3)
    predicted = model.predict(periods.features[future], problem=problem[future])
    np.testing.assert_allclose(predicted, mixes[future], atol=1e-3)


@pytest.mark.parametrize("name", learners.LEARNERS)
@pytest.mark.parametrize("joint", [False, True], ids=["c", "c and Q"])
def test_every_learner_follows_a_strong_signal(name, joint, periods):
    worth = np.array([-6.0, 0.0, 4.0, 8.0, -3.0, 5.0])
    returns = periods.features @ worth + 0.1 * RNG.normal(size=periods.returns.shape)
    risk = 0.5 * (periods.estimates[:, 0] + periods.estimates[:, 1])
    risk = risk if joint else periods.covariance
    samples = learners.Samples(
        periods.features,
        returns,
        risk,
        periods.estimates if joint else None,
        learners.solve(returns, risk),
    )
    train, test = samples.take(slice(50)), samples.take(slice(50, None))
    learner = learners.LEARNERS[name]
    losses = []
    for candidate in learner.candidates(joint=joint):
        if candidate["ridge"] or candidate["shrink"] or candidate.get("noise"):
            continue
        portfolios = learner.fit(train, 0, **candidate).decide(test)
        losses.append(((portfolios - test.portfolios) ** 2).sum(axis=1).mean())
    least = learners.solve(np.zeros(test.returns.shape), test.risk)
    assert min(losses) < 0.5 * ((least - test.portfolios) ** 2).sum(axis=1).mean()


def test_shrinking_estimates_and_unshrinking_the_model_is_the_same_covariance(periods):
    samples = learners.samples_of(periods, joint=True)
    weights = learners.Weights(np.zeros(6), np.array([0.5, 0.2, 0.1]))
    shrunk = weights.covariance(samples.shrunk(0.6))
    np.testing.assert_allclose(weights.unshrunk(0.6).covariance(samples), shrunk, rtol=1e-12)
    alone = weights.covariance(samples.shrunk(1.0))
    np.testing.assert_allclose(alone, 0.8 * samples.known_risk * np.eye(N), rtol=1e-12)
    known = learners.samples_of(periods, joint=False)
    assert known.shrunk(0.6) is known


@pytest.mark.parametrize("method", [learners.projections, learners.implicit, learners.two_stage])
def test_a_ridge_holds_the_model_of_returns_back(method, periods):
    own = {
        learners.projections: {"power": 1, "noise": 0.5},
        learners.implicit: {"criterion": "decision", "step": 0.1},
        learners.two_stage: {},
    }[method]
    train = learners.samples_of(periods, joint=False).take(slice(40))
    free, held = (method(train, 0, ridge=ridge, **own).returns for ridge in (0.0, 10.0))
    assert np.linalg.norm(held) < 0.5 * np.linalg.norm(free)


def test_the_distance_in_returns_is_that_to_the_explaining_ones(periods):
    """The shortcut through returns less risk agrees with the sets of the portfolio problem."""
    samples = learners.samples_of(periods, joint=False).take(slice(20))
    costs = samples.features @ np.array([0.3, 0.1, -0.2, 0.4, 0.2, -0.1])
    problem = rv.problems.portfolio(samples.risk, gamma=learners.GAMMA)
    sets = rv.OptimalitySet(problem, samples.portfolios, 0.0)
    linear = rv.LinearProgram(A_eq=np.ones((1, N)), b_eq=1.0)
    plain = rv.OptimalitySet(linear, samples.portfolios, 0.0)
    risk = learners.GAMMA * np.einsum("tij,tj->ti", samples.risk, samples.portfolios)
    short = rv.project(risk - costs, plain).distance
    np.testing.assert_allclose(short, rv.project(costs, sets).distance, rtol=1e-6, atol=1e-8)


# --- implicit differentiation --------------------------------------------------------------------


def test_the_rivals_portfolios_are_those_of_the_library():
    x = best_portfolios(torch.tensor(C), torch.tensor(Q), 0.7).numpy()
    np.testing.assert_allclose(x, rv.problems.portfolio(Q, gamma=0.7).solve(C).x, atol=1e-6)


def test_its_multipliers_certify_them():
    x, z = interior_point(torch.tensor(C), torch.tensor(Q))
    slope = (torch.tensor(Q) @ x[:, :, None])[:, :, 0] - torch.tensor(C) - z
    assert float((slope - slope.mean(1, keepdim=True)).abs().max()) < 1e-8
    assert float((x * z).abs().max()) < 1e-8
    assert float(x.min()) > 0
    assert float(z.min()) > 0


def test_its_gradients_are_those_of_finite_differences():
    c, root = torch.tensor(C[:3], requires_grad=True), torch.tensor(ROOTS[:3], requires_grad=True)

    def decide(c, root):  # through a root, so that every perturbed Q is a covariance
        return best_portfolios(c, root @ root.transpose(1, 2) + 0.1 * torch.eye(N), 0.7)

    assert torch.autograd.gradcheck(decide, (c, root), eps=1e-6, atol=1e-5, rtol=1e-4)


# --- prices --------------------------------------------------------------------------------------


def test_nothing_of_the_future_is_known(periods):
    prices = synthetic_prices(700, N, seed=1)
    k = 20
    day = int(np.searchsorted(prices.days, periods.days[k]))
    values = prices.values.copy()
    values[day + 1 :] *= 1 + RNG.random((len(values) - day - 1, 1))
    changed = portfolio_periods(Prices(prices.days, prices.names, values))
    for name in ("features", "covariance", "estimates"):
        np.testing.assert_array_equal(getattr(changed, name)[k], getattr(periods, name)[k])
    assert np.abs(changed.returns[k] - periods.returns[k]).max() > 1
    assert np.abs(changed.risk[k] - periods.risk[k]).max() > 1


def test_returns_are_those_of_the_next_five_days(periods):
    prices = synthetic_prices(700, N, seed=1)
    day = int(np.searchsorted(prices.days, periods.days[3]))
    gain = 100 * np.log(prices.values[day + 5] / prices.values[day])
    np.testing.assert_allclose(periods.returns[3], gain, rtol=1e-9)


def test_too_few_days_are_refused():
    with pytest.raises(InputError, match=f"at least {YEAR + QUARTER + 1} days"):
        portfolio_periods(synthetic_prices(YEAR + QUARTER, 3))


def write_package(folder, text):
    data = folder / "skfolio" / "datasets" / "data"
    data.mkdir(parents=True)
    # A package that cannot be imported: only its data may be touched.
    (folder / "skfolio" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    with gzip.open(data / "sp500_dataset.csv.gz", "wt") as file:
        file.write(text)


def test_prices_are_read_from_the_package_without_importing_it(tmp_path, monkeypatch):
    write_package(tmp_path, "Date,AA,BB\n1990-01-02,1.5,2\n1990-01-03,1.75,2.5\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "skfolio", raising=False)
    prices = load_sp500()
    assert prices.names == ("AA", "BB")
    assert prices.days.astype(str).tolist() == ["1990-01-02", "1990-01-03"]
    np.testing.assert_array_equal(prices.values, [[1.5, 2], [1.75, 2.5]])


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="pip install --no-deps skfolio"):
        load_sp500()


def test_a_missing_price_is_named(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("Date,AA,BB\n1990-01-02,1.5,2\n1990-01-03,,2.5\n")
    with pytest.raises(InputError, match="line 3 has none for 'AA'"):
        read_prices(path)


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "a heading"),
        ("Date,AA\n", "a line for each day"),
        ("Date,AA\n1990-01-02,high\n", "line 2 has none for 'AA'"),
        ("Date,AA,BB\n1990-01-02,1\n", "line 2: 3 cells were expected"),
        ("Date,AA\nmonday,1\n", "days such as"),
    ],
)
def test_files_that_hold_no_prices_meet_a_sentence(tmp_path, text, words):
    path = tmp_path / "prices.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_prices(path)
    with pytest.raises(InputError, match="there is none"):
        read_prices(tmp_path / "none.csv")


def test_one_asset_is_no_choice():
    with pytest.raises(InputError, match="at least 2 assets"):
        portfolio_periods(synthetic_prices(400, 1))


# --- the benchmark -------------------------------------------------------------------------------


def test_learning_ends_a_quarter_before_judging_begins():
    class Numbered:
        def take(self, part):
            return range(1000)[part]

    train, valid, test = bench._split(Numbered(), 7, (400, 50, 100))
    assert (len(train), len(valid), len(test)) == (400, 50, 100)
    assert train[0] == 7
    assert valid[0] - train[-1] > bench.GAP
    assert test[0] - valid[-1] > bench.GAP
    assert bench.GAP * 5 >= QUARTER


def test_the_benchmark_runs_in_small(tmp_path, capsys):
    out, page = tmp_path / "portfolio.json", tmp_path / "portfolio.md"
    assert main(["bench", "portfolio", "--quick", "--out", str(out), "--page", str(page)]) == 0
    content = json.loads(out.read_text("utf-8"))
    assert content["targets"] == []
    told = {(row["part"], row["learner"]) for row in content["results"]}
    assert len(told) == 2 * (len(learners.LEARNERS) + len(bench.REFERENCES))
    chosen = {(row["learner"], row.get("chosen_by")) for row in content["results"]}
    assert {(name, by) for name in learners.LEARNERS for by in bench.CHOICES} <= chosen
    for row in content["results"]:
        assert row["regret"] >= -1e-6  # nothing beats hindsight
        assert row["decision_loss"] >= 0
    assert "# Portfolios" in page.read_text("utf-8")
    assert "ours, squared" in capsys.readouterr().out


def test_the_benchmark_says_how_to_get_the_prices(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["bench", "portfolio", "--out", str(tmp_path / "out.json")]) != 0
    assert "pip install --no-deps skfolio" in capsys.readouterr().err


def test_portfolios_that_are_still_inexact_are_told(monkeypatch):
    monkeypatch.setattr("revealed_experiments.bench.portfolio.implicit.STEPS", 1)
    with pytest.raises(rv.RevealedError, match="still inexact after 1 steps"):
        interior_point(torch.ones(1, 3, dtype=torch.float64), torch.eye(3).double()[None])
