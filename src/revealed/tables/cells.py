"""What stands in a cell: a number as people and spreadsheets write it, a word, or a gap."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from .names import plain_name

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a"})
"""Cells, in small letters, that stand for a missing number."""
TRUTH = {"true": 1.0, "false": 0.0}
_BLANK_GROUPS = re.compile(r"([+-]?\d{1,3})((?:[ '’\u00a0\u2009\u202f]\d{3})+)([.,]\d+)?")
"""1 234 567,8 and 1'234.5"""
_POINT_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d*)?")
"""1.234,5 and, in a file with decimal commas, 1.234"""
_COMMA_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(?:(?:,\d{3})+\.\d*|(?:,\d{3}){2,})")
"""1,234.5 and 1,234,567; a lone 1,234 may be either and is left to whoever wrote it."""
_DECIMAL_COMMA = {
    ";": re.compile(r"[+-]?[\d. ]*\d,\d+"),
    "\t": re.compile(r"[+-]?[\d. ]*\d,(?:\d{1,2}|\d{4,})|[+-]?0,\d+"),
}
"""Numbers with a decimal comma, by what stands between cells. Between tabs a lone 1,234 may be a
thousand, for English spreadsheets write tabs too; between commas it would need quotes, which nobody
writes."""


def is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def number(cell: str, decimal: str = ".") -> float | None:
    """The number in a cell, None if there is none; the minus sign may be the one of typesetters."""
    text = cell.strip().replace("\N{MINUS SIGN}", "-")
    grouped = _BLANK_GROUPS.fullmatch(text)
    if grouped:
        text = grouped[1] + re.sub(r"\D", "", grouped[2]) + (grouped[3] or "")
    if decimal == ",":
        if _POINT_GROUPS.fullmatch(text):
            text = text.replace(".", "")
        elif "." in text:  # a decimal point among decimal commas: nobody can say what is meant
            return None
        text = text.replace(",", ".", 1)
    elif _COMMA_GROUPS.fullmatch(text):
        text = text.replace(",", "")
    try:
        return float(text)
    except ValueError:
        return TRUTH.get(text.lower())


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
    told = _DECIMAL_COMMA.get(delimiter)
    return told is not None and "," in cell and told.fullmatch(cell.strip()) is not None
