"""What stands in a cell: a number as people and spreadsheets write it, a word, or a gap.

Python's own `float` takes more than people mean by a number: `1_6`, digits of other scripts,
`infinity`. Here a number consists of ASCII digits, marks, a sign and an exponent.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple

from .names import plain_name

MISSING = frozenset({"", "na", "n/a", "n.a.", "nan", "null", "none", "#n/a"})
"""Cells, in small letters, that stand for a missing number."""
TRUTH = {"true": 1.0, "false": 0.0}
ENDLESS = {"inf": math.inf, "-inf": -math.inf, "Inf": math.inf, "-Inf": -math.inf}
"""As pandas, numpy and R write numbers without end; no other tool writes such a number."""
LONGEST_UNIT = 24
_BLANKS = " '’\u00a0\u2009\u202f"
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_BLANK_GROUPS = re.compile(rf"([+-]?\d{{1,3}})((?:[{_BLANKS}]\d{{3}})+)([.,]\d+)?", re.ASCII)
"""1 234 567,8 and 1'234.5"""
_POINT_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d*)?", re.ASCII)
"""1.234,5 and, in a file with decimal commas, 1.234"""
_COMMA_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(?:(?:,\d{3})+\.\d*|(?:,\d{3}){2,})", re.ASCII)
"""1,234.5 and 1,234,567; a lone 1,234 may be either, and what is beside it decides."""
_LONE_GROUP = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_MARKS_APART = r"[+-]?[\d. ]*\d,(?:\d{1,2}|\d{4,})|[+-]?0,\d+|[+-]?\d{1,3}(?:\.\d{3})+,\d+"
_DECIMAL_COMMA = {
    ";": re.compile(r"[+-]?[\d. ]*\d,\d+", re.ASCII),
    None: re.compile(_MARKS_APART, re.ASCII),
}
"""Numbers with a decimal comma. Between semicolons any such number has one; elsewhere a lone 1,234
may be a thousand, for English spreadsheets write tabs and quotes too."""
_LETTER = r"[^\W\d_]|[%‰°€$£¥₹]"
_SUFFIX = re.compile(
    rf"(?P<number>[+-]?[\d.](?:[\d.,{_BLANKS}]*\d)?\.?(?:[eE][+-]?\d+)?)(?![eEdDxXbBoO]\d|[eE]$)\s*"
    rf"(?P<unit>(?:{_LETTER})(?:{_LETTER}|[/*^·.() \d²³-])*)",
)
"""A unit begins with a letter or a sign; 0x1, 0b1, 1d5 and 1e are no numbers with units."""
_PREFIX = re.compile(rf"(?P<unit>[€$£¥₹]|[A-Z]{{3}}) ?(?P<number>[+-]?\d(?:[\d.,{_BLANKS}]*\d)?)")


class Quantity(NamedTuple):
    """A number with its unit, which may be empty."""

    value: float
    unit: str
    grouped: bool = False
    """Whether marks set off its thousands."""
    lone: bool = False
    """Whether it is like 1,234: a thousand if the comma is no decimal mark."""


def is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def number(cell: str, decimal: str = ".") -> float | None:
    """The number in a cell, None if there is none; the minus sign may be the one of typesetters."""
    found = _plain(_stripped(cell), decimal)
    return None if found is None or found.lone else found.value


def quantity(cell: str, decimal: str = ".") -> Quantity | None:
    """The number in a cell with its unit, such as 69,6 USD/bbl; None if there is none."""
    text = _stripped(cell)
    found = _plain(text, decimal)
    if found is not None:
        return found
    parts = _SUFFIX.fullmatch(text) or _PREFIX.fullmatch(text)
    if parts is None or len(parts["unit"]) > LONGEST_UNIT:
        return None
    found = _plain(parts["number"], decimal)
    return None if found is None else found._replace(unit=plain_name(parts["unit"]))


def _stripped(cell: str) -> str:
    return cell.strip().replace("\N{MINUS SIGN}", "-")


def _plain(text: str, decimal: str) -> Quantity | None:
    """A number without a unit."""
    grouped, lone = False, False
    blanks = _BLANK_GROUPS.fullmatch(text)
    if blanks:
        text, grouped = blanks[1] + re.sub(r"\D", "", blanks[2]) + (blanks[3] or ""), True
    if decimal == ",":
        if _POINT_GROUPS.fullmatch(text):
            text, grouped = text.replace(".", ""), True
        elif "." in text:  # a decimal point among decimal commas: ambiguous
            return None
        text = text.replace(",", ".", 1)
    elif _COMMA_GROUPS.fullmatch(text):
        text, grouped = text.replace(",", ""), True
    elif _LONE_GROUP.fullmatch(text):
        text, grouped, lone = text.replace(",", ""), True, True
    if _NUMBER.fullmatch(text):
        value = float(text)  # 1e400 is beyond any number here, and does not mean "infinite"
        return Quantity(value, "", grouped, lone) if math.isfinite(value) else None
    value = TRUTH.get(text.lower(), ENDLESS.get(text))
    return None if value is None else Quantity(value, "")


def word(value: Any) -> str:
    """A value that is no text, as a text file would have it: 7 for 7.0, a date for its midnight."""
    if value is None or value != value:
        return ""
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        return str(int(value))
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, datetime) and value.time() == time() and value.tzinfo is None:
        return date(value.year, value.month, value.day).isoformat()
    return plain_name(str(value))


def has_decimal_comma(cell: str, delimiter: str) -> bool:
    """Whether a cell shows that its file writes decimal commas."""
    if "," not in cell:
        return False
    shown = _DECIMAL_COMMA.get(delimiter, _DECIMAL_COMMA[None])
    text = _stripped(cell)
    if shown.fullmatch(text):
        return True
    parts = _SUFFIX.fullmatch(text) or _PREFIX.fullmatch(text)
    return parts is not None and shown.fullmatch(parts["number"]) is not None


def has_clear_point(cell: str) -> bool:
    """Whether the point of a number can only be a decimal one: 8.00 or 69.6 USD, not 1.234."""
    if not has_decimal_point(cell):
        return False
    text = _stripped(cell)
    parts = _SUFFIX.fullmatch(text) or _PREFIX.fullmatch(text)
    return _POINT_GROUPS.fullmatch(parts["number"] if parts else text) is None


def has_decimal_point(cell: str) -> bool:
    """Whether a cell is a number with a decimal point, with or without a unit."""
    if "." not in cell or "," in cell:
        return False
    text = _stripped(cell)
    parts = _SUFFIX.fullmatch(text) or _PREFIX.fullmatch(text)
    return _NUMBER.fullmatch(parts["number"] if parts else text) is not None
