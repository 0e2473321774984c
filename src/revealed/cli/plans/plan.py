"""A forward problem together with the names that people know its parts by.

Letters: n variables, m rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import InputError, ShapeError
from ...problems.integer import IntegerProgram
from ...problems.linear import LinearProgram
from ...problems.structures import KnapsackStructure, PathStructure


@dataclass(frozen=True, eq=False)
class Plan:
    """What a planner decides, with names: the constraints of all samples, or of each its own."""

    problem: LinearProgram | IntegerProgram
    """What decides: an IntegerProgram where some variables are whole, unless the relaxation was
    asked for."""
    variables: tuple[str, ...]
    """(n,) names, all different."""
    equalities: tuple[str, ...]
    """Names of the rows of `problem.A_eq`; `inequalities` likewise of `A_ub`."""
    inequalities: tuple[str, ...]
    name: str = "plan"
    """Of the file or of the call that it came from."""
    catalogue: str | None = None
    """The call of the catalogue that builds the problem; None for one from a model file."""
    maximize: bool = False
    """Whether the planner maximizes: learned costs are then shown as values, sign turned."""
    integers: tuple[str, ...] = ()
    """Variables that the planner decides in whole numbers, whether `problem` asks for it or not."""
    at_least: tuple[int, ...] = ()
    """Rows of `problem.A_ub` that the planner wrote as `at least`; there they are turned round."""
    cost: np.ndarray | None = field(default=None)
    """(n,) costs written in the model file, if any; to be minimized."""

    def __post_init__(self) -> None:
        problem = self.rows
        for what, names, count in (
            ("variables", self.variables, problem.n_variables),
            ("equalities", self.equalities, problem.eq_rows.shape[0]),
            ("inequalities", self.inequalities, problem.ub_rows.shape[0]),
        ):
            if len(names) != count:
                raise ShapeError(f"{self.name}: {count} {what} but {len(names)} names for them.")
        if len(set(self.variables)) != len(self.variables):
            raise InputError(f"{self.name}: two variables have the same name.")
        if not all(0 <= i < problem.ub_rows.shape[0] for i in self.at_least):
            raise InputError(f"{self.name}: `at_least` names rows that are not there.")
        if self.is_whole and self.integers != self._whole_names:
            raise InputError(f"{self.name}: `integers` are not the whole variables of its problem.")

    @property
    def rows(self) -> LinearProgram:
        """Rows and bounds, every variable continuous."""
        problem = self.problem
        return problem.relaxation if isinstance(problem, IntegerProgram) else problem

    @property
    def is_whole(self) -> bool:
        """Whether decisions are whole, as far as the plan asks for it."""
        return isinstance(self.problem, IntegerProgram)

    @property
    def whole(self) -> np.ndarray:
        """(n,) bool: the variables that decisions have in whole numbers."""
        problem = self.problem
        if isinstance(problem, IntegerProgram):
            return problem.integer
        return np.zeros(len(self.variables), bool)

    @property
    def _whole_names(self) -> tuple[str, ...]:
        return tuple(self.variables[j] for j in np.flatnonzero(self.whole))

    def relaxed(self) -> Plan:
        """The same plan with fractions allowed."""
        return replace(self, problem=self.rows)

    def with_rows(self, rows: LinearProgram) -> Plan:
        """The same plan with other constraints under the same names."""
        return replace(self, problem=self.rows_as_problem(rows))

    def rows_as_problem(self, rows: LinearProgram) -> LinearProgram | IntegerProgram:
        """These constraints, with the whole variables of the plan."""
        return IntegerProgram.of(rows, self.whole) if self.is_whole else rows

    def __getitem__(self, rows: Any) -> Plan:
        """The plan of the chosen samples; the same for all where they share its constraints."""
        problem = self.problem[rows]
        return self if problem is self.problem else replace(self, problem=problem)

    __iter__ = None

    @property
    def sign(self) -> float:
        """What a cost is multiplied by to be shown: -1 where the planner maximizes."""
        return -1.0 if self.maximize else 1.0

    @property
    def row_sign(self) -> np.ndarray:
        """(m_ub,) what rows of `problem.A_ub` are multiplied by to read as the planner wrote
        them."""
        sign = np.ones(self.rows.ub_rows.shape[0])
        sign[list(self.at_least)] = -1.0
        return sign


def numbered(stem: str, count: int) -> tuple[str, ...]:
    """stem1, stem2, ... for rows without names."""
    return tuple(f"{stem}{k + 1}" for k in range(count))


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
    """The graph with the ends that right-hand sides (B, m) give: one node that sends one, one that
    gets it; None where these are no paths."""
    source, target = flow.argmax(axis=1), flow.argmin(axis=1)
    path, rows = np.zeros_like(flow), np.arange(len(flow))
    path[rows, source], path[rows, target] = 1.0, -1.0
    return replace(graph, source=source, target=target) if np.array_equal(path, flow) else None
