"""The demonstration: what it makes is what it says, and it prints, draws and judges itself."""

from dataclasses import replace

import numpy as np
import pytest

import revealed as rv
from revealed import cli
from revealed.cli.demo import scene

pytest.importorskip("rich")
pytest.importorskip("matplotlib")

SMALL = ["--trips", "600", "--held-out", "100"]
PICTURES = ["costs.png", "loss.png", "routes.png"]


@pytest.fixture(scope="module")
def town():
    return scene.make_town(3)


def test_the_same_seed_gives_the_same_trips(town):
    first, again = (scene.make_trips(scene.make_town(3), 40, 3) for _ in range(2))
    np.testing.assert_array_equal(first.seen.contexts, again.seen.contexts)
    np.testing.assert_array_equal(first.seen.decisions, again.seen.decisions)
    assert not np.array_equal(first.hours, scene.make_trips(town, 40, 4).hours)


def test_trips_take_the_quickest_route_between_their_ends(town):
    trips = scene.make_trips(town, 40, 3)
    np.testing.assert_allclose(trips.seen.costs, town.minutes(trips.seen.contexts))
    best = trips.problem.solve(trips.seen.costs).objective
    np.testing.assert_allclose((trips.seen.costs * trips.seen.decisions).sum(axis=1), best)
    ends = trips.problem.structure
    rows = [np.stack(np.divmod(node, scene.SIDE)) for node in (ends.source, ends.target)]
    assert np.abs(rows[0] - rows[1]).sum(axis=0).min() >= scene.SHORTEST_TRIP


def test_streets_take_as_long_either_way(town):
    minutes = town.minutes(np.array([[0.3, 0.7, 0.1]]))
    np.testing.assert_allclose(minutes, minutes[:, town.reverse])
    np.testing.assert_array_equal(town.reverse[town.reverse], np.arange(len(town.tail)))


def test_mean_at_a_junction_is_over_its_streets(town):
    costs = np.random.default_rng(0).random((2, len(town.tail)))
    at_corner = (town.tail == 0) | (town.head == 0)
    means = town.by_junction(costs)
    assert means.shape == (2, scene.SIDE**2)
    np.testing.assert_allclose(means[:, 0], costs[:, at_corner].mean(axis=1))


@pytest.fixture(scope="module")
def outcome(town):
    trips = scene.make_trips(town, 700, 3)
    train, held_out = trips.part(slice(0, 600)), trips.part(slice(600, None))
    return scene.learn(train, held_out, town, iterations=500, verbose=False)


def test_the_loss_falls_to_its_proved_minimum(outcome):
    loss, told = outcome.model.history_["loss"], outcome.model.certificate_
    assert told.converged
    assert (np.diff(loss) <= 1e-9 * loss[:-1]).all()
    assert told.lower_bound <= loss[-1] <= (1 + 1e-6) * told.lower_bound


def test_scores_are_in_the_order_of_what_was_known(outcome):
    nothing, blind, learned, truth = outcome.scores
    assert learned.ours
    assert not any(score.ours for score in (nothing, blind, truth))
    assert 0 <= truth.regret < learned.regret < nothing.regret
    assert outcome.residual <= scene.TOL


def test_the_command_prints_and_draws(tmp_path, capsys):
    folder = tmp_path / "new" / "folder"
    assert cli.main(["demo", "--out", str(folder), "--seed", "3", *SMALL]) == 0
    out = capsys.readouterr().out
    for words in ("600 trips", "proved to be within", "shortest by length", "least squares"):
        assert words in out
    assert sorted(path.name for path in folder.iterdir()) == PICTURES


def test_without_matplotlib_it_says_what_brings_the_pictures(tmp_path, monkeypatch, capsys):
    from revealed.cli.demo import telling

    monkeypatch.setattr(telling, "installed", lambda package: False)
    assert cli.main(["demo", "--out", str(tmp_path), *SMALL]) == 0
    assert "pip install 'revealed[plot]'" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_the_command_admits_a_claim_that_failed(tmp_path, monkeypatch, capsys):
    from revealed.cli.demo import telling

    def worse(*args, **kwargs):
        made = scene.learn(*args, **kwargs)
        nothing, blind, learned, truth = made.scores
        return replace(made, scores=(nothing, blind, replace(learned, match=0.0), truth))

    monkeypatch.setattr(telling, "learn", worse)
    assert cli.main(["demo", "--out", str(tmp_path), *SMALL]) == 1


def test_the_command_refuses_a_file_as_its_folder(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert cli.main(["demo", "--out", str(tmp_path / "taken"), *SMALL]) == 2
    assert "Cannot use" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--trips", "--held-out", "--iterations"])
def test_the_command_refuses_impossible_sizes(option, capsys):
    with pytest.raises(SystemExit):
        cli.main(["demo", option, "0"])
    assert "at least 1" in capsys.readouterr().err


def test_no_miss_and_no_hit_can_be_drawn(town, outcome, tmp_path):
    """The pictures choose trips to show; they must not depend on there being any of a kind."""
    from revealed.cli.demo.pictures import draw_routes

    held_out = scene.make_trips(town, 700, 3).part(slice(600, None))
    for routes in (held_out.seen.decisions, 0 * outcome.routes):
        draw_routes(tmp_path / "routes.png", town, held_out, replace(outcome, routes=routes))


def test_public_estimator_is_what_the_demonstration_uses(outcome):
    from revealed.fit import InverseRegressor

    assert isinstance(outcome.model, InverseRegressor)
    assert isinstance(outcome.model.problem, rv.LinearProgram)
