"""Made-up terrain: seeds give maps, paths are shortest, pictures take reading, folders last."""

import hashlib
import heapq
import shutil
import subprocess

import numpy as np
import pytest

import revealed as rv
from revealed_experiments.images.checksums import check_sums, read_sums
from revealed_experiments.images.grid_paths import edge_costs
from revealed_experiments.images.image_set import ImageSplit, only_best
from revealed_experiments.images.noise import fractal_noise, smooth_noise, strewn_bumps
from revealed_experiments.images.parallel import FRUITLESS, first_kept
from revealed_experiments.images.sample_picture import draw_samples
from revealed_experiments.images.terrain import GROUND_COSTS, terrain, write_terrain
from revealed_experiments.images.terrain_drawing import _shares, draw_map
from revealed_experiments.images.terrain_layout import draw_layouts
from revealed_experiments.images.terrain_textures import Window
from revealed_experiments.images.warcraft import load_terrain

SIZES = (9, 3, 4)
GOLDEN = "e233c7a0fff32adfc972c9f7b44c4c7e917d970c3e53d228993a020f59ae7147"
PARTS = ("contexts", "decisions", "costs", "cells")


@pytest.fixture(scope="module")
def maps():
    return terrain(SIZES, side=6, seed=1)


def splits(data):
    return data.train, data.valid, data.test


def same(first, second, parts=PARTS):
    return all(np.array_equal(getattr(first, part), getattr(second, part)) for part in parts)


# --- maps and paths ------------------------------------------------------------------------------


def test_splits_have_the_sizes_and_shapes_asked_for(maps):
    assert tuple(len(split) for split in splits(maps)) == SIZES
    for split in splits(maps):
        assert isinstance(split, ImageSplit)
        assert split.images.shape == (len(split), 48, 48, 3)
        assert split.images.dtype == np.uint8
        assert split.costs.shape == split.decisions.shape == (len(split), 220)
        assert set(np.unique(split.cells)) <= set(GROUND_COSTS)


def test_an_edge_costs_what_the_cell_it_enters_does(maps):
    graph = maps.problem.structure
    split = maps.train
    for edge in range(0, 220, 17):
        row, col = divmod(int(graph.heads[edge]), 6)
        np.testing.assert_array_equal(split.costs[:, edge], split.cells[:, row, col])


def test_paths_are_shortest(maps):
    for split in splits(maps):
        sets = rv.OptimalitySet(maps.problem, split.decisions, margin=0.0)
        assert sets.contains(split.costs).all()


def test_a_seed_gives_the_same_maps_and_another_others(maps):
    again, other = terrain(SIZES, side=6, seed=1), terrain(SIZES, side=6, seed=2)
    for first, second, third in zip(splits(maps), splits(again), splits(other), strict=True):
        assert same(first, second)
        assert not same(first, third, ["cells"])
    assert not same(maps.train.head(3), maps.valid, ["cells"])


def test_fewer_maps_are_the_first_of_more(maps):
    fewer = terrain((4, 0, 2), side=6, seed=1)
    assert same(fewer.train, maps.train.head(4))
    assert same(fewer.test, maps.test.head(2))
    assert len(fewer.valid) == 0


def test_maps_are_the_same_on_every_machine():
    """Results are published for seeds, so the maps of a seed must not change unnoticed."""
    data = terrain((2, 1, 1), side=6, seed=0)
    digest = hashlib.sha256()
    for split in splits(data):
        digest.update(split.images.tobytes())
        digest.update(split.cells.tobytes())
        digest.update(split.decisions.tobytes())
    assert digest.hexdigest() == GOLDEN


def test_several_processes_draw_the_same_maps():
    options = {"side": 5, "seed": 1, "unique": True}
    alone, together = (terrain((150, 0, 40), jobs=jobs, **options) for jobs in (1, 2))
    assert all(same(*pair) for pair in zip(splits(alone), splits(together), strict=True))


def number_of_shortest_paths(weights):
    """By counting, on whole tenths, where nothing is rounded."""
    tenths = np.rint(10 * weights).astype(int)
    side = len(tenths)
    cost, ways = {(0, 0): 0}, {(0, 0): 1}
    done, queue = set(), [(0, (0, 0))]
    while queue:
        reached, (row, col) = heapq.heappop(queue)
        if (row, col) in done:
            continue
        done.add((row, col))
        for r in range(max(row - 1, 0), min(row + 2, side)):
            for c in range(max(col - 1, 0), min(col + 2, side)):
                there = reached + tenths[r, c]
                if (r, c) in done or there > cost.get((r, c), np.inf):
                    continue
                if there < cost.get((r, c), np.inf):
                    cost[r, c], ways[r, c] = there, 0
                    heapq.heappush(queue, (there, (r, c)))
                ways[r, c] += ways[row, col]
    return ways[side - 1, side - 1]


def test_only_best_finds_every_tie(maps):
    rng = np.random.default_rng(0)
    weights = np.array(GROUND_COSTS)[draw_layouts(rng, 60, 6)]
    costs = edge_costs(maps.problem, weights)
    best = only_best(maps.problem, costs, maps.problem.solve(costs).x, gap=0.1)
    counted = np.array([number_of_shortest_paths(map_) == 1 for map_ in weights])
    np.testing.assert_array_equal(best, counted)
    assert 0.2 < counted.mean() < 0.9


def test_unique_keeps_maps_with_one_shortest_path():
    data = terrain((12, 0, 2), side=6, seed=3, unique=True)
    cells = np.concatenate([data.train.cells, data.test.cells])
    assert [number_of_shortest_paths(map_) for map_ in cells] == [1] * 14


@pytest.mark.parametrize(
    "options, words",
    [
        ({"side": 2}, "`side` must be 3 to 40"),
        ({"side": 41}, "`side` must be 3 to 40"),
        ({"side": 6.0}, "`side` must be a positive integer"),
        ({"seed": -1}, "`seed` must be a whole number"),
        ({"seed": 0.5}, "`seed` must be a whole number"),
        ({"jobs": 0}, "`jobs` must be a positive integer"),
        ({"sizes": (0, 1, 1)}, "three whole numbers"),
    ],
    ids=str,
)
def test_impossible_maps_are_refused(options, words):
    with pytest.raises(rv.InputError, match=words):
        terrain(**({"sizes": (1, 0, 0)} | options))


# --- pictures ------------------------------------------------------------------------------------


def test_the_middle_of_a_tile_shows_its_kind():
    kinds = draw_layouts(np.random.default_rng(1), 20, 12)
    for k, map_ in enumerate(kinds):
        shown = _shares(map_, Window(np.random.default_rng(k), 16 * 12 + 16)).argmax(axis=0)
        middle = shown[15:-8:16, 15:-8:16]
        np.testing.assert_array_equal(middle[:12, :12], map_)


def test_no_color_belongs_to_a_kind():
    """The mean color of a kind differs more from map to map than from kind to kind."""
    data = terrain((64, 0, 0), side=12, seed=4).train
    tiles = data.images.reshape(64, 12, 8, 12, 8, 3).mean(axis=(2, 4))
    means = np.full((64, 5, 3), np.nan)
    for k, cost in enumerate(GROUND_COSTS):
        for map_ in range(64):
            here = data.cells[map_] == cost
            if here.sum() > 3:
                means[map_, k] = tiles[map_][here].mean(axis=0)
    between_maps = np.nanstd(means, axis=0).mean(axis=0)
    between_kinds = np.nanmean(means, axis=0).std(axis=0)
    assert (between_maps > 1.1 * between_kinds).all()


def test_a_picture_depends_on_its_kinds_and_its_own_seed():
    kinds = draw_layouts(np.random.default_rng(2), 2, 5)
    picture = draw_map(kinds[0], np.random.default_rng(0))
    assert picture.shape == (40, 40, 3)
    np.testing.assert_array_equal(picture, draw_map(kinds[0], np.random.default_rng(0)))
    assert (picture != draw_map(kinds[0], np.random.default_rng(1))).mean() > 0.9
    assert (picture != draw_map(kinds[1], np.random.default_rng(0))).any()


@pytest.mark.parametrize("wavelength", [2.0, 7.5, (3.0, 12.0)], ids=str)
def test_noise_has_mean_0_and_variance_1(wavelength):
    noise = smooth_noise(np.random.default_rng(0), 60, (64, 64), wavelength)
    assert noise.dtype == np.float32
    assert abs(noise.mean()) < 0.05
    assert abs(noise.std() - 1) < 0.05


def test_noise_is_smooth_over_a_wavelength():
    wide, narrow = (
        np.abs(np.diff(fractal_noise(np.random.default_rng(0), 9, (64, 64), wavelength))).mean()
        for wavelength in (16.0, 4.0)
    )
    assert wide < 0.5 * narrow < 0.5


def test_bumps_are_the_highest_of_all_that_reach_a_place():
    def bump(down, across, first, second):
        return np.maximum(1 - np.sqrt(down * down + across * across) / (0.5 + 0.4 * first), 0)

    height, mark = strewn_bumps(np.random.default_rng(0), (40, 40), 8.0, bump)
    assert height.min() == 0
    assert 0.9 < height.max() <= 1
    assert ((height > 0) == (mark > 0)).all()
    assert len(np.unique(mark)) > 15


# --- folders -------------------------------------------------------------------------------------


def test_what_is_written_is_read_back_to_the_last_bit(tmp_path, maps):
    folder = write_terrain(tmp_path / "new" / "place", SIZES, side=6, seed=1)
    assert folder.name == "6x6"
    for place in (folder, folder.parent):
        again = load_terrain(place)
        assert again.name == maps.name == "terrain 6x6"
        assert all(same(*pair) for pair in zip(splits(maps), splits(again), strict=True))


def test_files_have_the_layout_of_the_original(tmp_path):
    whole = write_terrain(tmp_path, (3, 1, 1), side=6)
    parts = write_terrain(tmp_path, (3, 1, 1), side=18)
    assert np.load(whole / "train_maps.npy").shape == (3, 48, 48, 3)
    assert np.load(whole / "train_vertex_weights.npy").dtype == np.float16
    assert set(np.unique(np.load(whole / "val_shortest_paths.npy"))) == {0, 1}
    assert [len(np.load(parts / f"train_maps_part{k}.npy")) for k in (0, 1)] == [2, 1]
    assert not (parts / "train_maps.npy").exists()
    assert np.load(parts / "test_maps.npy").shape == (1, 144, 144, 3)


def test_checksums_are_those_of_sha256sum(tmp_path):
    folder = write_terrain(tmp_path, (1, 1, 1), side=4)
    sums = read_sums(folder / "SHA256SUMS")
    assert len(sums) == 10
    check_sums(folder, sums, sums)
    if shutil.which("sha256sum"):
        subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=folder, check=True)


def test_a_damaged_file_is_refused(tmp_path):
    folder = write_terrain(tmp_path, (1, 1, 1), side=4)
    content = bytearray((folder / "val_maps.npy").read_bytes())
    content[-1] ^= 1
    (folder / "val_maps.npy").write_bytes(content)
    with pytest.raises(rv.InputError, match=r"val_maps\.npy .* SHA256 sum .* damaged"):
        load_terrain(folder)
    assert len(load_terrain(folder, verify=False).valid) == 1


def test_a_folder_that_is_there_stays_unless_told_otherwise(tmp_path):
    first = write_terrain(tmp_path, (2, 1, 1), side=4, seed=1)
    before = load_terrain(first)
    with pytest.raises(rv.InputError, match="left as it is"):
        write_terrain(tmp_path, (2, 1, 1), side=4, seed=2)
    assert same(before.train, load_terrain(first).train)
    write_terrain(tmp_path, (2, 1, 1), side=4, seed=2, overwrite=True)
    assert not same(before.train, load_terrain(first).train)
    assert [path.name for path in tmp_path.iterdir()] == ["4x4"]


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    first = write_terrain(tmp_path, (2, 1, 1), side=4, seed=1)

    def fail(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", fail)
    for side in (4, 5):
        with pytest.raises(KeyboardInterrupt):
            write_terrain(tmp_path, (2, 1, 1), side=side, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["4x4"]
    assert len(load_terrain(first).train) == 2


@pytest.mark.parametrize("text", ["{", "[1]"])
def test_facts_that_cannot_be_read_get_a_sentence(tmp_path, text):
    folder = write_terrain(tmp_path, (1, 1, 1), side=4)
    (folder / "terrain.json").write_text(text, "utf-8")
    with pytest.raises(rv.InputError, match=r"terrain\.json must"):
        load_terrain(folder)


def test_loader_of_terrain_refuses_other_maps(tmp_path):
    folder = write_terrain(tmp_path, (1, 1, 1), side=4)
    (folder / "terrain.json").unlink()
    with pytest.raises(rv.InputError, match="`load_warcraft` for the original"):
        load_terrain(folder)


# --- samples -------------------------------------------------------------------------------------


def test_samples_are_drawn_with_their_paths(tmp_path, maps):
    path = draw_samples(maps, tmp_path / "made" / "samples.png", count=5, columns=3)
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert draw_samples(maps, tmp_path / "test.svg", split="test", count=99).stat().st_size > 1000


def test_samples_of_nothing_are_refused(tmp_path):
    data = terrain((1, 0, 0), side=4)
    with pytest.raises(rv.InputError, match="nothing to draw"):
        draw_samples(data, tmp_path / "a.png", split="valid")
    with pytest.raises(rv.InputError, match="must be train, valid or test"):
        draw_samples(data, tmp_path / "a.png", split="problem")


def test_waiting_for_samples_that_never_come_is_refused():
    tried = []

    def attempt(block):
        tried.append(block)
        return (np.zeros((int(block >= late), 2)),)

    late = FRUITLESS - 1
    assert len(first_kept(attempt, 3, 1)[0]) == 3
    late = 10**9
    with pytest.raises(rv.InputError, match="`unique=False`"):
        first_kept(attempt, 3, 1)
    assert max(tried) == FRUITLESS + 1
    assert len(first_kept(attempt, 0, 1)[0]) == 0
