"""How the kernels are compiled, and where the machine code is kept.

numba notices when the file of a cached function changes, but not when something it inlines does: a
function of another file, a constant, a vector instruction. After an upgrade a kernel could run with
yesterday's inner loop. So the machine code of a module lies in a folder named after a digest of
that module and of all it imports from its own package; a change to any of these files starts a new
folder.

The folder lies beside the package, or in the user's own cache where the package may not be written
to. Where neither may be (a service account in a container), kernels are compiled anew in every
process; never in a place that others can write to, because what is kept there is run.

Compiling takes some twenty seconds of processor time, once per machine and version. A terminal or a
notebook shows a notice; programs that write to a file or a pipe show none.
"""

import hashlib
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import config as _config
from numba.core import event as _event

_HERE = Path(__file__).parent
_settings: Any = _config  # numba sets its attributes at run time, unseen by type checkers
_IMPORT = re.compile(r"^(?:from (\.*)([\w.]*) import (\([^)]*\)|[^\n(]*)|import ([\w.]+))", re.M)
"""Imports at the left margin. Indented ones are for type checkers or run inside a Python function,
and compiled code can inline neither."""

NOTICE = "revealed: compiling for this machine, once; about half a minute on an idle processor ..."
_OWN = __name__.partition(".")[0] + "."


class _Notice(_event.Listener):
    """Says on the error stream, once per process, that a kernel is being compiled. numba triggers
    the event only where the cache holds no machine code."""

    def __init__(self) -> None:
        self.is_given = False

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if self.is_given or not function.__module__.startswith(_OWN):
            return
        self.is_given = True
        if _somebody_waits():
            print(NOTICE, file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        pass


def _somebody_waits() -> bool:
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


_event.register("numba:compile", _Notice())


def kernel(function: Callable | None = None, **options: Any) -> Any:
    """Compile on first use, without the interpreter's lock, IEEE division, and keep the result.

    No parallel layer of numba's: threads share a batch by each calling a kernel on a part of it.

    Parameters
    ----------
    function : callable
        What to compile.
    **options
        numba's own.

    Returns
    -------
    numba.core.dispatcher.Dispatcher
    """
    if function is None:
        return lambda given: kernel(given, **options)
    dispatcher = njit(nogil=True, error_model="numpy", **options)(function)
    folder = cache_folder(function.__module__)
    if folder is None:
        return dispatcher
    given, _settings.CACHE_DIR = _settings.CACHE_DIR, folder
    try:
        dispatcher.enable_caching()
    finally:
        _settings.CACHE_DIR = given
    return dispatcher


@cache
def cache_folder(module: str) -> str | None:
    """Where the machine code of a module's kernels is kept; None where nothing may be written."""
    places = [_settings.CACHE_DIR] if _settings.CACHE_DIR else [_HERE / "__pycache__", _own_cache()]
    for place in places:
        folder = Path(place) / f"kernels-{_digest(module)}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return str(folder)
    return None


def _own_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "revealed"


def _digest(module: str) -> str:
    contents = hashlib.sha256()
    for path in sources_of(module):
        contents.update(path.read_bytes())
    return contents.hexdigest()[:16]


def sources_of(module: str) -> list[Path]:
    """The file of a module and of every module of its package that its imports lead to.

    Parameters
    ----------
    module : str
        Its full name. It may still be loading, as it is when it decorates a kernel.

    Returns
    -------
    list of Path
        In the order of the modules' names.
    """
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        file = _file_of(name)
        if name not in found and file is not None:
            found[name] = file
            waiting += _named_in(name, file)
    return [found[name] for name in sorted(found)]


@cache
def _file_of(module: str) -> Path | None:
    """The file of a module, in the folder of its package; None for what is not a module there."""
    root, *inner = module.split(".")
    folders = getattr(sys.modules.get(root), "__path__", None)
    if not folders:  # a script, or code from a string
        return None
    place = Path(folders[0], *inner)
    choices = (place / "__init__.py", place.with_suffix(".py"))
    return next((file for file in choices if file.is_file()), None)


@cache
def _named_in(module: str, file: Path) -> tuple[str, ...]:
    """Full names of what a module imports from its package, be they modules or parts of modules."""
    root, _, _ = module.partition(".")
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    found: list[str] = []
    for dots, name, parts, whole in _IMPORT.findall(file.read_text("utf-8")):
        above = package.split(".")[: package.count(".") + 2 - len(dots)] if dots else []
        base = whole or ".".join([*above, *([name] if name else [])])
        own = [part.split()[0] for part in parts.strip("()").split(",") if part.split()]
        found += [base, *(f"{base}.{part}" for part in own)]
    return tuple(name for name in found if name.partition(".")[0] == root)
