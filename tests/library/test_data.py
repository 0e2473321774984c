"""Generators follow their formulas and their seed; the loader reads its layout or says why not."""

import numpy as np
import pytest

import revealed as rv
from revealed.datasets import (
    general_knapsacks,
    load_paper_synthetic,
    noisy_paths,
    paper_knapsacks,
    paper_paths,
)

GENERATORS = [noisy_paths, paper_paths, paper_knapsacks, general_knapsacks]
SIZES = (12, 3, 5)


def name_of(function):
    return function.__name__


def all_of(data, part):
    return np.concatenate([getattr(s, part) for s in (data.train, data.valid, data.test)])


@pytest.mark.parametrize("generate", GENERATORS, ids=name_of)
def test_splits_have_the_sizes_asked_for(generate):
    data = generate(SIZES, seed=1)
    assert tuple(len(split) for split in (data.train, data.valid, data.test)) == SIZES
    for split in (data.train, data.valid, data.test):
        assert split.costs.shape == split.decisions.shape == (len(split), data.problem.n_variables)
    np.testing.assert_array_equal(data.train.head(4).costs, data.train.costs[:4])


@pytest.mark.parametrize("generate", GENERATORS, ids=name_of)
def test_a_seed_gives_the_same_data_and_another_other_data(generate):
    first, again, other = (generate(SIZES, seed=seed) for seed in (5, 5, 6))
    for part in ("contexts", "costs", "decisions"):
        np.testing.assert_array_equal(all_of(first, part), all_of(again, part))
    assert not np.array_equal(all_of(first, "contexts"), all_of(other, "contexts"))


@pytest.mark.parametrize("generate", GENERATORS, ids=name_of)
def test_decisions_are_optimal_under_the_true_costs(generate):
    data = generate(SIZES, seed=2)
    sets = rv.OptimalitySet(data.problem, all_of(data, "decisions"), margin=0.0)
    assert sets.contains(all_of(data, "costs")).all()


@pytest.mark.parametrize("generate", GENERATORS, ids=name_of)
@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 1), (1, -1, 1), (1.5, 1, 1), 5, None], ids=str)
def test_impossible_sizes_are_refused(generate, sizes):
    with pytest.raises(rv.InputError, match="three whole numbers"):
        generate(sizes)


@pytest.mark.parametrize("generate", GENERATORS, ids=name_of)
@pytest.mark.parametrize("name, value", [("seed", -1), ("seed", "a"), ("degree", 1.5)])
def test_impossible_numbers_are_refused(generate, name, value):
    with pytest.raises(rv.InputError, match=f"`{name}` must be"):
        generate(SIZES, **{name: value})


def zero_one_fit(contexts, values):
    """The 0/1 matrix of which `values` is a linear function, and how far from it they are."""
    weights, *_ = np.linalg.lstsq(contexts, values, rcond=None)
    return np.abs(weights - weights.round()).max(), set(weights.round().astype(int).ravel())


@pytest.mark.parametrize("degree", [4, 6])
def test_noisy_paths_follow_the_formula(degree):
    data = noisy_paths((40, 0, 10), degree=degree, noise=0.0, seed=3)
    contexts, costs = all_of(data, "contexts"), all_of(data, "costs")
    assert costs.shape == (50, 40)
    inner = ((costs * 3.5**degree - 1.0) ** (1 / degree) - 3.0) * np.sqrt(5)
    error, entries = zero_one_fit(contexts, inner)
    assert error < 1e-9
    assert entries == {0, 1}


def test_noise_is_uniform_around_the_clean_cost():
    clean, noisy = (noisy_paths((400, 0, 0), noise=noise, seed=4) for noise in (0.0, 0.5))
    ratio = noisy.train.costs / clean.train.costs
    assert 0.5 <= ratio.min() < 0.51
    assert 1.49 < ratio.max() <= 1.5
    assert abs(ratio.mean() - 1.0) < 0.01
    with pytest.raises(rv.InputError, match="`noise` must be"):
        noisy_paths(SIZES, noise=1.5)


def test_paper_paths_follow_the_formula():
    data = paper_paths((40, 0, 0), seed=5)
    assert (data.train.contexts[:, -1] == 1.0).all()
    inner = ((data.train.costs - 1.0) ** 0.25 - 3.0) * np.sqrt(6)
    error, entries = zero_one_fit(data.train.contexts, inner)
    assert error < 1e-9
    assert entries == {0, 1}


@pytest.mark.parametrize("generate", [paper_knapsacks, general_knapsacks], ids=name_of)
def test_knapsacks_quadruple_under_attack(generate):
    data = generate((300, 0, 0), seed=6)
    contexts, values = data.train.contexts, -data.train.costs[:, :10]
    pairs = np.stack([contexts[:, i] * contexts[:, j] for i in range(5) for j in range(i, 5)], 1)
    calm = contexts[:, 0] <= 0.5
    weights, *_ = np.linalg.lstsq(pairs[calm], values[calm], rcond=None)
    np.testing.assert_allclose(pairs[calm] @ weights, values[calm], atol=1e-10)
    np.testing.assert_allclose(4.0 * pairs[~calm] @ weights, values[~calm], atol=1e-10)
    assert 0.15 < (~calm).mean() < 0.35


@pytest.mark.parametrize("seed", range(5))
def test_paper_knapsacks_are_in_standard_form(seed):
    data = paper_knapsacks((20, 0, 0), seed=seed)
    A, b = data.problem.A_eq.toarray(), data.problem.b_eq
    weights = A[0, :10]
    assert A.shape == (11, 21)
    assert weights.max() <= b[0] <= weights.sum()
    np.testing.assert_allclose(data.train.decisions @ A.T, np.tile(b, (20, 1)), atol=1e-9)
    assert not data.train.costs[:, 10:].any()


def test_budgets_of_paper_knapsacks_fill_their_range():
    """Uniform between the largest weight and the sum less a uniform share of the largest."""
    shares = []
    for seed in range(300):
        problem = paper_knapsacks((1, 0, 0), seed=seed).problem
        weights = problem.A_eq.toarray()[0, :10]
        least, most = weights.max(), weights.sum() - 0.5 * weights.max()
        shares.append((problem.b_eq[0] - least) / (most - least))
    assert np.mean(shares) == pytest.approx(0.5, abs=3 * np.sqrt(1 / 12 / 300))
    assert min(shares) < 0.05 < 0.95 < max(shares)


@pytest.fixture
def paper_arrays():
    """A file of the same layout, from our own generator: three samples in each split."""
    data = paper_paths((3, 3, 3), side=3, seed=7)
    arrays = {"A": data.problem.A_eq.toarray()[:-1], "b": data.problem.b_eq[:-1]}
    for split in ("train", "valid", "test"):
        part = getattr(data, split)
        arrays[f"{split}_z"], arrays[f"{split}_c"] = part.contexts, part.costs
        arrays[f"{split}_sol"] = part.decisions
    return arrays


def test_loader_reads_its_layout(tmp_path, paper_arrays):
    np.savez(tmp_path / "sp_seed0.npz", **paper_arrays)
    data = load_paper_synthetic(tmp_path, "sp_seed0")
    assert data.name == "sp_seed0"
    np.testing.assert_array_equal(data.problem.A_eq.toarray(), paper_arrays["A"])
    np.testing.assert_array_equal(data.valid.costs, paper_arrays["valid_c"])
    np.testing.assert_allclose(data.problem.solve(data.test.costs).x, data.test.decisions)


def spoil(arrays, change):
    spoiled = dict(arrays)
    change(spoiled)
    return spoiled


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda a: a.pop("valid_c"), "lacks valid_c"),
        (lambda a: a.update(b=a["b"][:2]), r"`A` \(m, n\) and `b`"),
        (lambda a: a.update(test_sol=a["test_sol"][:, :4]), r"`test_sol` must be \(B, 12\)"),
        (lambda a: a.update(train_z=a["train_z"][:2]), "`train_c` must be"),
        (lambda a: a.update(train_c=a["train_c"] * [[1], [np.nan], [1]]), "`train_c` .* row 1"),
        (lambda a: a.update(b=np.array(["x"] * len(a["b"]))), "plain number arrays"),
    ],
    ids=["missing", "right-hand side", "columns", "length", "NaN", "text"],
)
def test_loader_refuses_wrong_content(tmp_path, paper_arrays, change, words):
    np.savez(tmp_path / "sp_seed0.npz", **spoil(paper_arrays, change))
    with pytest.raises(rv.InputError, match=words):
        load_paper_synthetic(tmp_path, "sp_seed0")


def test_loader_refuses_a_folder_without_the_file(tmp_path, paper_arrays):
    with pytest.raises(rv.InputError, match=r"holds no \.npz file"):
        load_paper_synthetic(tmp_path / "absent", "sp_seed0")
    np.savez(tmp_path / "sp_seed1.npz", **paper_arrays)
    with pytest.raises(rv.InputError, match="holds only: sp_seed1"):
        load_paper_synthetic(tmp_path, "sp_seed0")
    (tmp_path / "sp_seed0.npz").write_bytes(b"not a zip file")
    with pytest.raises(rv.InputError, match="plain number arrays"):
        load_paper_synthetic(tmp_path, "sp_seed0")
