"""Drivers' routes: the loader, the models fitted to them, and the command.

The files are written here, in the layout of the data set: a grid of streets, two-way, whose middle
row is a main road, and routes that are cheapest under costs known to the test alone.
"""

import csv
import json
import math

import numpy as np
import pytest

from revealed import metrics
from revealed.cli import main
from revealed.datasets.routes import Turn, load_road_network, load_routes
from revealed.errors import InputError
from revealed_experiments.bench.routes import command
from revealed_experiments.bench.routes.errors import bootstrap
from revealed_experiments.bench.routes.features import move_features
from revealed_experiments.bench.routes.logit import RecursiveLogit, sample_routes
from revealed_experiments.bench.routes.ours import Setting, distinct, fit_projection, start_of
from revealed_experiments.bench.routes.pathsize import PathSizeLogit, choice_sets, most_probable
from revealed_experiments.bench.routes.scores import Judge, gains, with_interval

SIDE = 4
HIDDEN = {"left turn": 1.5, "right turn": 0.5, "U-turn": 4.0, "on primary roads": -0.3}
"""What the drivers of these tests mind besides length, in 100 m."""
CANDIDATE = Setting("bounded", 0.02, 0.2)


def write_network(folder):
    """A SIDE x SIDE grid of junctions, blocks of 100 to 150 m; returns nothing."""
    nodes = [(r, c) for r in range(SIDE) for c in range(SIDE)]
    steps = ((0, 1), (1, 0), (0, -1), (-1, 0))
    ends = [
        (nodes.index((r, c)), nodes.index((r + dr, c + dc)))
        for r, c in nodes
        for dr, dc in steps
        if (r + dr, c + dc) in nodes
    ]
    with (folder / "node.txt").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["osmid", "y", "x"])
        table.writerows(
            [[100 + i, 31 + 0.001 * r, 121 + 0.001 * c] for i, (r, c) in enumerate(nodes)]
        )
    with (folder / "edge.txt").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow("u v name highway oneway length lanes cnt n_id".split())
        for i, (tail, head) in enumerate(ends):
            along_main = nodes[tail][0] == nodes[head][0] == 1
            kind = "primary" if along_main else "['residential', 'unclassified']"
            street = f"row {nodes[tail][0]}" if nodes[tail][0] == nodes[head][0] else "column"
            length = 100 + 50 * ((7 * min(tail, head) + 3 * max(tail, head)) % 11) / 10
            table.writerow(
                [100 + tail, 100 + head, street, kind, 0, length, "4" if along_main else " ", 9, i]
            )
    np.save(folder / "transit.npy", np.array(transit(nodes, ends), dtype=np.int32))


def transit(nodes, ends):
    def heading(tail, head):
        (r0, c0), (r1, c1) = nodes[tail], nodes[head]
        return math.degrees(math.atan2(c1 - c0, r1 - r0))  # clockwise from north: rows go north

    return [
        (i, round((heading(*b) - heading(*a)) % 360 / 45) % 8, j)
        for i, a in enumerate(ends)
        for j, b in enumerate(ends)
        if a[1] == b[0]
    ]


def write_routes(path, routes):
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["ori", "des", "path", "len"])
        for links in routes:
            table.writerow([links[0], links[-1], "_".join(map(str, links)), len(links)])


def hidden_costs(features):
    coef = np.zeros(len(features.names))
    coef[0] = 1.0
    for name, value in HIDDEN.items():
        coef[features.column(name)] = value
    return features.values @ coef


def drive(network, costs, count, seed):
    """Routes of `count` random trips, cheapest under `costs`, as lists of links."""
    from revealed.problems import shortest_path

    rng = np.random.default_rng(seed)
    ends = [rng.choice(network.n_links, 2, replace=False) for _ in range(count)]
    origin, destination = np.array(ends).T
    problem = shortest_path(
        network.moves, source=origin, target=destination, n_nodes=network.n_links
    )
    taken = problem.solve(np.tile(costs, (count, 1))).x > 0.5
    routes = []
    for row, start in zip(taken, origin, strict=True):
        after = dict(network.moves[row].tolist())
        links = [int(start)]
        while links[-1] in after:
            links.append(after[links[-1]])
        routes.append(links)
    return routes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("routes")
    write_network(folder)
    network = load_road_network(folder)
    costs = hidden_costs(move_features(network))
    write_routes(folder / "train.csv", drive(network, costs, 60, seed=0))
    write_routes(folder / "test.csv", drive(network, costs, 40, seed=1))
    return folder


@pytest.fixture(scope="module")
def network(folder):
    return load_road_network(folder)


@pytest.fixture(scope="module")
def features(network):
    return move_features(network)


@pytest.fixture(scope="module")
def train(folder, network):
    return load_routes(folder, "train.csv", network)


@pytest.fixture(scope="module")
def test_routes(folder, network):
    return load_routes(folder, "test.csv", network)


# --- the loader ----------------------------------------------------------------------------------


def test_reads_links_moves_and_routes(network, train):
    assert network.n_links == 4 * SIDE * (SIDE - 1)
    assert np.array_equal(network.end[network.moves[:, 0]], network.start[network.moves[:, 1]])
    assert set(network.road_class) == {"primary", "residential"}
    assert np.isnan(network.lanes[network.road_class != "primary"]).all()
    back = network.start[network.moves[:, 0]] == network.end[network.moves[:, 1]]
    assert np.array_equal(network.turn == Turn.U_TURN, back)
    assert len(train) == 60
    assert train.skipped == 0


def test_decisions_are_paths_between_the_ends(train):
    X = train.decisions()
    assert X.sum(axis=1).tolist() == [len(links) - 1 for links in train.links]
    assert np.asarray(train.problem().constraint_violation(X.astype(float))).max() == 0


def test_a_route_that_enters_a_link_twice_is_left_out_and_counted(folder, network, train):
    whole = train.links[0].tolist()
    a, b = next((a, b) for a, b in network.moves.tolist() if [b, a] in network.moves.tolist())
    write_routes(folder / "loop.csv", [whole, [a, b, a]])
    found = load_routes(folder, "loop.csv", network)
    assert (len(found), found.skipped) == (1, 1)


@pytest.mark.parametrize(
    "line, says",
    [
        ("0,1,0_999,2", "links from 0 to"),
        ("0,1,0_x,2", "links from 0 to"),
        ("5,1,0_1,2", "`ori` and `des`"),
        ("0,40,0_40,2", "does not allow"),
    ],
)
def test_a_bad_route_is_named(folder, network, line, says):
    (folder / "bad.csv").write_text(f"ori,des,path,len\n{line}\n", "utf-8")
    with pytest.raises(InputError, match=says) as error:
        load_routes(folder, "bad.csv", network)
    assert "row 0" in str(error.value)


@pytest.mark.parametrize("name", ["edge.txt", "node.txt", "transit.npy"])
def test_a_missing_file_is_named(tmp_path, name):
    write_network(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=name):
        load_road_network(tmp_path)


def test_moves_between_links_that_do_not_touch_are_refused(tmp_path):
    write_network(tmp_path)
    table = np.load(tmp_path / "transit.npy")
    table[0, 2] = (table[0, 2] + 7) % 48
    np.save(tmp_path / "transit.npy", table)
    with pytest.raises(InputError, match="does not begin where"):
        load_road_network(tmp_path)


def test_a_length_that_is_no_number_is_named(tmp_path):
    write_network(tmp_path)
    lines = (tmp_path / "edge.txt").read_text("utf-8").splitlines()
    lines[3] = lines[3].replace(lines[3].split(",")[-4], "far")
    (tmp_path / "edge.txt").write_text("\n".join(lines), "utf-8")
    with pytest.raises(InputError, match="'length' of line 2"):
        load_road_network(tmp_path)


# --- features and scores -------------------------------------------------------------------------


def test_features_of_a_left_turn_off_the_main_road(network, features):
    left, entered = network.moves.T
    main = network.road_class == "primary"
    chosen = (network.turn == Turn.LEFT) & main[left] & ~main[entered]
    row = dict(zip(features.names, features.values[chosen][0], strict=True))
    assert row["length"] == network.length[entered[chosen][0]] / 100
    assert row["left turn"] == row["left turn off a main road"] == row["other street"] == 1
    assert row["on primary roads"] == row["right turn"] == row["left turn onto a main road"] == 0
    assert row["onto a less important road"] == 1


def test_the_true_costs_predict_every_route(features, test_routes):
    score = Judge(test_routes).score(hidden_costs(features))
    assert score.exact.all()
    assert (score.links == 1).all()
    assert (score.found == 1).all()


def test_links_that_match_leave_the_ends_out(test_routes, network):
    judge, driven = Judge(test_routes), test_routes.decisions()
    i = int(np.argmax(driven.sum(axis=1)))
    # Drop the first link entered of one route: one link fewer of those that are not given.
    first = test_routes.links[i][:2]
    move = np.flatnonzero((network.moves == first).all(axis=1))[0]
    driven[i, move] = False
    score, inner = judge.compare(driven), len(test_routes.links[i]) - 2
    assert score.links[i] == score.found[i] == (inner - 1) / inner
    assert score.exact.sum() == len(test_routes) - 1


def test_intervals_hold_the_mean_and_pairs_cancel(test_routes, features):
    judge = Judge(test_routes)
    score = judge.score(features.values[:, 0])
    found = with_interval(score)["links"]
    assert found["low"] <= found["mean"] == score.links.mean() <= found["high"]
    assert gains(score, score)["links"] == {"mean": 0.0, "low": 0.0, "high": 0.0}


# --- ours ----------------------------------------------------------------------------------------


def test_routes_that_are_cheapest_are_explained_by_what_is_learned(train, features):
    """The drivers here follow hidden coefficients exactly, so a loss of 0 is there to be found."""
    fit = fit_projection(train, features, Setting(2, 0.0), threads=1)
    assert fit.value < 1e-5  # relative distances of at most the tolerance of these fits, 1e-3
    costs = features.values @ fit.coef
    given = {"costs": np.tile(costs, (len(train), 1)), "decisions": train.decisions().astype(float)}
    assert metrics.accuracy(train.problem(), **given).mean() > 0.9


def test_a_route_driven_twice_counts_twice(train, features):
    twice = train[np.array([0, 5, 0, 1])]
    once, times = distinct(twice)
    assert len(once) == 3
    assert sorted(times) == [1, 1, 2]
    assert times[[route.tobytes() == train.links[0].tobytes() for route in once.links]] == [2]


@pytest.fixture(scope="module")
def fit(train, features):
    return fit_projection(train, features, CANDIDATE, threads=1)


def test_what_is_learned_predicts_more_routes_than_length(fit, features, test_routes):
    judge = Judge(test_routes)
    ours, length = judge.score(features.values @ fit.coef), judge.score(features.values[:, 0])
    assert fit.unsolved == 0
    assert ours.exact.mean() > length.exact.mean() + 0.1
    assert ours.links.mean() > length.links.mean() + 0.05


def test_standard_errors_come_from_resampled_routes(fit, train, features):
    setting, options = CANDIDATE, {"draws": 3, "size": 30, "threads": 1, "max_iter": 5}
    errors = bootstrap(fit, train, features, setting, **options)
    assert errors.standard_error[0] == 0
    assert errors.standard_error[features.column("left turn")] > 0
    assert np.allclose(errors.high - fit.coef, 1.96 * errors.standard_error, rtol=1e-3)
    again = bootstrap(fit, train, features, setting, **options)
    assert np.array_equal(again.standard_error, errors.standard_error)


def test_routes_that_are_all_alike_leave_no_doubt(fit, train, features):
    alike = train[np.zeros(8, dtype=int)]
    errors = bootstrap(fit, alike, features, Setting(2, 0.1), draws=2, size=8, threads=1)
    assert (errors.standard_error == 0).all()


# --- the rivals ----------------------------------------------------------------------------------


def logit_start(features):
    coef = start_of(features)
    coef[features.column("link")] = 1.5
    return coef


def test_recursive_logit_equals_a_value_function_for_each_destination(train, features, network):
    coef = logit_start(features)
    utility = -features.values @ coef
    total = 0.0
    for links, row in zip(train.links, train.decisions(), strict=True):
        M = np.zeros((network.n_links, network.n_links))
        M[network.moves[:, 0], network.moves[:, 1]] = np.exp(utility)
        M[links[-1]] = 0.0  # the destination is absorbing
        ends = np.eye(network.n_links)[links[-1]]
        total += utility[row].sum() - math.log(np.linalg.solve(np.eye(len(M)) - M, ends)[links[0]])
    assert RecursiveLogit(train, features)(coef)[0] == pytest.approx(-total / len(train))


def test_recursive_logit_has_its_own_gradient_and_learns(train, features):
    model, coef = RecursiveLogit(train, features), logit_start(features)
    value, slope = model(coef)
    for k in (0, 7, 12):
        step = np.zeros(len(coef))
        step[k] = 1e-5
        measured = (model(coef + step)[0] - model(coef - step)[0]) / 2e-5
        assert slope[k] == pytest.approx(measured, rel=1e-5, abs=1e-8)
    assert -model.fit(coef, max_iter=15).log_likelihood < value


def test_sampled_walks_join_the_ends_and_follow_the_probabilities(features, network, train):
    costs = features.values @ logit_start(features)
    judge = Judge(train)
    walks = sample_routes(network.moves, network.n_links, costs, judge.ends, judge.trip, seed=3)
    assert np.array_equal(train.problem().A_eq @ walks.T, train.problem().b_eq.T)
    # Much dearer moves leave hardly anything to chance: the cheapest route.
    sure = sample_routes(network.moves, network.n_links, 40 * costs, judge.ends, judge.trip)
    assert (sure == judge.cheapest(costs)[judge.trip]).all(axis=1).mean() > 0.9


def test_path_size_logit(train, features):
    judge = Judge(train)
    sets = choice_sets(judge, train, features, rounds=4)
    assert sets.chosen.sum() == len(train)
    model = PathSizeLogit(sets, features)
    coef = np.append(start_of(features), 0.5)
    value, slope = model(coef)
    for k in (0, 6, len(coef) - 1):
        step = np.zeros(len(coef))
        step[k] = 1e-6
        measured = (model(coef + step)[0] - model(coef - step)[0]) / 2e-6
        assert slope[k] == pytest.approx(measured, rel=1e-5, abs=1e-8)
    assert model(model.fit(coef, max_iter=20))[0] < value


def test_the_most_probable_route_is_a_generated_one_of_the_trip(train, features):
    judge = Judge(train)
    sets = choice_sets(judge, train, features, rounds=3)
    by_length = np.zeros(len(features.names) + 1)
    by_length[0] = 1.0
    shortest = judge.cheapest(features.values[:, 0])
    assert np.array_equal(most_probable(sets, features, by_length), shortest)


# --- the command ---------------------------------------------------------------------------------


def test_the_command_writes_figures_page_and_map(folder, tmp_path, capsys):
    out, page, drawn = (tmp_path / name for name in ("routes.json", "routes.md", "routes.png"))
    words = ["bench", "routes", "--data", str(folder), "--train", "train.csv", "--test", "test.csv"]
    words += ["--quick", "--threads", "1", "--out", str(out), "--page", str(page)]
    assert main([*words, "--map", str(drawn)]) == 0
    content = json.loads(out.read_text("utf-8"))
    assert {*command.RIVALS, command.SAMPLED} < set(content["gains"])
    assert content["targets"] == []
    rows = {row["feature"]: row for row in content["coefficients"]}
    assert rows["length"]["meters"] == 100
    assert str(folder) not in out.read_text("utf-8")
    assert "| left turn | a move |" in page.read_text("utf-8")
    assert drawn.read_bytes().startswith(b"\x89PNG")
    assert "exact routes" in capsys.readouterr().out


def test_the_command_says_what_the_folder_lacks(tmp_path, capsys):
    assert main(["bench", "routes", "--data", str(tmp_path)]) == 2
    assert "node.txt" in capsys.readouterr().err
