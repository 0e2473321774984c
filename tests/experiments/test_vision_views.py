"""Maps mirrored and turned, boards rearranged: each view is a picture of its own, with a decision
that is optimal there."""

import numpy as np
import pytest
import torch

import revealed as rv
from revealed.errors import InputError
from revealed.optimality.sets import OptimalitySet
from revealed_experiments.bench.vision.parts import VIEWS as IN_WORDS
from revealed_experiments.images import digit_boards, terrain
from revealed_experiments.images.boards import reading_costs
from revealed_experiments.images.grid_paths import cells_of_paths, edge_costs
from revealed_experiments.vision import DeviceSplit, build_model, sets_in, train, views_of
from revealed_experiments.vision.views import VIEWS, ViewedSplit, decisions_in

GRIDS = {
    "4 neighbors": (rv.problems.grid_shortest_path(5, 5), 4),
    "8 neighbors": (rv.problems.grid_shortest_path(5, 5, neighbors=8), 4),
    "not square": (rv.problems.grid_shortest_path(3, 5, neighbors=8), 2),
}
# Written out once, as a person would turn the sheet; the library finds them by itself.
BY_HAND = {
    (False, False, False): lambda grid: grid,
    (True, False, False): lambda grid: np.swapaxes(grid, 1, 2),
    (False, True, True): lambda grid: grid[:, ::-1, ::-1],
    (True, True, True): lambda grid: np.swapaxes(grid[:, ::-1, ::-1], 1, 2),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def maps():
    return terrain((12, 0, 4), side=4, seed=3, unique=True)


@pytest.fixture(scope="module")
def boards():
    return digit_boards((10, 0, 4), side=4, pixels=6, seed=1, unique=True)


def drawn(problem, count=60, seed=0):
    """Costs of cells, those of edges, and the shortest paths; ties are unlikely."""
    cells = np.random.default_rng(seed).uniform(0.5, 9.0, (count, *problem.structure.grid_shape))
    costs = edge_costs(problem, cells)
    return cells, costs, problem.solve(costs).x


def exchanged(pictures, cells):
    """(B, H, W, C) with rows of cells for columns and every cell upright, one by one by hand."""
    size = pictures.shape[1] // cells
    found = np.empty_like(pictures)
    for i in range(cells):
        for j in range(cells):
            here, there = (np.s_[:, a : a + size, b : b + size] for a, b in
                           ((size * i, size * j), (size * j, size * i)))  # fmt: skip
            found[here] = pictures[there]
    return found


def test_the_words_are_about_the_views_there_are():
    assert tuple(IN_WORDS) == VIEWS
    assert all(by.keys() == {"terrain", "warcraft", "digit_boards"} for by in IN_WORDS.values())


@pytest.mark.parametrize("name", GRIDS)
def test_a_view_is_the_same_map_from_another_side(name):
    problem, count = GRIDS[name]
    cells, costs, paths = drawn(problem)
    views = views_of(problem)
    assert views[0].move == (False, False, False)
    assert len({view.move for view in views}) == len(views) == count
    for view in views:
        turned = BY_HAND[view.move](cells)
        walked = BY_HAND[view.move](cells_of_paths(problem, paths))
        assert np.array_equal(edge_costs(problem, turned), costs[:, view.costs])
        assert np.array_equal(walked, cells_of_paths(problem, paths[:, view.decisions]))


@pytest.mark.parametrize("name", GRIDS)
def test_the_decision_of_a_view_is_optimal_in_it(name):
    problem, _ = GRIDS[name]
    _, costs, paths = drawn(problem)
    for view in views_of(problem):
        seen, decided = costs[:, view.costs], paths[:, view.decisions]
        assert np.array_equal(problem.solve(seen).x, decided)
        assert problem.constraint_violation(decided).max() == 0
        assert OptimalitySet(problem, decided, 0.0).contains(seen).all()


def test_a_mirrored_map_keeps_start_and_goal():
    problem, _ = GRIDS["8 neighbors"]
    kept = views_of(problem, "mirrored")
    assert [view.move for view in kept] == [(False, False, False), (True, False, False)]
    assert all(np.array_equal(view.costs, view.decisions) for view in kept)


def test_a_grid_of_one_way_edges_can_be_mirrored_but_not_turned():
    problem = rv.problems.grid_shortest_path(4, 4, directed="right-down")
    assert [view.move for view in views_of(problem)] == [(False,) * 3, (True, False, False)]


@pytest.mark.parametrize("kind", VIEWS)
def test_lines_of_a_split_are_its_samples_view_by_view(maps, kind):
    split = DeviceSplit.of(maps.train, "cpu", torch.float64)
    viewed, views = ViewedSplit(split, maps.problem, kind), views_of(maps.problem, kind)
    assert len(viewed) == len(views) * len(split)
    everything = torch.arange(len(viewed))
    images, costs = viewed.images[everything].numpy(), viewed.costs[everything].numpy()
    decisions = viewed.decisions[everything].numpy()
    assert np.array_equal(decisions, decisions_in(views, maps.train.decisions))
    for k, view in enumerate(views):
        lines = slice(k * len(split), (k + 1) * len(split))
        assert np.array_equal(images[lines], BY_HAND[view.move](maps.train.images))
        cells = BY_HAND[view.move](maps.train.cells)
        assert np.array_equal(costs[lines], edge_costs(maps.problem, cells))
        assert np.array_equal(maps.problem.solve(costs[lines]).x, decisions[lines])


@pytest.mark.parametrize("kind", VIEWS)
def test_rows_and_columns_of_a_board_change_places_with_digits_upright(boards, kind):
    split = DeviceSplit.of(boards.train, "cpu", torch.float64)
    viewed, train_split = ViewedSplit(split, boards.problem, kind), boards.train
    assert len(viewed) == 2 * len(split)
    images, decisions, costs = (
        table[torch.arange(len(viewed))].numpy().reshape(2, len(split), *shape)
        for table, shape in (
            (viewed.images, train_split.images.shape[1:]),
            (viewed.decisions, (-1,)),
            (viewed.costs, (-1,)),
        )
    )
    assert np.array_equal(images[0], train_split.images)
    assert np.array_equal(images[1], exchanged(train_split.images, 4))
    other = reading_costs(boards.problem, np.swapaxes(train_split.cells, 1, 2))
    assert np.array_equal(costs[1], other)
    assert not np.array_equal(costs[1], costs[0])
    assert np.array_equal(boards.problem.solve(other).x, decisions[1])  # each has one best


def test_a_board_that_is_not_square_has_no_other_view():
    assert [view.move for view in views_of(rv.problems.grid_matching(4, 6))] == [(False,) * 3]


def test_a_network_learns_from_boards_in_both_views(boards):
    split = DeviceSplit.of(boards.train, "cpu", torch.float64)
    settings = {"batch_size": 5, "lr": 1e-3, "max_epochs": 3}
    losses = [
        train(build_model("small", boards.problem, channels=1), split,
              rv.ProjectionLoss(boards.problem), views=views, **settings).rows[-1]["loss"]
        for views in (None, "all")
    ]  # fmt: skip
    assert np.isfinite(losses).all()
    assert losses[0] != losses[1]


def test_a_picture_that_is_not_whole_cells_is_refused(boards):
    (_, other) = views_of(boards.problem)
    with pytest.raises(InputError, match="whole cells high and wide"):
        other.places((22, 22))


def test_an_epoch_sees_every_picture_once_in_one_of_its_views(maps):
    class Watching(rv.ProjectionLoss):
        def evaluate(self, costs, decisions, **rest):
            seen.append(decisions.decisions)
            indices.append(rest["index"])
            return super().evaluate(costs, decisions, **rest)

    seen, indices = [], []
    split = DeviceSplit.of(maps.train, "cpu", torch.float64)
    settings = {"views": "all", "batch_size": 6, "lr": 1e-3, "checkpoint_every": 10, "seed": 7}
    net = build_model("small", maps.problem)
    train(net, split, Watching(maps.problem), max_epochs=30, **settings)
    lines = torch.cat(indices).numpy().reshape(30, len(split))
    every = decisions_in(views_of(maps.problem), maps.train.decisions)
    assert np.array_equal(np.concatenate(seen), every[lines.ravel()])  # warm starts by view
    assert all(sorted(line % len(split)) == list(range(len(split))) for line in lines)
    view_of = np.take_along_axis(lines // len(split), np.argsort(lines % len(split)), axis=1)
    assert all(len(set(column)) == 4 for column in view_of.T.tolist())  # of each picture all
    assert len({tuple(line) for line in view_of.tolist()}) == 30  # in every epoch others


@pytest.mark.parametrize("kind", VIEWS)
def test_sets_move_along_with_their_decisions(maps, kind):
    views = views_of(maps.problem, kind)
    margins = np.linspace(0.5, 1.5, len(maps.train))
    found = sets_in(views, OptimalitySet(maps.problem, maps.train.decisions, margins))
    every = decisions_in(views, maps.train.decisions)
    trusted = OptimalitySet(maps.problem, every, np.tile(margins, len(views)))
    for name, value in vars(trusted).items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(getattr(found, name), value), name
    costs = np.random.default_rng(0).standard_normal(every.shape)
    assert np.array_equal(rv.project(costs, found).point, rv.project(costs, trusted).point)


def test_sets_that_do_not_know_the_views_are_refused(maps):
    split = DeviceSplit.of(maps.train, "cpu", torch.float64)
    net, loss = build_model("small", maps.problem), rv.ProjectionLoss(maps.problem)
    sets = OptimalitySet(maps.problem, maps.train.decisions)
    with pytest.raises(InputError, match="48 decisions, of 12 pictures in 4 views; got 12"):
        train(net, split, loss, sets=sets, views="all", max_epochs=1)


def test_other_problems_and_unknown_views_are_refused():
    with pytest.raises(InputError, match="Only grids have views"):
        views_of(rv.problems.assignment(3, 3))
    with pytest.raises(InputError, match="Only grids have views"):
        views_of(rv.problems.knapsack([3.0, 2.0, 4.0], 5.0))
    with pytest.raises(InputError, match="mirrored, all; got 'turned'"):
        views_of(GRIDS["8 neighbors"][0], "turned")


@pytest.mark.parametrize(
    "which, told", [("maps", "cells that they enter"), ("boards", "numbers read along them")]
)
def test_costs_that_do_not_follow_from_cells_are_refused(request, which, told):
    data = request.getfixturevalue(which)
    costs = data.train.costs.copy()
    costs[3, 5] += 1.0
    split = DeviceSplit.of(data.train, "cpu", torch.float64)
    other = DeviceSplit(split.images, split.decisions, torch.from_numpy(costs))
    with pytest.raises(InputError, match=told):
        ViewedSplit(other, data.problem)
