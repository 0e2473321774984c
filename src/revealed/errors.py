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


class PartitionError(InputError):
    """A part of a data set that cannot be read: `path`, and the `row_group` where it is known."""

    def __init__(self, message: str, *, path: str = "", row_group: int | None = None) -> None:
        super().__init__(message)
        self.path, self.row_group = path, row_group

    def __reduce__(self):
        return _partition_error, (str(self), self.path, self.row_group)


def _partition_error(message: str, path: str, row_group: int | None) -> PartitionError:
    return PartitionError(message, path=path, row_group=row_group)
