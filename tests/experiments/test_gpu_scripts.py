"""The scripts for a GPU machine, as far as a machine without one can tell: they load."""

import importlib
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "experiments" / "scripts"


@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("gpu_*.py")))
def test_a_script_loads(monkeypatch, name):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    assert importlib.import_module(name).__doc__
