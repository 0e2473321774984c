"""Tables and plans as other tools and people write them."""

import unicodedata
from decimal import Decimal

import numpy as np
import pytest

from planner_files import Files
from revealed.cli.plans import read_plan
from revealed.cli.tables import learn_features, open_table, read_decisions, write_table
from revealed.cli.tables.cells import number
from revealed.cli.tables.names import plain_name
from revealed.errors import InputError


def text(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# --- text files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell, decimal, value",
    [
        ("1.234,5", ",", 1234.5),
        ("1.234", ",", 1234.0),
        ("12,5", ",", 12.5),
        ("1.5", ",", None),
        ("1,234.5", ".", 1234.5),
        ("1,234,567", ".", 1234567.0),
        ("1,234", ".", None),
        ("1 234,5", ",", 1234.5),
        ("1\u202f234\u202f567", ".", 1234567.0),
        ("1'234.5", ".", 1234.5),
        ("TRUE", ".", 1.0),
        ("12 34", ".", None),
        ("0.125", ".", 0.125),
    ],
)
def test_numbers_as_spreadsheets_write_them(cell, decimal, value):
    assert number(cell, decimal) == value


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffa;b;;\r\n1.234,5;2;;\r\n;;;\r\n;;;\r\n",
        "sep=;\r\na;b\r\n1.234,5;2\r\n",
        'a,b\n"1,234.5",2\n',
        "a\tb\n1234.5\t2\n",
        "a;b\n1 234,5;2\n",
        "a;b\r1234,5;2\r",
    ],
)
def test_ways_in_which_one_table_is_written(tmp_path, content):
    file = open_table(text(tmp_path, content))
    assert file.names == ("a", "b")
    assert file.read(["a", "b"]).numbers.tolist() == [[1234.5, 2.0]]


def test_commas_within_names_are_no_delimiters(tmp_path):
    for header in ("day;ship[A,1];ship[A,2]", 'day;"ship[A,1]";"ship[A,2]"'):
        file = open_table(text(tmp_path, f"{header}\nmon;1;2,5\ntue;0;3,5\n"))
        assert file.names == ("day", "ship[A,1]", "ship[A,2]")
        assert file.read(["ship[A,2]"]).numbers.ravel().tolist() == [2.5, 3.5]


def test_as_many_commas_in_names_as_in_numbers_deceive_nobody(tmp_path):
    file = open_table(text(tmp_path, "ship[A,1];ship[A,2]\n1,5;2,5\n0,5;3,5\n"))
    assert file.names == ("ship[A,1]", "ship[A,2]")
    assert file.read(file.names).numbers.tolist() == [[1.5, 2.5], [0.5, 3.5]]


def test_names_of_entries_do_not_decide_the_decimal_mark(tmp_path):
    """`1,2` is the road from 1 to 2 here, and no number."""
    file = open_table(text(tmp_path, "trip;variable;value\na;1,2;0.5\na;2,3;0.25\n"))
    taken = read_decisions(file, ["1,2", "2,3"], "trip")
    assert taken.values.tolist() == [[0.5, 0.25]]


def test_an_empty_line_between_rows_is_a_gap_not_an_end(tmp_path):
    with pytest.raises(InputError, match="line 3, column 'a' is empty"):
        learn_features(open_table(text(tmp_path, "a,b\n1,2\n,\n3,4\n")))


def test_what_could_be_read_in_two_ways_is_refused(tmp_path):
    file = open_table(text(tmp_path, 'a,b\n"1,234",2\n'))
    with pytest.raises(InputError, match=r"line 2, column 'a'.*decimal comma.*thousands"):
        file.read(["a"])


def test_true_and_false_are_numbers_in_every_kind_of_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"promo": [True, False, True], "load": [1.0, 2.0, 4.0]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    maps = [learn_features(open_table(tmp_path / f"t.{end}")) for end in ("csv", "parquet")]
    assert maps[0][0] == maps[1][0]
    assert (maps[0][1] == maps[1][1]).all()


def test_a_column_with_one_word_is_a_feature_that_says_nothing(tmp_path):
    learned, Z, _ = learn_features(open_table(text(tmp_path, "t,w\n1,FR\n3,FR\n")))
    assert learned.names == ("t", "w")
    assert Z[:, 1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_numbers_of_any_size_are_scaled(tmp_path, size):
    path = tmp_path / "t.csv"
    write_table(path, ["a"], np.array([[1.0], [2.0], [4.0]]) * size)
    _, Z, _ = learn_features(open_table(path))
    np.testing.assert_allclose(Z.std(axis=0), 1.0)


@pytest.mark.parametrize("change", ["bom", "crlf", "tabs", "small letters"])
def test_plans_are_read_as_other_tools_write_them(tmp_path, change):
    files = Files(tmp_path / "tour")
    before, content = read_plan(files.plan), files.plan.read_text()
    changed = {
        "bom": "\ufeff" + content,
        "crlf": content.replace("\n", "\r\n"),
        "tabs": content.replace("  ", "\t"),
        "small letters": content.replace("ROWS", "rows").replace("RHS\n", "rhs\n"),
    }[change]
    files.plan.write_bytes(changed.encode())
    assert read_plan(files.plan).variables == before.variables


def test_a_folder_is_no_plan(tmp_path):
    (tmp_path / "plan.mps").mkdir()
    with pytest.raises(InputError, match=r"plan\.mps is a folder; a model file was expected"):
        read_plan(tmp_path / "plan.mps")


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz"])
def test_names_match_however_their_accents_are_composed(tmp_path, ending):
    files = Files(tmp_path / "tour")
    apart, whole = (unicodedata.normalize(form, "m\u00fchle") for form in ("NFD", "NFC"))
    assert apart != whole
    files.plan.write_text(files.plan.read_text().replace("north_mill", apart))
    plan = read_plan(files.plan)
    assert whole in plan.variables
    path = tmp_path / f"d{ending}"
    names = [apart if name == whole else name for name in plan.variables]
    write_table(path, names, np.arange(48.0).reshape(2, 24), key=("day", [apart, whole + "2"]))
    taken = read_decisions(open_table(path), plan.variables, "day")
    assert taken.values.tolist() == np.arange(48.0).reshape(2, 24).tolist()
    assert taken.keys == [whole, whole + "2"]


def test_blanks_and_unseen_marks_around_names_count_for_nothing(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({" load ": [1.0, 2.0], "rain\u200b": [3.0, 4.0]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    for end in ("parquet", "csv"):
        file = open_table(tmp_path / f"t.{end}")
        assert file.read(["load", "rain"]).numbers.tolist() == [[1.0, 3.0], [2.0, 4.0]]


@pytest.mark.parametrize(
    "written, shown",
    [
        ("fuel\nprice", "fuel price"),
        ("fuel \u00a0 price", "fuel price"),
        ("\x1b[2Jfuel\x07 price", "[2Jfuel price"),
        ("\ufefffuel\u200b price", "fuel price"),
    ],
)
def test_a_name_stays_on_its_line_and_gives_no_orders(tmp_path, written, shown):
    assert plain_name(written) == shown
    file = open_table(text(tmp_path, f'day,"{written}"\nmon,1\n'))
    assert file.names == ("day", shown)
    assert file.read([shown]).numbers.tolist() == [[1.0]]


# --- Parquet and npz -----------------------------------------------------------------------------


def test_row_numbers_that_pandas_keeps_are_no_column(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0, 2.0, 3.0]}).sort_values("x", ascending=False)
    frame.to_parquet(tmp_path / "t.parquet")
    assert open_table(tmp_path / "t.parquet").names == ("x",)


def test_numbers_of_every_type_are_numbers(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    columns = {
        "small": pyarrow.array([1, 2], pyarrow.int8()),
        "exact": pyarrow.array([Decimal("1.50"), Decimal("2.25")]),
        "coded": pyarrow.array([7, 9]).dictionary_encode(),
        "half": pyarrow.array(np.array([0.5, 2], np.float16)),
        "truth": pyarrow.array([True, False]),
        "gap": pyarrow.array([1, None], pyarrow.int64()),
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    file = open_table(tmp_path / "t.parquet")
    found = file.read(file.names).numbers
    np.testing.assert_array_equal(found, [[1, 1.5, 7, 0.5, 1, 1], [2, 2.25, 9, 2, 0, np.nan]])
    assert not any(map(file.is_text, file.names))


@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_dates_match_those_of_a_text_file(tmp_path, ending):
    pandas = pytest.importorskip("pandas")
    days = pandas.to_datetime(["2026-03-02", "2026-03-03"])
    path = tmp_path / f"t.{ending}"
    if ending == "npz":
        np.savez(path, day=days.to_numpy(), x=np.ones(2))
    else:
        pandas.DataFrame({"day": days, "x": 1.0}).to_parquet(path)
    file = open_table(path)
    assert file.read(["x"], ["day"]).text["day"] == ["2026-03-02", "2026-03-03"]
    with pytest.raises(InputError, match="'day' holds dates such as '2026-03-02'"):
        learn_features(file)


def test_bytes_of_an_npz_are_words(tmp_path):
    np.savez(tmp_path / "t.npz", day=np.array([b"mon", b"tue"]), x=np.ones(2))
    assert open_table(tmp_path / "t.npz").read(["x"], ["day"]).text["day"] == ["mon", "tue"]


# --- writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".npz"])
def test_a_full_disk_is_told_and_the_old_table_stays(tmp_path, monkeypatch, ending):
    path = tmp_path / f"t{ending}"
    write_table(path, ["a"], np.ones((2, 1)))
    before = path.read_bytes()

    def full(old, new):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("revealed.cli.tables.files.os.replace", full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        write_table(path, ["a"], np.zeros((2, 1)))
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == [path.name]
