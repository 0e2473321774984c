"""Limits in the explorer: moved like features, and kept apart from what the plan says."""

import dataclasses

import numpy as np
import pytest
from limit_files import LIMITS, blend_files

from revealed.cli.explorer import Explorer
from revealed.cli.plans import find_limits, from_catalogue, with_limits
from revealed.cli.store import FittedModel, Samples, load_model
from revealed.cli.tables import Feature, FeatureMap
from revealed.errors import InputError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return blend_files(tmp_path_factory.mktemp("limits"))


def test_the_explorer_moves_limits_like_features(folder):
    model = load_model(folder / "model")
    page = Explorer(model, model.samples)
    last = page.describe()["features"][-4:]
    assert [control["name"] for control in last] == ["orders", "protein", "stock", "salt_most"]
    assert [control["limits"] for control in last] == [text.split("=")[0] for text in LIMITS]
    sample = page.sample(0)
    assert set(sample["context"]) == {"rain", "wind", "orders", "protein", "stock", "salt_most"}
    assert sum(sample["predicted"]) == pytest.approx(sample["context"]["orders"])
    moved = page.decide(sample["context"] | {"orders": 90.0}, 0)
    assert sum(moved["predicted"]) == pytest.approx(90.0)
    for other in moved["alternatives"]:
        assert sum(other["decision"]) == pytest.approx(90.0)
    kept = page.decide(sample["context"] | {"orders": None}, 0)
    assert kept["predicted"] == sample["predicted"]
    nobody = page.decide(sample["context"] | {"protein": 900.0}, 0)
    assert nobody["impossible"]
    assert not nobody["solved"]
    with pytest.raises(InputError, match="orders must be a number"):
        page.decide(sample["context"] | {"orders": "many"}, 0)


def test_bounds_that_cross_are_limits_that_nothing_meets(folder):
    model = load_model(folder / "model")
    page = Explorer(model, model.samples)
    told = page.decide(page.sample(0)["context"] | {"stock": -3.0}, 0)
    assert told["impossible"]
    assert told["predicted"] is None
    assert told["distance"] is None


def test_nothing_is_said_of_a_decision_that_other_limits_forbid(folder):
    model = load_model(folder / "model")
    page = Explorer(model, model.samples)
    sample = page.sample(0)
    assert sample["distance"] is not None
    moved = page.decide(sample["context"] | {"orders": sample["context"]["orders"] - 5.0}, 0)
    assert moved["solved"]
    assert moved["distance"] is None
    assert moved["excess"] is None
    wider = page.decide(sample["context"] | {"salt_most": 1000.0}, 0)
    assert wider["excess"] >= -1e-9
    assert (wider["distance"] <= 1e-7) == (wider["excess"] <= 1e-7)


def test_limits_of_the_plan_and_no_limits_are_shown_as_such(folder):
    model = load_model(folder / "model")
    own = model.samples.limits.copy()
    own[0, 3], own[1, 3], own[:, 2] = np.inf, np.nan, np.nan
    samples = dataclasses.replace(model.samples, limits=own)
    page = Explorer(model, samples)
    stock, salt = page.describe()["features"][-2:]
    assert (stock["planned"], salt["planned"]) == (60.0, 30.0)
    assert stock["low"] <= 60.0 <= stock["high"]
    assert page.sample(0)["context"]["salt_most"] == "no limit"
    assert page.sample(1)["context"]["salt_most"] is None
    again = page.decide(page.sample(0)["context"], 0)
    assert again["predicted"] == page.sample(0)["predicted"]


def test_a_map_has_no_ends_where_limits_move_them():
    plan = from_catalogue("grid_shortest_path(3, 3, directed='right-down')")
    names = list(plan.equalities)
    limits, flow = find_limits(plan, ["*"], names), np.zeros((1, 9))
    flow[0, [0, 4]] = 1.0, -1.0
    costs = np.ones((1, plan.problem.n_variables))
    X = np.asarray(with_limits(plan, limits, flow).problem.solve(costs).x)
    samples = Samples(("a",), np.zeros((1, 1)), X, np.ones(1, int), flow)
    features = FeatureMap((Feature("load"),))
    coef = np.zeros((len(costs[0]), 1))
    model = FittedModel(plan, features, coef, costs[0], 1.0, None, {}, samples, limits)
    drawing = Explorer(model, samples).describe()["drawing"]
    assert drawing["ends"] == []
