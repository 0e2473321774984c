"""The documentation: its examples run, its pages hang together, its figures are those of the runs.

`make docs` builds it, with warnings as errors.
"""

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import revealed as rv

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not {"generated", "_tools"} & set(path.parts))
PYTHON = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
ELSEWHERE = {"vision": "tests/test_docs_vision.py runs its example"}
NEEDS = {
    "rv.from_pyepo": "PyEPO has an environment of its own; see tests/test_importers_pyepo.py",
    "import pyepo": "the same; its block on guide/coming_from runs there, see below",
    "from cvxpylayers": "not installed anywhere here; the block only shows what it is like",
}
PYEPO = ROOT / ".venv-pyepo/bin/python"

# What a page takes as given, so that its examples can stay short.
GIVEN = {
    "losses": """
import numpy as np, torch, revealed as rv
problem = rv.problems.grid_shortest_path(3, 3, directed="right-down")
z, net = torch.randn(8, 2), torch.nn.Linear(2, problem.n_variables)
c = torch.rand(8, problem.n_variables)
x_star = torch.as_tensor(problem.solve(c.numpy()).x)
""",
    "guide/large_data": """
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, revealed as rv
from pathlib import Path
Path("days").mkdir()
_path, _Z = rv.problems.grid_shortest_path(5, 5, directed="right-down"), np.random.rand(400, 2)
_X = _path.solve(4 + _Z @ np.random.rand(2, 40)).x
_table = {"rain": _Z[:, 0], "hour": _Z[:, 1]} | {f"x{k + 1}": _X[:, k] for k in range(40)}
pq.write_table(pa.table(_table), "days/1.parquet")
""",
    "importers": """
import numpy as np, cvxpy as cp, revealed as rv
from pathlib import Path
import gzip, importlib.resources
plan = importlib.resources.files("revealed.cli.tour").joinpath("files/plan.mps").read_bytes()
Path("plan.mps.gz").write_bytes(gzip.compress(plan))
_model = rv.read_mps("plan.mps.gz")
Z = np.random.default_rng(0).random((5, 2))
_X = _model.problem.solve(1 + Z @ np.random.default_rng(1).random((2, 24))).x
table = dict(zip(_model.variable_names, _X.T))
held, shares = np.full(8, 1 / 8), np.eye(8)[:3]
""",
}


def name_of(path: Path) -> str:
    return path.relative_to(DOCS).with_suffix("").as_posix()


@pytest.fixture(scope="module")
def tools():
    """Import one of the modules that make the pages."""
    sys.path.insert(0, str(DOCS / "_tools"))
    yield importlib.import_module
    sys.path.remove(str(DOCS / "_tools"))


# --- examples ------------------------------------------------------------------------------------

WITH_CODE = [
    p for p in PAGES if PYTHON.search(p.read_text("utf-8")) and name_of(p) not in ELSEWHERE
]


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_python_blocks_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    exec(GIVEN.get(name_of(page), ""), names)
    for number, block in enumerate(PYTHON.findall(page.read_text("utf-8"))):
        code = compile(block, f"{page.name}, block {number}", "exec")
        if not any(word in block for word in NEEDS):
            exec(code, names)


@pytest.mark.skipif(not PYEPO.exists(), reason="`make pyepo` makes the environment it needs")
def test_the_loop_of_pyepo_runs_where_pyepo_is(tmp_path):
    page = (DOCS / "guide/coming_from.md").read_text("utf-8")
    (block,) = [b for b in PYTHON.findall(page) if "import pyepo" in b]
    told = subprocess.run(
        [PYEPO, "-c", block + "print(f'regret {regret:.3f}')"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    assert 0 <= float(told.stdout.split("regret ")[1]) < 0.3


# --- pages ---------------------------------------------------------------------------------------


def test_every_page_is_in_the_tree():
    listed = {"index"}
    for page in PAGES:
        for tree in TOCTREE.findall(page.read_text("utf-8")):
            entries = [line for line in tree.split() if not line.startswith(":")]
            place = page.parent.relative_to(DOCS)
            listed |= {(place / entry).as_posix() for entry in entries}
    by_glob = {name_of(p) for p in PAGES if p.parent == DOCS} if "*" in listed else set()
    assert {name_of(page) for page in PAGES} - listed - by_glob == set()


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text("utf-8")):
            made_at_build = "reports/" in target or "generated" in target
            assert made_at_build or (page.parent / target).exists(), f"{page.name}: {target}"


def test_contributing_speaks_of_files_that_there_are():
    told = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = told.partition("## Where a line belongs")[2].partition("## How to add")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 10
    for _, _, places, tests, _ in rows:
        found = re.findall(r"`([\w./]+(?:\.py|/))`", places)
        assert found
        homes = (ROOT / "src/revealed", ROOT)
        assert all(any((home / name).exists() for home in homes) for name in found), found
        for name in re.findall(r"`(.+?)`", tests):
            assert (ROOT / name).is_dir() or any((ROOT / "tests").rglob(f"{name}.py")), name


def test_public_names_are_in_the_reference():
    told = "\n".join(path.read_text("utf-8") for path in (DOCS / "api").glob("*.md"))
    modules = ("problems", "importers", "losses", "fit", "vision")
    errors = [name for name in rv.__all__ if name.endswith("Error")]
    skipped = {*modules, *errors, "__version__"}
    missing = [
        name
        for name in rv.__all__
        if name not in skipped and not re.search(rf"revealed\.{name}\b", told)
    ]
    assert missing == []
    assert ".. automodule:: revealed.errors" in told
    for name in re.findall(r"auto\w+:: revealed\.([\w.]+)", told):
        _find(name)


def _find(name: str):
    """What a dotted name below `revealed` stands for; the reference must not speak of ghosts."""
    found = importlib.import_module("revealed")
    path = "revealed"
    for part in name.split("."):
        path += f".{part}"
        found = getattr(found, part) if hasattr(found, part) else importlib.import_module(path)
    return found


def test_the_losses_of_the_reference_are_all_there_are():
    told = (DOCS / "api/losses.md").read_text("utf-8")
    assert all(kind.__name__ in told for kind in rv.losses.LOSSES.values())


def test_the_configuration_is_understood(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.setattr(sys, "path", list(sys.path))
    names = {"__file__": str(DOCS / "conf.py")}
    exec(compile((DOCS / "conf.py").read_text("utf-8"), "conf.py", "exec"), names)
    for extension in names["extensions"]:
        assert importlib.util.find_spec(extension) is not None


# --- what is made when pages are built -----------------------------------------------------------


def test_missed_targets_are_all_told(tools):
    results = tools("results")
    told = results.targets_table(missed=True)
    for path in (ROOT / "experiments/results").glob("*.json"):
        for target in json.loads(path.read_text("utf-8")).get("targets", ()):
            row = f"| {path.stem} | {target['name']} |"
            assert (row in told) == (not target["holds"])


def test_claims_that_fail_are_told_and_no_others(tools):
    results = tools("results")
    failed, every = results.claims_list("synthetic", failed=True), results.claims_list("synthetic")
    fallen = [line for line in every.splitlines() if line.startswith("- **Does not hold**")]
    assert [line for line in failed.splitlines() if line.startswith("- ")] == fallen
    assert all(line.startswith("- ") for line in every.splitlines())


def test_the_board_of_claims_has_every_verdict(tools):
    results = tools("results")
    board, every = results.claims_board("synthetic"), results.claims_list("synthetic")
    for verdict in ("Holds", "Does not hold", "Cannot be told"):
        marks = (f"- {verdict}:", f"- **{verdict}**:")
        lines = [line for line in every.splitlines() if line.startswith(marks)]
        assert board.count(f"**{verdict}**: ") == len(lines) > 0


def test_the_caption_of_the_first_figure_is_what_the_script_finds(tools):
    figure = tools("first_figure")
    assert (DOCS / "images/first.txt").read_text("utf-8").strip() == figure.described(figure.play())


def test_help_of_every_command_is_told(tools):

    from revealed.cli.registry import COMMANDS
    from revealed_experiments.cli import BENCHES

    page = tools("commands").page()
    for name in (*COMMANDS, *(f"bench {n}" for n in BENCHES)):
        assert f"\n## revealed {name}\n" in f"\n{page}"


@pytest.mark.parametrize(
    "plain, expected",
    [
        (["the mean of |x| * 2"], ["the mean of \\|x\\| \\* 2"]),
        (["see `project`s"], ["see ``project``\\ s"]),
        (["A formula:", "", "    a * b", "", "More."], "A formula:||::||       a * b|||More."),
        (["name : int", "    of |x|"], ["name : int", "    of \\|x\\|"]),
        (["by Li, *Good", "Title* (2020), x* + y*"], ["by Li, *Good Title* (2020), x\\* + y\\*"]),
        (["calls `f(a,", "b)` once"], ["calls ``f(a, b)`` once"]),
        (["loss     x * x", "exact    x = y"], "::|   loss     x * x|   exact    x = y"),
    ],
)
def test_docstrings_become_text_that_means_what_it_says(tools, plain, expected):
    pytest.importorskip("sphinx")
    found = tools("docstrings").converted(plain)
    if isinstance(expected, str):
        assert [line for line in found if line] == [e for e in expected.split("|") if e]
    else:
        assert found == expected


def test_formulas_become_mathml():
    pages = "\n".join(page.read_text("utf-8") for page in PAGES)
    from docutils.utils.math.latex2mathml import tex2mathml

    blocks = re.findall(r"^\$\$\n(.*?)^\$\$", pages, flags=re.MULTILINE | re.DOTALL)
    inline = re.findall(r"(?<![\\$\w])\$([^$\n`]+)\$(?![\w$])", pages)
    assert len(blocks) > 10
    for formula in (*blocks, *inline):
        assert "<math" in tex2mathml(formula)
    # One half without braces would be read as twelve over what comes next.
    assert not re.search(r"\\t?frac\s*\w", pages)


def test_what_is_left_of_an_example_that_is_gone_is_taken_away(tools, tmp_path):
    pages, scripts = tmp_path / "gallery", tmp_path / "scripts"
    for path in (
        scripts / "plot_gone.py",
        pages / "plot_gone.rst",
        pages / "plot_shortest_path.rst",
    ):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    tools("parts").stage_examples(scripts)
    assert [path.name for path in pages.iterdir()] == ["plot_shortest_path.rst"]
    expected = {path.name for path in (ROOT / "examples").glob("plot_*.py")}
    assert {path.name for path in scripts.glob("plot_*.py")} == expected


@pytest.mark.parametrize("heading", ["The path of a sample", "One place for each change"])
def test_contributing_names_what_is_there(heading):
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 10
    for row in rows:
        words = re.findall(r"`(.+?)`", row)
        files = [ROOT / word for word in words if "/" in word]
        assert files
        text = ""
        for path in files:
            assert path.exists(), path
            text += path.read_text("utf-8") if path.is_file() else ""
        for word in (word for word in words if "/" not in word):
            for name in re.findall(r"[A-Za-z_]{3,}", word.partition("(")[0].rpartition(".")[2]):
                known = name in text or name in ("revealed", "fit", "loss", "solver")
                assert known, (name, row)


def test_tutorials_show_what_their_blocks_print_and_draw(tools, tmp_path, monkeypatch):
    played = tools("played")
    monkeypatch.setattr(played, "PICTURES", tmp_path)
    page = (
        "Text\n\n```python\nx = 2\nprint('two', x)\n```\n\nmore\n\n```python\n"
        "import matplotlib\nmatplotlib.use('agg')\nfrom matplotlib import pyplot as plt\n"
        "plt.plot([x, 3])\n```\nend\n"
    )
    shown = played.played(page, "page")
    assert ":class: output\n\ntwo 2\n```\n\nmore" in shown
    assert shown.endswith("```\nend\n")
    (picture,) = tmp_path.glob("*.png")
    assert picture.name in shown
    assert all((DOCS / f"{name}.md").is_file() for name in played.PLAYED)
    with pytest.raises(ZeroDivisionError):
        played.played("```python\n1 / 0\n```\n", "page")


@pytest.mark.parametrize("name", ["fit", "datasets", "metrics", "theory", "errors"])
def test_every_public_name_is_on_an_api_page(name):
    module = importlib.import_module(f"revealed.{name}")
    pages = "".join(path.read_text("utf-8") for path in (DOCS / "api").glob("*.md"))
    if f"automodule:: revealed.{name}\n" in pages:
        return
    told = set(re.findall(rf"revealed\.(?:{name}\.)?(\w+)$", pages, flags=re.MULTILINE))
    protocols = {"CostModel", "Solver"}  # of those who write a model or a solver of their own
    constants = {each for each in module.__all__ if each.isupper()}
    assert set(module.__all__) - told - protocols - constants == set()
