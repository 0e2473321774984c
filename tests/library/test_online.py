"""Learning from streams: near the fit to all at once, for all chunks, models and sets."""

import numpy as np
import pytest
from fit_cases import contexts, entries
from sklearn.base import clone

import revealed as rv
from revealed.datasets import noisy_paths, paper_paths
from revealed.fit import LBFGS, InverseRegressor, KernelModel, LinearModel, SharedModel, online
from revealed.fit.evaluation import DistanceLoss, Evaluator
from revealed.fit.online import solved
from revealed.fit.past import Past, recentered, shifted
from revealed.metrics.sameness import same_decision

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

DATA = noisy_paths((200, 0, 1000), degree=4, seed=3)
EXACT = paper_paths((150, 0, 500), degree=4, seed=3)
MODELS = {
    "linear": {},
    "no intercept": {"model": LinearModel(fit_intercept=False)},
    "quadratic": {"model": "quadratic"},
    "kernel": {"model": KernelModel(gamma=0.1, n_components=30)},
    "no noise": {"noise": 0.0, "ridge": 1e-3},
    "ridge": {"ridge": 0.01},
    "welsch": {"loss": "welsch"},
}


def stream(est, Z, X, chunk, **options):
    for start in range(0, len(Z), chunk):
        est.partial_fit(Z[start : start + chunk], X[start : start + chunk], **options)
    return est


def repeated(est, data=DATA):
    decided = est.predict(data.test.contexts)
    return float(np.mean(same_decision(decided, data.test.decisions)))


# --- as good as a fit, nearly ---------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 10, 200])
@pytest.mark.parametrize("data", [DATA, EXACT], ids=["noisy", "exact"])
def test_a_stream_repeats_nearly_as_many_decisions_as_a_fit(data, chunk):
    Z, X = data.train.contexts, data.train.decisions
    whole = InverseRegressor(data.problem).fit(Z, X)
    est = stream(InverseRegressor(data.problem), Z, X, chunk)
    assert repeated(est, data) >= 0.9 * repeated(whole, data)
    assert est.n_iter_ == -(-len(Z) // chunk)


@pytest.mark.parametrize("kind", MODELS)
def test_every_convex_model_learns_from_single_samples(kind):
    Z, X = DATA.train.contexts, DATA.train.decisions
    whole = InverseRegressor(DATA.problem, **MODELS[kind]).fit(Z, X)
    est = stream(InverseRegressor(DATA.problem, **MODELS[kind]), Z, X, 1)
    assert repeated(est) >= 0.75 * repeated(whole)


def test_the_loss_of_a_fit_is_what_a_stream_lowers():
    """On the same ridge and noise, a stream ends near the minimum, and passes go on towards it."""
    Z, X = DATA.train.contexts, DATA.train.decisions
    settings = {"noise": 2.0, "loss": rv.fit.Huber(delta=2.0), "ridge": 0.01}
    whole = InverseRegressor(DATA.problem, **settings).fit(Z, X)
    loss = DistanceLoss(power="huber", delta=2.0, noise=2.0, draws=64, seed=9)
    sets = rv.OptimalitySet(DATA.problem, X)

    def value(est):
        model = est.model_
        return Evaluator(sets, loss).look(model, Z).h + model.penalty()

    start = value(clone(whole).set_params(solver=LBFGS(max_iter=0)).fit(Z, X))
    once = stream(InverseRegressor(DATA.problem, **settings), Z, X, 10)
    assert value(once) - value(whole) < 0.05 * (start - value(whole))


def test_a_stream_goes_on_after_a_fit():
    Z, X = DATA.train.contexts, DATA.train.decisions
    half = InverseRegressor(DATA.problem).fit(Z[:50], X[:50])
    before = repeated(half)
    stream(half, Z[50:], X[50:], 1)
    assert repeated(half) > before
    assert half.ridge_ == pytest.approx(0.15 / len(Z))


def test_samples_of_a_fit_keep_their_say():
    """One more decision moves a model of many decisions little, and one of few a lot."""
    Z, X = DATA.train.contexts, DATA.train.decisions
    moved = []
    for size in (10, 190):
        est = InverseRegressor(DATA.problem).fit(Z[:size], X[:size])
        before = est.predict_cost(Z)
        after = est.partial_fit(Z[190:191], X[190:191]).predict_cost(Z)
        moved.append(np.linalg.norm(after - before) / np.linalg.norm(before))
    assert 0 < moved[1] < 0.5 * moved[0]


# --- forgetting -----------------------------------------------------------------------------------


def test_forgetting_follows_costs_that_change():
    Z, X = DATA.train.contexts, DATA.train.decisions
    other = DATA.problem.solve(DATA.train.costs.mean() * 2 - DATA.train.costs).x
    scores = {}
    for forgetting in (1.0, 0.97):
        est = InverseRegressor(DATA.problem, solver=LBFGS(forgetting=forgetting))
        stream(stream(est, Z, other, 10), Z, X, 10)
        scores[forgetting] = repeated(est)
    assert scores[0.97] > 1.5 * scores[1.0]


def test_what_is_forgotten_counts_less_and_less():
    Z, X = DATA.train.contexts, DATA.train.decisions
    for chunk in (1, 7, 100):
        est = stream(InverseRegressor(DATA.problem, solver=LBFGS(forgetting=0.9)), Z, X, chunk)
        expected = (1 - 0.9 ** len(Z)) / (1 - 0.9)
        assert est.model_.past.weight == pytest.approx(expected)
        assert est.model_.samples == pytest.approx(expected)
        assert est.ridge_ == pytest.approx(0.15 / expected)
        weights = est.model_.past.recent.weights
        np.testing.assert_allclose(weights, 0.9 ** np.arange(len(weights) - 1, -1, -1))


@pytest.mark.parametrize("bad", [{"forgetting": 0.0}, {"forgetting": 1.1}, {"recent": -1}])
def test_settings_that_mean_nothing_are_refused(bad):
    est = InverseRegressor(DATA.problem, solver=LBFGS(**bad))
    with pytest.raises(rv.InputError, match=next(iter(bad))):
        est.partial_fit(DATA.train.contexts[:5], DATA.train.decisions[:5])


# --- what is kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize("recent", [0, 5, 100])
def test_memory_is_bounded(recent):
    Z, X = EXACT.train.contexts, EXACT.train.decisions
    est = stream(InverseRegressor(EXACT.problem, solver=LBFGS(recent=recent)), Z, X, 50)
    kept = est.model_.past.recent
    assert (0 if kept is None else len(kept)) == recent
    q = Z.shape[1] + 1
    assert est.model_.past.curvature.shape == (q, q)


@pytest.mark.parametrize("kind", MODELS)
def test_a_stream_that_is_saved_goes_on_as_the_same_stream(kind, tmp_path):
    Z, X = DATA.train.contexts[:60], DATA.train.decisions[:60]
    for size in (20, 40):
        est = stream(InverseRegressor(DATA.problem, **MODELS[kind]), Z[:size], X[:size], 10)
        again = rv.load(est.save(tmp_path / f"m{size}"))
        for one in (est, again):
            stream(one, Z[size:], X[size:], 5)
        assert np.array_equal(again.predict_cost(Z), est.predict_cost(Z))
        assert (again.ridge_, again.n_iter_) == (est.ridge_, est.n_iter_)


def test_the_same_stream_gives_the_same_model_and_a_clone_starts_anew():
    Z, X = EXACT.train.contexts[:40], EXACT.train.decisions[:40]
    one = stream(InverseRegressor(EXACT.problem), Z, X, 4)
    other = stream(clone(one), Z, X, 4)
    assert np.array_equal(one.coef_, other.coef_)
    assert one.fit(Z, X).model_.past is None


def test_an_interruption_in_the_middle_leaves_the_stream_as_it_was(monkeypatch):
    Z, X = DATA.train.contexts, DATA.train.decisions
    est, other = (stream(InverseRegressor(DATA.problem), Z[:40], X[:40], 20) for _ in range(2))
    moves, real = [], online._Stream._move

    def stopped(self):
        moves.append(real(self))
        if len(moves) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(online._Stream, "_move", stopped)
    with pytest.raises(KeyboardInterrupt):
        est.partial_fit(Z[40:80], X[40:80])
    monkeypatch.undo()
    assert len(moves) == 3
    np.testing.assert_array_equal(est.coef_, other.coef_)
    for one in (est, other):
        one.partial_fit(Z[40:80], X[40:80])
    np.testing.assert_array_equal(est.coef_, other.coef_)


def test_samples_of_another_network_are_not_looked_at_again():
    """Decisions may bring constraints of their own; what is kept is read with those it is of."""
    Z, X = EXACT.train.contexts[:30], EXACT.train.decisions[:30]
    est = stream(InverseRegressor(EXACT.problem), Z, X, 30)
    base = EXACT.problem
    twice = rv.LinearProgram(A_eq=2 * base.A_eq, b_eq=2 * base.b_eq, lb=base.lb, ub=base.ub)
    est.partial_fit(Z[:3], rv.OptimalitySet(twice, X[:3]))
    assert len(est.model_.past.recent) == 3


def test_limits_may_differ_from_sample_to_sample():
    problem, Z, X = contexts("knapsack")
    b_ub = np.tile(problem.b_ub, (len(Z), 1))
    own = rv.LinearProgram(A_ub=problem.A_ub, b_ub=b_ub, lb=problem.lb, ub=problem.ub)
    one = stream(InverseRegressor(problem), Z, X, 1)
    sets = rv.OptimalitySet(own, X)
    other = InverseRegressor(problem)
    for k in range(len(Z)):
        other.partial_fit(Z[k : k + 1], sets[k : k + 1])
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-6, atol=1e-8)


def test_the_history_of_a_stream_is_cut():
    from revealed.fit import estimator

    Z, X = EXACT.train.contexts, EXACT.train.decisions
    before, estimator.LATEST = estimator.LATEST, 7
    try:
        est = stream(InverseRegressor(EXACT.problem), Z[:12], X[:12], 1)
    finally:
        estimator.LATEST = before
    assert est.history_["iteration"].tolist() == [5, 6, 7, 8, 9, 10, 11]
    assert est.n_iter_ == 12


# --- weights, shared features, other sets ---------------------------------------------------------


def test_weights_count_across_calls():
    Z, X = EXACT.train.contexts[:20], EXACT.train.decisions[:20]
    est = InverseRegressor(EXACT.problem)
    for k in range(20):
        est.partial_fit(Z[k : k + 1], X[k : k + 1], sample_weight=[0.5 if k < 10 else 2.0])
    assert est.model_.past.weight == pytest.approx(10 * 0.5 + 10 * 2.0)
    with_none = InverseRegressor(EXACT.problem).partial_fit(Z[:10], X[:10])
    zero = np.repeat([1.0, 0.0], 10)
    same = InverseRegressor(EXACT.problem).partial_fit(Z, X, sample_weight=zero)
    np.testing.assert_array_equal(same.coef_, with_none.coef_)


@pytest.mark.parametrize("model", ["shared", SharedModel(given={0: 1.0})])
def test_shared_coefficients_learn_online(model):
    rng = np.random.default_rng(2)
    problem = rv.problems.grid_shortest_path(4, 4, directed="right-down")
    Z = rng.uniform(0.5, 2.0, (80, problem.n_variables, 3))
    X = problem.solve(Z @ [1.0, 0.5, 2.0]).x
    settings = {"model": model, "noise": 0.2, "ridge": 1e-4}
    est = stream(InverseRegressor(problem, **settings), Z[:50], X[:50], 1)
    whole = InverseRegressor(problem, **settings).fit(Z[:50], X[:50])
    same, best = (np.mean(same_decision(one.predict(Z[50:]), X[50:])) for one in (est, whole))
    assert best > 0.5
    assert same >= best - 0.1


def test_features_that_all_samples_share_are_the_same_as_their_copies():
    problem, Z, X = entries("paths")
    tiled = np.tile(Z[0], (len(X), 1, 1))
    settings = {"model": "shared", "noise": 0.3, "ridge": 0.01}
    common, copies = (InverseRegressor(problem, **settings) for _ in range(2))
    for start in range(0, len(X), 4):
        part = slice(start, start + 4)
        common.partial_fit(Z[0], X[part])
        copies.partial_fit(tiled[part], X[part])
    np.testing.assert_allclose(common.coef_, copies.coef_, rtol=1e-9)
    # A fit counts common features once: the samples behind them must not be forgotten.
    common.fit(Z[0], X).partial_fit(Z[0], X[:1])
    assert common.model_.linear.past.weight == pytest.approx(len(X) + 1)


def test_sets_without_rows_are_learned_from_too():
    """Whole decisions and cost forms are projected one by one and not kept for a second look."""
    rng = np.random.default_rng(0)
    problem = rv.problems.binary_knapsack(np.array([[3.0, 4.0, 5.0, 6.0]]), [9.0])
    Z = rng.standard_normal((30, 2))
    X = problem.solve(-2.0 - Z @ rng.standard_normal((2, 4))).x
    est = stream(InverseRegressor(problem, noise=1.0, ridge=0.01), Z, X, 3)
    assert est.model_.past.recent is None
    assert np.mean(same_decision(est.predict(Z), X)) > 0.5


def test_units_and_origin_of_features_do_not_matter():
    """Features far from 0 beside their spread, such as years, are learned from as well."""
    Z, X = DATA.train.contexts[:80], DATA.train.decisions[:80]
    near = stream(InverseRegressor(DATA.problem), Z, X, 4)
    far = stream(InverseRegressor(DATA.problem), Z + 2000.0, X, 4)
    np.testing.assert_allclose(far.predict_cost(Z + 2000.0), near.predict_cost(Z), rtol=1e-5)
    scaled = stream(InverseRegressor(DATA.problem), Z * [1e-6, 1, 1e6, 1, 1], X, 4)
    costs = scaled.predict_cost(Z * [1e-6, 1, 1e6, 1, 1])
    np.testing.assert_allclose(costs, near.predict_cost(Z), rtol=1e-5)


# --- the pieces -----------------------------------------------------------------------------------


def test_the_mean_curvature_is_that_of_the_smoothed_loss():
    """Stein's identity against finite differences, with many draws."""
    problem, _, X = contexts("paths")
    sets = rv.OptimalitySet(problem, X[:1])
    costs = np.random.default_rng(0).standard_normal((1, problem.n_variables))
    loss = DistanceLoss(power="huber", delta=1.0, noise=1.0, draws=20_000, seed=1)
    found = Evaluator(sets, loss).measure(costs)
    n, step, trace = costs.shape[1], 0.05, 0.0
    for j in range(n):
        ahead, back = costs.copy(), costs.copy()
        ahead[0, j] += step
        back[0, j] -= step
        up, down = (Evaluator(sets, loss).measure(c).gradient[0, j] for c in (ahead, back))
        trace += (up - down) / (2 * step)
    assert found.curvature[0] == pytest.approx(trace / n, rel=0.03)
    plain = Evaluator(sets, DistanceLoss()).measure(costs)
    assert plain.curvature.tolist() == [1.0]


def test_past_counts_features_from_anywhere():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.standard_normal((20, 3)), np.ones(20)])
    weights, lines = rng.random(20), rng.standard_normal((5, 20))
    past = Past(np.zeros(3), (rows * weights[:, None]).T @ rows, lines @ rows, 20.0)
    center = rng.standard_normal(3)
    past.recenter(center)
    moved = rows - np.append(center, 0.0)
    np.testing.assert_allclose(past.curvature, (moved * weights[:, None]).T @ moved, atol=1e-12)
    np.testing.assert_allclose(past.slope, lines @ moved, atol=1e-12)
    without = np.ones((3, 3))  # an intercept that is not there moves nothing
    np.testing.assert_array_equal(recentered(without, center), without)
    np.testing.assert_array_equal(shifted(without, center), without)


def test_singular_directions_are_left_alone():
    rows = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]])
    lines = np.array([[1.0, 2.0, 5.0]])
    found = solved(rows.T @ rows, lines)
    np.testing.assert_allclose(found @ (rows.T @ rows), [[1.0, 2.0, 0.0]], atol=1e-9)
    assert found[0, 2] == 0.0
