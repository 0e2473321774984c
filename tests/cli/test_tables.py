"""Tables of contexts and decisions: three kinds of file, the same columns, the same complaints."""

import io
import struct
import zipfile

import numpy as np
import pytest
from numpy.lib import format as npy

from revealed.cli.tables import learn_features, open_table, pair_rows, read_decisions, write_table
from revealed.cli.tables.pairing import find_key
from revealed.errors import InputError

ENDINGS = [".csv", ".tsv", ".parquet", ".npz"]
NAMES = ["a", "file", "c d"]  # one with a space, one that is an argument of numpy's own writer
VALUES = np.array([[1.0, 0.1, -3e-17], [2.0, 1 / 3, 1e22], [0.0, -5.0, 123456789.123456]])
KEY = ("day", ["mon", "tue", "wed"])


def written(tmp_path, ending, names=NAMES, values=VALUES, key=KEY):
    path = tmp_path / f"table{ending}"
    write_table(path, names, values, key=key)
    return path


def text(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path):
    """What is said of a file that cannot be read; None of one that can."""
    try:
        file = open_table(path)
        file.read([name for name in file.names if name != "day"])
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read_bit_for_bit(tmp_path, ending):
    file = open_table(written(tmp_path, ending))
    assert file.names == ("day", *NAMES)
    table = file.read(["c d", "a", "file"], ["day"])
    assert (table.numbers == VALUES[:, [2, 0, 1]]).all()
    assert table.text["day"] == KEY[1]
    assert file.is_text("day")
    assert not file.is_text("a")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_column_that_is_not_there_is_named(tmp_path, ending):
    file = open_table(written(tmp_path, ending))
    with pytest.raises(InputError, match=r"no column 'x'.*its columns are day, a, file, c d"):
        file.read(["x"])


@pytest.mark.parametrize("ending", ENDINGS)
def test_words_among_numbers_are_refused(tmp_path, ending):
    with pytest.raises(InputError, match=r"'day'.*expected (a number|numbers)"):
        open_table(written(tmp_path, ending)).read(["day"])


@pytest.mark.parametrize("ending", ENDINGS)
def test_half_a_file_is_refused_or_read_short_but_never_crashes(tmp_path, ending):
    path = written(tmp_path, ending)
    whole = path.read_bytes()
    for size in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:size])
        refused = refusal(path)
        assert refused is None or path.name in refused


@pytest.mark.parametrize("ending", ENDINGS)
def test_random_bytes_are_refused_with_a_sentence_or_read(tmp_path, ending):
    rng = np.random.default_rng(0)
    path = written(tmp_path, ending)
    whole = bytearray(path.read_bytes())
    for _ in range(60):
        spoiled = whole.copy()
        for at in rng.integers(0, len(whole), 6):
            spoiled[at] = rng.integers(0, 256)
        path.write_bytes(bytes(spoiled))
        refused = refusal(path)
        assert refused is None or len(refused) > 20


@pytest.mark.parametrize(
    "content, message",
    [
        ("a,b\n1,2\n3\n", "line 3: 1 cells, fewer than the 2 columns"),
        ("a,b\n1,2,5\n", "line 2: 3 cells, more than the 2.*decimal comma"),
        ("a,b\n1,x\n", "line 2, column 'b': expected a number, got 'x'"),
        ('a,b\n1,"2\n', "line 2"),
        ("a,,b\n1,2,3\n", "column 2 has no name"),
        ("\n\n", "empty"),
        (b"a,b\n1,\xff\n", "UTF-8"),
    ],
)
def test_a_fault_in_a_text_file_is_placed(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        open_table(text(tmp_path, content)).read(["a", "b"])


@pytest.mark.parametrize("content", ["a;b\n1,5;2\n\n", "\ufeffa\tb\n1.5\t2\n", "a|b\r\n1.5|2\r\n"])
def test_other_ways_to_write_a_table(tmp_path, content):
    table = open_table(text(tmp_path, content)).read(["a", "b"])
    assert table.numbers.tolist() == [[1.5, 2.0]]


def test_a_spreadsheets_utf_16_is_read(tmp_path):
    table = open_table(text(tmp_path, "a\tb\n1\t2\n".encode("utf-16"))).read(["b"])
    assert table.numbers.tolist() == [[2.0]]


def test_lines_are_counted_as_an_editor_counts_them(tmp_path):
    path = text(tmp_path, 'a,b\n\n"1",2\n"two\nlines",3\n4,5\n')
    table = open_table(path).read(["b"], ["a"])
    assert table.lines.tolist() == [3, 4, 6]
    assert table.where(2, "b") == "t.csv, line 6, column 'b'"


def test_other_endings_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"the ending '\.ods'"):
        open_table(tmp_path / "t.ods")
    with pytest.raises(InputError, match="does not exist"):
        open_table(tmp_path / "none.csv")
    (tmp_path / "f.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        open_table(tmp_path / "f.csv")


def test_an_npz_of_objects_or_of_unequal_columns_is_refused(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, a=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="refused"):
        open_table(path)
    np.savez(path, a=np.zeros(2), b=np.zeros(3))
    with pytest.raises(InputError, match="equally long"):
        open_table(path)
    np.savez(path, values=np.eye(2), names=np.array(["a", "b"]))
    assert open_table(path).read(["b"]).numbers.tolist() == [[0.0], [1.0]]


# --- decisions -----------------------------------------------------------------------------------


def test_long_decisions_are_the_wide_ones(tmp_path):
    wide = open_table(text(tmp_path, "day,x,y\nmon,0,2\ntue,1,0\n", "wide.csv"))
    long = open_table(text(tmp_path, "day,variable,value\nmon,y,2\ntue,x,1\n", "long.csv"))
    one, other = (read_decisions(file, ["x", "y"], "day") for file in (wide, long))
    assert (one.values == other.values).all()
    assert one.keys == other.keys == ["mon", "tue"]
    assert other.where(1) == "long.csv, line 3"


@pytest.mark.parametrize(
    "content, message",
    [
        ("day,variable,value\nmon,z,2\n", "line 2, column 'variable'.*'z' is no variable"),
        ("day,variable,value\nmon,x,2\nmon,x,3\n", "line 3.*given before, at long.csv, line 2"),
        ("day,variable,value\nmon,x,\n", "line 2, column 'value' is empty"),
        ("variable,value\nx,1\n", "one more column must say which decision"),
    ],
)
def test_faults_in_long_decisions(tmp_path, content, message):
    file = open_table(text(tmp_path, content, "long.csv"))
    with pytest.raises(InputError, match=message):
        read_decisions(file, ["x", "y"], None)


def test_rows_are_matched_by_the_column_both_have(tmp_path):
    contexts = open_table(text(tmp_path, "day,z\nmon,1\ntue,2\n", "contexts.csv"))
    decisions = open_table(text(tmp_path, "day,x\ntue,7\nmon,5\n", "decisions.csv"))
    key = find_key(contexts, decisions, ["x"], None)
    assert key == "day"
    pairs = pair_rows(contexts.read(["z"], ["day"]), read_decisions(decisions, ["x"], key), key)
    assert pairs.decisions.tolist() == [1, 0]


def test_several_shared_columns_must_be_chosen_from(tmp_path):
    contexts = open_table(text(tmp_path, "day,site,z\nmon,a,1\n", "contexts.csv"))
    decisions = open_table(text(tmp_path, "day,site,x\nmon,a,5\n", "decisions.csv"))
    with pytest.raises(InputError, match="share the columns day, site; say with --id"):
        find_key(contexts, decisions, ["x"], None)


# --- features ------------------------------------------------------------------------------------


def test_numbers_are_scaled_and_words_become_columns(tmp_path):
    file = open_table(text(tmp_path, "t,w\n1,sun\n3,rain\n5,sun\n"))
    learned, Z, _ = learn_features(file)
    assert learned.names == ("t", "w=sun")
    np.testing.assert_allclose(Z[:, 0], [-np.sqrt(1.5), 0, np.sqrt(1.5)])
    assert Z[:, 1].tolist() == [1.0, 0.0, 1.0]
    again, _ = learned.read(open_table(text(tmp_path, "w,t\nrain,3\n", "new.csv")))
    np.testing.assert_allclose(again, [[0.0, 0.0]], atol=1e-15)


def test_a_word_never_seen_is_named(tmp_path):
    learned, _, _ = learn_features(open_table(text(tmp_path, "t,w\n1,sun\n3,rain\n")))
    with pytest.raises(InputError, match=r"line 2, column 'w'.*learned from 'rain', 'sun'.*'snow'"):
        learned.read(open_table(text(tmp_path, "t,w\n1,snow\n", "new.csv")))


def test_a_constant_feature_says_nothing_and_breaks_nothing(tmp_path):
    _, Z, _ = learn_features(open_table(text(tmp_path, "t,k\n1,7\n3,7\n")))
    assert (Z[:, 1] == 0).all()


def test_thousands_of_columns_are_looked_at_in_one_pass(tmp_path, monkeypatch):
    from revealed.cli.tables.csv_file import CsvFile

    names = [f"f{k}" for k in range(2000)]
    write_table(tmp_path / "wide.csv", names, np.arange(4000.0).reshape(2, -1), key=KEY)
    passes = []
    whole = CsvFile._records
    monkeypatch.setattr(CsvFile, "_records", lambda self: passes.append(1) or whole(self))
    features, Z, _ = learn_features(open_table(tmp_path / "wide.csv"))
    assert Z.shape == (2, 2001)
    assert features.features[0].levels == ("mon", "tue")
    assert len(passes) == 3  # names, kinds, numbers


@pytest.mark.parametrize(
    "dates", [("2026-03-02", "2026-3-9"), ("2.3.2026", "09/03/26"), ("2026-03-02 08:30", "1.1.26")]
)
def test_dates_are_no_categories(tmp_path, dates):
    path = text(tmp_path, "when,load\n" + "".join(f"{date},1\n" for date in dates))
    with pytest.raises(InputError, match=r"'when' holds dates such as .* --ignore when"):
        learn_features(open_table(path))


def test_words_with_figures_in_them_are_no_dates(tmp_path):
    path = text(tmp_path, "line,load\n1-2,1\n10.1.4 north,2\n")
    features, *_ = learn_features(open_table(path))
    assert features.features[0].levels == ("1-2", "10.1.4 north")


def test_a_typesetters_minus_sign_is_a_minus_sign(tmp_path):
    path = text(tmp_path, "a,b\n−1.5,2\n3,−4e−2\n")
    assert open_table(path).read(["a", "b"]).numbers.tolist() == [[-1.5, 2.0], [3.0, -0.04]]


# --- files that promise more than they hold, and very wide ones ----------------------------------


def archive_of(tmp_path, members, compression=zipfile.ZIP_DEFLATED):
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def promising(shape, dtype="<f8", content=b"\0" * 24):
    """An array whose header promises a shape and a type, whatever follows it."""
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(
    "shape, dtype",
    [((2_000_000_000,), "<f8"), ((4,), "<f8"), ((2,), "<f8"), ((-3,), "<f8"), ((3,), "<U9")],
)
def test_a_header_that_promises_what_is_not_there_is_refused(tmp_path, shape, dtype, compression):
    path = archive_of(tmp_path, {"a": promising(shape, dtype)}, compression)
    assert "its header promises shape" in refusal(path)
    assert refusal(archive_of(tmp_path, {"a": promising((3,))}, compression)) is None


def test_an_archive_that_lies_about_its_sizes_is_refused(tmp_path):
    """The list of contents promises the same 4 GB as the header of the array."""
    claimed = 4_000_000_000
    start = len(promising((claimed,), "|u1", b""))
    path = archive_of(tmp_path, {"a": promising((claimed - start,), "|u1")})
    whole = bytearray(path.read_bytes())
    at = whole.index(b"PK\x01\x02") + 24  # the size in the list of contents
    whole[at : at + 4] = struct.pack("<I", claimed)
    path.write_bytes(whole)
    assert "its header promises shape" in refusal(path)


def test_entries_without_a_byte_are_refused(tmp_path):
    assert "is refused" in refusal(archive_of(tmp_path, {"a": promising((10**9,), "|S0", b"")}))


def test_arrays_of_one_name_are_refused(tmp_path):
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", promising((3,)))
        archive.writestr("a", promising((3,)))
    assert "two arrays have the same name" in refusal(path)


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
@pytest.mark.parametrize("kind", [np.float64, np.uint8])
def test_a_table_larger_than_memory_is_refused_before_it_is_read(
    tmp_path, monkeypatch, ending, kind
):
    path, rows = tmp_path / f"t{ending}", 100_000
    if ending == ".npz":
        np.savez_compressed(path, a=np.zeros(rows, kind))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({"a": np.zeros(rows, kind)}), path)
    assert path.stat().st_size < 20_000
    assert refusal(path) is None
    name = {".npz": "npz_file", ".parquet": "parquet_file"}[ending]
    monkeypatch.setattr(f"revealed.cli.tables.{name}.memory_limit", lambda: 8 * rows - 1)
    assert "Leave out" in refusal(path)


def test_parquet_rows_beyond_the_first_room_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("revealed.cli.tables.parquet_file.BATCH", 4)
    values = np.arange(600.0).reshape(300, 2)
    table = open_table(written(tmp_path, ".parquet", ["a", "b"], values, None)).read(["b", "a"])
    assert (table.numbers == values[:, ::-1]).all()


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_a_wide_table_is_gone_through_a_few_times_in_all(tmp_path, monkeypatch, ending):
    """Not once for every column, which made the time grow with their square."""
    names = [f"c{k}" for k in range(300)]
    file = open_table(written(tmp_path, ending, names, np.random.default_rng(0).random((3, 300))))
    looks = []
    if ending == ".npz":
        whole = zipfile.ZipFile

        def counted(*args, **kwargs):
            looks.append(args)
            return whole(*args, **kwargs)

        monkeypatch.setattr(zipfile, "ZipFile", counted)
    else:

        class Counted:
            def __init__(self, inner):
                self._inner = inner

            def __getattr__(self, name):
                looks.append(name)
                return getattr(self._inner, name)

        file._file = Counted(file._file)
    learn_features(file, key="day")
    assert 0 < len(looks) < 10
