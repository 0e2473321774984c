"""Which context belongs to which decision: by a column that both tables have, or by order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...errors import InputError
from .decisions import LONG, DecisionTable, is_long
from .gaps import Bad
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


def pair_rows(
    contexts: Table,
    decisions: DecisionTable,
    key: str | None,
    bad: tuple[Bad, Bad] | None = None,
) -> Pairing:
    """Match every context with its decision; one without the other is refused, or entered in
    `bad`, of contexts and of decisions, and left out like whatever is there already."""
    if key is None or decisions.keys is None:
        if len(contexts) != len(decisions):
            raise InputError(
                f"{contexts.name} has {len(contexts)} rows, {decisions.table.name} has "
                f"{len(decisions)}. Rows are matched by order; give both tables a column that "
                "identifies rows, and name it with --id."
            )
        rows = np.arange(len(contexts))
        return _without(Pairing(rows, rows), bad)
    place: dict[str, int] = {}
    for row, word in enumerate(decisions.keys):
        place.setdefault(word, row)
    words, seen = contexts.text[key], {}
    for row, word in enumerate(words):
        if bad is not None and row in bad[0] and word == "":
            continue
        said = None
        if word in seen:
            said = f"{word!r} is there before, at {contexts.where(seen[word], key)}."
            more = f" Every context needs a {key} of its own."
        elif word not in place:
            said, more = f"{decisions.table.name} has no decision for {word!r}", ""
            more = f"{_unlike(word, decisions)}. Leave such rows out with --skip-bad."
        if said is not None and bad is None:
            raise InputError(f"{contexts.where(row, key)}: {said}{more}")
        if said is not None and bad is not None:
            bad[0].setdefault(row, f"{said.rstrip('.')}.")
        seen.setdefault(word, row)
    _refuse_alone(contexts, decisions, place, seen, bad)
    there = [row for row, word in enumerate(words) if seen.get(word) == row and word in place]
    pairing = Pairing(np.array(there, int), np.array([place[words[row]] for row in there], int))
    return _without(pairing, bad)


def _refuse_alone(
    contexts: Table,
    decisions: DecisionTable,
    place: dict[str, int],
    seen: dict[str, int],
    bad: tuple[Bad, Bad] | None,
) -> None:
    """Refuse decisions that have no context."""
    alone = [word for word in place if word not in seen]
    if alone and bad is None:
        where = decisions.where(place[alone[0]])
        raise InputError(
            f"{where}: {contexts.name} has no context for {alone[0]!r} ({len(alone)} such "
            "decisions in all). Leave them out with --skip-bad."
        )
    if bad is not None:
        for word in alone:
            bad[1].setdefault(place[word], f"{contexts.name} has no context for {word!r}.")


def _without(pairing: Pairing, bad: tuple[Bad, Bad] | None) -> Pairing:
    """The pairs of which neither row is bad."""
    if bad is None:
        return pairing
    pairs = zip(pairing.contexts.tolist(), pairing.decisions.tolist(), strict=True)
    good = [k for k, (c, d) in enumerate(pairs) if c not in bad[0] and d not in bad[1]]
    return Pairing(pairing.contexts[good], pairing.decisions[good])


def _unlike(word: str, decisions: DecisionTable) -> str:
    """What may help someone whose decisions go by other names."""
    hint = f" (it has {decisions.keys[0]!r}, for one)" if decisions.keys else ""
    if decisions.table.text.keys() >= {"variable"}:
        return hint + "; a decision that is 0 throughout needs a line too, with value 0"
    return hint
