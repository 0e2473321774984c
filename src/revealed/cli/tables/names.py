"""Names of columns and variables: written alike, compared, listed and guessed at."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from ..._common.words import plain_name as plain_name


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
