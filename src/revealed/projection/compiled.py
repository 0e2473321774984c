"""How the kernels are compiled, and where the machine code is kept.

numba notices when the file of a cached function changes, but not when a function it calls does:
after an upgrade a kernel could run with yesterday's inner loop. So the cache lives in a folder
named after a digest of all the kernels' sources; any change of any of them starts a new one.
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


def kernel(function: Callable) -> Any:
    """Compile on first use, without the interpreter's lock, IEEE division, and keep the result.

    No parallel layer of numba's: threads share a batch by each calling a kernel on a part of it.
    """
    dispatcher = njit(nogil=True, error_model="numpy")(function)
    given, _settings.CACHE_DIR = _settings.CACHE_DIR, _CACHE
    try:
        dispatcher.enable_caching()
    finally:
        _settings.CACHE_DIR = given
    return dispatcher


def _digest() -> str:
    sources = hashlib.sha256()
    for path in sorted(_HERE.glob("*.py")):
        sources.update(path.read_bytes())
    return sources.hexdigest()[:16]


def _cache_folder() -> str:
    beside = _HERE / "__pycache__"
    writable = os.access(beside if beside.exists() else _HERE, os.W_OK)
    home = beside if writable else Path.home() / ".cache" / "revealed"
    return str(Path(_settings.CACHE_DIR or home) / f"kernels-{_digest()}")


_CACHE = _cache_folder()
