"""The two ways to write a line of an MPS file: words between blanks, or words at fixed columns.

Free: names hold no blanks, and a label (the name of the right-hand side, say) may be left out.
Fixed: every word has its columns, so that names may hold blanks.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple, Protocol

VALUELESS = ("FR", "MI", "PL", "BV", "SC", "SI")
"""Kinds of bound that can do without a number."""

Pairs = list[tuple[str, str]]


class Malformed(Exception):
    """A line that does not have the words it should; the reader adds where it stands."""


class Bound(NamedTuple):
    kind: str
    label: str
    column: str
    value: str | None


class Layout(Protocol):
    """How to split a line."""

    def row(self, line: str) -> tuple[str, str]:
        """Kind and name."""
        ...

    def entries(self, line: str, *, labeled: bool) -> tuple[str, Pairs]:
        """A name, or a label that may be missing, and one or two pairs of name and number."""
        ...

    def bound(self, line: str, columns: Container[str]) -> Bound: ...


class Free:
    """Words between blanks."""

    def row(self, line: str) -> tuple[str, str]:
        words = line.split()
        if len(words) != 2:
            raise Malformed("a kind (N, L, G or E) and one name, without blanks in it")
        return words[0].upper(), words[1]

    def entries(self, line: str, *, labeled: bool) -> tuple[str, Pairs]:
        words = line.split()
        label = ""
        if not labeled or len(words) % 2:
            label, *words = words
        if len(words) not in (2, 4):
            raise Malformed("a name, then one or two pairs of a name and a number (without blanks)")
        return label, list(zip(words[::2], words[1::2], strict=True))

    def bound(self, line: str, columns: Container[str]) -> Bound:
        kind, *words = line.split()
        kind, label, value = kind.upper(), "", None
        if len(words) == 3 or (len(words) == 2 and kind in VALUELESS and words[1] in columns):
            label, *words = words
        if len(words) == 2:
            words, value = words[:1], words[1]
        if len(words) != 1 or (kind not in VALUELESS and value is None):
            raise Malformed("a kind of bound, a label, the name of a column and a number")
        return Bound(kind, label, words[0], value)


class Fixed:
    """Words at columns 2-3, 5-12, 15-22, 25-36, 40-47 and 50-61, counted from 1."""

    FIELDS = ((1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61))

    def row(self, line: str) -> tuple[str, str]:
        kind, name, *rest = self._fields(line)
        if not kind or not name or any(rest):
            raise Malformed("a kind in columns 2-3 and a name in columns 5-12")
        return kind.upper(), name

    def entries(self, line: str, *, labeled: bool) -> tuple[str, Pairs]:
        _, label, *rest = self._fields(line)
        pairs = [(rest[0], rest[1])] + ([(rest[2], rest[3])] if rest[2] or rest[3] else [])
        if not (labeled or label) or not all(name and value for name, value in pairs):
            raise Malformed("names in columns 5-12, 15-22, 40-47 and numbers in 25-36, 50-61")
        return label, pairs

    def bound(self, line: str, columns: Container[str]) -> Bound:
        kind, label, column, value, *_ = self._fields(line)
        kind = kind.upper()
        if not kind or not column or (kind not in VALUELESS and not value):
            raise Malformed("a kind in columns 2-3, a name in 15-22 and a number in 25-36")
        return Bound(kind, label, column, value or None)

    def _fields(self, line: str) -> list[str]:
        if "\t" in line:
            raise Malformed("blanks, not tabs, between words at fixed columns")
        words = [line[start:end] for start, end in self.FIELDS]
        covered = sum(len(word) - word.count(" ") for word in words)
        if covered != len(line[:61]) - line[:61].count(" "):
            raise Malformed("words at columns 2-3, 5-12, 15-22, 25-36, 40-47 and 50-61 alone")
        return [word.strip() for word in words]
