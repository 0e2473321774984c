"""Pictures beside what was decided there: paths and matchings as cells, files that others read."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

import revealed as rv
from revealed_experiments.bench.vision.data import draw
from revealed_experiments.bench.vision.gallery import as_cells, png, write_gallery


def test_decisions_as_cells():
    paths = rv.problems.grid_shortest_path(3, 3, neighbors=8)
    costs = np.ones((1, paths.n_variables))
    assert as_cells(paths, paths.solve(costs).x[0]) == [[0, 0], [1, 1], [2, 2]]
    pairs = rv.problems.grid_matching(2, 2)
    graph = pairs.structure
    across = np.abs(graph.tails - graph.heads) == 1
    assert as_cells(pairs, across.astype(float)) == [[[0, 0], [0, 1]], [[1, 0], [1, 1]]]


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_survive_the_png(channels):
    image = pytest.importorskip("matplotlib.image")
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels), np.uint8)
    read = image.imread(io.BytesIO(png(pixels)), format="png")
    assert np.array_equal(np.round(read * 255).astype(np.uint8).reshape(pixels.shape), pixels)


def test_without_pictures_there_is_no_gallery(tmp_path):
    data = draw({"generator": "terrain", "side": 4, "sizes": [1, 0, 1], "unique": True, "seed": 0})
    assert write_gallery(tmp_path, "terrain 6x6", data, []) is None
    assert list(Path(tmp_path).iterdir()) == []


def test_a_method_that_has_not_chosen_is_shown_once_at_its_best(tmp_path):
    data = draw({"generator": "terrain", "side": 4, "sizes": [1, 0, 1], "unique": True, "seed": 0})
    path = as_cells(data.problem, data.test.decisions[0])

    def run(label, method, valid, test, mark):
        return {
            "config": {"part": "p", "label": label, "method": {"name": method}, "seed": 0},
            "status": "finished",
            "final": {"valid": {"decision_loss": valid}, "test": {"decision_loss": test}},
            "samples": [{"cells": [[mark]], "predicted": path}],
        }

    ours = [run("Ours", "projection", v, t, v) for v, t in ((2.0, 5.0), (1.0, 9.0), (3.0, 4.0))]
    file = write_gallery(tmp_path, "p", data, [*ours, run("ST", "st", 8.0, 8.0, 7.0)])
    (sample,) = json.loads(file.read_text("utf-8"))["samples"]
    shown = [(method["label"], method["cells"]) for method in sample["methods"]]
    assert shown == [("Ours", [[1.0]]), ("ST", [[7.0]])]  # by validation, not by test decisions
