"""What happened in a fit: one row for each iteration, why it ended, and the rows as JSONL."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .certificate import Certificate


class StopReason(Enum):
    """Why a fit ended; `sentence` says what that means."""

    CONVERGED = "converged"
    INTERPOLATED = "interpolated"
    NO_PROGRESS = "no progress"
    CAP = "iteration cap"
    VALIDATION = "validation"
    STOPPED = "stopped"
    ONE_PASS = "one pass"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    StopReason.CONVERGED: "The minimum of the loss is reached, to `tol`.",
    StopReason.INTERPOLATED: "Every predicted cost lies in its set, to a relative distance of "
    "`tol`.",
    StopReason.NO_PROGRESS: "The loss has stopped falling: its relative decrease over the last "
    "iterations is below `tol`.",
    StopReason.CAP: "Stopped at the largest number of iterations, still making progress; allow "
    "more.",
    StopReason.VALIDATION: "The loss on the validation data has not improved for `patience` "
    "epochs; the best model was kept.",
    StopReason.STOPPED: "Stopped by the caller; the same run goes on from its checkpoint.",
    StopReason.ONE_PASS: "These data were seen once, and measured as they came, before the model "
    "learned from them.",
}


class History:
    """Rows by iteration; row k is measured before update k + 1, so row 0 is the start.

    `history["h"]` is a column, `history.rows[-1]` the last row. Columns of POCS: iteration; h,
    the mean of 1/2 distance^2; loss, what is minimized (h plus the ridge penalty); mean_distance;
    max_distance; max_relative, the largest distance relative to the cost or the margin; unsolved,
    how many projections missed their tolerance; projection_seconds; fit_seconds. Of ERM also lr,
    the learning rate of the last batch, and, where there are validation data, validation.

    Parameters
    ----------
    rows : list of dict, optional
        What happened in each iteration; empty unless given.
    """

    reason: StopReason | None = None
    """Why the fit ended; `reason.sentence` says it in words."""
    certificate: Certificate | None = None
    """How well the final model explains the decisions."""

    def __init__(self, rows: list[dict[str, Any]] | None = None) -> None:
        self.rows = rows or []

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def append(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def __getitem__(self, column: str) -> np.ndarray:
        """(rows,) one column; NaN where a row has no such entry."""
        if column not in self.columns:
            raise KeyError(f"No column {column!r}; there are {', '.join(self.columns)}.")
        return np.array([row.get(column, np.nan) for row in self.rows])

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def write_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a file, one JSON object a line; what is not finite becomes null.

        Parameters
        ----------
        path : path
            A file that is there is replaced.
        """
        Path(path).write_text("".join(map(json_line, self.rows)), "utf-8")

    def __repr__(self) -> str:
        if not self.rows:
            return "History(empty)"
        reason = "still running" if self.reason is None else self.reason.value
        name = "h" if "h" in self.columns else "loss"  # other losses than ours measure no h
        first, last = self[name][[0, -1]]
        return f"History({len(self)} rows, {name} {first:.3g} -> {last:.3g}, {reason})"


def json_line(row: dict[str, Any]) -> str:
    """A row as strict JSON; what JSON has no number for becomes null."""
    plain = {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in row.items()
    }
    return json.dumps(plain, allow_nan=False) + "\n"


def has_stalled(values: list[float], tol: float, window: int) -> bool:
    """Whether `window` iterations lowered the loss by less than a share of `tol`; never for 0."""
    if not tol or len(values) <= window:
        return False
    before, now = values[-1 - window], values[-1]
    return before - now <= tol * abs(before)
