"""What a machine with a GPU has: no solvers, no safetensors, no installed `revealed`.

Each test runs in a fresh interpreter that finds the packages named here and no others.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = os.pathsep.join([str(ROOT / "src"), str(ROOT / "experiments" / "src")])
THERE = ["numpy", "scipy", "torch", "triton", "numba", "sklearn", "matplotlib", "pandas", "rich"]
THEIRS = [
    "llvmlite",
    "joblib",
    "cloudpickle",
    "threadpoolctl",
    "sympy",
    "mpmath",
    "networkx",
    "jinja2",
    "fsspec",
]
THEIRS += ["markupsafe", "filelock", "typing_extensions", "functorch", "torchgen", "dateutil"]
THEIRS += ["six", "pytz", "tzdata", "packaging", "PIL", "kiwisolver", "contourpy", "cycler"]
THEIRS += [
    "pyparsing",
    "fontTools",
    "mpl_toolkits",
    "pylab",
    "pygments",
    "markdown_it",
    "mdurl",
    "narwhals",
]
"""What those packages bring along."""

# Before the program: nothing else is found.
ONLY = f"""
import sys

KNOWN = {{*sys.stdlib_module_names, "revealed", "revealed_experiments", *{THERE}, *{THEIRS}}}

class Only:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        known = name.partition(".")[0] in KNOWN or name.startswith("_")
        return self.finder.find_spec(name, path, target) if known else None

sys.meta_path[:] = [Only(finder) for finder in sys.meta_path]
"""
# The exceptions: what talks to HiGHS, and modules in Triton's language where there is no Triton.
IMPORT_ALL = """
import importlib, importlib.util, pkgutil
import revealed, revealed_experiments

without_triton = importlib.util.find_spec("triton") is None
count = 0
ours = [
    *pkgutil.walk_packages(revealed.__path__, "revealed."),
    *pkgutil.walk_packages(revealed_experiments.__path__, "revealed_experiments."),
]
for found in ours:
    if found.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        kernel = without_triton and error.name == "triton" and ".gpu." in found.name
        if not kernel and (found.name, error.name) != ("revealed.oracles.highs", "highspy"):
            raise
    count += 1
print("imported", count > 200)
"""
VISION = """
from dataclasses import replace
from revealed_experiments.bench.vision import command, parts
from revealed.cli import main
from revealed_experiments.cli import GROUPS

def small(part):
    data = part.data | {"side": 4, "sizes": [12, 6, 6]}
    return replace(part, data=data, epochs=1, batch_size=6)

parts.QUICK_PARTS = tuple(map(small, parts.QUICK_PARTS))
command.QUICK_CHOOSING = replace(command.QUICK_CHOOSING, sizes=[6, 6, 6], epochs=1, steps=(0.01,))
words = ["bench", "vision", "--quick", "--device", "cpu", "--jobs", "1", "--out", sys.argv[1]]
code = main(words, groups=GROUPS) or main(["bench", "report", sys.argv[1]], groups=GROUPS)
print("ended", code)
"""


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ONLY + program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize("name", ["safetensors", "highspy", "cvxpy", "pytest"])
def test_other_packages_are_not_found(name):
    assert find_spec("pytest") is not None
    done = run_python(f"import {name}")
    assert done.returncode == 1
    assert f"No module named '{name}'" in done.stderr


def test_every_module_can_be_imported():
    done = run_python(IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "imported True"


def test_the_experiment_on_pictures_runs_and_is_reported(tmp_path):
    done = run_python(VISION, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "ended 0", done.stdout
    assert (tmp_path / "report.html").is_file()
    runs = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert len(runs) == 18  # nine methods on either part
