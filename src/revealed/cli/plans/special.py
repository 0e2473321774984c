"""Problems of the catalogue keep their fast solvers where only what these know of changes.

Letters: B samples, m rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...problems.linear import LinearProgram
from ...problems.structures import KnapsackStructure, PathStructure


def structure_with(problem: LinearProgram, vectors: Mapping[str, np.ndarray]) -> Any:
    """The structure of a problem whose vectors have changed, some with a row for each sample; None
    where there is none that says the same."""
    graph = problem.structure
    changed = {name for name, vector in vectors.items() if vector is not getattr(problem, name)}
    if isinstance(graph, KnapsackStructure) and changed == {"b_ub"}:
        return replace(graph, capacity=vectors["b_ub"][:, 0])
    if isinstance(graph, PathStructure) and changed == {"b_eq"}:
        return _other_ends(graph, vectors["b_eq"])
    return None


def _other_ends(graph: PathStructure, flow: np.ndarray) -> PathStructure | None:
    """The graph with the ends that right-hand sides (B, m) tell: one node that sends one, one that
    gets it; None where these are no paths."""
    source, target = flow.argmax(axis=1), flow.argmin(axis=1)
    path, rows = np.zeros_like(flow), np.arange(len(flow))
    path[rows, source], path[rows, target] = 1.0, -1.0
    return replace(graph, source=source, target=target) if np.array_equal(path, flow) else None
