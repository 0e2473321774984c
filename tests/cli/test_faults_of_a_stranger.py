"""What an analyst met who brought data of their own: each fault, told as it should be."""

import csv
import json

import numpy as np
import pytest
from limit_files import blend_files

import revealed as rv
from revealed.cli import main
from revealed.cli.commands.deciding import without_last_bits
from revealed.cli.commands.headline import unconvincing
from revealed.cli.tables import open_table

MADE = ("bolt", "nut", "gear", "overtime", "resale")
ROWS = np.array([[2.3, 3.1, 5.7, -1, 0], [4.1, 2.3, 3.7, 0, 1], [1, 1, 2.3, 0, 0]])
MOST = np.array([350.0, np.inf, 210.0, 310.0, 700.0])
DAYS = 120
FIXED = ["--model", "linear", "--ridge", "0.01"]


class Shop:
    """A plan that maximizes with three rows, contexts and decisions, for tests to spoil."""

    def __init__(self, folder, spread=10.0):
        self.folder = folder
        rng = np.random.default_rng(11)
        self.days = [f"d{k:03d}" for k in range(DAYS)]
        self.price, self.orders = 69 + rng.normal(0, spread, DAYS), rng.uniform(0, 10, DAYS)
        worth = np.tile([9.0, 8.0, 17.0, -1.6, 0.9], (DAYS, 1))
        worth += np.outer(self.price - 69, [-0.08, -0.05, -0.15, -0.02, 0.04])
        worth += np.outer(self.orders, [0.12, 0.0, 0.25, 0.0, 0.0])
        problem = rv.LinearProgram(A_ub=ROWS, b_ub=[1600.0, 2300.0, 650.0], ub=MOST)
        self.decisions = np.asarray(problem.solve(-worth).x)
        self.plan()
        self.write("c.csv", ["day", "oil", "orders"], self.contexts())
        self.taken(self.decisions)

    def plan(self, **limits):
        own = {"hours": 1600, "steel": 2300, "storage": 650} | limits
        lines = ["NAME shop", "OBJSENSE", " MAX", "ROWS", " N obj", *(f" L {row}" for row in own)]
        lines += ["COLUMNS"]
        for j, name in enumerate(MADE):
            lines += [f" {name} {row} {ROWS[i, j]:g}" for i, row in enumerate(own) if ROWS[i, j]]
        lines += ["RHS", *(f" RHS {row} {limit}" for row, limit in own.items()), "BOUNDS"]
        ends = [(name, most) for name, most in zip(MADE, MOST, strict=True) if most < np.inf]
        lines += [f" UP BND {name} {most:g}" for name, most in ends] + ["ENDATA", ""]
        (self.folder / "plan.mps").write_text("\n".join(lines))

    def contexts(self):
        both = np.column_stack([self.price, self.orders]).tolist()
        return [[day, *map(repr, row)] for day, row in zip(self.days, both, strict=False)]

    def taken(self, decisions, form=repr):
        rows = [
            [d, *map(form, x)]
            for d, x in zip(self.days, np.asarray(decisions).tolist(), strict=True)
        ]
        self.write("d.csv", ["day", *MADE], rows)

    def write(self, name, head, rows, delimiter=","):
        with open(self.folder / name, "w", newline="") as file:
            csv.writer(file, delimiter=delimiter).writerows([head, *rows])

    def files(self):
        named = (("problem", "plan.mps"), ("contexts", "c.csv"), ("decisions", "d.csv"))
        return [f"--{option}={self.folder / name}" for option, name in named]

    def fit(self, *options):
        return main(["fit", *self.files(), "--out", str(self.folder / "model"), *FIXED, *options])

    def predict(self, *options, table="n.csv"):
        paths = ["--contexts", str(self.folder / table), "--out", str(self.folder / "o.csv")]
        return main(["predict", str(self.folder / "model"), *paths, *options])

    def doctor(self, *options):
        return main(["doctor", *self.files(), *options])


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


@pytest.fixture(scope="module")
def bakery(tmp_path_factory):
    """Limits from day to day, and the model learned under them."""
    return blend_files(tmp_path_factory.mktemp("bakery"))


def words(capsys):
    return " ".join("".join(capsys.readouterr()).split())


def findings(capsys, shop, *options):
    capsys.readouterr()
    shop.doctor(*options, "--json")
    found = json.loads(capsys.readouterr().out)["findings"]
    return {finding["code"]: finding for finding in found}


def test_a_limit_that_is_another_number_is_named_and_nothing_is_said_of_the_few_others(
    shop, capsys
):
    shop.plan(steel=2200)
    found = findings(capsys, shop)
    assert "steel is 2300 in 120 of 120 rows; the plan says 2200" in found["other-limit"]["what"]
    assert found["other-limit"]["severity"] == "error"
    assert not found.keys() & {"constant", "still", "few-decisions", "free-directions"}
    assert "--tol" not in found["infeasible"]["advice"]  # the gap is 100


def test_a_limit_that_nobody_reaches_but_all_come_equally_near_is_named(shop, capsys):
    shop.plan(steel=2500)
    found = findings(capsys, shop)
    assert (
        "steel is 2300 in 120 of 120 rows and never beyond; the plan says 2500"
        in (found["other-limit"]["what"])
    )
    assert found["other-limit"]["severity"] == "warning"
    shop.plan()
    assert "other-limit" not in findings(capsys, shop)


def test_what_never_changes_is_true_of_every_decision(shop, capsys):
    shop.plan(storage=640)
    found = findings(capsys, shop)
    moving = {
        name for name, span in zip(MADE, np.ptp(shop.decisions, axis=0), strict=True) if span > 1e-6
    }
    named = set(found["still"]["details"]["variables"]) if "still" in found else set()
    assert not named & moving
    assert "--tol" not in found["infeasible"]["advice"]


def test_gaps_that_rounding_explains_are_told_apart_by_the_digits(tmp_path, capsys):
    shop = Shop(tmp_path, spread=15.0)
    shop.taken(shop.decisions, form=lambda x: f"{x:.2f}")
    found = findings(capsys, shop, "--tol", "0", "--infeasible", "refuse")
    assert "--tol 0.005" in found["infeasible"]["advice"]
    assert not found.keys() & {"swapped", "column-units", "other-limit"}
    assert "look rounded" in found["rounded-as-exact"]["what"]
    assert found["rounded-as-exact"]["severity"] == "warning"
    assert "rounded-as-exact" not in findings(capsys, shop)


def test_one_typo_is_no_swap_of_columns(shop, capsys):
    spoiled = shop.decisions.copy()
    spoiled[20, 2] = 305.0
    shop.taken(spoiled)
    found = findings(capsys, shop)
    assert "infeasible" in found
    assert "swapped" not in found
    shop.taken(shop.decisions[:, [2, 1, 0, 3, 4]])
    assert findings(capsys, shop)["swapped"]["details"]["columns"] == ["bolt", "gear"]


def test_nothing_learned_is_said(shop, capsys):
    order = np.random.default_rng(3).permutation(DAYS)
    shop.taken(shop.decisions[order])
    assert shop.fit() == 0
    said = words(capsys)
    assert "The model does not beat the baselines: it repeats" in said
    shop.taken(shop.decisions)
    assert shop.fit("--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["warnings"] == []
    assert facts["held"]["repeated"] > facts["baselines"]["no_context"]["repeated"]
    assert facts["baselines"]["no_context"]["own_extra_cost"] > facts["held"]["extra_cost"]


@pytest.mark.parametrize("repeated, warned", [(30, True), (31, False), (50, False)])
def test_a_model_must_repeat_more_than_the_better_baseline(repeated, warned):
    def of(hits):
        return {"samples": 50, "repeated": hits, "near": hits}

    baselines = {"most_frequent": of(30), "no_context": of(20), "samples": 50}
    facts = {"held": of(repeated), "seen": of(50), "baselines": baselines}
    assert bool(unconvincing(facts)) == warned


def test_an_empty_column_is_left_out_and_each_column_has_its_decimal_mark(shop, capsys):
    rows = [
        [d, f"{p:.1f}".replace(".", ",") + " USD/bbl", f"{o:.2f}", "", f"2026-0{k % 9 + 1}-02"]
        for k, (d, p, o) in enumerate(zip(shop.days, shop.price, shop.orders, strict=True))
    ]
    shop.write("c.csv", ["day", "oil", "orders", "remark", "date"], rows, ";")
    assert shop.doctor("--skip-bad", "--date", "date") == 0
    said = words(capsys)
    assert "in orders a point is" in said
    assert "the column remark is empty in every row and left out" in said
    assert "Skipped" not in said
    table = open_table(shop.folder / "c.csv").read(["oil", "orders"])
    expected = np.column_stack([shop.price.round(1), shop.orders.round(2)])
    np.testing.assert_allclose(table.numbers, expected, atol=0.011)


def test_a_column_that_says_the_same_is_named_with_the_option_that_leaves_it_out(shop, capsys):
    import datetime

    first = datetime.date(2026, 1, 1)
    dates = [first + datetime.timedelta(days=k) for k in range(DAYS)]
    rows = [
        [*row, day.strftime("%a"), day.isoformat()]
        for row, day in zip(shop.contexts(), dates, strict=True)
    ]
    shop.write("c.csv", ["day", "oil", "orders", "Week day", "date"], rows)
    found = findings(capsys, shop, "--date", "date")["dependent-features"]
    assert found["what"] == "Week day repeats what date weekday says."
    assert "--ignore 'Week day':" in found["advice"]
    assert "dependent-features" not in findings(
        capsys, shop, "--date", "date", "--ignore", "Week day"
    )


def test_a_part_of_a_date_that_never_changes_is_not_to_be_ignored(shop, capsys):
    rows = [[*row, f"2026-03-{k % 28 + 1:02d}"] for k, row in enumerate(shop.contexts())]
    shop.write("c.csv", ["day", "oil", "orders", "date"], rows)
    found = findings(capsys, shop, "--date", "date")["constant-feature"]
    assert "date month" in found["what"]
    assert "--ignore" not in found["advice"]  # it would leave out the weekday too


def test_the_most_frequent_reason_is_named_where_no_row_is_left(shop, capsys):
    entries = [
        [d, name.upper() + "S" if name == "bolt" else name, repr(v)]
        for d, x in zip(shop.days[3:], shop.decisions[3:].tolist(), strict=True)
        for name, v in zip(MADE, x, strict=True)
    ]
    shop.write("d.csv", ["day", "variable", "value"], entries)
    assert shop.doctor("--skip-bad") == 2
    said = words(capsys)
    assert "d.csv has 117 rows such as this: the variable 'BOLTS' is no variable" in said
    assert "has no decision for" not in said


def test_an_entry_of_a_long_table_is_named_by_its_own_line(shop, capsys):
    entries = [
        [d, name, repr(v)]
        for d, x in zip(shop.days, shop.decisions.tolist(), strict=True)
        for name, v in zip(MADE, x, strict=True)
    ]
    entries[7][1] = "Bolts"
    shop.write("d.csv", ["day", "variable", "value"], entries)
    shop.doctor("--skip-bad")
    assert "d.csv, line 9 (decision d001): the variable 'Bolts' is no variable" in words(capsys)


def test_rounding_counts_the_samples_that_are_left(shop, capsys):
    rounded = shop.decisions.round(2)
    rounded[30, 2] = 500.0
    shop.taken(rounded, form=lambda x: f"{x:.2f}")
    shop.fit("--skip-bad")
    said = words(capsys)
    assert f"Read {DAYS - 1} samples" in said
    assert f"of {DAYS - 1} were moved" in said
    assert "break their constraints by more" not in said  # those are left out


def test_two_samples_are_told_as_two(shop, capsys):
    shop.write("c.csv", ["day", "oil", "orders"], shop.contexts()[:2])
    shop.days = shop.days[:2]
    shop.taken(shop.decisions[:2])
    shop.fit("--holdout", "0")
    assert "explains both decisions" in words(capsys)
    assert main(["explain", str(shop.folder / "model"), *shop.files()[1:]]) == 0
    said = words(capsys)
    assert "Intervals none: 2 decisions to learn from are too few" in said
    assert "inf times" not in said


def test_explain_says_of_which_fit_intervals_are_and_what_is_removed(shop, capsys):
    assert shop.fit() == 0
    explain = ["explain", str(shop.folder / "model"), *shop.files()[1:], "--rounds", "3"]
    capsys.readouterr()
    assert main(explain) == 0
    said = words(capsys)
    assert "nearly always used up" in said
    assert "own worth cannot be learned. It has been removed from every value" in said
    assert "The refits have a ridge of" in said
    assert "the model's own, 0.01, shrinks coefficients by as much as they are uncertain" in said
    assert "the most sensitive tenth changes at" in said
    shop.write("c.csv", ["day", "oil", "orders"], shop.contexts()[:60])
    shop.days = shop.days[:60]
    shop.taken(shop.decisions[:60])
    assert main(explain) == 0
    assert "The refits, to these tables and not the model's, have" in words(capsys)


def test_small_amounts_are_told_in_shares_without_an_option_that_does_not_help(shop, capsys):
    taken = shop.decisions.copy()
    taken[5, 3] = 5e-4
    shop.taken(taken)
    found = findings(capsys, shop)["nearly"]
    assert "within 0.1% of a limit (of its size)" in found["what"]
    assert "--tol" not in found["advice"]


def test_a_fit_that_ends_early_is_allowed_more_than_the_default(shop, capsys):
    assert shop.fit("--max-iter", "3", "--noise", "0") == 1
    assert "--max-iter 500" in words(capsys)


def test_predict_says_what_it_assumed_and_what_to_do(shop, capsys):
    head = ["day", "oil", "orders", "road"]
    rows = [[*row, ("open", "works")[k % 2]] for k, row in enumerate(shop.contexts())]
    united = [[d, f"{p} USD", o, road] for d, p, o, road in rows]
    shop.write("c.csv", head, united)
    assert shop.fit("--impute", "median") == 0
    capsys.readouterr()
    shop.write("n.csv", head, [[d, p, "", road] for d, p, _, road in rows[:7]])
    assert shop.predict() == 0
    said = words(capsys)
    assert "7 empty cells of orders are filled as in the fit, with" in said
    assert "oil has no unit; it is taken to be in USD" in said
    shop.write("n.csv", head, [[d, p, o, "flood"] for d, p, o, _ in united[:3]])
    assert shop.predict() == 2
    assert "leave such rows out with --skip-bad; to learn from such rows, fit again" in words(
        capsys
    )
    assert shop.predict("--skip-bad") == 0  # none can be read
    assert "3 rows that cannot be read" in words(capsys)
    assert (shop.folder / "o.csv").read_text().splitlines()[1:] == [
        f"d00{k},,,,," for k in range(3)
    ]


def test_limits_that_are_empty_or_impossible_are_named(bakery, tmp_path, capsys):
    with open(bakery / "contexts.csv", newline="") as file:
        head, *rows = csv.reader(file)
    at = head.index("orders")
    rows[1][at], rows[3][at] = "", "90000"
    with open(tmp_path / "n.csv", "w", newline="") as file:
        csv.writer(file).writerows([head, *rows[:6]])
    ask = ["--contexts", str(tmp_path / "n.csv"), "--out", str(tmp_path / "o.csv")]
    assert main(["predict", str(bakery / "model"), *ask]) == 1
    said = words(capsys)
    assert "line 3, column 'orders' is empty: total is the plan's own there, 100" in said
    assert "1 context has limits that no decision meets: n.csv, line 5" in said


@pytest.mark.parametrize("policy", ["refuse", "skip", "repair"])
def test_a_plan_that_misses_limits_is_found_out_whatever_is_done_with_the_decisions(
    bakery, tmp_path, capsys, policy
):
    names = (("problem", "blend.mps"), ("contexts", "contexts.csv"), ("decisions", "decisions.csv"))
    files = [f"--{option}={bakery / name}" for option, name in names]
    option = f"--infeasible={policy}"
    assert main(["doctor", *files, option]) == 1
    assert "--limit total=orders" in words(capsys)
    code = main(["fit", *files, option, "--out", str(tmp_path / "model"), *FIXED])
    said = words(capsys)
    assert "--limit total=orders" in said
    assert (code == 2) == (policy == "refuse")


@pytest.mark.parametrize(
    "value", [754.4000000000001, -0.1 - 0.2, 1e-30 / 3, 1e300 / 3, 0.0, np.nan]
)
def test_last_bits_of_a_solver_are_not_written(value):
    row = np.array([[value, 5.0, 123456789012345.6]])
    written = without_last_bits(row)
    np.testing.assert_allclose(written, row, rtol=1e-11, atol=0)
    if abs(value) > 1e-3 and abs(value) < 1e9:
        assert len(repr(float(written[0, 0]))) < 8
