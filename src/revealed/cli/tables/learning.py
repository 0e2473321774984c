"""A first look at a table of contexts: what its columns are, and what stands for an empty cell.

Letters: B rows, d features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...errors import InputError
from .dates import PARTS, is_date, part_of, style_of
from .features import Feature, FeatureMap
from .gaps import Bad
from .names import did_you_mean, listed
from .table import Table, TableFile, require

MOST_LEVELS = 50
"""Different words of one column; more are names, not categories."""
IMPUTE = ("none", "mean", "median")


class Learned(NamedTuple):
    """What a table of contexts holds."""

    features: FeatureMap
    contexts: np.ndarray
    """(B, d) encoded; an average row where one is bad."""
    table: Table
    notes: tuple[str, ...]
    """What was assumed."""


def learn_features(
    file: TableFile,
    *,
    key: str | None = None,
    ignore: Sequence[str] = (),
    apart: Iterable[str] = (),
) -> tuple[FeatureMap, np.ndarray, Table]:
    """Look at a table of contexts for the first time: its features, (B, d) numbers, the table.
    Columns to `ignore` and columns `apart`, which are limits of the plan, are no features."""
    found = learn_contexts(file, key=key, ignore=ignore, apart=apart)
    return found.features, found.contexts, found.table


def learn_contexts(
    file: TableFile,
    *,
    key: str | None = None,
    ignore: Sequence[str] = (),
    apart: Iterable[str] = (),
    dates: Sequence[str] = (),
    impute: str = "none",
    bad: Bad | None = None,
) -> Learned:
    """`learn_features`, with weekdays and months of the columns `dates`, empty cells filled as
    `impute` says, and rows that cannot be read entered in `bad` and not learned from."""
    require(file.path, file.names, [*ignore, *dates])
    left_out = {key, *ignore, *apart} - {*dates}
    chosen = [name for name in file.names if name not in left_out]
    if not chosen:
        raise InputError(
            f"{file.path.name} has no column left to learn from. If costs are always the same, add "
            "one that is 1 in every row."
        )
    words = [name for name in chosen if name in dates or file.is_text(name)]
    worded = set(words)
    numbers = [name for name in chosen if name not in worded]
    table = file.read(numbers, list(dict.fromkeys([*words, *([key] if key else [])])))
    if len(table) == 0:
        raise InputError(f"{file.path.name} has column names but no rows.")
    empty = [name for name, column in zip(numbers, table.numbers.T, strict=True) if _empty(column)]
    if empty and len(empty) < len(chosen) and len(table.faults) < len(table):
        one = len(empty) == 1
        rest = learn_contexts(
            file,
            key=key,
            ignore=[*ignore, *empty],
            apart=apart,
            dates=dates,
            impute=impute,
            bad=bad,
        )
        note = (
            f"{table.name}: {'the column' if one else 'the columns'} {listed(empty)} "
            f"{'is' if one else 'are'} empty in every row and left out."
        )
        return rest._replace(notes=(*rest.notes, note))
    unread = {*table.faults, *(bad or ())}
    seen = table.take(np.setdiff1d(np.arange(len(table)), [*unread])) if unread else table
    notes: list[str] = []
    features: list[Feature] = []
    place = {name: j for j, name in enumerate(numbers)}
    for name in chosen:
        if name in dates:
            features += _date_parts(name, seen if len(seen) else table, notes)
        elif name in place:
            features.append(_number(name, table, seen.numbers[:, place[name]], impute, notes))
        else:
            features.append(_category(name, seen, impute, notes))
    learned = FeatureMap(tuple(features))
    Z, table = learned.of(table, key, bad)
    return Learned(learned, Z, table, tuple(notes))


def features_of_words(
    where: str, name: str, words: Iterable[str], dates: Sequence[str], notes: list[str]
) -> list[Feature]:
    """The features of a column by the different words in it, or by its different dates."""
    table = Table(where, np.zeros((0, 0)), (), {name: sorted(words)})
    if name in dates:
        return _date_parts(name, table, notes)
    return [_category(name, table, "none", notes)]


def _empty(column: np.ndarray) -> bool:
    return bool(np.isnan(column).all())


def _number(name: str, table: Table, column: np.ndarray, impute: str, notes: list[str]) -> Feature:
    known = column[np.isfinite(column)]
    if not known.size:
        known = np.zeros(1)  # refused as empty, or skipped row by row
    fill = None
    if impute != "none":
        fill = float(np.median(known) if impute == "median" else known.mean())
        gaps = int(np.isnan(column).sum())
        if gaps:
            notes.append(
                f"{table.name}: {gaps:,} empty {'cell' if gaps == 1 else 'cells'} of {name} "
                f"{'is' if gaps == 1 else 'are'} filled with the {impute}, {fill:.6g}."
            )
    size = float(np.abs(known).max()) or 1.0
    unit = known / size  # so that no square is too large or too small for a number
    scale = float(unit.std())
    if not scale > 1e-12:  # the same everywhere
        return Feature(name, float(unit.mean()) * size, fill=fill)
    return Feature(name, float(unit.mean()) * size, scale * size, fill=fill)


def _category(name: str, table: Table, impute: str, notes: list[str]) -> Feature:
    there = [word for word in table.text[name] if word]
    levels = tuple(sorted(set(there))) or ("",)
    if there and all(map(is_date, levels)):
        raise InputError(
            f"{table.name}, column {name!r} holds dates such as {levels[0]!r}, which no new row "
            f"will repeat. Learn from its weekday and month with --date {name}, leave it out with "
            f"--ignore {name}, or name it with --id where it says which row is which."
        )
    if len(levels) > MOST_LEVELS:
        raise InputError(
            f"{table.name}, column {name!r} holds {len(levels)} different words; that is no "
            f"category to learn from. Leave it out with --ignore {name}, or name it with --id "
            "where it says which row is which."
        )
    fill = None
    if impute != "none" and there:
        fill = Counter(sorted(there)).most_common(1)[0][0]
        gaps = len(table.text[name]) - len(there)
        if gaps:
            notes.append(
                f"{table.name}: {gaps:,} empty {'cell' if gaps == 1 else 'cells'} of {name} "
                f"{'is' if gaps == 1 else 'are'} filled with the most frequent word, {fill!r}."
            )
    return Feature(name, levels=levels, fill=fill)


def _date_parts(name: str, table: Table, notes: list[str]) -> list[Feature]:
    there = [word for word in table.text[name] if word]
    if not there:
        raise InputError(f"{table.name}, column {name!r} holds no dates.")
    style, because = style_of(there, f"{table.name}, column {name!r}")
    order = {"ymd": "year, month, day", "dmy": "day, month, year", "mdy": "month, day, year"}
    notes.append(
        f"{table.name}: {name} is read as {order[style]} ({because}); weekday and month are "
        "learned from."
    )
    features = []
    for part, all_of_them in PARTS.items():
        found = {part_of(word, part, style) for word in set(there)}
        levels: tuple[str, ...] = tuple(level for level in all_of_them if level in found)
        features.append(
            Feature(f"{name} {part}", levels=levels, column=name, part=part, style=style)
        )
    return features


def check_date_columns(file: TableFile, dates: Sequence[str]) -> None:
    """Refuse a date column that is not there."""
    for name in dates:
        if name not in file.names:
            raise InputError(
                f"--date {name}: {file.path.name} has no such column"
                f"{did_you_mean(name, file.names)}."
            )
