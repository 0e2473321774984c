"""Numbers that settings must be, and the sentences that refuse others."""

from __future__ import annotations

import math
import operator
from numbers import Integral, Real
from typing import Any

from ..errors import InputError


def check_whole(value: Any, name: str, least: int) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise InputError(f"`{name}` must be a whole number of at least {least}; got {value!r}.")


def check_number(value: Any, name: str, hint: str = "") -> None:
    """Refuse what is not a finite number of at least 0."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < math.inf:
        raise InputError(f"`{name}` must be a finite number of at least 0; got {value!r}.{hint}")


def positive_int(value: Any, name: str) -> int:
    """`value` as an int of at least 1; whole floats and booleans are refused, not rounded."""
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise InputError(f"`{name}` must be a positive integer; got {value!r}.")
    return number
