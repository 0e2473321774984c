"""How the kernels are compiled, and where the machine code is kept.

numba notices when the file of a cached function changes, but not when a function it calls does:
after an upgrade a kernel could run with yesterday's inner loop. So the cache lives in a folder
named after a digest of all the kernels' sources; any change of any of them starts a new one.

It lies beside the package, or in the user's own cache where the package may not be written to.
Where neither may be (a service account in a container), kernels are compiled anew in every process;
never in a place that others can write to, for what is kept there is run.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import config as _config

_HERE = Path(__file__).parent
_settings: Any = _config  # numba sets its attributes at run time, unseen by type checkers


def kernel(function: Callable | None = None, **options: Any) -> Any:
    """Compile on first use, without the interpreter's lock, IEEE division, and keep the result.

    No parallel layer of numba's: threads share a batch by each calling a kernel on a part of it.
    `options` are numba's own.
    """
    if function is None:
        return lambda given: kernel(given, **options)
    dispatcher = njit(nogil=True, error_model="numpy", **options)(function)
    if _CACHE is None:
        return dispatcher
    given, _settings.CACHE_DIR = _settings.CACHE_DIR, _CACHE
    try:
        dispatcher.enable_caching()
    finally:
        _settings.CACHE_DIR = given
    return dispatcher


def _digest() -> str:
    """Of every file that holds a kernel."""
    sources = hashlib.sha256()
    for path in sorted(_HERE.rglob("*.py")):
        content = path.read_bytes()
        if b"@kernel" in content:
            sources.update(content)
    return sources.hexdigest()[:16]


def _cache_folder() -> str | None:
    places = [_settings.CACHE_DIR] if _settings.CACHE_DIR else [_HERE / "__pycache__", _own_cache()]
    for place in places:
        folder = Path(place) / f"kernels-{_digest()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return str(folder)
    return None


def _own_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "revealed"


_CACHE = _cache_folder()
