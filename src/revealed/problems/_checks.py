"""Checks that several catalogue entries share."""

from __future__ import annotations

import operator
from typing import Any

from ..errors import InputError


def positive_int(value: Any, name: str) -> int:
    """`value` as an int of at least 1; whole floats and booleans are refused, not rounded."""
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise InputError(f"`{name}` must be a positive integer; got {value!r}.")
    return number
