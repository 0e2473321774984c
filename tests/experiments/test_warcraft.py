"""Map folders: stored paths become edges, sums and costs are checked, bad folders are named."""

import hashlib
import shutil

import numpy as np
import pytest

import revealed as rv
from revealed_experiments.images.grid_paths import cells_of_paths, edge_costs, paths_of_cells
from revealed_experiments.images.terrain import terrain, write_terrain
from revealed_experiments.images.warcraft import as_written, load_warcraft
from revealed_experiments.images.warcraft_sums import PUBLISHED

SIZES = (5, 2, 2)
SPLITS = ("train", "val", "test")
KINDS = ("maps", "vertex_weights", "shortest_paths")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder as the original has it: terrain without the files that only we write."""
    folder = write_terrain(tmp_path_factory.mktemp("maps"), SIZES, side=6, seed=2)
    (folder / "terrain.json").unlink()
    (folder / "SHA256SUMS").unlink()
    return folder


@pytest.fixture
def folder(written, tmp_path):
    """A copy to spoil."""
    return shutil.copytree(written, tmp_path / "6x6")


def change(folder, name, edit):
    array = np.load(folder / f"{name}.npy")
    edited = edit(array)
    np.save(folder / f"{name}.npy", array if edited is None else edited)


# --- reading -------------------------------------------------------------------------------------


def test_stored_paths_become_the_decisions_they_were(written):
    expected = terrain(SIZES, side=6, seed=2)
    data = load_warcraft(written, verify=False)
    assert data.name == "warcraft 6x6"
    for split in ("train", "valid", "test"):
        for part in ("contexts", "decisions", "costs", "cells"):
            got, want = (getattr(getattr(d, split), part) for d in (data, expected))
            np.testing.assert_array_equal(got, want)


def test_the_start_cell_is_in_no_paths_cost(written):
    """Counted by cells, as in the papers, a path costs the start cell's weight more."""
    split = load_warcraft(written, verify=False).train
    stored = np.load(written / "train_shortest_paths.npy")
    by_cells = (split.cells * stored).sum(axis=(1, 2))
    by_edges = (split.costs * split.decisions).sum(axis=1)
    np.testing.assert_allclose(by_edges + split.cells[:, 0, 0], by_cells)


def test_parts_are_read_one_after_the_other(folder):
    whole = load_warcraft(folder, verify=False).train
    for kind in KINDS:
        array = np.load(folder / f"train_{kind}.npy")
        np.save(folder / f"train_{kind}_part0.npy", array[:2])
        np.save(folder / f"train_{kind}_part1.npy", array[2:])
        (folder / f"train_{kind}.npy").unlink()
    parts = load_warcraft(folder, verify=False).train
    np.testing.assert_array_equal(parts.images, whole.images)
    np.testing.assert_array_equal(parts.decisions, whole.decisions)


def test_the_folder_may_be_that_above(folder):
    shutil.copytree(folder, folder.parent / "12x12")
    assert load_warcraft(folder.parent, side=6, verify=False).name == "warcraft 6x6"
    with pytest.raises(rv.InputError, match=r"6x6, 12x12\. Choose one with `side`"):
        load_warcraft(folder.parent, verify=False)
    with pytest.raises(rv.InputError, match="hold the folder 18x18; such folders there: 6x6"):
        load_warcraft(folder.parent, side=18, verify=False)


# --- checksums -----------------------------------------------------------------------------------


def test_published_sums_name_the_files_of_each_size():
    assert sorted(PUBLISHED) == [12, 18, 24, 30]
    for side, sums in PUBLISHED.items():
        parts = [""] if side == 12 else ["_part0", "_part1"]
        names = [f"train_{kind}{part}.npy" for kind in KINDS for part in parts]
        names += [f"{split}_{kind}.npy" for split in ("val", "test") for kind in KINDS]
        assert sorted(sums) == sorted(names)
        assert all(len(digits) == 32 and int(digits, 16) >= 0 for digits in sums.values())


def test_files_are_checked_by_the_sums_given(folder, tmp_path):
    lines = [
        f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in folder.glob("*.npy")
    ]
    sums = tmp_path / "MD5SUMS"
    sums.write_text("".join(lines))
    assert len(load_warcraft(folder, checksums=sums).train) == 5
    sums.write_text("".join(lines[1:]))
    with pytest.raises(rv.InputError, match="has no line among the checksums"):
        load_warcraft(folder, checksums=sums)
    sums.write_text("".join(lines).replace("0", "1"))
    with pytest.raises(rv.InputError, match=r"MD5 sum .* damaged"):
        load_warcraft(folder, checksums=sums)
    sums.write_text("not a sum\n")
    with pytest.raises(rv.InputError, match="Line 1 of MD5SUMS"):
        load_warcraft(folder, checksums=sums)
    with pytest.raises(rv.InputError, match="no checksum file"):
        load_warcraft(folder, checksums=tmp_path / "absent")


def test_without_known_sums_reading_must_be_asked_for(folder):
    with pytest.raises(rv.InputError, match=r"No checksums are known .* `verify=False`"):
        load_warcraft(folder)


def test_maps_of_a_published_size_must_be_the_original(tmp_path):
    folder = write_terrain(tmp_path, (1, 1, 1), side=12)
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(rv.InputError, match=r"train_maps\.npy .* MD5 sum c31760c5"):
        load_warcraft(folder)


# --- bad folders ---------------------------------------------------------------------------------


def drop(name):
    return lambda folder: (folder / name).unlink()


def edited(name, edit):
    return lambda folder: change(folder, name, edit)


def put(entry, value):
    def edit(array):
        array[entry] = value

    return edit


def copied(old, new):
    return lambda folder: shutil.copy(folder / old, folder / new)


def only_part_one(folder):
    (folder / "val_maps.npy").rename(folder / "val_maps_part1.npy")


BAD = {
    "missing file": (drop("val_maps.npy"), r"must hold val_maps\.npy, or parts of it; it has test"),
    "whole and parts": (copied("val_maps.npy", "val_maps_part0.npy"), "holds both val_maps"),
    "missing part": (only_part_one, r"lacks val_maps_part0\.npy"),
    "not an array": (lambda f: (f / "val_maps.npy").write_bytes(b"x"), r"val_maps\.npy must be an"),
    "float pictures": (edited("val_maps", lambda a: a / 255.0), r"val_maps must be .* uint8"),
    "channels first": (edited("val_maps", lambda a: np.moveaxis(a, 3, 1)), "val_maps must be"),
    "other size": (edited("val_maps", lambda a: a[:, :40, :40]), "multiple of 6"),
    "fewer weights": (
        edited("val_vertex_weights", lambda a: a[:1]),
        r"must be numbers \(2, 6, 6\)",
    ),
    "text weights": (edited("val_vertex_weights", lambda a: a.astype(str)), "must be numbers"),
    "zero weight": (edited("val_vertex_weights", put((1, 2, 3), 0)), "> 0; map 1 has others"),
    "NaN weight": (edited("val_vertex_weights", put((1, 2, 3), np.nan)), "> 0; map 1"),
    "path of twos": (edited("val_shortest_paths", put(1, 2)), "0 or 1; map 1"),
    "no start": (edited("val_shortest_paths", put((1, 0, 0), 0)), "map 1 lacks an end"),
    "stray cells": (edited("val_shortest_paths", put((1, 0, 5), 1)), "map 1 has cells beside"),
    "empty path": (edited("val_shortest_paths", lambda a: a * CORNERS), "map 0 breaks off"),
    "everywhere": (edited("val_shortest_paths", put(0, 1)), "map 0 touches itself"),
    "other weights": (
        edited("val_vertex_weights", lambda a: a[::-1, ::-1, ::-1]),
        "must be shortest",
    ),
}
CORNERS = np.zeros((6, 6), np.uint8)
CORNERS[0, 0] = CORNERS[-1, -1] = 1


@pytest.mark.parametrize("spoil, words", BAD.values(), ids=list(BAD))
def test_bad_folders_get_a_sentence(folder, spoil, words):
    spoil(folder)
    with pytest.raises(rv.InputError, match=words):
        load_warcraft(folder, verify=False)


def test_pickled_arrays_are_not_opened(folder):
    np.save(folder / "val_maps.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(
        rv.InputError, match=r"val_maps\.npy must be an \.npy file of plain numbers"
    ):
        load_warcraft(folder, verify=False)


def test_absent_folders_are_named(tmp_path):
    with pytest.raises(rv.InputError, match="no folder"):
        load_warcraft(tmp_path / "absent")
    with pytest.raises(rv.InputError, match="such folders there: none"):
        load_warcraft(tmp_path)


# --- cells and edges -----------------------------------------------------------------------------


@pytest.mark.parametrize("side", [2, 5, 9])
def test_cells_and_paths_turn_into_each_other(side):
    problem = rv.problems.grid_shortest_path(side, side, neighbors=8)
    rng = np.random.default_rng(side)
    weights = 10.0 ** rng.uniform(-2, 2, (40, side, side))  # rough, so that paths wind
    decisions = problem.solve(edge_costs(problem, weights)).x
    cells = cells_of_paths(problem, decisions)
    assert (cells.sum(axis=(1, 2)) == decisions.sum(axis=1) + 1).all()
    np.testing.assert_array_equal(paths_of_cells(problem, cells), decisions)


def test_no_maps_give_no_paths():
    problem = rv.problems.grid_shortest_path(4, 4, neighbors=8)
    assert paths_of_cells(problem, np.zeros((0, 4, 4))).shape == (0, problem.n_variables)
    assert edge_costs(problem, np.zeros((0, 4, 4))).shape == (0, problem.n_variables)


def test_rounding_of_the_stored_weights_excuses_a_longer_path(folder):
    """Paths a little longer than another as good: sums in half precision would not tell."""
    weights = as_written(np.load(folder / "train_vertex_weights.npy"))
    weights[np.load(folder / "train_shortest_paths.npy") == 1] *= 1.002
    np.save(folder / "train_vertex_weights.npy", weights.astype(np.float16))
    data = load_warcraft(folder, verify=False)
    paid = (data.train.costs * data.train.decisions).sum(axis=1)
    assert (paid > data.problem.solve(data.train.costs).objective + 1e-4).any()
    np.save(folder / "train_vertex_weights.npy", weights)
    with pytest.raises(rv.InputError, match="must be shortest"):
        load_warcraft(folder, verify=False)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_decimals_are_read_as_written(dtype):
    decimals = np.array([[0.8, 1.2], [5.3, 7.7], [9.2, 3.0]])
    if dtype == np.int64:
        decimals = np.rint(decimals)
    got = as_written(decimals.astype(dtype))
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, decimals)
