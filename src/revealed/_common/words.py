"""How messages, tables and pages count things."""

from __future__ import annotations


def count(n: int, noun: str, plural: str | None = None) -> str:
    """`1 row`, `3 rows`, `1 row has`, `1,200 rows have`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
