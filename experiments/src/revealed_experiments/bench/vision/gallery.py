"""A few test pictures with what was decided there, what was learned, and what follows from it.

    DIR/gallery/<part>.json    {"part", "grid": [rows, cols], "samples": [{"image", "true_cells",
                               "observed", "methods": [{"label", "cells", "predicted"}]}]}

Pictures are PNG files in base64. A path is the list of its cells [row, column] in order, a matching
the list of its pairs of cells.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.problems.structures import PathStructure

from ..sweeps.runs import FINISHED, OURS, Run, rounded, write_whole

if TYPE_CHECKING:
    from torch import nn

    from revealed.problems.linear import LinearProgram

    from ...images import ImageSet

COUNT = 6
"""Pictures shown, the first of the test data."""
RIVALS = 2
"""Rivals shown beside ours: those whose test decisions are best."""


def samples_of(model: nn.Module, data: ImageSet) -> list[dict[str, Any]]:
    """What a network makes of the first test pictures: {"cells", "predicted"} for each."""
    import torch

    from ...vision import as_contexts, predict

    device = next(model.parameters()).device
    images = as_contexts(np.array(data.test.images[:COUNT]), device)
    costs = predict(model, images).double()
    decided = np.asarray(torch.as_tensor(data.problem.solve(costs).x).cpu())
    cells = _cell_values(data.problem, costs.cpu().numpy())
    return [
        {"cells": rounded(grid.tolist()), "predicted": as_cells(data.problem, x)}
        for grid, x in zip(cells, decided, strict=True)
    ]


def _cell_values(problem: LinearProgram, costs: np.ndarray) -> np.ndarray:
    """(B, rows, cols): what the costs of edges say about cells.

    Of a path: the mean over the edges that enter a cell. Of a matching, where an edge costs 10
    times its first cell plus its second: the values that fit best.
    """
    graph = problem.structure
    rows, cols = graph.grid_shape
    share = 0.0 if isinstance(graph, PathStructure) else 10.0
    system = np.zeros((len(graph.tails), rows * cols))
    edges = np.arange(len(graph.tails))
    system[edges, graph.tails] += share
    system[edges, graph.heads] += 1.0
    fitted = np.linalg.lstsq(system, costs.T, rcond=None)[0]
    return fitted.T.reshape(-1, rows, cols)


def as_cells(problem: LinearProgram, decision: np.ndarray) -> list[Any]:
    """A decision on a grid as cells [row, column]: those of a path, or the pairs of a matching."""
    graph = problem.structure
    cols = graph.grid_shape[1]
    chosen = np.flatnonzero(decision > 0.5)
    ends = [(int(graph.tails[e]), int(graph.heads[e])) for e in chosen]
    if not isinstance(graph, PathStructure):
        return [[list(divmod(a, cols)), list(divmod(b, cols))] for a, b in ends]
    onward, node = dict(ends), int(graph.source)
    cells = [list(divmod(node, cols))]
    while node != int(graph.target):
        node = onward[node]
        cells.append(list(divmod(node, cols)))
    return cells


def write_gallery(folder: Path, part: str, data: ImageSet, runs: Sequence[Run]) -> Path | None:
    """Write the gallery of a part from its finished runs; None where no run kept its pictures."""
    shown = _shown([run for run in runs if run["config"]["part"] == part])
    if not shown:
        return None
    test = data.test
    samples = [
        {
            "image": base64.b64encode(png(np.asarray(test.images[k]))).decode(),
            "true_cells": np.asarray(test.cells[k]).tolist(),
            "observed": as_cells(data.problem, np.asarray(test.decisions[k])),
            "methods": [{"label": run["config"]["label"]} | run["samples"][k] for run in shown],
        }
        for k in range(min(COUNT, len(test)))
    ]
    content = {"part": part, "grid": list(data.problem.structure.grid_shape), "samples": samples}
    path = folder / "gallery" / f"{re.sub(r'[^a-z0-9]+', '-', part.lower())}.json"
    write_whole(path, json.dumps(rounded(content), separators=(",", ":")) + "\n")
    return path


def _shown(runs: Sequence[Run]) -> list[Run]:
    """Ours and the best rivals, of the first seed that has kept its pictures.

    A method that has not chosen its step yet is shown with the best so far.
    """
    kept = [run for run in runs if run["status"] == FINISHED and run.get("samples")]
    first = min((run["config"]["seed"] for run in kept), default=0)
    kept = [run for run in kept if run["config"]["seed"] == first]
    by_label: dict[str, list[Run]] = {}
    for run in kept:
        by_label.setdefault(run["config"]["label"], []).append(run)
    best = [
        min(group, key=lambda run: run["final"]["valid"]["decision_loss"])
        for group in by_label.values()
    ]
    ours = [run for run in best if run["config"]["method"]["name"] in OURS]
    rivals = [run for run in best if run not in ours]
    rivals.sort(key=lambda run: run["final"]["test"]["decision_loss"])
    return ours + rivals[:RIVALS]


def png(image: np.ndarray) -> bytes:
    """A picture (H, W, C) uint8, gray or in colors, as a PNG file."""
    height, width, channels = image.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter: none
    lines[:, 1:] = image.reshape(height, -1)
    colors = {1: 0, 3: 2}[channels]
    head = struct.pack(">IIBBBBB", width, height, 8, colors, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)
