"""POCS: what the theorems promise, what an outside solver finds, what the paper measured."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import revealed as rv
from helpers import parts_of
from revealed import theory
from revealed.fit import KernelModel, LinearModel, SharedModel, StopReason, pocs

PAPER = Path(__file__).resolve().parents[3] / "shared" / "data" / "paper_synthetic"


def small_paths():
    return rv.problems.grid_shortest_path(3, 3, directed="right-down")


def random_case(problem, B=24, d=3, seed=0, sign=1.0):
    """Contexts and decisions that no linear model explains: each has costs of its own."""
    rng = np.random.default_rng(seed)
    X = problem.solve(sign * (0.5 + rng.random((B, problem.n_variables)))).x
    return rng.standard_normal((B, d)), X


def explained_case(B, d, seed=0, margin=1.0):
    """Contexts, decisions and the costs of a linear model that explains them with the margin.

    Of many samples those are kept whose decisions are the clearest.
    """
    rng, problem = np.random.default_rng(seed), small_paths()
    Z, W = rng.standard_normal((400, d)), rng.standard_normal((d, problem.n_variables))
    C = Z @ W + 3.0
    X = problem.solve(C).x
    slack = rv.OptimalitySet(problem, X).max_margin(C)
    kept = np.argsort(-slack)[:B]
    C = C[kept] * (1.5 * margin / slack[kept].min())
    return Z[kept], rv.OptimalitySet(problem, X[kept], margin), C


CASES = {
    "paths": (small_paths(), 1.0),
    "knapsack": (rv.problems.knapsack([1.0, 2.0, 1.5, 0.5, 1.0], 2.5), -1.0),
    "assignment": (rv.problems.assignment(3, 4), 1.0),
}


@pytest.fixture(params=CASES)
def case(request):
    problem, sign = CASES[request.param]
    Z, X = random_case(problem, sign=sign)
    return Z, rv.OptimalitySet(problem, X)


# --- the theorems ----------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_equals_preconditioned_gradient_descent_with_step_one(case, intercept):
    Z, sets = case
    design = np.hstack([Z, np.ones((len(Z), 1))]) if intercept else Z
    inverse = np.linalg.inv(design.T @ design / len(Z))
    W = np.zeros((design.shape[1], sets.problem.n_variables))
    model = LinearModel(fit_intercept=intercept)
    for _ in range(25):
        costs = design @ W
        gradient = design.T @ (costs - rv.project(costs, sets).point) / len(Z)
        W = W - 1.0 * inverse @ gradient
        pocs(model, Z, sets, max_iter=1, tol=0.0)
        learned = np.vstack([model.coef.T, model.intercept[None]])[: len(W)]
        np.testing.assert_allclose(learned, W, rtol=0, atol=1e-9)


def test_never_raises_the_loss(case):
    Z, sets = case
    for model in (LinearModel(), LinearModel(ridge=0.1), KernelModel(n_components=6)):
        loss = pocs(model, Z, sets, max_iter=60, tol=0.0)["loss"]
        assert (np.diff(loss) <= 1e-12 * loss[0]).all()


@pytest.mark.parametrize("seed, B, d", [(0, 20, 3), (0, 40, 4)])
def test_converges_linearly_where_a_model_explains_everything(seed, B, d):
    Z, sets, C = explained_case(B, d, seed)
    history = pocs(LinearModel(), Z, sets, max_iter=3000, tol=1e-9)
    h, steps = history["h"], np.arange(len(history))
    assert history.reason is StopReason.INTERPOLATED
    assert history.certificate.interpolates
    # The rate that theory promises beforehand, from the distance to a model known to explain all.
    travel = np.sqrt((C**2).sum(axis=1).mean())
    promised = theory.expected_h(
        Z, h0=h[0], steps=len(h) - 1, method="pocs", travel=travel, intercept=True
    )
    assert (h <= promised + 1e-15).all()
    # And it is linear in the end: log h is a falling line.
    late = slice(len(h) // 2, None)
    slope, level = np.polyfit(steps[late], np.log(h[late]), 1)
    residual = np.log(h[late]) - (slope * steps[late] + level)
    assert np.exp(slope) < theory.contraction(Z, method="pocs", intercept=True)
    assert residual.var() < 0.01 * np.log(h[late]).var()


def test_one_step_is_enough_where_every_target_can_be_met():
    Z, X = random_case(small_paths(), B=5, d=8)
    sets = rv.OptimalitySet(small_paths(), X)
    history = pocs(LinearModel(), Z, sets)
    assert theory.contraction(Z, method="pocs", intercept=True) == 0.0
    assert len(history) == 2
    assert history.certificate.interpolates


def closest_by_quadratic_program(Z, sets):
    """h and residuals f(z) - P(f(z)) of the best affine model, by one QP in all unknowns.

    min 1/(2B) sum_i |W z_i + w - (A^T v_i - G^T mu_i + s_i)|^2 over W, w, v, mu, s, with the signs
    of mu and s as the sets have them.
    """
    import clarabel

    B, n = len(sets), sets.problem.n_variables
    design = np.hstack([Z, np.ones((B, 1))])
    parts = [parts_of(sets, b) for b in range(B)]
    rows = sparse.block_diag([np.hstack([p.A_eq.T, -p.A_ub.T]) for p in parts])
    K = sparse.hstack([sparse.kron(design, sparse.eye(n)), -rows, -sparse.eye(B * n)], "csc")
    anything = np.array([[-np.inf], [np.inf]])  # the least and the most that an unknown may be
    multipliers, slacks = [], []
    for p in parts:
        mu = np.where(p.active, p.margin, 0.0), np.where(p.active, np.inf, 0.0)
        multipliers += [np.tile(anything, len(p.A_eq)), np.stack(mu)]
        s_least = np.where(p.lower, p.margin, np.where(p.free, 0.0, -np.inf))
        s_most = np.where(p.upper, -p.margin, np.where(p.free, 0.0, np.inf))
        slacks.append(np.stack([s_least, s_most]))
    low, high = np.hstack([np.tile(anything, design.shape[1] * n), *multipliers, *slacks])
    unit, fixed = sparse.eye(K.shape[1], format="csr"), low == high
    below, above = np.isfinite(low) & ~fixed, np.isfinite(high) & ~fixed
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    answer = clarabel.DefaultSolver(
        sparse.csc_matrix(K.T @ K),
        np.zeros(K.shape[1]),
        sparse.csc_matrix(sparse.vstack([unit[fixed], -unit[below], unit[above]])),
        np.concatenate([low[fixed], -low[below], high[above]]),
        [clarabel.ZeroConeT(fixed.sum()), clarabel.NonnegativeConeT(below.sum() + above.sum())],
        settings,
    ).solve()
    residual = K @ np.asarray(answer.x)
    return residual @ residual / (2 * B), residual.reshape(B, n)


@pytest.mark.parametrize("name", CASES)
def test_converges_to_the_closest_point_where_no_model_explains_everything(name):
    problem, sign = CASES[name]
    Z, X = random_case(problem, B=16, d=2, sign=sign, seed=3)
    sets, model = rv.OptimalitySet(problem, X), LinearModel()
    history = pocs(model, Z, sets, max_iter=6000, tol=1e-9)
    best, residual = closest_by_quadratic_program(Z, sets)
    assert history.reason is StopReason.NO_PROGRESS
    assert best > 1e-3
    np.testing.assert_allclose(history["h"][-1], best, rtol=1e-6)
    costs = model.predict_cost(Z)
    assert np.linalg.norm(costs - rv.project(costs, sets).point - residual) < 2e-3 * np.sqrt(best)
    assert history.certificate.set_distance == pytest.approx(np.sqrt(2 * len(Z) * best), rel=1e-6)
    assert "no bound on the minimum is proved" in str(history.certificate)


# --- how it runs -------------------------------------------------------------------------------


def test_repeats_itself_and_goes_on_where_it_stopped(case):
    Z, sets = case
    models = [LinearModel() for _ in range(3)]
    first, second = (pocs(m, Z, sets, max_iter=12, tol=0.0) for m in models[:2])
    assert np.array_equal(models[0].coef, models[1].coef)
    assert np.array_equal(first["h"], second["h"])
    for _ in range(3):
        pocs(models[2], Z, sets, max_iter=4, tol=0.0)
    np.testing.assert_allclose(models[2].coef, models[0].coef, rtol=1e-7, atol=1e-9)


def test_warm_starts_change_nothing_but_the_time(case):
    Z, sets = case
    warm, cold = LinearModel(), LinearModel()
    pocs(warm, Z, sets, max_iter=20, tol=0.0)
    pocs(cold, Z, sets, max_iter=20, tol=0.0, warm_start=False)
    np.testing.assert_allclose(warm.coef, cold.coef, rtol=1e-7, atol=1e-8)


def test_stops_for_three_reasons_and_says_which(case):
    Z, sets = case
    capped = pocs(LinearModel(), Z, sets, max_iter=3, tol=0.0)
    assert (capped.reason, len(capped)) == (StopReason.CAP, 4)
    settled = pocs(LinearModel(), Z, sets, max_iter=5000, tol=1e-4)
    assert settled.reason is StopReason.NO_PROGRESS
    assert len(settled) < 5000
    met = pocs(KernelModel(gamma=1.0), Z, sets)
    assert met.reason is StopReason.INTERPOLATED
    assert "explains all 24 decisions" in str(met.certificate)
    sentences = {history.reason.sentence for history in (capped, settled, met)}
    assert len(sentences) == 3


def test_history_tells_what_each_iteration_was_like(case, tmp_path):
    Z, sets = case
    model = LinearModel()
    history = pocs(model, Z, sets, max_iter=5, tol=0.0, monitor=lambda m: {"size": m.coef.max()})
    near = rv.project(model.predict_cost(Z), sets)
    last = history.rows[-1]
    assert last["h"] == pytest.approx(0.5 * np.mean(near.distance**2), rel=1e-9)
    assert last["mean_distance"] == pytest.approx(near.distance.mean(), rel=1e-9)
    assert last["max_distance"] == pytest.approx(near.distance.max(), rel=1e-9)
    assert last["size"] == model.coef.max()
    assert np.array_equal(history["iteration"], np.arange(6))
    assert (history["unsolved"] == 0).all()
    assert (history["projection_seconds"] > 0).all()
    history.write_jsonl(tmp_path / "rows.jsonl")
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 6
    with pytest.raises(KeyError, match="max_distance"):
        history["decisions"]


def test_verbose_writes_to_stderr_only(case, capfd, monkeypatch):
    Z, sets = case
    pocs(LinearModel(), Z, sets, max_iter=5)
    assert capfd.readouterr() == ("", "")
    pocs(LinearModel(), Z, sets, max_iter=5, verbose=True)
    out, err = capfd.readouterr()
    assert (out, "POCS" in err) == ("", True)
    monkeypatch.setitem(__import__("sys").modules, "rich.progress", None)  # not installed
    pocs(LinearModel(), Z, sets, max_iter=5, tol=0.0, verbose=True)
    out, err = capfd.readouterr()
    assert (out, err.count("POCS")) == ("", 6)


def test_constraints_and_margins_of_their_own_for_each_sample():
    rng = np.random.default_rng(0)
    problem = rv.problems.knapsack([1.0, 2.0, 1.5, 0.5], rng.uniform(1.0, 3.0, 20))
    X = problem.solve(-rng.random((20, 4))).x
    sets = rv.OptimalitySet(problem, X, margin=rng.uniform(0.5, 1.5, 20))
    history = pocs(LinearModel(), rng.standard_normal((20, 3)), sets, max_iter=40)
    assert history["h"][-1] < history["h"][0]


def test_shared_weights_are_found_up_to_scale():
    rng, problem = np.random.default_rng(0), rv.problems.grid_shortest_path(4, 4)
    phi, w = rng.random((80, problem.n_variables, 3)), np.array([1.0, 2.0, 0.5])
    sets = rv.OptimalitySet(problem, problem.solve(phi @ w).x, margin=0.05)
    model = SharedModel(fit_intercept=False)
    history = pocs(model, phi, sets, max_iter=400)
    assert history["h"][-1] < 0.1 * history["h"][0]
    direction = model.coef / np.linalg.norm(model.coef)
    assert direction @ (w / np.linalg.norm(w)) > 0.97


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"Z": np.zeros((23, 3))}, "one row for each of the 24 decisions; got 23"),
        ({"max_iter": -1}, "at least 0"),
        ({"tol": -1.0}, "at least 0"),
        ({"window": 0}, "at least 1"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, words):
    Z, X = random_case(small_paths())
    given = {"Z": Z, "sets": rv.OptimalitySet(small_paths(), X)} | arguments
    with pytest.raises(rv.InputError, match=words):
        pocs(LinearModel(), **given)


def test_a_margin_that_the_model_cannot_reach_is_told_by_the_certificate():
    # Contexts of 0 and no intercept: the only cost is 0, which no margin above 0 allows.
    Z, X = random_case(small_paths())
    sets = rv.OptimalitySet(small_paths(), X, margin=1.0)
    history = pocs(LinearModel(fit_intercept=False), 0 * Z, sets)
    assert history.reason is StopReason.NO_PROGRESS
    assert (history.certificate.interpolates, history.certificate.inside) == (False, 0)


def test_without_a_margin_nothing_is_learned_and_the_certificate_says_so():
    Z, X = random_case(small_paths())
    history = pocs(LinearModel(), Z, rv.OptimalitySet(small_paths(), X, margin=0.0))
    assert history.certificate.trivial
    assert "ask for a margin" in str(history.certificate)


def test_an_all_zero_decision_is_a_decision_like_any_other():
    # Nothing is worth packing: every item at its lower bound, the capacity not binding.
    problem = rv.problems.knapsack([1.0, 2.0, 3.0], 4.0)
    Z, sets = np.ones((3, 1)), rv.OptimalitySet(problem, np.zeros((3, 3)))
    model = LinearModel()
    assert pocs(model, Z, sets).certificate.interpolates
    np.testing.assert_allclose(model.predict_cost(Z), 1.0, atol=1e-6)


# --- the paper's table -------------------------------------------------------------------------

REFERENCE = {  # mean decision loss of the authors' program: train, test (YARDSTICKS, section 1)
    ("sp_seed0", 1): (0.70, 1.80),
    ("sp_seed0", 10): (0.70, 1.84),
    ("sp_seed1", 1): (0.40, 2.60),
    ("sp_seed1", 10): (0.40, 2.64),
    ("knapsack_seed0", 1): (3.12, 3.66),
    ("knapsack_seed0", 10): (3.12, 3.66),
    ("knapsack_seed1", 1): (2.05, 2.57),
    ("knapsack_seed1", 10): (2.05, 2.57),
}


@pytest.mark.parametrize("name, margin", REFERENCE)
def test_reaches_the_papers_decision_losses(name, margin):
    if not PAPER.is_dir():
        pytest.skip("The paper's data are not here: ../shared/data/paper_synthetic.")
    with np.load(PAPER / f"{name}.npz") as data:
        problem = rv.LinearProgram(A_eq=data["A"], b_eq=data["b"])
        sets = rv.OptimalitySet(problem, data["train_sol"], margin)
        model = LinearModel()
        pocs(model, data["train_z"], sets, max_iter=150, tol=0.0)
        losses = [
            rv.metrics.decision_loss(
                problem, costs=model.predict_cost(data[f"{part}_z"]), decisions=data[f"{part}_sol"]
            ).mean()
            for part in ("train", "test")
        ]
    allowed = 0.25 if name.startswith("sp") else 0.1
    assert (np.array(losses) <= np.array(REFERENCE[name, margin]) + allowed).all(), losses


def test_a_sample_of_weight_0_is_as_if_it_were_not_there():
    """Its context enters no mean, no scale and no whitening, for any model and any kind of data."""
    problem = rv.problems.grid_shortest_path(3, 3, directed="right-down")
    rng = np.random.default_rng(5)
    Z, weights = rng.standard_normal((20, 3)), rng.uniform(0.2, 1.0, 20)
    Z[::4] *= 100.0
    weights[::4] = 0.0
    sets = rv.OptimalitySet(problem, problem.solve(rng.uniform(1, 2, (20, 12))).x)
    sets = sets.replaced(weights=weights)
    there, entries = np.flatnonzero(weights), rng.standard_normal((20, 12, 2))
    for make, data in (
        (LinearModel, Z),
        (LinearModel, Z.tolist()),
        (lambda: LinearModel(ridge=0.1), Z),
        (KernelModel, Z),
        (SharedModel, entries),
    ):
        one, other = make(), make()
        pocs(one, data, sets, max_iter=15)
        pocs(other, np.asarray(data)[there], sets[there], max_iter=15)
        new = rng.standard_normal((5, *np.shape(data)[1:]))
        assert (one.predict_cost(new) == other.predict_cost(new)).all()
    sets = sets.replaced(weights=np.zeros(20))
    with pytest.raises(rv.InputError, match="zero for every sample"):
        pocs(LinearModel(), Z, sets)
