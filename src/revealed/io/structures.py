"""The structure that a fast oracle knows of a linear program, on disk.

A structure that is read is believed only if it describes the very constraints that were stored with
it: the oracles trust it, and would walk out of their arrays with another.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from .._common.rows import Rows, frozen
from ..errors import InputError
from ..problems.catalogue.knapsacks import knapsack, standard_form_knapsack
from ..problems.catalogue.paths import shortest_path
from ..problems.linear import LinearProgram
from ..problems.structures import (
    KnapsackStructure,
    MatchingStructure,
    PathStructure,
    StandardKnapsackStructure,
)
from .folder import Facts, Tensors, tensor

KINDS: dict[str, type] = {
    "path": PathStructure,
    "knapsack": KnapsackStructure,
    "knapsack in standard form": StandardKnapsackStructure,
    "matching": MatchingStructure,
}
_PLACE = "problem.structure"


def pack_structure(structure: Any) -> tuple[dict[str, Any], Tensors] | None:
    """Facts and tensors; None for a structure that is not one of ours."""
    if structure is None:
        return {}, {}
    known = [name for name, kind in KINDS.items() if type(structure) is kind]
    if not known:
        return None
    facts: dict[str, Any] = {"kind": known[0]}
    tensors: Tensors = {}
    for part in fields(structure):
        value = getattr(structure, part.name)
        if isinstance(value, np.ndarray):
            tensors[f"{_PLACE}.{part.name}"] = np.array(value)
        elif value is not None:
            facts[part.name] = list(value) if isinstance(value, tuple) else int(value)
    return {"structure": facts}, tensors


def unpack_structure(facts: Facts, tensors: Tensors, problem: LinearProgram) -> LinearProgram:
    """The problem with its structure, refused if that describes another problem."""
    if not facts.has("structure"):
        return problem
    stored = facts.part("structure")
    readers = {
        "path": _path,
        "knapsack": _knapsack,
        "knapsack in standard form": _standard_knapsack,
        "matching": _matching,
    }
    kind = stored.get("kind", str)
    if kind not in readers:
        raise InputError(f"{stored.where}: the structure {kind[:40]!r} is not known.")
    structure = readers[kind](stored, tensors, problem)
    if structure is None:
        raise InputError(f"{stored.where}: the stored {kind} is not that of the stored problem.")
    return LinearProgram(
        problem.eq_rows if problem.eq_rows.shape[0] else None,
        problem.b_eq if problem.eq_rows.shape[0] else None,
        problem.ub_rows if problem.ub_rows.shape[0] else None,
        problem.b_ub if problem.ub_rows.shape[0] else None,
        problem.lb,
        problem.ub,
        structure=structure,
    )


def _path(stored: Facts, tensors: Tensors, problem: LinearProgram) -> PathStructure | None:
    tails, heads = _numbers(tensors, "tails", problem), _numbers(tensors, "heads", problem)
    source, target = _ends(tensors, "source"), _ends(tensors, "target")
    n_nodes = stored.get("n_nodes", int)
    if n_nodes != problem.eq_rows.shape[0] or not all(
        _within(part, n_nodes) for part in (tails, heads, source, target)
    ):
        return None
    edges = np.column_stack([tails, heads])
    built = shortest_path(edges, source=source, target=target, n_nodes=n_nodes)
    if not _same(built, problem):
        return None
    graph = built.structure
    shape = _grid(stored, n_nodes)
    return PathStructure(
        graph.tails, graph.heads, n_nodes, graph.source, graph.target, graph.order, shape
    )


def _knapsack(stored: Facts, tensors: Tensors, problem: LinearProgram) -> KnapsackStructure | None:
    weights = tensor(tensors, f"{_PLACE}.weights", (problem.n_variables,))
    capacity = tensors.get(f"{_PLACE}.capacity", np.zeros(0))
    capacity = tensor(tensors, f"{_PLACE}.capacity", (None,) * min(capacity.ndim, 1))
    built = knapsack(weights, capacity)
    return built.structure if _same(built, problem) else None


def _standard_knapsack(
    stored: Facts, tensors: Tensors, problem: LinearProgram
) -> StandardKnapsackStructure | None:
    weights = tensor(tensors, f"{_PLACE}.weights", (problem.n_variables // 2,))
    built = standard_form_knapsack(weights, tensor(tensors, f"{_PLACE}.capacity", ()))
    return built.structure if _same(built, problem) else None


def _matching(stored: Facts, tensors: Tensors, problem: LinearProgram) -> MatchingStructure | None:
    left, right = _numbers(tensors, "left", problem), _numbers(tensors, "right", problem)
    n_left, n_right = stored.get("n_left", int), stored.get("n_right", int)
    if not (0 < n_left <= n_right and _within(left, n_left) and _within(right, n_right)):
        return None
    if not _covers(problem, left, right, n_left, n_right):
        return None
    ends: dict[str, Any] = {}
    if f"{_PLACE}.tails" in tensors:
        ends = {name: _numbers(tensors, name, problem) for name in ("tails", "heads")}
        if not all(_within(end, n_left + n_right) for end in ends.values()):
            return None
        ends["grid_shape"] = _grid(stored, n_left + n_right)
    return MatchingStructure(left, right, n_left, n_right, **ends)


def _covers(
    problem: LinearProgram, left: np.ndarray, right: np.ndarray, n_left: int, n_right: int
) -> bool:
    """Whether the rows say that the left side is covered, and the right side too if it is as
    large, else at most once; in whatever order they stand."""
    sides = _edges_at(left, n_left), _edges_at(right, n_right)
    eq, ub = sorted(_row_edges(problem.eq_rows)), sorted(_row_edges(problem.ub_rows))
    expected = (sides[0] + sides[1], []) if n_left == n_right else sides
    plain = (problem.b_eq == 1.0).all() and (problem.b_ub == 1.0).all()
    plain = plain and not problem.lb.any() and problem.n_instances is None
    ones = all((rows.data == 1.0).all() for rows in (problem.eq_rows, problem.ub_rows))
    return bool(plain and ones and eq == sorted(expected[0]) and ub == sorted(expected[1]))


def _edges_at(ends: np.ndarray, size: int) -> list[tuple[int, ...]]:
    order = np.argsort(ends, kind="stable")
    cuts = np.searchsorted(ends[order], np.arange(1, size))
    return [tuple(part.tolist()) for part in np.split(order, cuts)]


def _row_edges(rows: Rows) -> list[tuple[int, ...]]:
    return [tuple(part.tolist()) for part in np.split(rows.indices, rows.indptr[1:-1])][
        : rows.shape[0]
    ]


def _same(built: LinearProgram, stored: LinearProgram) -> bool:
    vectors = all(
        np.array_equal(getattr(built, name), getattr(stored, name))
        for name in ("b_eq", "b_ub", "lb", "ub")
    )
    return (
        vectors
        and same_rows(built.eq_rows, stored.eq_rows)
        and same_rows(built.ub_rows, stored.ub_rows)
    )


def same_rows(one: Rows, other: Rows) -> bool:
    """Whether two matrices are the same, entry by entry."""
    return one.shape == other.shape and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("indptr", "indices", "data")
    )


def _numbers(tensors: Tensors, name: str, problem: LinearProgram) -> np.ndarray:
    """(n,) whole numbers, one for each variable."""
    return frozen(np.array(tensor(tensors, f"{_PLACE}.{name}", (problem.n_variables,), "i")))


def _ends(tensors: Tensors, name: str) -> np.ndarray:
    """(), or (B,) where they differ by instance."""
    array = tensors.get(f"{_PLACE}.{name}", np.zeros(0))
    return tensor(tensors, f"{_PLACE}.{name}", (None,) * min(array.ndim, 1), "i")


def _within(numbers: np.ndarray, size: int) -> bool:
    return bool(numbers.size and 0 <= numbers.min() and numbers.max() < size)


def _grid(stored: Facts, n_nodes: int) -> tuple[int, int] | None:
    if not stored.has("grid_shape"):
        return None
    shape = stored.whole_numbers("grid_shape")
    if len(shape) != 2 or min(shape) < 1 or shape[0] * shape[1] != n_nodes:
        raise InputError(f"{stored.where}: 'grid_shape' must be two numbers of {n_nodes} cells.")
    return shape[0], shape[1]
