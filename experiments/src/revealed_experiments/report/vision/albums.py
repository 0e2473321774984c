"""Albums: samples with the decision seen, and what each method predicts and has learned.

One file `gallery/<task>.json` for each task. Whatever is not as expected is named and left out, as
with runs.

Letters: (r, c) rows and columns of cells.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = "gallery"

Cell = tuple[int, int]
Decision = list[list[Cell]]
"""Chains of neighboring cells: one for a path, one of two cells for each pair of a matching."""


@dataclass(frozen=True, eq=False)
class Guess:
    """What one method makes of a sample."""

    label: str
    cells: np.ndarray | None
    """(r, c) learned costs, where the model gives them by cells."""
    predicted: Decision


@dataclass(frozen=True, eq=False)
class Sample:
    """What was seen, what was decided, and what it truly costs."""

    matching: bool
    """Whether the decision is of pairs, not a path."""
    picture: np.ndarray
    """(H, W, 3) uint8"""
    true_cells: np.ndarray
    """(r, c) costs of entering, or digits."""
    observed: Decision
    guesses: list[Guess]


@dataclass(frozen=True)
class Album:
    """Samples of one task."""

    part: str
    grid: tuple[int, int]
    samples: list[Sample]

    @property
    def labels(self) -> list[str]:
        """The methods that guess at a sample, in the order in which they first come."""
        return list(dict.fromkeys(g.label for s in self.samples for g in s.guesses))


def read_albums(folder: Path, notices: list[str]) -> list[Album]:
    """Every album in a folder of runs."""
    albums = []
    for path in sorted((folder / FOLDER).glob("*.json")):
        try:
            albums.append(_album(json.loads(path.read_text("utf-8"))))
        except (OSError, RecursionError, ValueError, TypeError, KeyError, IndexError) as error:
            words = " ".join(str(error).split()) or type(error).__name__
            notices.append(f"{FOLDER}/{path.name} was left out: it is no album ({words[:120]}).")
    return albums


def extra_cost(sample: Sample, decision: Decision) -> float:
    """By which share a decision costs more than the one observed, under the true costs."""
    cost = _pairs_cost if sample.matching else _path_cost
    paid, best = cost(sample.true_cells, decision), cost(sample.true_cells, sample.observed)
    return paid / best - 1.0 if best > 0 else float("nan")


def _path_cost(cells: np.ndarray, decision: Decision) -> float:
    return float(sum(cells[cell] for chain in decision for cell in chain[1:]))


def _pairs_cost(digits: np.ndarray, decision: Decision) -> float:
    """Of each pair the number read along it, from the left or from the top."""
    return float(sum(10 * digits[min(pair)] + digits[max(pair)] for pair in decision))


def agreement(sample: Sample, guess: Guess) -> float:
    """Rank correlation of learned and true costs of cells; NaN where there is none to tell."""
    from scipy.stats import rankdata

    if guess.cells is None:
        return float("nan")
    one, other = (rankdata(cells.ravel()) for cells in (guess.cells, sample.true_cells))
    if one.std() == 0 or other.std() == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


# --- reading -------------------------------------------------------------------------------------


def _album(raw: dict[str, Any]) -> Album:
    rows, cols = (int(n) for n in raw["grid"])
    if not (0 < rows <= 100 and 0 < cols <= 100):
        raise ValueError(f"a grid of {rows} x {cols}")
    as_cells, matching = _cells_of(rows, cols), "matching" in raw["part"]
    decision = _pairs_of(rows, cols) if matching else _path_of(rows, cols)
    samples = [
        Sample(
            matching,
            _picture(each["image"], gray=matching),
            as_cells(each["true_cells"]),
            decision(each["observed"]),
            [_guess(guess, as_cells, decision) for guess in each["methods"]],
        )
        for each in raw["samples"]
    ]
    if not samples:
        raise ValueError("no samples")
    return Album(str(raw["part"]), (rows, cols), samples)


def _guess(raw: dict[str, Any], as_cells: Callable, decision: Callable) -> Guess:
    cells = None if raw.get("cells") is None else as_cells(raw["cells"])
    return Guess(str(raw["label"]), cells, decision(raw["predicted"]))


def _cells_of(rows: int, cols: int) -> Callable[[Any], np.ndarray]:
    def read(raw: Any) -> np.ndarray:
        cells = np.array(raw, dtype=np.float64)
        if cells.shape != (rows, cols) or not np.isfinite(cells).all():
            raise ValueError(f"costs of cells must be {rows} x {cols} numbers")
        return cells

    return read


def _path_of(rows: int, cols: int) -> Callable[[Any], Decision]:
    return lambda raw: [[_cell(cell, rows, cols) for cell in raw]]


def _pairs_of(rows: int, cols: int) -> Callable[[Any], Decision]:
    return lambda raw: [[_cell(cell, rows, cols) for cell in (one, other)] for one, other in raw]


def _cell(raw: Any, rows: int, cols: int) -> Cell:
    row, col = (int(n) for n in raw)
    if not (0 <= row < rows and 0 <= col < cols):
        raise ValueError(f"there is no cell {row}, {col}")
    return row, col


def _picture(encoded: str, *, gray: bool) -> np.ndarray:
    """The pixels of a PNG; digits are shown as ink on paper, however they were kept."""
    from PIL import Image

    raw = base64.b64decode(encoded.removeprefix("data:image/png;base64,"), validate=True)
    image = Image.open(io.BytesIO(raw), formats=["PNG"])
    if max(image.size) > 4096:
        raise ValueError(f"a picture of {image.size[0]} x {image.size[1]} pixels")
    pixels = np.asarray(image.convert("RGB"))
    return 255 - pixels if gray and pixels.mean() < 128 else pixels
