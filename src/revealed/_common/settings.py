"""Objects that are made of named settings, in the way of scikit-learn but without its import.

`get_params`, `set_params` and a constructor that only stores are all that `clone`, `GridSearchCV`
and nested names such as `solver__max_iter` ask for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self, TypeVar

from ..errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


class Settings:
    """A base class for models, solvers and losses with parameters of their own."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """The settings and their defaults, in the order of the constructor."""
        named = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {parameter.name: parameter.default for parameter in named}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name; `deep` adds those of settings that have some, as `name__own`."""
        own = {name: getattr(self, name) for name in self._defaults()}
        if deep:
            for name, value in list(own.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    own |= {f"{name}__{key}": v for key, v in value.get_params().items()}
        return own

    def set_params(self, **settings: Any) -> Self:
        """Change some settings; `name__own=` reaches into a setting that has its own."""
        nested: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            first, _, rest = name.partition("__")
            if first not in self._defaults():
                known = ", ".join(self._defaults()) or "none"
                raise InputError(
                    f"{type(self).__name__} has no setting {first!r}; its settings are {known}."
                )
            if rest:
                nested.setdefault(first, {})[rest] = value
            else:
                setattr(self, first, value)
        for name, values in nested.items():
            getattr(self, name).set_params(**values)
        return self

    def __repr__(self) -> str:
        parts = []
        for name, default in self._defaults().items():
            value = getattr(self, name)
            if default is inspect.Parameter.empty:
                parts.append(repr(value))
            elif value is not default and repr(value) != repr(default):
                parts.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


def with_settings_of(base: type, *, without: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Complete the signature of a constructor that takes `**settings` of a base class.

    The signature is where scikit-learn, help pages and editors look for settings. So those of the
    base are written down once.
    """

    def complete(init: F) -> F:
        own = dict(inspect.signature(init).parameters)
        rest = own.popitem()[0]
        inherited = inspect.signature(base.__init__).parameters.items()
        added = {k: p for k, p in inherited if k not in own and k not in without}
        assert rest == "settings", "the last parameter must be **settings"
        init.__signature__ = inspect.Signature([*own.values(), *added.values()])  # type: ignore
        return init

    return complete
