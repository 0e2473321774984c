"""The page on pictures: its example runs, and what it names exists."""

import re
import shlex
from pathlib import Path

import pytest

from revealed import cli
from revealed_experiments import vision

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/vision.md").read_text("utf-8")


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks:  # each goes on where the one before has ended
        exec(compile(block, "docs/vision.md", "exec"), names)
    assert "relative_regret" in capsys.readouterr().out
    assert names["costs"].shape == (50, names["data"].problem.n_variables)


def test_all_networks_are_told_of():
    told = re.findall(r"^\| `([a-z0-9-]+)` \|", PAGE, flags=re.MULTILINE)
    assert told == list(vision.MODELS)


@pytest.mark.parametrize("line", re.findall(r"^revealed .*$", PAGE, flags=re.MULTILINE))
def test_the_commands_are_understood(line):
    words = shlex.split(line.partition("#")[0])[1:]
    assert callable(cli.build_parser().parse_args(words).run)
