"""What the checks of the doctor look at, from the files of a command."""

from __future__ import annotations

from ..doctor import Case
from .dossier import Dossier


def case_of(dossier: Dossier) -> Case:
    """Features in the units of the table, not scaled."""
    features = dossier.features
    return Case(
        dossier.plans,
        features.unscaled(dossier.context_table, dossier.contexts),
        features.names,
        dossier.decisions,
        _Names(dossier),
        columns={name: f.source for f in features.features for name in f.columns},
        dates=frozenset(f.column for f in features.features if f.part),
        words={f.name: f.levels for f in features.features if f.levels},
        limits=dossier.own_limits,
        limited=frozenset(limit.place for limit in dossier.limits),
    )


class _Names(list):
    """Names of samples, looked up when asked for: there may be a million."""

    def __init__(self, dossier: Dossier) -> None:
        super().__init__()
        self._dossier = dossier

    def __len__(self) -> int:
        return len(self._dossier)

    def __getitem__(self, b):  # type: ignore[override]
        return self._dossier.sample(b)
