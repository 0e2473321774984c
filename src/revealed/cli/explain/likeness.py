"""How two numbers that differ are told apart in words."""

from __future__ import annotations


def apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers in words, with as many figures as it takes to tell them apart."""
    for figures in (6, 9, 12, 17):
        words = _words(one, figures), _words(other, figures)
        if words[0] != words[1]:
            break
    return words


def _words(value: float, figures: int) -> str:
    whole = abs(value) < 1e15 and value == int(value)
    return str(int(value)) if whole else f"{value:.{figures}g}"
