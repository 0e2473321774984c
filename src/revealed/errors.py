"""The exceptions of our own: each message says what was expected, what came, and what to do."""


class RevealedError(Exception):
    """Anything `revealed` raises on purpose; catch this to catch them all."""


class InputError(RevealedError, ValueError):
    """A value that cannot be used: NaN, infinity, a negative margin, an unknown option."""


class ShapeError(InputError):
    """An array whose shape does not fit the problem or the other arrays."""


class InfeasibleDecisionError(InputError):
    """A decision that breaks the constraints it is supposed to obey."""


class MissingDependencyError(RevealedError, ImportError):
    """An optional package that this call needs is not installed."""
