"""MPS files: every section, both layouts, and a sentence for everything that is wrong with one."""

import gzip
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import revealed as rv
from revealed.errors import InputError
from revealed.importers import ModelWarning, RelaxationWarning
from revealed.importers.text_lines import FREE_TEXT, SHORTEST_LINE

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data" / "netlib"
FOLDER = Path(os.environ.get("REVEALED_NETLIB", BESIDE))
NETLIB = sorted(FOLDER.glob("*.mps.gz"))
NONE = -np.inf, np.inf

FREE = """NAME every-kind FREE
* Rows of every kind, ranges on each, a second objective that is no row.
OBJSENSE
    MAX
ROWS
 N profit
 L fat
 G energy
 E mass
 L range_l
 G range_g
 E range_up
 E range_down
 N other
COLUMNS
 a profit 2 fat 1
 a energy 1.5e0 mass 1
 a range_l 1 range_g 1
 a range_up 1 range_down 1
 b profit -3 other 9
 b fat 0.5D+1 range_up 2
RHS
 RHS profit -7 fat 10
 RHS energy 2 mass 4
 RHS range_l 6 range_g 1
 RHS range_up 3 range_down 3
RANGES
 RNG range_l 2 range_g -2
 RNG range_up 2 range_down -2
BOUNDS
 UP BND a 8
 FR BND b
ENDATA
"""
LIMITS = {
    "fat": (-np.inf, 10), "energy": (2, np.inf), "mass": (4, 4), "range_l": (4, 6),
    "range_g": (1, 3), "range_up": (3, 5), "range_down": (1, 3),
}  # fmt: skip
SMALL = """NAME SMALL
ROWS
 N COST
 G ROW
COLUMNS
    X         COST               1.0   ROW                1.0
    Y         COST               2.0   ROW                1.0
RHS
    RHS       ROW                1.0
BOUNDS
{bounds}
ENDATA
"""
WITH_BLANKS = """NAME          BLANKS
ROWS
 N  THE COST
 E  MY ROW 1
COLUMNS
    X ONE     THE COST           1.0   MY ROW 1           1.0
    X TWO     THE COST           2.0   MY ROW 1           1.0
RHS
              MY ROW 1           1.0
BOUNDS
 UP           X ONE              0.5
ENDATA
"""


def write(tmp_path, text, name="model.mps"):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def bounds_of(tmp_path, lines, column="X"):
    """Lower and upper bound that lines of BOUNDS give a column."""
    text = SMALL.format(bounds="\n".join(f" {line}" for line in lines))
    model = rv.read_mps(write(tmp_path, text))
    j = model.variable_names.index(column)
    return model.problem.lb[j], model.problem.ub[j]


@pytest.fixture
def every_kind(tmp_path):
    return rv.read_mps(write(tmp_path, FREE))


def test_rows_become_equalities_and_inequalities_with_their_names(every_kind):
    problem = every_kind.problem
    limits = {name: [-np.inf, np.inf] for name in LIMITS}
    for name, b in zip(every_kind.eq_names, problem.b_eq, strict=True):
        limits[name] = [b, b]
    signs = np.sign(problem.A_ub.toarray()[:, 0])  # `a` is in every row with a positive number
    for name, b, sign in zip(every_kind.ub_names, problem.b_ub, signs, strict=True):
        limits[name][0 if sign < 0 else 1] = sign * b
    assert {name: tuple(pair) for name, pair in limits.items()} == LIMITS


def test_objective_sense_constant_and_names(every_kind):
    assert every_kind.maximized
    assert every_kind.variable_names == ("a", "b")
    np.testing.assert_array_equal(every_kind.cost, [-2, 3])  # to be minimized
    # Maximize 2 a - 3 b + 7: a right-hand side of the objective counts with a minus.
    np.testing.assert_array_equal(every_kind.objective([[1.0, 2.0]]), [2 - 6 + 7])
    fat = every_kind.ub_names.index("fat")
    np.testing.assert_array_equal(every_kind.problem.A_ub.toarray()[fat], [1, 5])


@pytest.mark.parametrize("sense", ["OBJSENSE MAX", "OBJSENSE\n MAXIMIZE", "objsense\n  max"])
def test_ways_to_say_maximize(tmp_path, sense):
    assert rv.read_mps(write(tmp_path, FREE.replace("OBJSENSE\n    MAX", sense))).maximized


def test_the_objective_can_be_named(tmp_path):
    model = rv.read_mps(write(tmp_path, FREE.replace("ROWS\n", "OBJNAME\n other\nROWS\n", 1)))
    np.testing.assert_array_equal(model.cost, [0, -9])
    assert model.constant == 0


@pytest.mark.parametrize(
    "lines, expected",
    [
        ([], (0, np.inf)),
        (["UP BND X 4"], (0, 4)),
        (["UP X 4"], (0, 4)),
        (["LO BND X -2"], (-2, np.inf)),
        (["LO BND X 1", "UP BND X 3"], (1, 3)),
        (["FX BND X 2.5"], (2.5, 2.5)),
        (["FR BND X"], NONE),
        (["FR X"], NONE),
        (["FR BND X 0"], NONE),
        (["MI BND X"], NONE),
        (["MI BND X", "UP BND X -4"], (-np.inf, -4)),
        (["LO BND X -5", "UP BND X -1"], (-5, -1)),
        (["UP BND X -1", "LO BND X -5"], (-5, -1)),
        (["PL BND X"], (0, np.inf)),
        (["UP BND X 0"], (0, 0)),
        (["UP BND X 1e30"], (0, np.inf)),
        (["LO BND X -1E+20"], NONE),
        (["UP BND X Inf"], (0, np.inf)),
        (["UP BND X 4", "UP BND X 4.0"], (0, 4)),
    ],
    ids=str,
)
def test_bounds(tmp_path, lines, expected):
    assert bounds_of(tmp_path, lines) == expected
    assert bounds_of(tmp_path, lines, "Y") == (0, np.inf)


@pytest.mark.parametrize(
    "line, expected, integer",
    [
        ("BV BND X", (0, 1), True),
        ("LI BND X 2", (2, np.inf), True),
        ("UI BND X 7", (0, 7), True),
        ("SC BND X 5", (0, 5), False),
        ("SC BND X", (0, np.inf), False),
        ("SI BND X 5", (0, 5), True),
    ],
)
def test_bounds_of_variables_that_are_not_real(tmp_path, line, expected, integer):
    path = write(tmp_path, SMALL.format(bounds=f" {line}"))
    with pytest.warns(RelaxationWarning, match=r"1 of 2 variables must be .* relaxation"):
        model = rv.read_mps(path)
    assert (model.problem.lb[0], model.problem.ub[0]) == expected
    assert model.integer.tolist() == [integer, False]


def test_a_semicontinuous_variable_may_be_0(tmp_path):
    with pytest.warns(RelaxationWarning, match="0 or above a threshold"):
        assert bounds_of(tmp_path, ["LO BND X 2", "SC BND X 5"]) == (0, 5)


def test_integer_markers_and_their_bounds(tmp_path):
    marker = "    M{k}        'MARKER'                 '{kind}'\n"
    text = SMALL.format(bounds=" LO BND Y 2")
    text = text.replace("    X  ", marker.format(k=1, kind="INTORG") + "    X  ")
    text = text.replace(
        "RHS\n", marker.format(k=2, kind="INTEND") + "    Z         ROW  1\nRHS\n", 1
    )
    with pytest.warns(RelaxationWarning, match="2 of 3 variables must be whole numbers"):
        model = rv.read_mps(write(tmp_path, text))
    assert model.integer.tolist() == [True, True, False]
    # An integer without any bound is 0 or 1, by convention; one with a lower bound goes up freely.
    np.testing.assert_array_equal(model.problem.ub, [1, np.inf, np.inf])


def test_a_negative_upper_bound_alone_frees_the_lower_one_and_says_so(tmp_path):
    with pytest.warns(ModelWarning, match=r"model.mps: 1 columns \(the first 'X'\)"):
        assert bounds_of(tmp_path, ["UP BND X -3"]) == (-np.inf, -3)


def test_only_the_first_set_counts_and_others_are_told(tmp_path):
    text = SMALL.format(bounds=" UP ONE X 4\n UP TWO X 9\n UP TWO Y 1")
    with pytest.warns(ModelWarning, match="line 12: the set 'TWO' in BOUNDS is left out") as caught:
        model = rv.read_mps(write(tmp_path, text))
    np.testing.assert_array_equal(model.problem.ub, [4, np.inf])
    assert len(caught) == 1


def test_fixed_columns_let_names_hold_blanks(tmp_path):
    model = rv.read_mps(write(tmp_path, WITH_BLANKS))
    assert model.variable_names == ("X ONE", "X TWO")
    assert model.eq_names == ("MY ROW 1",)
    np.testing.assert_array_equal(model.problem.ub, [0.5, np.inf])
    np.testing.assert_allclose(model.problem.solve(model.cost[None]).x, [[0.5, 0.5]])


def test_a_quadratic_objective_makes_a_quadratic_program(tmp_path):
    section = "QUADOBJ\n X X 4\n X Y 1\n Y Y 2\nENDATA"
    model = rv.read_mps(
        write(tmp_path, SMALL.format(bounds=" FR BND X").replace("ENDATA", section))
    )
    assert isinstance(model.problem, rv.QuadraticProgram)
    np.testing.assert_array_equal(model.problem.Q, [[4, 1], [1, 2]])
    np.testing.assert_allclose(model.objective([[1.0, 3.0]]), [1 + 6 + 0.5 * (4 + 2 * 3 + 18)])
    whole = "QMATRIX\n X X 4\n X Y 1\n Y X 1\n Y Y 2\nENDATA"
    other = rv.read_mps(write(tmp_path, SMALL.format(bounds=" FR BND X").replace("ENDATA", whole)))
    np.testing.assert_array_equal(other.problem.Q, model.problem.Q)


@pytest.mark.parametrize("name", ["model.mps", "model.mps.gz", "model.txt"])
def test_packing_is_told_by_the_content_not_the_name(tmp_path, name):
    text = SMALL.format(bounds=" UP BND X 4")
    (tmp_path / "plain").write_text(text)
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    one, other = rv.read_mps(tmp_path / name), rv.read_mps(str(tmp_path / "plain"))
    np.testing.assert_array_equal(one.problem.ub, other.problem.ub)


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("ROWS", "ROWZ", "line 2: expected a section"),
        ("BOUNDS", "SOS1", "goes beyond linear rows"),
        ("BOUNDS", "QCMATRIX", "goes beyond linear rows"),
        (" G ROW", " Q ROW", "line 4: expected a kind of row: N, L, G or E; got Q ROW"),
        (" G ROW", " G ROW\n G ROW", "line 5: expected a new name for each row; got 'ROW' again"),
        ("X         COST               1.0", "X COST one", "line 6: expected a number; got 'one'"),
        ("X         COST               1.0", "X COST nan", "expected a number; got 'nan'"),
        ("X         COST               1.0", "X COST 1_0", "expected a number; got '1_0'"),
        ("X         COST               1.0", "X COST 1e999", "expected a finite number"),
        ("X         COST               1.0", "X COSTS 1", "got 'COSTS'. Did you mean 'COST'?"),
        ("Y         COST   ", "Y ROW 2 COST", "expected"),
        ("Y         COST               2.0", "Y         ROW                2.0", "'ROW' of column"),
        ("RHS       ROW                1.0", "RHS ROW", "line 9: expected a row of ROWS"),
        ("RHS       ROW                1.0", "RHS ROW 1 ROW 2", "one number for each row in RHS"),
        (" UP BND X 4", " XX BND X 4", "expected a kind of bound: LO, UP"),
        (" UP BND X 4", " UP BND Z 4", "line 11: expected a column of COLUMNS; got 'Z'"),
        (" UP BND X 4", " UP BND X 4\n UP BND X 5", "expected one upper bound for each column"),
        (" UP BND X 4", " UP BND X", "line 11: expected"),
        (" UP BND X 4", " LO BND X 5\n UP BND X 4", "variable 'X' must have a lower limit"),
        (" UP BND X 4", " LO BND X inf", "variable 'X' must have a lower limit"),
        ("ENDATA\n", "", "line 11: the file ends here without ENDATA; it may have been cut short"),
        ("RHS\n", "ENDATA\n", None),
        ("NAME SMALL\nROWS", " X 1\nROWS", "line 1: expected the name of a section first"),
        ("BOUNDS", "RANGES\n RNG COST 1\nBOUNDS", "expected a range of an L, G or E row"),
        ("BOUNDS", "OBJSENSE\n UP\nBOUNDS", "expected MIN or MAX; got UP"),
        ("ROWS", "OBJNAME\n COSTS\nROWS", "got 'COSTS' in OBJNAME. Did you mean 'COST'?"),
        ("COLUMNS", "COLUMNS\n M 'MARKER' 'SOSORG'", "a marker 'INTORG' or 'INTEND'"),
        ("COLUMNS", "COLUMNS now", "expected COLUMNS on a line of its own"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, old, new, words):
    text = SMALL.format(bounds=" UP BND X 4")
    assert old in text
    path = write(tmp_path, text.replace(old, new, 1))
    if words is None:  # what comes after ENDATA is not looked at
        assert rv.read_mps(path).variable_names == ("X", "Y")
        return
    with pytest.raises(InputError) as caught:
        rv.read_mps(path)
    assert str(caught.value).startswith("model.mps")
    assert words in str(caught.value)


def test_files_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "model.mps.gz"
    with pytest.raises(InputError, match="there is none"):
        rv.read_mps(path)
    packed = gzip.compress(SMALL.format(bounds=" UP BND X 4").encode() * 50)
    for content, words in [
        (packed[: len(packed) // 2], "ends in the middle of its gzip data"),
        (packed[:40] + b"\xff" * 40 + packed[80:], "damaged after line"),
        (b"\x1f\x8b" + b"no gzip at all", "damaged after line 0"),
        (b"\x7fELF\0\0\0", "bytes of 0, as in a binary file"),
        (b"", "without ENDATA"),
        (gzip.compress(b""), "without ENDATA"),
        (b"* caf\xe9\n", "without ENDATA"),
    ]:
        path.write_bytes(content)
        with pytest.raises(InputError, match=words):
            rv.read_mps(path)


def test_a_file_that_unpacks_without_end_is_refused(tmp_path):
    path = tmp_path / "bomb.mps.gz"
    path.write_bytes(gzip.compress(b"*" * 10_000_000))
    with pytest.raises(InputError, match="longer than 65,536 bytes"):
        rv.read_mps(path)
    path.write_bytes(gzip.compress(b"* a comment\n" * 1_000_000))
    with pytest.raises(InputError, match=r"more than 100,000 bytes .* `max_bytes`"):
        rv.read_mps(path, max_bytes=100_000)


@pytest.mark.parametrize("line", ["* a comment\n", "\n", "*" + " " * 60_000 + "\n"])
def test_a_small_file_that_unpacks_to_much_is_refused_unless_it_is_allowed(tmp_path, line):
    head, end = SMALL.format(bounds=" UP BND X 4").split("ENDATA")
    text = head + line * (FREE_TEXT // max(len(line), SHORTEST_LINE) + 2) + "ENDATA" + end
    path = tmp_path / "bomb.mps.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(InputError, match="far more than a model of its size holds"):
        rv.read_mps(path)
    unpacked = tmp_path / "model.mps"  # it takes its room on the disk, so nothing is hidden
    unpacked.write_text(text)
    for read in (rv.read_mps(path, max_bytes=len(text)), rv.read_mps(unpacked)):
        assert read.variable_names == rv.read_mps(unpacked).variable_names


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_files_are_read_or_refused_but_never_crash(tmp_path, data):
    lines = data.draw(st.sampled_from([FREE, WITH_BLANKS, SMALL.format(bounds=" BV X")])).split(
        "\n"
    )
    for _ in range(data.draw(st.integers(1, 4))):
        k = data.draw(st.integers(0, len(lines) - 1))
        action = data.draw(st.sampled_from(["drop", "repeat", "swap", "cut", "insert"]))
        if action == "drop":
            lines[k] = ""
        elif action == "repeat":
            lines.insert(k, lines[k])
        elif action == "swap":
            j = data.draw(st.integers(0, len(lines) - 1))
            lines[k], lines[j] = lines[j], lines[k]
        elif action == "cut":
            lines[k] = lines[k][: data.draw(st.integers(0, len(lines[k])))]
        else:
            place = data.draw(st.integers(0, len(lines[k])))
            lines[k] = lines[k][:place] + data.draw(st.text(max_size=8)) + lines[k][place:]
    path = tmp_path / "damaged.mps"
    path.write_text("\n".join(lines), "utf-8", errors="surrogatepass")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        model, error = None, None
        try:
            model = rv.read_mps(path)
        except InputError as refusal:
            error = refusal
    if model is None:
        assert str(error).startswith("damaged.mps")
    else:
        assert len(model.variable_names) == model.problem.n_variables


def test_decisions_are_matched_by_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    model = rv.read_mps(write(tmp_path, SMALL.format(bounds=" UP BND X 4")))
    table = {"Y": [2.0, 4.0], "X": [1.0, 3.0]}
    for values in (table, pandas.DataFrame(table), [[1.0, 2.0], [3.0, 4.0]]):
        np.testing.assert_array_equal(model.decisions(values), [[1, 2], [3, 4]])
    for values, words in [
        ({"X": [1.0]}, "1 of 2 are missing, the first 'Y'"),
        ({"X": [1.0], "Y": [1.0], "Z": [1.0]}, "'Z' is no variable of model.mps"),
        ({"X": [1.0, 2.0], "Y": [1.0]}, "one value for each decision"),
        (pandas.DataFrame([[1.0, 2.0, 3.0]], columns=["X", "Y", "Y"]), "'Y' is there twice"),
    ]:
        with pytest.raises(InputError, match=words):
            model.decisions(values)


@pytest.mark.skipif(
    not NETLIB, reason="Name a folder of NETLIB .mps.gz files in REVEALED_NETLIB to run this."
)
@pytest.mark.parametrize("path", NETLIB, ids=lambda path: path.name.split(".")[0])
def test_netlib_is_read_as_highs_reads_it(path):
    highspy = pytest.importorskip("highspy")
    reader = highspy.Highs()
    reader.setOptionValue("output_flag", False)
    reader.readModel(str(path))
    lp = reader.getLp()
    model = rv.read_mps(path)
    assert model.variable_names == tuple(lp.col_names_)
    assert model.constant == lp.offset_
    np.testing.assert_array_equal(model.cost, lp.col_cost_)
    np.testing.assert_array_equal(model.problem.lb, lp.col_lower_)
    np.testing.assert_array_equal(model.problem.ub, lp.col_upper_)
    # On a point of its own, every row has the same value and limits.
    x = np.random.default_rng(0).uniform(-1, 1, len(lp.col_cost_))
    stored = lp.a_matrix_
    columns = np.repeat(np.arange(lp.num_col_), np.diff(stored.start_))
    activity = np.bincount(stored.index_, stored.value_ * x[columns], minlength=lp.num_row_)
    lower, upper = np.array(lp.row_lower_), np.array(lp.row_upper_)
    equal = lower == upper
    above, below = ~equal & np.isfinite(upper), ~equal & np.isfinite(lower)
    names = np.array(lp.row_names_)
    assert model.eq_names == tuple(names[equal])
    assert model.ub_names == (*names[above], *names[below])
    np.testing.assert_array_equal(model.problem.b_eq, upper[equal])
    np.testing.assert_array_equal(model.problem.b_ub, [*upper[above], *-lower[below]])
    np.testing.assert_allclose(model.problem.A_eq @ x, activity[equal], rtol=1e-12, atol=1e-9)
    expected = [*activity[above], *-activity[below]]
    np.testing.assert_allclose(model.problem.A_ub @ x, expected, rtol=1e-12, atol=1e-9)


def test_a_free_name_with_a_blank_in_it_is_refused_with_the_reason(tmp_path):
    text = "NAME\nROWS\n N cost\n L row one\nCOLUMNS\n x cost 1\nENDATA\n"
    with pytest.raises(InputError, match=r"line 4: .* one name, without blanks in it; got L row"):
        rv.read_mps(write(tmp_path, text))
