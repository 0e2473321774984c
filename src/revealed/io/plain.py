"""Values as JSON gives them back, numbers that are not finite among them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError

_BEYOND = "not finite"
"""The key under which JSON keeps a number that it has no sign for."""


def plain(value: Any, where: str) -> Any:
    """A value as JSON gives it back, numbers that are not finite under a key of their own."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(name): plain(item, f"{where}, {name}") for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, where) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return {_BEYOND: str(value)}
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise InputError(
        f"On disk there are numbers, text and lists of them; {where} is a {type(value).__name__}."
    )


def unplain(value: Any) -> Any:
    """What `plain` was given, lists for tuples."""
    if isinstance(value, dict):
        if value.keys() == {_BEYOND} and value[_BEYOND] in ("nan", "inf", "-inf"):
            return float(value[_BEYOND])
        return {name: unplain(item) for name, item in value.items()}
    return [unplain(item) for item in value] if isinstance(value, list) else value
