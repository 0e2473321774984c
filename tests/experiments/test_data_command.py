"""`revealed data`: writes what the generators give, and says what it wrote."""

import numpy as np
import pytest

from revealed import cli
from revealed_experiments.images import digit_boards, load_boards, load_terrain, terrain

SMALL = ["--sizes", "4", "2", "2", "--seed", "3", "--jobs", "1"]


def same(first, second):
    return all(
        np.array_equal(getattr(first.train, part), getattr(second.train, part))
        for part in ("images", "decisions", "costs", "cells")
    )


def test_terrain_is_written_and_told_of(tmp_path, capsys):
    assert cli.main(["data", "terrain", "--out", str(tmp_path), "--side", "5", *SMALL]) == 0
    assert same(load_terrain(tmp_path / "5x5"), terrain((4, 2, 2), side=5, seed=3))
    out = capsys.readouterr().out
    assert "train_maps.npy" in out
    assert "4 x 40 x 40 x 3 uint8" in out
    first = (tmp_path / "5x5" / "SHA256SUMS").read_text().split()[0]
    assert f"{first[:16]}…" in out
    assert (tmp_path / "5x5" / "samples.png").read_bytes().startswith(b"\x89PNG")


def test_boards_take_their_own_options(tmp_path, capsys):
    options = ["--side", "4", "--pixels", "8", "--unique", *SMALL]
    assert cli.main(["data", "boards", "--out", str(tmp_path), *options]) == 0
    expected = digit_boards((4, 2, 2), side=4, pixels=8, seed=3, unique=True)
    assert same(load_boards(tmp_path / "4x4"), expected)
    assert "4 x 32 x 32 x 1 uint8" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options, words",
    [
        (["terrain", "--side", "41"], "must be 3 to 40"),
        (["boards", "--digits", "nowhere"], 'must be "sklearn"'),
        (["boards", "--side", "3"], "even"),
    ],
    ids=str,
)
def test_wrong_wishes_get_a_sentence(tmp_path, capsys, options, words):
    assert cli.main(["data", *options, "--out", str(tmp_path), "--jobs", "1"]) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_size_below_one_is_refused_with_the_options(tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["data", "terrain", "--sizes", "-1", "0", "0", "--out", str(tmp_path)])
    assert left.value.code == 2
    assert "expected a whole number of at least 1, got '-1'" in capsys.readouterr().err


def test_a_folder_that_is_there_is_replaced_on_request_only(tmp_path, capsys):
    command = ["data", "terrain", "--out", str(tmp_path), "--side", "4", *SMALL]
    assert cli.main(command) == 0
    assert cli.main(command) == 2
    assert "is there already" in capsys.readouterr().err
    assert cli.main([*command, "--overwrite"]) == 0
