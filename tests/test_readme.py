"""Every Python block of the README runs as it stands, and shows the commands it must."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def test_the_readme_has_examples():
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[0][:40])
def test_block_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # an example may write files, but not into the checkout
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("command", ["make demo", "make test", "pip install"])
def test_first_commands_are_shown(command):
    assert command in README


def test_links_within_the_tree_lead_somewhere():
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", README)
    assert all((ROOT / target).exists() for target in targets)
