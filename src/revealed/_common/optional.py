"""Packages that not everybody installs: one sentence on what needs them and how to get them."""

from __future__ import annotations

from importlib import import_module

from ..errors import MissingDependencyError


def installed(package: str) -> bool:
    """Whether a package can be imported, not only found; it is imported."""
    try:
        import_module(package)
    except ImportError:
        return False
    return True


def require(package: str, purpose: str, extra: str) -> None:
    """Refuse to go on without an optional package.

    Parameters
    ----------
    package : str
        What would be imported.
    purpose : str
        What needs it: the subject of the sentence.
    extra : str
        The extra of `revealed` that brings it.

    Raises
    ------
    MissingDependencyError
        If the package is not installed.
    """
    if not installed(package):
        raise missing(package, purpose, extra)


def missing(package: str, purpose: str, extra: str) -> MissingDependencyError:
    """The error for an optional package that is not installed."""
    return MissingDependencyError(
        f"{purpose} needs the package {package!r}, which is not installed: `pip install "
        f"'revealed[{extra}]'`."
    )
