"""Rounded, gappy tables with units through all commands, without a hand edit."""

import csv
import json

import numpy as np
import pytest
from messy_files import PRODUCTS, clean_files, days, files, messy_files, write

from plan_cases import transport
from revealed.cli import main
from revealed.cli.store import load_model
from revealed.cli.tables import open_table

FIXED = ["--model", "linear", "--ridge", "0.001"]
WRONG = [12, 20, 41, 55]
"""Rows that are left out: an unreadable context, a gap and an impossible decision, no decision."""


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """Messy files, and a model fitted to them."""
    place = tmp_path_factory.mktemp("messy")
    messy_files(place)
    options = ["--skip-bad", "--impute", "median", "--out", str(place / "model"), *FIXED]
    assert main(["fit", *files(place), *options]) == 0
    return place


def tables(place):
    return files(place)[2:]


def told_by(capsys, command, code=0):
    """What a command says as JSON."""
    capsys.readouterr()
    assert main([*command, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def words(capsys, command, code=0):
    capsys.readouterr()
    assert main(command) == code
    return " ".join("".join(capsys.readouterr()).split())


def test_messy_tables_go_through_every_command(messy, tmp_path, capsys):
    doctor = words(capsys, ["doctor", *files(messy), "--skip-bad"])
    for said in (
        "a comma is the decimal mark, as in",
        "oil is in USD/bbl",
        "cells of flour have marks that set off thousands",
        "line 14 (2026-01-13): column 'flour': expected a number, got 'much'",
        "no decision for '2026-02-25'",
        "'cake' is empty",
        "bread is 9999.99, it must not be above",
        "rounded to 2 decimals",
        "ready to fit",
    ):
        assert said in doctor
    explained = words(capsys, ["explain", str(messy / "model"), *tables(messy), "--rounds", "0"])
    assert "Held out" in explained
    assert "Skipped 4 rows" in explained
    assert "Decisions are taken as known to within 0.005" in explained
    out = tmp_path / "plan.csv"
    ask = ["predict", str(messy / "model"), "--contexts", str(messy / "contexts.csv")]
    told = words(capsys, [*ask, "--skip-bad", "--out", str(out)])
    assert "300 decisions" in told
    assert "Skipped 1 row" in told
    with out.open() as file:
        rows = list(csv.reader(file))[1:]
    assert rows[12] == ["2026-01-13", *[""] * len(PRODUCTS)]
    assert all(all(row) for k, row in enumerate(rows) if k != 12)


def test_without_options_each_fault_leads_to_the_option_that_deals_with_it(messy, tmp_path, capsys):
    assert "--skip-bad" in words(capsys, ["doctor", *files(messy)], 2)
    messy_files(tmp_path)
    path = tmp_path / "contexts.csv"
    path.write_text(path.read_text().replace("much", "12.000,0 kg"))
    told = words(capsys, ["doctor", *files(tmp_path)], 2)
    assert "--impute median" in told
    assert "--skip-bad" in told
    told = words(capsys, ["doctor", *files(tmp_path), "--impute", "mean"], 2)
    assert "no decision for '2026-02-25'" in told
    assert "--skip-bad" in told
    told = words(capsys, ["doctor", *files(tmp_path), "--skip-bad", "--infeasible", "refuse"], 1)
    assert "--infeasible skip" in told
    assert "--infeasible repair" in told


def test_what_is_learned_is_what_clean_tables_teach(tmp_path, capsys):
    """Of the same rows, with every digit."""
    clean, messy = tmp_path / "clean", tmp_path / "messy"
    clean.mkdir()
    messy.mkdir()
    clean_files(clean, 5)
    messy_files(messy, 5)
    gaps = [7, 31]  # empty cells of the contexts, left out as well
    for name in ("contexts.csv", "decisions.csv"):
        with (clean / name).open() as file:
            rows = list(csv.reader(file))
        kept = [row for k, row in enumerate(rows) if k - 1 not in [*WRONG, *gaps]]
        write(clean / name, kept)
    told = {}
    for place, more in ((clean, []), (messy, ["--skip-bad"])):
        command = ["fit", *files(place), "--out", str(place / "model"), "--holdout", "0"]
        told[place] = told_by(capsys, [*command, *FIXED, *more])
    costs = []
    for place in (clean, messy):
        model = load_model(place / "model")
        costs.append(model.costs(model.read_contexts(open_table(clean / "contexts.csv"))[0]))
    assert np.abs(costs[0] - costs[1]).max() <= 1e-3 * np.abs(costs[0]).max()
    shares = [told[place]["seen"]["repeated_share"] for place in (clean, messy)]
    assert abs(shares[0] - shares[1]) <= 0.01
    assert len(told[messy]["skipped"]) == 6
    assert told[clean]["skipped"] == told[clean]["assumed"] == []


def test_rows_left_out_do_not_change_which_others_are_held_out(messy, capsys):
    told = told_by(capsys, ["explain", str(messy / "model"), *tables(messy), "--rounds", "0"])
    everyone = np.random.default_rng(0).permutation(300)[:60]
    there = np.setdiff1d(everyone, WRONG)
    assert told["held"]["samples"] == len(there)
    kept = load_model(messy / "model").samples
    held = {name for name, flag in zip(kept.names, kept.held, strict=True) if flag}
    assert held == {days(300)[k] for k in there}


def test_json_lists_what_was_assumed_and_skipped(messy, tmp_path, capsys):
    command = ["fit", *files(messy), "--skip-bad", "--out", str(tmp_path / "m"), *FIXED]
    told = told_by(capsys, command)
    assert {row["sample"] for row in told["skipped"]} >= {days(300)[k] for k in WRONG}
    assert all(row["place"] and row["why"] for row in told["skipped"])
    assert any("rounded to 2 decimals" in note for note in told["assumed"])
    assert told["reading"] == {
        "tol": 0.005,
        "infeasible": "skip",
        "skip_bad": True,
        "impute": "none",
        "dates": [],
    }


# --- rounded decisions and infeasible ones -------------------------------------------------------


def transport_files(place, decisions=lambda X: X):
    problem, Z, X = transport(4, days=120)
    names = [f"x{j}" for j in range(X.shape[1])]
    A = [problem.A_eq.toarray(), problem.A_ub.toarray()]
    rows = [
        ("E", f"shop{i}", a, b) for i, (a, b) in enumerate(zip(A[0], problem.b_eq, strict=True))
    ]
    rows += [
        ("L", f"stock{i}", a, b) for i, (a, b) in enumerate(zip(A[1], problem.b_ub, strict=True))
    ]
    lines = ["NAME t", "ROWS", " N cost", *(f" {kind} {name}" for kind, name, _, _ in rows)]
    lines.append("COLUMNS")
    for j, variable in enumerate(names):
        lines += [f" {variable} {name} 1" for _, name, a, _ in rows if a[j]]
    lines += ["RHS", *(f" RHS {name} {b:.17g}" for _, name, _, b in rows), "ENDATA", ""]
    (place / "plan.mps").write_text("\n".join(lines))
    write(place / "contexts.csv", [["a", "b", "c", "d"], *Z.tolist()])
    write(place / "decisions.csv", [names, *decisions(X).tolist()])
    return X


def test_rounded_decisions_fit_like_exact_ones(tmp_path, capsys):
    held = {}
    for name, edit in (("exact", lambda X: X), ("rounded", lambda X: X.round(2))):
        place = tmp_path / name
        place.mkdir()
        transport_files(place, edit)
        told = told_by(capsys, ["fit", *files(place), "--out", str(place / "m"), *FIXED])
        held[name] = told["held"]["repeated_share"]
    assert abs(held["exact"] - held["rounded"]) <= 0.01
    assert told["reading"]["tol"] == 0.005


def test_decisions_that_are_said_to_be_exact_are_refused_when_they_are_not(tmp_path, capsys):
    transport_files(tmp_path, lambda X: X.round(2))
    out = ["--out", str(tmp_path / "m"), *FIXED]
    told = words(capsys, ["fit", *files(tmp_path), *out, "--tol", "0"], 2)
    assert "breaks the plan" in told
    told = words(capsys, ["doctor", *files(tmp_path), "--tol", "0"], 1)
    assert "with --tol" in told


def test_infeasible_decisions_are_repaired_or_skipped_on_request(tmp_path, capsys):
    def spoil(X):
        X = X.copy()
        X[[3, 8], 0] += 4.0
        return X

    transport_files(tmp_path, spoil)
    out = ["--out", str(tmp_path / "m"), *FIXED]
    told = words(capsys, ["fit", *files(tmp_path), *out], 2)
    assert "Broken by 2 of 120 decisions" in told
    assert "--infeasible skip" in told
    told = told_by(capsys, ["fit", *files(tmp_path), *out, "--infeasible", "skip"])
    assert [row["sample"] for row in told["skipped"]] == ["line 5", "line 10"]
    told = told_by(capsys, ["fit", *files(tmp_path), *out, "--infeasible", "repair"])
    assert told["skipped"] == []
    assert any("2 decisions break the plan and were moved" in note for note in told["assumed"])


@pytest.mark.parametrize("text", ["1_6", "-1", "nan", "inf", "\uff11", "two"])
def test_options_take_plain_numbers_only(tmp_path, capsys, text):
    for option in ("--tol", "--ridge"):
        with pytest.raises(SystemExit):
            main(["fit", *files(tmp_path), "--out", str(tmp_path / "m"), option, text])
        assert "number" in capsys.readouterr().err


# --- headlines -----------------------------------------------------------------------------------


def test_figures_mean_what_they_say(messy, capsys):
    model = load_model(messy / "model")
    kept = model.samples
    rows = np.flatnonzero(kept.held)
    costs = model.costs(kept.contexts[rows])
    own = np.asarray(model.plan.problem.solve(costs).x)
    taken = kept.decisions[rows]
    excess = (costs * (taken - own)).sum()
    figures = model.training["held"]
    assert figures["extra_cost"] == pytest.approx(excess / np.abs(costs * taken).sum(), rel=1e-6)
    near = np.abs(own - taken).sum(axis=1) <= 0.01 * np.abs(taken).sum(axis=1)
    assert figures["near"] == int(near.sum())
    assert figures["near"] >= figures["repeated"]


def test_the_model_beats_both_baselines(messy, capsys):
    told = load_model(messy / "model").training
    for name in ("most_frequent", "no_context"):
        assert told["baselines"][name]["repeated_share"] < told["held"]["repeated_share"]
        assert told["baselines"][name]["extra_cost"] > told["held"]["extra_cost"]
    explained = words(capsys, ["explain", str(messy / "model"), *tables(messy), "--rounds", "0"])
    assert "Always the most frequent decision" in explained
    assert "Values without context" in explained
    assert "less than the best under the learned values" in explained


def test_where_context_does_not_matter_a_baseline_does_as_well(tmp_path, capsys):
    transport_files(tmp_path, lambda X: np.repeat(X[:1], len(X), axis=0))
    told = told_by(capsys, ["fit", *files(tmp_path), "--out", str(tmp_path / "m"), *FIXED])
    assert told["baselines"]["most_frequent"]["repeated_share"] == 1.0
    assert told["baselines"]["no_context"]["repeated_share"] == 1.0
    assert told["baselines"]["most_frequent"]["extra_cost"] == pytest.approx(0.0, abs=1e-9)


# --- contexts unlike those learned from -----------------------------------------------------------


def new_context(place, oil):
    write(
        place / "new.csv",
        [["day", "oil", "flour", "sun", "staff"], ["2027-01-01", oil, "12.000,0 kg", "0,1", "10"]],
        ";",
    )
    return str(place / "new.csv")


def test_predict_warns_far_outside_what_was_seen(messy, tmp_path, capsys):
    ask = ["predict", str(messy / "model"), "--out", str(tmp_path / "p.csv"), "--contexts"]
    told = words(capsys, [*ask, new_context(tmp_path, "900,0 USD/bbl")])
    assert "1 context lies far outside" in told
    assert "line 2: oil is 900, seen was between" in told
    assert "far outside" not in words(capsys, [*ask, new_context(tmp_path, "70,5 USD/bbl")])
    told = told_by(capsys, [*ask, new_context(tmp_path, "-900,0 USD/bbl")])
    assert [(o["feature"], o["value"]) for o in told["extrapolated"]] == [("oil", -900.0)]


def test_predict_refuses_other_units_than_those_learned_from(messy, tmp_path, capsys):
    ask = ["predict", str(messy / "model"), "--out", str(tmp_path / "p.csv"), "--contexts"]
    told = words(capsys, [*ask, new_context(tmp_path, "70,5 EUR/bbl")], 2)
    assert "'oil' is in EUR/bbl; the model has learned from USD/bbl" in told
    words(capsys, [*ask, new_context(tmp_path, "70,5")])  # no unit: taken to be in the same


def test_gaps_are_filled_in_new_tables_as_they_were_for_the_fit(messy, tmp_path, capsys):
    out = tmp_path / "p.csv"
    ask = ["predict", str(messy / "model"), "--out", str(out), "--contexts"]
    words(capsys, [*ask, new_context(tmp_path, "")])
    filled = out.read_text()
    middle = next(f.fill for f in load_model(messy / "model").features.features if f.name == "oil")
    words(capsys, [*ask, new_context(tmp_path, f"{middle:.1f} USD/bbl".replace(".", ","))])
    assert out.read_text() == filled


def test_weekdays_and_months_are_kept_with_the_model(messy, tmp_path, capsys):
    out = ["--out", str(tmp_path / "m"), *FIXED]
    told = words(capsys, ["fit", *files(messy), "--skip-bad", "--date", "day", *out])
    assert "weekday and month" in told
    names = [f.name for f in load_model(tmp_path / "m").features.features]
    assert names[:2] == ["day weekday", "day month"]
    ask = ["predict", str(tmp_path / "m"), "--out", str(tmp_path / "p.csv"), "--contexts"]
    path = tmp_path / "new.csv"
    new_context(tmp_path, "70,0 USD/bbl")
    path.write_text(path.read_text().replace("2027-01-01", "2027-12-01"))
    assert "December was never seen" in words(capsys, [*ask, str(path)])
