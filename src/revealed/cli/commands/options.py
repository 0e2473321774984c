"""Kinds of option that several commands have."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable

_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def whole_from(least: int) -> Callable[[str], int]:
    """A reader of whole numbers of at least `least`, in plain digits: `int` takes 1_6 too."""

    def whole_number(text: str) -> int:
        # Eighteen digits fit every array; int refuses some thousands with words of its own.
        plain = text.isascii() and text.isdigit() and len(text) <= 18
        if not plain or int(text) < least:
            raise argparse.ArgumentTypeError(
                f"expected a whole number of at least {least}, got {text[:40]!r}"
            )
        return int(text)

    return whole_number


whole = whole_from(0)
positive = whole_from(1)


def signed(text: str) -> float:
    """A finite number in plain digits."""
    value = number(text.removeprefix("-"))
    return -value if text.startswith("-") else value


def seconds(text: str) -> float:
    """A finite number above 0."""
    value = number(text)
    if not value:
        raise argparse.ArgumentTypeError("expected a number of seconds above 0, got 0")
    return value


def number(text: str) -> float:
    """A finite number of at least 0, in plain digits: `float` takes 1_6 too."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a finite number of at least 0, got {text!r}")
    return value
