"""Names of columns and variables: written alike, compared, listed and guessed at."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Sequence


def plain_name(text: str) -> str:
    """A name as it is shown and compared: on one line, with single blanks, without marks that
    nobody sees or a terminal obeys, and every accent in one letter with its own (Unicode's NFC):
    some systems write `ü` as `u` and two dots, which looks the same and is not."""
    text = text.strip()
    if text.isascii() and text.isprintable() and "  " not in text:
        return text
    seen = (letter for letter in text if letter.isprintable() or letter.isspace())
    return unicodedata.normalize("NFC", " ".join("".join(seen).split()))


def near_name(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that was probably meant; capitals, blanks, dashes and underscores count
    for nothing."""
    known = {bare(other): other for other in names}
    close = difflib.get_close_matches(bare(name), known, 1, cutoff=0.7)
    return known[close[0]] if close else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or nothing where none is near."""
    near = near_name(name, names)
    return f" (did you mean {near!r}?)" if near is not None else ""


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def bare(name: str) -> str:
    """A name without what people write now so, now so."""
    return "".join(letter for letter in name.casefold() if letter not in " \t_-\N{NO-BREAK SPACE}")
