"""How messages, tables and pages count and name things."""

from __future__ import annotations

import unicodedata
from enum import IntEnum
from typing import Any


def count(n: int, noun: str, plural: str | None = None) -> str:
    """`1 row`, `3 rows`, `1 row has`, `1,200 rows have`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def every(n: int, noun: str) -> str:
    """`the only row`, `both rows`, `all 1,200 rows`."""
    return f"the only {noun}" if n == 1 else f"both {noun}s" if n == 2 else f"all {n:,} {noun}s"


def plain_name(text: str) -> str:
    """A name as it is shown and compared: on one line, with single blanks, without invisible
    marks or ones that a terminal obeys, and every accent in one letter with its own (Unicode's
    NFC): some systems write `ü` as `u` and two dots, which looks the same and is not."""
    text = text.strip()
    if text.isascii() and text.isprintable() and "  " not in text:
        return text
    seen = (letter for letter in text if letter.isprintable() or letter.isspace())
    return unicodedata.normalize("NFC", " ".join("".join(seen).split()))


def apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers in words, with enough figures to differ."""
    for figures in (6, 9, 12, 17):
        words = _words(one, figures), _words(other, figures)
        if words[0] != words[1]:
            break
    return words


def _words(value: float, figures: int) -> str:
    whole = abs(value) < 1e15 and value == int(value)
    return str(int(value)) if whole else f"{value:.{figures}g}"


def tally(codes: Any, names: type[IntEnum]) -> str:
    """`198 OPTIMAL, 2 INFEASIBLE`: how many instances have which status; numpy or torch."""
    codes = codes.tolist()
    there = ((codes.count(code.value), code.name) for code in names)
    return ", ".join(f"{number:,} {name}" for number, name in there if number) or "none"


def shapes(record: Any) -> str:
    """`Split(contexts (200, 5), costs None)`: a record in one line, arrays by their shape."""
    parts = []
    for name in record.__dataclass_fields__:
        value = getattr(record, name)
        shape = getattr(value, "shape", None)
        parts.append(f"{name} {tuple(shape)}" if isinstance(shape, tuple) else f"{name}={value!r}")
    return f"{type(record).__name__}({', '.join(parts)})"
