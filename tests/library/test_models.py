"""Models of costs: least squares against numpy and scikit-learn, on friendly and hostile data."""

import tracemalloc

import numpy as np
import pytest
import torch
from sklearn.kernel_ridge import KernelRidge

import revealed as rv
from revealed.fit import KernelModel, LinearModel, SharedModel, TorchModel, pocs
from revealed.fit.least_squares import RowFactor

EXACT = {"rtol": 1e-9, "atol": 1e-9}


def regression(B=50, d=4, n=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((B, d)), rng.standard_normal((B, n))


def least_norm(Z, T, intercept=True):
    """(n, d) and (n,) from numpy's own minimum-norm least squares on centered data."""
    mean, level = (Z.mean(0), T.mean(0)) if intercept else (np.zeros(Z.shape[1]), 0 * T[0])
    centered = Z - mean
    if intercept:
        centered[:, np.ptp(Z, axis=0) == 0] = 0.0  # what rounding leaves of a constant is not data
    coef = np.linalg.lstsq(centered, T - level, rcond=1e-12)[0].T
    return coef, level - coef @ mean


def deficient():
    """Contexts that leave a choice of coefficients, by name."""
    Z, _ = regression(B=40)
    rng = np.random.default_rng(1)
    return {
        "full rank": Z,
        "constant feature": np.hstack([Z, np.full((40, 1), 0.1)]),
        "two constant features": np.hstack([Z, np.full((40, 1), 7e5), np.ones((40, 1))]),
        "zero feature": np.hstack([Z, np.zeros((40, 1))]),
        "only constants": np.full((40, 2), 0.3),
        "the same feature twice": Z[:, [0, 1, 2, 3, 3]],
        "a sum of others": np.hstack([Z, Z[:, :2].sum(1, keepdims=True)]),
        "one sample": Z[:1],
        "fewer samples than features": rng.standard_normal((6, 20)),
        "a mean far from 0": Z + 1e4,
    }


# --- linear ----------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", deficient())
def test_linear_fit_is_the_least_squares_solution_of_least_norm(name, intercept):
    Z = deficient()[name]
    T = regression(B=len(Z))[1]
    model = LinearModel(fit_intercept=intercept).fit_targets(Z, T)
    coef, level = least_norm(Z, T, intercept)
    np.testing.assert_allclose(model.coef, coef, **EXACT)
    np.testing.assert_allclose(model.intercept, level, rtol=1e-9, atol=1e-9 * (1 + np.abs(Z).max()))


@pytest.mark.parametrize("intercept", [True, False])
def test_features_in_different_units_are_not_taken_for_dependent_ones(intercept):
    Z, T = regression()
    units = np.array([1e-12, 1e-3, 1.0, 1e12])
    plain = LinearModel(fit_intercept=intercept).fit_targets(Z, T)
    scaled = LinearModel(fit_intercept=intercept).fit_targets(Z * units, T)
    np.testing.assert_allclose(scaled.coef * units, plain.coef, **EXACT)


def test_constant_feature_gets_no_weight_beside_an_intercept():
    Z, T = regression()
    plain = LinearModel().fit_targets(Z, T)
    model = LinearModel().fit_targets(np.hstack([Z, np.ones((len(Z), 1))]), T)
    assert np.array_equal(model.coef[:, -1], np.zeros(3))
    np.testing.assert_allclose(model.coef[:, :-1], plain.coef, **EXACT)
    np.testing.assert_allclose(model.intercept, plain.intercept, **EXACT)


@pytest.mark.parametrize("name", deficient())
def test_ridge_minimizes_the_penalized_mean_and_leaves_the_intercept_free(name):
    Z, ridge = deficient()[name], 0.3
    T = regression(B=len(Z))[1]
    model = LinearModel(ridge=ridge).fit_targets(Z, T)
    Zc, Tc = Z - Z.mean(0), T - T.mean(0)
    H = Zc.T @ Zc / len(Z) + ridge * np.eye(Z.shape[1])
    np.testing.assert_allclose(model.coef, np.linalg.solve(H, Zc.T @ Tc / len(Z)).T, **EXACT)
    np.testing.assert_allclose(model.predict_cost(Z).mean(0), T.mean(0), **EXACT)
    assert model.penalty() == pytest.approx(ridge / 2 * (model.coef**2).sum())


@pytest.mark.parametrize("center", [True, False])
def test_rows_may_come_in_pieces(center):
    Z = regression(B=200)[0] + 3.0
    whole, pieces = RowFactor(4, center=center), RowFactor(4, center=center)
    whole.add(Z)
    for start, stop in ((0, 1), (1, 3), (3, 150), (150, 150), (150, 200)):
        pieces.add(Z[start:stop])
    np.testing.assert_allclose(pieces.mean, whole.mean, rtol=1e-13)
    (a, _), (b, _) = (rows.inverse_root(0.0) for rows in (whole, pieces))
    np.testing.assert_allclose(a @ a.T, b @ b.T, rtol=1e-10, atol=1e-14)


def test_an_earlier_fit_leaves_nothing_behind():
    Z, T = regression(B=6, d=10)
    model = LinearModel().fit_targets(*regression(B=6, d=10, seed=5)).fit_targets(Z, T)
    coef, level = least_norm(Z, T)
    np.testing.assert_allclose(model.coef, coef, **EXACT)
    np.testing.assert_allclose(model.intercept, level, **EXACT)


def test_contexts_on_disk_give_the_same_model(tmp_path):
    problem = rv.problems.grid_shortest_path(3, 3, directed="right-down")
    Z = np.random.default_rng(0).standard_normal((5000, 3))
    X = problem.solve(3.0 + Z @ np.random.default_rng(1).random((3, 12))).x
    disk = np.memmap(tmp_path / "Z", np.float64, "w+", shape=Z.shape)
    disk[:] = Z
    sets, models = rv.OptimalitySet(problem, X), (LinearModel(), LinearModel())
    histories = [pocs(m, z, sets, max_iter=3) for m, z in zip(models, (Z, disk), strict=True)]
    assert np.array_equal(models[0].coef, models[1].coef)
    assert np.array_equal(histories[0]["h"], histories[1]["h"])


def test_memory_of_a_pass_does_not_grow_with_the_data():
    problem = rv.problems.grid_shortest_path(5, 5, directed="right-down")
    rng = np.random.default_rng(0)
    few = problem.solve(1 + rng.random((200, 40))).x
    peaks = []
    for B in (10_000, 40_000):
        Z, sets = (
            rng.standard_normal((B, 4)),
            rv.OptimalitySet(problem, np.tile(few, (B // 200, 1))),
        )
        tracemalloc.start()
        pocs(LinearModel(), Z, sets, max_iter=1, warm_start=False)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Four numbers a sample for the distances; one (B, n) array of costs would be forty.
    assert peaks[1] - peaks[0] <= 30_000 * 8 * 6


# --- shared and kernel --------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_shared_model_is_one_regression_over_all_entries(ridge):
    rng = np.random.default_rng(0)
    Z, T = rng.standard_normal((30, 7, 3)), rng.standard_normal((30, 7))
    shared = SharedModel(ridge=ridge).fit_targets(Z, T)
    # The penalty is on the mean over samples, each of which has seven entries.
    rows = LinearModel(ridge=ridge / 7).fit_targets(Z.reshape(-1, 3), T.reshape(-1, 1))
    np.testing.assert_allclose(shared.coef, rows.coef[0], **EXACT)
    np.testing.assert_allclose(shared.predict_cost(Z), Z @ rows.coef[0] + rows.intercept, **EXACT)


KERNELS = [{"kernel": "rbf", "gamma": 0.2}, {"kernel": "poly", "degree": 2, "gamma": 0.5}]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k["kernel"])
def test_exact_kernel_model_is_kernel_ridge_regression(kernel):
    Z, T = regression(B=40)
    model = KernelModel(**kernel, ridge=0.01, fit_intercept=False).fit_targets(Z, T)
    other = KernelRidge(alpha=0.01 * len(Z), coef0=1.0, **kernel).fit(Z, T)
    new = regression(seed=3)[0]
    np.testing.assert_allclose(model.predict_cost(new), other.predict(new), rtol=1e-7, atol=1e-7)


def test_kernel_of_low_rank_without_ridge_is_polynomial_regression():
    Z, T = regression(B=60, d=2)
    model = KernelModel("poly", degree=2, gamma=1.0, fit_intercept=False).fit_targets(Z, T)
    a, b = Z.T
    monomials = np.stack([a * a, b * b, a * b, a, b, np.ones(60)], axis=1)
    expected = monomials @ np.linalg.lstsq(monomials, T, rcond=None)[0]
    assert model.coef.shape == (3, 6)
    np.testing.assert_allclose(model.predict_cost(Z), expected, rtol=1e-8, atol=1e-8)


def test_rbf_kernel_without_ridge_interpolates():
    Z, T = regression(B=30)
    np.testing.assert_allclose(
        KernelModel(gamma=1.0).fit_targets(Z, T).predict_cost(Z), T, atol=1e-8
    )


def test_nystroem_with_every_landmark_is_exact_and_a_seed_repeats():
    Z, T = regression(B=30)
    exact = KernelModel(ridge=0.01).fit_targets(Z, T).predict_cost(Z)
    most = KernelModel(ridge=0.01, n_components=500).fit_targets(Z, T).predict_cost(Z)
    np.testing.assert_allclose(most, exact, **EXACT)
    some = [KernelModel(n_components=8, seed=s).fit_targets(Z, T) for s in (3, 3, 4)]
    assert some[0].coef.shape == (3, 8)
    assert np.array_equal(some[0].predict_cost(Z), some[1].predict_cost(Z))
    assert not np.array_equal(some[0].landmarks, some[2].landmarks)


@pytest.mark.parametrize("model", [LinearModel(), SharedModel(), KernelModel(n_components=4)])
def test_torch_module_shares_the_memory_of_the_model(model):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((20, 6, 3) if isinstance(model, SharedModel) else (20, 3))
    model.fit_targets(Z, rng.standard_normal((20, 6)))
    features, module = torch.from_numpy(model.prepare(Z, 6)), model.torch_module()
    np.testing.assert_allclose(module(features).detach().numpy(), model.predict_cost(Z), **EXACT)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(2.0)
    np.testing.assert_allclose(module(features).detach().numpy(), model.predict_cost(Z), **EXACT)


# --- torch -----------------------------------------------------------------------------------


def network(seed=0, dropout=0.0):
    torch.manual_seed(seed)
    layers = torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(dropout)
    return torch.nn.Sequential(*layers, torch.nn.Linear(16, 3))


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adagrad"])
def test_torch_model_moves_towards_its_targets(optimizer):
    Z, T = regression()
    model = TorchModel(network(), optimizer=optimizer, lr=0.05, inner_steps=200)
    before = ((model.predict_cost(Z) - T) ** 2).mean()
    model.fit_targets(Z, T)
    assert ((model.predict_cost(Z) - T) ** 2).mean() < 0.9 * before


def test_torch_model_repeats_itself_and_leaves_the_callers_random_numbers_alone():
    Z, T = regression()
    torch.manual_seed(11)
    expected = torch.rand(3)
    fitted = []
    for noise in (1, 2):
        model = TorchModel(network(dropout=0.5), inner_steps=20, batch_size=16)
        torch.manual_seed(noise)  # must not matter
        fitted.append(model.fit_targets(Z, T).predict_cost(Z))
    assert np.array_equal(*fitted)
    torch.manual_seed(11)
    model.fit_targets(Z, T)
    assert torch.equal(torch.rand(3), expected)


def test_torch_model_computes_in_the_dtype_of_its_module():
    Z, _ = regression()
    model = TorchModel(network().float())
    assert model.predict_cost(Z).dtype == np.float64
    np.testing.assert_allclose(
        model.predict_cost(Z), model.predict_cost(torch.tensor(Z, dtype=torch.float32)), atol=1e-6
    )


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model, Z, words",
    [
        (LinearModel(), [1.0, 2.0], r"Z\[:, None\]"),
        (LinearModel(), np.zeros((2, 3, 4)), 'model="shared"'),
        (LinearModel(), [[1.0], [np.nan]], "NaN in sample 1, feature 0"),
        (LinearModel(), [["a"], ["b"]], "real numbers"),
        (SharedModel(), np.zeros((2, 3)), r"\(B, n, p\)"),
        (SharedModel(), np.zeros((2, 4, 5)), r"\(B, 3, p\)"),
        (TorchModel(torch.nn.Linear(4, 5)), np.zeros((2, 4)), "3 outputs"),
        (TorchModel(torch.nn.Linear(4, 3)), np.full((2, 4), np.inf), "sample 0"),
    ],
)
def test_contexts_that_do_not_fit_are_named(model, Z, words):
    with pytest.raises(rv.InputError, match=words):
        model.prepare(Z, 3)


@pytest.mark.parametrize(
    "model, words",
    [
        (LinearModel(ridge=-1.0), "at least 0"),
        (KernelModel(ridge="much"), "`ridge` must be"),
        (KernelModel("cosine"), '"rbf" or "poly"'),
        (KernelModel(n_components=0), "at least 1"),
        (TorchModel("net"), r"torch.nn.Module"),
        (TorchModel(torch.nn.Linear(4, 3), optimizer="lbfgs"), "sgd, adam, adagrad"),
    ],
)
def test_settings_that_mean_nothing_are_refused(model, words):
    with pytest.raises(rv.InputError, match=words):
        model.prepare(np.zeros((2, 4)), 3)


def test_a_kernel_that_overflows_is_named():
    with pytest.raises(rv.InputError, match="Scale the features"):
        KernelModel("poly").fit_targets(1e110 * regression()[0], regression()[1])


@pytest.mark.parametrize("model", [LinearModel(), KernelModel()])
def test_a_model_knows_its_number_of_features(model):
    with pytest.raises(rv.ShapeError, match="no features"):
        model.predict_cost(np.zeros((2, 3)))
    model.fit_targets(*regression(d=4))
    with pytest.raises(rv.ShapeError, match=r"from 4 features; `Z` has 3"):
        model.predict_cost(np.zeros((2, 3)))
