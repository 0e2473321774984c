"""Kinds of option that several commands have."""

from __future__ import annotations

import argparse
import math
import re

_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def whole(text: str) -> int:
    """A whole number of at least 0."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, got {text!r}")
    return int(text)


def signed(text: str) -> float:
    """A finite number in plain digits."""
    value = number(text.removeprefix("-"))
    return -value if text.startswith("-") else value


def number(text: str) -> float:
    """A finite number of at least 0, in plain digits: `float` takes 1_6 too."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a finite number of at least 0, got {text!r}")
    return value
