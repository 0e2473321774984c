"""Objects that never change once built, and copies of them with some parts replaced."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self


class Record:
    """A frozen record whose constructor is a border: it checks and converts what users give.

    `dataclasses.replace` would send every part through the constructor again. `replaced` does not:
    what was checked once is not checked, converted or copied for every slice.
    """

    def _set(self, **parts: Any) -> None:
        """Fill in the parts; for constructors."""
        self.__dict__.update(parts)

    def replaced(self, **parts: Any) -> Self:
        """A copy with some parts replaced by others, which are taken as they are."""
        result = object.__new__(type(self))
        kind = type(self)
        kept = {
            name: part
            for name, part in self.__dict__.items()
            if not isinstance(getattr(kind, name, None), cached_property)  # of the old parts
        }
        result.__dict__.update(kept, **parts)
        return result

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{_with_article(type(self).__name__)} never changes; build a new one to set `{name}`."
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{_with_article(type(self).__name__)} never changes.")

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _with_article(name: str) -> str:
    return f"An {name}" if name[0] in "AEIOU" else f"A {name}"
