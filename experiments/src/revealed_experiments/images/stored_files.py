"""Files of a data folder, which anybody may have written: arrays of numbers, and facts in JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from revealed.errors import InputError


def read_array(path: Path) -> np.ndarray:
    """The array in an .npy file; one of anything but plain numbers is refused unread."""
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError, MemoryError) as error:
        raise InputError(f"{path.name} must be an .npy file of plain numbers; {error}") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path.name} must be an .npy file of plain numbers; it is an archive.")
    return array


def read_facts(path: Path) -> dict[str, Any]:
    """The object in a small JSON file."""
    try:
        facts = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise InputError(f"{path.name} must be a JSON file; it cannot be read: {error}.") from error
    if not isinstance(facts, dict):
        raise InputError(f"{path.name} must hold a JSON object; it holds a {type(facts).__name__}.")
    return facts
