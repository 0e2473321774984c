"""What the commands print: short lines with a heading each, or one JSON object for machines."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

WIDTH = 100
HEADING = 12
"""Columns that headings take."""


def tell(heading: str, text: str) -> None:
    """One paragraph behind its heading, wrapped."""
    lines = textwrap.wrap(text, WIDTH - HEADING, break_on_hyphens=False) or [""]
    print(f"{heading:<{HEADING}}{lines[0]}")
    for line in lines[1:]:
        print(" " * HEADING + line)


def tell_json(facts: dict[str, Any]) -> None:
    """Strict JSON: what it has no number for becomes null."""
    json.dump(_plain(facts), sys.stdout, allow_nan=False, indent=1, ensure_ascii=False)
    print()


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], indent: int = 2) -> str:
    """Columns aligned, words to the left and numbers to the right."""
    lines = [list(map(str, headings)), *[list(map(str, row)) for row in rows]]
    widths = [max(len(line[k]) for line in lines) for k in range(len(headings))]
    numeric = [bool(rows) and all(_is_number(row[k]) for row in rows) for k in range(len(headings))]
    told = []
    for line in lines:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ]
        told.append((" " * indent + "  ".join(cells)).rstrip())
    return "\n".join(told)


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f}%"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 row`, `3 rows`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "").removesuffix("%") or "0")
    except ValueError:
        return cell in ("-", "")
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
