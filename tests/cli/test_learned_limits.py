"""Limits that nobody wrote down: named on the command line, learned, obeyed and shown."""

import csv
import json

import numpy as np
import pytest
from limit_files import FIXED, FOODS, blend, problem, write

from revealed.cli import main
from revealed.cli.store import load_model

DAYS = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A blend of which the protein that is needed follows the wind, the fish in stock the rain."""
    place = tmp_path_factory.mktemp("learned")
    (place / "blend.mps").write_text(blend())
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(DAYS, 2)).round(4)
    protein, stock = 20.0 + Z[:, 1], 30.0 - 5.0 * Z[:, 0]
    costs = 3.0 + Z @ rng.normal(size=(2, 5)) + rng.normal(size=5)
    answer = problem(np.full(DAYS, 100.0), protein, stock, np.full(DAYS, 30.0)).solve(costs)
    assert np.asarray(answer.optimal).all()
    rows = [[f"d{b}", *z] for b, z in enumerate(Z.tolist())]
    write(place / "contexts.csv", ["day", "rain", "wind"], rows)
    rows = [[f"d{b}", *x] for b, x in enumerate(np.asarray(answer.x).tolist())]
    write(place / "decisions.csv", ["day", *FOODS], rows)
    assert main([*fit(place), "--out", str(place / "model")]) == 0
    return place


def fit(place):
    known = ["--contexts", str(place / "contexts.csv"), "--decisions", str(place / "decisions.csv")]
    asked = ["--unknown-limit", "prot*", "--unknown-limit", "upper:fish"]
    return ["fit", "--problem", str(place / "blend.mps"), *known, *asked, *FIXED]


def test_limits_are_learned_in_the_planners_words_and_signs(folder):
    model = load_model(folder / "model")
    assert [limit.name for limit in model.limits] == ["protein", "upper:fish"]
    Z = np.array([[0.5, -1.0]])
    units = [(feature.mean, feature.scale) for feature in model.features.features]
    encoded = (Z - [mean for mean, _ in units]) / [scale for _, scale in units]
    np.testing.assert_allclose(model.limits_at(encoded, None), [[19.0, 27.5]], atol=1e-4)


def test_predictions_obey_learned_limits(folder):
    out = folder / "predicted.csv"
    told = ["predict", str(folder / "model"), "--contexts", str(folder / "contexts.csv")]
    assert main([*told, "--out", str(out)]) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    with (folder / "contexts.csv").open() as file:
        contexts = list(csv.DictReader(file))
    fish = np.array([float(row["fish"]) for row in rows])
    stock = np.array([30.0 - 5.0 * float(row["rain"]) for row in contexts])
    assert (fish <= stock + 1e-4).all()
    assert (np.abs(fish - stock) < 1e-3).any()  # else the limit was not tested


def test_explain_shows_each_limit_beside_each_decision(folder, capsys):
    told = ["explain", str(folder / "model"), "--contexts", str(folder / "contexts.csv")]
    told += ["--decisions", str(folder / "decisions.csv"), "--rounds", "0"]
    assert main([*told, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    protein, fish = facts["limits"]
    assert fish["name"] == "upper:fish"
    sample = fish["samples"][0]
    assert sample["low"] <= sample["limit"] <= sample["high"]
    assert sample["used"] <= sample["limit"] + 1e-4
    assert all(one["used"] >= one["limit"] - 1e-4 for one in protein["samples"])
    assert facts["all"]["repeated_share"] > 0.8
    assert main(told) == 0
    assert "upper:fish was active in" in " ".join(capsys.readouterr().out.split())


def test_the_certificate_names_limits_as_the_planner_does(folder):
    told = load_model(folder / "model").training["certificate"]
    assert "The limit 'upper:fish' was active in" in told


@pytest.mark.parametrize(
    "asked, words",
    [
        (["--unknown-limit", "sugar"], "no row of that name"),
        (["--unknown-limit", "sug*"], "no row of blend.mps has such a name"),
        (["--unknown-limit", "total"], "is an equality"),
        (["--unknown-limit", "salt"], "say lower:salt or upper:salt"),
        (["--unknown-limit", "fat", "--limit", "fat=wind"], "says where it is written down"),
    ],
)
def test_what_cannot_be_unknown_is_refused(folder, capsys, asked, words):
    told = fit(folder)
    at = told.index("--unknown-limit")
    told = told[:at] + told[at + 4 :]
    assert main([*told, *asked, "--out", str(folder / "none")]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_the_explorer_shows_learned_limits(folder):
    from revealed.cli.explorer.views import Explorer

    model = load_model(folder / "model")
    shown = Explorer(model, model.samples).describe()["features"]
    assert [one["name"] for one in shown[-2:]] == ["learned protein", "learned upper:fish"]
    assert [one.get("learned") for one in shown] == [None, None, True, True]


def test_learned_limits_move_with_the_context_until_someone_moves_them(folder):
    from revealed.cli.explorer.views import Explorer

    model = load_model(folder / "model")
    page = Explorer(model, model.samples)
    names = ["learned protein", "learned upper:fish"]
    b = int(np.flatnonzero(np.isfinite(model.samples.limits).all(axis=1))[0])
    sample = page.sample(b)
    follow = sample["context"] | dict.fromkeys(names)
    same = page.decide(follow, b)
    assert same["limits"] == {name: sample["context"][name] for name in names}
    assert same["predicted"] == sample["predicted"]
    moved = page.decide(follow | {"wind": follow["wind"] + 2.0, "rain": follow["rain"] + 1.0}, b)
    shift = [moved["limits"][name] - sample["context"][name] for name in names]
    assert shift == pytest.approx([2.0, -5.0], abs=1e-3)
    fish = FOODS.index("fish")
    assert moved["predicted"][fish] <= moved["limits"]["learned upper:fish"] + 1e-6
    own = page.decide(follow | {"wind": follow["wind"] + 2.0, "learned protein": 21.5}, b)
    assert own["limits"]["learned protein"] == 21.5


def examined(place, Z, X, capsys):
    """What the doctor finds in these contexts and decisions."""
    rows = [[f"d{b}", *z] for b, z in enumerate(Z.tolist())]
    write(place / "c.csv", ["day", "rain", "wind"], rows)
    rows = [[f"d{b}", *x] for b, x in enumerate(X.tolist())]
    write(place / "d.csv", ["day", *FOODS], rows)
    files = ["--contexts", str(place / "c.csv"), "--decisions", str(place / "d.csv")]
    main(["doctor", "--problem", str(place / "blend.mps"), *files, "--json"])
    return json.loads(capsys.readouterr().out)["findings"]


@pytest.mark.parametrize("stated", ["20", "10"])
def test_the_doctor_proposes_the_row_whose_limit_is_unknown(folder, tmp_path, capsys, stated):
    """Whether decisions break what the plan says of it or stop before: both times it is protein."""
    plan = blend().replace("protein 20", f"protein {stated}")
    plan = plan.replace("UP BND fish 60", "UP BND fish 99")
    (tmp_path / "blend.mps").write_text(plan)
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(DAYS, 2))
    need = 20.0 + Z[:, 1]
    costs = 3.0 + Z @ rng.normal(size=(2, 5)) + rng.normal(size=5)
    fish = np.full(DAYS, 99.0)
    X = np.asarray(problem(np.full(DAYS, 100.0), need, fish, np.full(DAYS, 30.0)).solve(costs).x)
    found = examined(tmp_path, Z, X, capsys)
    (proposal,) = [one for one in found if one["code"] == "unknown-limit"]
    assert "--unknown-limit protein" in proposal["advice"]


def test_the_doctor_proposes_nothing_where_all_is_known(tmp_path, capsys):
    (tmp_path / "blend.mps").write_text(blend())
    rng = np.random.default_rng(6)
    Z = rng.normal(size=(DAYS, 2))
    costs = 3.0 + Z @ rng.normal(size=(2, 5)) + rng.normal(size=5)
    known = [np.full(DAYS, value) for value in (100.0, 20.0, 60.0, 30.0)]
    X = np.asarray(problem(*known).solve(costs).x)
    found = examined(tmp_path, Z, X, capsys)
    assert not [one for one in found if one["code"] == "unknown-limit"]
