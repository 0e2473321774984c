"""Which context belongs to which decision: by a column that both tables have, or by order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from .decisions import LONG, DecisionTable, is_long
from .names import bare, did_you_mean, listed
from .table import Table, TableFile


class Pairing(NamedTuple):
    """Rows of contexts and decisions that belong together."""

    contexts: np.ndarray
    """(B,) rows of the table of contexts."""
    decisions: np.ndarray
    """(B,) decisions."""


def find_key(
    contexts: TableFile, decisions: TableFile, variables: Sequence[str], asked: str | None
) -> str | None:
    """The column by which rows are matched: the one asked for, the only one that both tables have,
    or None for row by row."""
    if asked is not None:
        for file in (contexts, decisions):
            if asked not in file.names:
                raise InputError(
                    f"{file.path.name} has no column {asked!r} to match rows by"
                    f"{did_you_mean(asked, file.names)}; its columns are {listed(file.names)}."
                )
        return asked
    taken = {*variables, *(LONG if is_long(decisions) else ())}
    there = {*decisions.names} - taken
    shared = [name for name in contexts.names if name in there]
    if len(shared) > 1:
        raise InputError(
            f"{contexts.path.name} and {decisions.path.name} share the columns {listed(shared)}; "
            "say with --id by which of them rows are matched."
        )
    if not shared:
        _refuse_nearly_shared(contexts, decisions, taken)
    if not shared and is_long(decisions):
        raise InputError(
            f"{decisions.path.name} lists entries one by one, so {contexts.path.name} must have "
            "the column that says which decision is meant; the tables share none."
        )
    return shared[0] if shared else None


def _refuse_nearly_shared(contexts: TableFile, decisions: TableFile, taken: set[str]) -> None:
    """Refuse tables whose columns share a name but for capitals or blanks."""
    there = {bare(name): name for name in decisions.names if name not in taken}
    for name in contexts.names:
        other = there.get(bare(name))
        if other is not None:
            raise InputError(
                f"{contexts.path.name} has a column {name!r}, {decisions.path.name} has {other!r}: "
                "write the name alike in both tables, and rows are matched by it."
            )


def pair_rows(contexts: Table, decisions: DecisionTable, key: str | None) -> Pairing:
    """Match every context with its decision; one without the other is refused."""
    if key is None or decisions.keys is None:
        if len(contexts) != len(decisions):
            raise InputError(
                f"{contexts.name} has {len(contexts)} rows, {decisions.table.name} has "
                f"{len(decisions)}. Rows are matched by order; give both tables a column that "
                "tells rows apart, and name it with --id."
            )
        return Pairing(np.arange(len(contexts)), np.arange(len(contexts)))
    place = {word: row for row, word in enumerate(decisions.keys)}
    words, seen = contexts.text[key], {}
    for row, word in enumerate(words):
        if word in seen:
            raise InputError(
                f"{contexts.where(row, key)}: {word!r} is there before, at "
                f"{contexts.where(seen[word], key)}. Every context needs a {key} of its own."
            )
        if word not in place:
            raise InputError(
                f"{contexts.where(row, key)}: {decisions.table.name} has no decision for "
                f"{word!r}{_unlike(word, decisions)}."
            )
        seen[word] = row
    alone = [word for word in decisions.keys if word not in seen]
    if alone:
        where = decisions.where(place[alone[0]])
        raise InputError(
            f"{where}: {contexts.name} has no context for {alone[0]!r} ({len(alone)} such "
            "decisions in all)."
        )
    return Pairing(np.arange(len(words)), np.array([place[word] for word in words], int))


def _unlike(word: str, decisions: DecisionTable) -> str:
    """What may help someone whose decisions go by other names."""
    told = f" (it has {decisions.keys[0]!r}, for one)" if decisions.keys else ""
    if decisions.table.text.keys() >= {"variable"}:
        return told + "; a decision that is 0 throughout needs a line too, with value 0"
    return told
