"""Problems of the catalogue written as a call: `grid_shortest_path(5, 5, directed="right-down")`.

The text is parsed, never run: a name from the catalogue and plain literals are all it may
hold.
"""

from __future__ import annotations

import ast
import math
from typing import Any

from ... import problems
from ...errors import InputError
from ...problems.linear import LinearProgram
from ...problems.structures import MatchingStructure, PathStructure
from .plan import Plan, numbered

NAMES = ("grid_shortest_path", "shortest_path", "grid_matching", "assignment", "knapsack")
LONGEST = 200_000
"""Characters of a call."""
LONGEST_NAME = 80
"""Characters up to which a call is shown whole."""
SIZES = ("rows", "cols", "n_workers", "n_tasks")
LARGEST = 2_000_000
"""Entries that the arguments of a grid may multiply to: a typing error must not fill the memory."""


def is_call(text: str) -> bool:
    """Whether a text looks like a call of the catalogue rather than a file name."""
    return text.partition("(")[0].strip() in NAMES and text.rstrip().endswith(")")


def from_catalogue(text: str) -> Plan:
    """The plan that a call describes."""
    name, args, options = _parse(text)
    _refuse_endless(name, args, options, text[:LONGEST_NAME])
    try:
        problem = getattr(problems, name)(*args, **options)
    except (TypeError, OverflowError) as error:
        raise InputError(f"{text[:LONGEST_NAME]}: {error}.") from error
    return Plan(
        problem,
        _variables(problem),
        numbered("eq", problem.eq_rows.shape[0]),
        numbered("ub", problem.ub_rows.shape[0]),
        name=text if len(text) <= LONGEST_NAME else f"{text[:40]} ... {text[-16:]}",
        catalogue=text,
    )


def _refuse_endless(name: str, args: list[Any], options: dict[str, Any], text: str) -> None:
    """Refuse sizes, by place or by name, that would fill the memory."""
    if name == "shortest_path":
        sizes = [*args, *(value for name, value in options.items() if name in ("graph", "n_nodes"))]
        if _largest(sizes) > LARGEST:
            raise InputError(f"{text}: {_largest(sizes):.3g} nodes are too many to be intended.")
        return
    given = [*args, *(value for name, value in options.items() if name in SIZES)]
    whole = [value for value in given if isinstance(value, int)]
    if len(whole) == 2 and whole[0] * whole[1] > LARGEST:
        raise InputError(f"{text}: {whole[0]} x {whole[1]} is too large to be intended.")


def _largest(value: Any) -> float:
    """The largest number anywhere in nested lists; infinite where it is too large for a float."""
    if isinstance(value, list | tuple):
        return max(map(_largest, value), default=0.0)
    try:
        return float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:
        return math.inf


def _parse(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    try:
        if len(text) > LONGEST:
            raise ValueError("too long")
        call = ast.parse(text.strip(), mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise ValueError("not a call")
        args = [ast.literal_eval(value) for value in call.args]
        options = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords if k.arg}
        if len(options) != len(call.keywords):
            raise ValueError("a double star")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(
            f"{text[:80]!r} is not understood. Name a model file, or a problem of the catalogue "
            "with plain numbers and words, such as grid_shortest_path(5, 5)."
        ) from error
    if call.func.id not in NAMES:
        raise InputError(f"{call.func.id!r} is not in the catalogue; it has {', '.join(NAMES)}.")
    return call.func.id, args, options


def _variables(problem: LinearProgram) -> tuple[str, ...]:
    """Names by place on a grid, by node, or by worker and task; `x1`, `x2`, ... where there are
    none of these."""
    graph = problem.structure
    if isinstance(graph, MatchingStructure) and graph.tails is None:
        ends = zip(graph.left.tolist(), graph.right.tolist(), strict=True)
        return tuple(f"w{a + 1}>t{b + 1}" for a, b in ends)
    grid = getattr(graph, "grid_shape", None)
    tails, heads = getattr(graph, "tails", None), getattr(graph, "heads", None)
    if tails is None or heads is None:
        return numbered("x", problem.n_variables)
    joint = ">" if isinstance(graph, PathStructure) else "-"

    def node(k: int) -> str:
        return f"r{k // grid[1] + 1}c{k % grid[1] + 1}" if grid else str(k)

    ends = zip(tails.tolist(), heads.tolist(), strict=True)
    names = tuple(f"{node(a)}{joint}{node(b)}" for a, b in ends)
    return names if len(set(names)) == len(names) else numbered("x", problem.n_variables)
