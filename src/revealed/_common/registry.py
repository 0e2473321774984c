"""Which function serves which kind of object, so that imports can go one way.

A layer declares the table of what it needs done, and the layer that does it fills the table:

    ORACLES = Registry("oracle", home="revealed.oracles")                    # in `problems`
    ORACLES.register(LinearProgram, "revealed.oracles.batch:solve_batch")    # in `oracles`
    ORACLES.of(problem)(problem, costs)                                      # in `problem.solve`

`problems` never imports `oracles`: the home of the table is imported when something is first looked
up, and a function given by its dotted name when it is first needed. A new kind of problem or set is
registered in the same way, from anywhere, with no edit of what is there.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Generic, TypeVar

from ..errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


class Registry(Generic[F]):
    """Functions by the class of what they serve; a subclass is served as its nearest base is.

    Parameters
    ----------
    role : str
        What the functions are, in the singular: "oracle", "projector".
    home : str, optional
        The package that fills the table when it is imported; it need not be imported before.
    """

    def __init__(self, role: str, home: str | None = None) -> None:
        self.role, self._home = role, home
        self._entries: dict[type, F | str] = {}

    def register(self, kind: type, function: F | str) -> None:
        """Let `function` serve objects of class `kind`; "package.module:name" loads on first use.

        The last one registered is used, so an entry can be replaced.
        """
        self._entries[kind] = function

    def find(self, kind: type) -> F | None:
        """The function for objects of class `kind`, None if there is none."""
        self._load_home()
        for base in kind.__mro__:
            if base in self._entries:
                return self._loaded(base)
        return None

    def of(self, value: object) -> F:
        """The function for `value`; an InputError that names the known kinds if there is none."""
        found = self.find(type(value))
        if found is None:
            known = ", ".join(sorted(kind.__name__ for kind in self._entries))
            raise InputError(
                f"There is no {self.role} for {type(value).__name__}, only for {known}. Register "
                "one for this class (CONTRIBUTING, How to add)."
            )
        return found

    def _loaded(self, kind: type) -> F:
        entry = self._entries[kind]
        if not isinstance(entry, str):
            return entry
        module, _, name = entry.partition(":")
        function: F = getattr(import_module(module), name)
        self._entries[kind] = function
        return function

    def _load_home(self) -> None:
        if self._home is not None:
            home, self._home = self._home, None
            try:
                import_module(home)
            except BaseException:
                self._home = home  # so that the next look-up fails with the same reason
                raise
