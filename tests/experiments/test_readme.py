"""Every Python block of the README runs as it stands, and shows the commands it must."""

import importlib
import json
import re
import shlex
from pathlib import Path

import pytest

from revealed import cli
from revealed_experiments.bench.projection.page import headline

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def test_the_readme_has_examples():
    assert BLOCKS


def test_the_blocks_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # an example may write files, but not into the checkout
    names = {"__name__": "readme"}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README.md, block {number}", "exec"), names)


def test_the_figures_are_those_of_the_benchmark():
    content = json.loads((ROOT / "experiments/results/projection.json").read_text("utf-8"))
    quoted = re.search(r"<!-- headline.*?-->\n(.*?)\n<!-- end -->", README, flags=re.DOTALL)
    assert quoted is not None
    assert " ".join(quoted.group(1).split()) == headline(content)


@pytest.mark.parametrize("command", ["make demo", "make test", "make docs", "pip install ."])
def test_first_commands_are_shown(command):
    assert command in README


def test_the_tour_prints_what_the_pages_say(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs/_tools"))
    tour = importlib.import_module("tour")
    told = tour.play()
    assert list(told) == ["tour", "doctor", "fit", "predict", "explain", "report"]
    (first_miss,) = re.findall(r"\n +sample .*\n +(\S+)", told["explain"][1])
    assert importlib.import_module("explorer_picture").SAMPLE == first_miss  # as the guide says


def test_the_readme_is_two_screens_long():
    assert len(README.splitlines()) <= 130


@pytest.mark.parametrize("line", re.findall(r"^revealed [^#\n]+", README, flags=re.MULTILINE))
def test_other_commands_are_understood(line):
    assert callable(cli.build_parser().parse_args(shlex.split(line)[1:]).run)


def test_links_within_the_tree_lead_somewhere():
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", README)
    targets += re.findall(r'(?:src|srcset)="([^"]+)"', README)
    assert all((ROOT / target).exists() for target in targets)


def test_the_table_of_losses_is_that_of_the_classes():
    from revealed.losses import LOSSES

    page = (ROOT / "docs/losses.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    told = {row[1].strip("`"): row for row in rows if len(row) == 5 and row[1].startswith("`")}
    assert list(told) == list(LOSSES)
    for name, kind in LOSSES.items():
        needs = "yes" if kind.needs_true_costs else "no"
        assert told[name][:4] == [f"`{kind.__name__}`", f"`{name}`", needs, kind.oracle_calls]
