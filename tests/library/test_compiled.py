"""Machine code of a kernel is kept as long as nothing that it inlines has changed."""

import importlib
import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from revealed._common import compiled
from revealed._common.compiled import cache_folder, sources_of

SOURCE = Path(sys.modules["revealed"].__file__).parent
KERNELS = sorted(
    ".".join(("revealed", *path.relative_to(SOURCE).with_suffix("").parts))
    for path in SOURCE.rglob("*.py")
    if "\n@kernel" in path.read_text("utf-8")
)

PACKAGE = {
    "__init__.py": "",
    "constants.py": "FACTOR = 2.0\n",
    "inner.py": """
from revealed._common.compiled import kernel
from .constants import (
    FACTOR,
)

@kernel
def scale(x):
    return FACTOR * x
""",
    "outer.py": """
from revealed._common.compiled import kernel
from . import inner
from .inner import scale

@kernel
def above(x):
    return scale(x) + 1.0
""",
}


def write(folder, **changed):
    for name, text in (PACKAGE | changed).items():
        (folder / name).write_text(text, "utf-8")


def run(folder):
    """The kernel's answer to 1.0 and whether its machine code was there."""
    code = "from box.outer import above; print(above(1.0), len(above.stats.cache_hits))"
    paths = os.pathsep.join([str(folder), str(SOURCE.parent)])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kept"), "PYTHONPATH": paths}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    answer, hits = done.stdout.split()
    return float(answer), int(hits)


def test_a_change_to_anything_inlined_is_compiled_anew(tmp_path):
    box = tmp_path / "box"
    box.mkdir()
    write(box)
    assert run(tmp_path) == (3.0, 0)
    assert run(tmp_path) == (3.0, 1)
    write(box, **{"constants.py": "FACTOR = 5.0\n"})
    assert run(tmp_path) == (6.0, 0)
    write(box, **{"inner.py": PACKAGE["inner.py"].replace("FACTOR * x", "x - 1.0")})
    assert run(tmp_path) == (1.0, 0)
    write(box)
    assert run(tmp_path) == (3.0, 1)  # both ways back


@pytest.mark.parametrize("name", KERNELS)
def test_the_digest_covers_what_a_kernel_refers_to(name):
    module = importlib.import_module(name)
    covered = sources_of(name)
    assert Path(module.__file__) in covered
    kernels = [value for value in vars(module).values() if hasattr(value, "py_func")]
    kernels = [value for value in kernels if value.py_func.__module__ == name]
    assert kernels
    for made in kernels:
        assert str(made._cache.cache_path).startswith(cache_folder(name))
        function = made.py_func
        for used in function.__code__.co_names:
            home = getattr(function.__globals__.get(used), "__module__", None)
            if str(home).startswith("revealed."):
                assert Path(sys.modules[home].__file__) in covered, (function.__name__, used)


def test_the_digest_covers_the_vector_instructions():
    names = {path.name for path in sources_of("revealed.projection.cpu.newton")}
    assert {"newton.py", "factor.py", "group.py", "simd.py", "compiled.py"} <= names
    assert "project.py" not in names  # nor everything: a change there compiles nothing


class Terminal(io.StringIO):
    def isatty(self):
        return True


def compile_event(function):
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


@pytest.mark.parametrize("stream, told", [(Terminal, 1), (io.StringIO, 0)], ids=["tty", "pipe"])
def test_whoever_waits_at_a_terminal_is_told_once(monkeypatch, stream, told):
    monkeypatch.setattr(sys, "stderr", stream())
    notice = compiled._Notice()
    for _ in range(2):
        notice.on_start(compile_event(cache_folder))  # a function of our own
    assert sys.stderr.getvalue().count(compiled.NOTICE) == told


def test_kernels_of_others_are_no_concern_of_ours(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    compiled._Notice().on_start(compile_event(write))
    assert sys.stderr.getvalue() == ""
