"""Kinds of option that several commands have."""

from __future__ import annotations

import argparse
import math


def whole(text: str) -> int:
    """A whole number of at least 0."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, got {text!r}")
    return int(text)


def number(text: str) -> float:
    """A finite number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if "_" in text or not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a finite number of at least 0, got {text!r}")
    return value
