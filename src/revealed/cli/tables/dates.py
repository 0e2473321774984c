"""What matters about a date: its weekday and its month."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from ...errors import InputError

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
PARTS: dict[str, tuple[str, ...]] = {"weekday": WEEKDAYS, "month": MONTHS}
_TIME = r"(?:[T ,].*)?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_TIME}", re.ASCII)
_YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_TIME}", re.ASCII)


def is_date(word: str) -> bool:
    """Whether a word looks like a date, in whatever order."""
    return _YEAR_FIRST.fullmatch(word) is not None or _YEAR_LAST.fullmatch(word) is not None


def style_of(words: Sequence[str], where: str) -> tuple[str, str]:
    """How a column writes dates, "ymd", "dmy" or "mdy", and how that is known. What could be read
    in two ways is refused; `where` is the column, for the message."""
    if all(_YEAR_FIRST.fullmatch(word) for word in words):
        return "ymd", "the year comes first"
    parts = [_YEAR_LAST.fullmatch(word) for word in words]
    for word, part in zip(words, parts, strict=True):
        if part is None:
            raise InputError(
                f"{where}: expected dates written alike, such as 2026-03-02, got {word!r}."
            )
    found = [part for part in parts if part]
    day_first = next((p[0] for p in found if int(p[1]) > 12), None)
    month_first = next((p[0] for p in found if int(p[3]) > 12), None)
    if day_first and month_first:
        raise InputError(f"{where}: {day_first!r} and {month_first!r} are written in two ways.")
    if all(part[2] == "." for part in found) and not month_first:
        return "dmy", "points stand between day, month and year"
    if day_first:
        return "dmy", f"{day_first!r} has its day first"
    if month_first:
        return "mdy", f"{month_first!r} has its month first"
    raise InputError(
        f"{where}: whether day or month comes first in {found[0][0]!r} cannot be known. Write "
        "dates like 2026-03-02."
    )


def parse(word: str, style: str) -> date | None:
    """The date in a word of this style; None if there is none."""
    match = (_YEAR_FIRST if style == "ymd" else _YEAR_LAST).fullmatch(word)
    if match is None:
        return None
    first, second, third = int(match[1]), int(match[3]), int(match[4])
    year, month, day = {
        "ymd": (first, second, third),
        "dmy": (third, second, first),
        "mdy": (third, first, second),
    }[style]
    try:
        return date(year + 2000 if year < 100 else year, month, day)
    except ValueError:
        return None


def part_of(word: str, part: str, style: str) -> str | None:
    """The weekday or month of a date, by name."""
    day = parse(word, style)
    if day is None:
        return None
    return WEEKDAYS[day.weekday()] if part == "weekday" else MONTHS[day.month - 1]
