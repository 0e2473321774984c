"""`import revealed` is light, and the library works where its optional packages are absent.

Each test runs in a fresh interpreter: this one has imported nearly everything already.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ["torch", "sklearn", "highspy", "clarabel", "matplotlib", "rich", "cvxpy", "networkx"]
OPTIONAL = ["highspy", "clarabel", "rich", "matplotlib", "networkx", "pyarrow"]
OPTIONAL += ["cvxpy", "osqp", "piqp", "ecos", "daqp"]

# Two ways in which a package can be missing, each put before the program.
ABSENT = f"""
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in {OPTIONAL}
        return None if hidden else self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""
BROKEN = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Blocker())
"""

WORK = """
import numpy as np
import revealed as rv

problem = rv.problems.grid_shortest_path(5, 5)
rng = np.random.default_rng(0)
routes = problem.solve(1 + rng.random((8, problem.n_variables))).x
sets = rv.OptimalitySet(problem, routes, margin=1.0)
projection = rv.project(rng.random((8, problem.n_variables)), sets)
assert projection.solved.all(), projection.status
assert np.array_equal(problem.solve(projection.point).x, routes)
print("solved", int(projection.solved.sum()))
"""


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("call", ["import revealed", "import revealed.cli as c; c.build_parser()"])
def test_import_loads_nothing_heavy(call):
    done = run_python(f"{call}; import sys; print([m for m in {HEAVY} if m in sys.modules])")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_names_bring_their_packages_when_they_are_used():
    there = "print(sorted({'numpy', 'numba', 'scipy'} & {*sys.modules}))"
    done = run_python(f"import sys, revealed.cli; {there}; revealed.project; {there}")
    assert done.stdout.split("\n")[:2] == ["[]", "['numpy', 'scipy']"]


@pytest.mark.parametrize("missing", [ABSENT, BROKEN], ids=["absent", "broken"])
def test_blocker_blocks(missing):
    done = run_python(missing + "import rich")
    assert done.returncode == 1
    assert "No module named 'rich'" in done.stderr


@pytest.mark.parametrize("missing", [ABSENT, BROKEN], ids=["absent", "broken"])
def test_works_without_optional_packages(missing):
    done = run_python(missing + WORK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "solved 8"


@pytest.mark.parametrize("missing", [ABSENT, BROKEN], ids=["absent", "broken"])
def test_command_without_optional_packages_names_the_extra(missing, tmp_path):
    table = tmp_path / "contexts.parquet"
    table.write_text("any")
    call = f"""
from revealed.cli import main
main(["tour", "--out", {str(tmp_path / "tour")!r}])
files = ["--contexts", {str(table)!r}, "--decisions", {str(tmp_path / "tour/decisions.csv")!r}]
sys.exit(main(["doctor", "--problem", {str(tmp_path / "tour/plan.mps")!r}, *files]))
"""
    done = run_python(missing + call)
    assert done.returncode == 2
    assert "pip install 'revealed[tables]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_public_name_is_there():
    import revealed

    missing = [name for name in revealed.__all__ if not hasattr(revealed, name)]
    assert missing == []
    assert set(revealed.__all__) <= set(dir(revealed))


def test_version_is_that_of_the_package():
    from importlib.metadata import version

    import revealed

    assert revealed.__version__ == version("revealed")


NO_METADATA = """
import importlib.metadata

def version(name):
    raise importlib.metadata.PackageNotFoundError(name)

importlib.metadata.version = version
"""


def test_version_without_an_installed_package():
    """Run straight from the source folder, with no metadata to ask, `__version__` still exists."""
    done = run_python(NO_METADATA + "import revealed; print(revealed.__version__)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0+source"


def test_the_package_works_where_nothing_may_be_written(tmp_path):
    """A service account: neither the package nor its home can be written to."""
    code = (
        "import os, numba.core.config as c\n"
        "os.access = lambda *_: False\n"
        "import pathlib\n"
        "def refuse(self, *args, **options): raise PermissionError(13, 'no', str(self))\n"
        "pathlib.Path.mkdir = refuse\n"
        "import revealed._common.compiled as compiled\n"
        "assert compiled.cache_folder('revealed') is None\n"
        "@compiled.kernel\n"
        "def double(x): return 2.0 * x\n"
        "assert double(2.0) == 4.0\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": ""}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.parametrize(
    "package, doors",
    [
        ("clarabel", ["_common/conic.py"]),
        (
            "highspy",
            ["importers/lp.py", "oracles/highs.py", "oracles/mip.py", "oracles/subtours.py"],
        ),
    ],
)
def test_a_solver_has_one_door_for_each_kind_of_model(package, doors):
    """It knows the settings and how to stop the solver: linear and mixed-integer programs,
    linear ones that gain rows on the way, and files in the LP format."""
    import revealed

    source = Path(revealed.__file__).parent
    imports = re.compile(rf"""^\s*(import|from) {package}\b|import_module\(["']{package}""", re.M)
    users = [path for path in source.rglob("*.py") if imports.search(path.read_text("utf-8"))]
    assert sorted(path.relative_to(source).as_posix() for path in users) == doors
