"""A checked batch for the metrics: predicted costs and observed decisions, wherever they are.

Letters: B instances, n cost entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._common.arrays import as_costs
from .._common.device import as_device_costs, is_cuda
from ..errors import InputError, ShapeError
from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet
from ..optimality.sets import OptimalitySet
from ..problems.linear import LinearProgram, check_pairs
from ..problems.protocol import LinearObjective, Problem, check_problem, check_same_shape
from ..problems.solution import SolveStatus
from .sameness import SAME


class Case(NamedTuple):
    """A checked batch: each instance's constraints, predicted cost and observed decision."""

    problem: Problem
    costs: Any
    """(B, n) float64: numpy, or a tensor on a GPU; `decisions` likewise."""
    decisions: Any
    restore: Callable[[Any], Any]

    def take(self, b: int) -> Case:
        index = np.array([b])
        return Case(self.problem[index], self.costs[index], self.decisions[index], self.restore)


def case_of(
    problem: Problem, costs: Any, decisions: Any, *, stay: bool = False, linear: bool = True
) -> Case:
    """`stay` leaves costs that are on a GPU there, and brings the decisions to them; `linear=False`
    is for what makes sense of any problem, with its parameters as costs."""
    _check_problem(problem, linear)
    C, restore = _batch(costs, problem.n_parameters, stay)
    if isinstance(decisions, CostSet):
        problem, decisions = _of_sets(problem, decisions), decisions.decisions
    X = _beside(C, decisions, "decisions", problem.n_variables)
    check_pairs(C, X)
    problem.check_batch(len(C), "costs")
    return Case(problem, C, X, restore)


def true_case_of(
    problem: LinearProgram, costs: Any, decisions: Any, true_costs: Any
) -> tuple[Case, Any]:
    """The case and its true costs (B, n); without decisions, with the best under those costs."""
    _check_problem(problem, linear=True)
    C, _ = _batch(costs, problem.n_variables, stay=True)
    truth = truth_beside(C, true_costs)
    if decisions is None:
        decisions = solve(problem, truth, "true")
    return case_of(problem, costs, decisions, stay=True), truth


def truth_beside(C: Any, true_costs: Any) -> Any:
    truth = _beside(C, true_costs, "true_costs", C.shape[1])
    if len(truth) != len(C):
        raise ShapeError(
            f"`true_costs` must have one row for each of the {len(C)} rows of `costs`; "
            f"got {len(truth)}."
        )
    return truth


def _batch(costs: Any, n: int, stay: bool) -> tuple[Any, Callable[[Any], Any]]:
    """(B, n) float64, and the way back to the caller's own kind."""
    if not (stay and is_cuda(costs)):
        return as_costs(costs, n)
    C = as_device_costs(costs, n)
    return C.double(), lambda values: values.to(C.dtype)


def _beside(C: Any, values: Any, name: str, n: int) -> Any:
    """(B, n) float64 of the same kind and in the same place as `C`."""
    if not is_cuda(C):
        return as_costs(values, n, name)[0]
    if is_cuda(values):
        return as_device_costs(values, n, name).to(C)
    return C.new_tensor(as_costs(values, n, name)[0])


def sets_of(case: Case, decisions: Any, margin: float | None) -> CostSet:
    if not isinstance(decisions, CostSet):
        return OptimalitySet(case.problem, case.decisions, 1.0 if margin is None else margin)
    decisions = decisions.on_host()
    if margin is not None and (decisions.margins != margin).any():
        theirs = np.unique(decisions.margins)
        built_with = f"{theirs[0]:g}" if len(theirs) == 1 else f"{len(theirs)} different ones"
        raise InputError(
            f"`margin` is {margin:g}, but the sets were built with {built_with}. "
            "Use margin=None to take theirs."
        )
    return decisions


def tolerance_of(decisions: Any) -> float:
    """How far entries may differ in decisions that are the same."""
    sets = decisions.on_host() if isinstance(decisions, CostSet) else decisions
    return sets.tol if isinstance(sets, OptimalitySet) else SAME


def _check_problem(problem: Any, linear: bool) -> None:
    check_problem(problem)
    if linear and not isinstance(problem, LinearObjective):
        raise InputError(
            "This metric measures decisions by <c, x> and so needs a problem of such costs, a "
            "LinearProgram or an IntegerProgram; got "
            f"{type(problem).__name__}. `decision_loss`, `exact` and `in_set` are for any problem, "
            "and `problem.objective` says what a decision is worth."
        )


def _of_sets(problem: Problem, sets: CostSet) -> Problem:
    """The problem of the sets, whose right-hand sides and bounds may be their own."""
    if isinstance(sets, MixedSets):
        raise InputError(
            "Metrics are about decisions of one problem; these sets are of several. Measure "
            "`sets.parts` one by one."
        )
    if isinstance(sets, OptimalitySet) and sets.form is not None:
        raise InputError(
            "Metrics take a cost for each entry, but these sets are of parameters that a form "
            "turns into costs. Give `form.costs(parameters)` with the decisions themselves, or ask "
            "`sets.contains(parameters)`."
        )
    own = sets.problem
    if own is None:
        return problem
    check_same_shape(own, problem)
    return own


def decide(case: Case) -> Any:
    return solve(case.problem, case.costs, "predicted")


def solve(problem: Problem, C: Any, kind: str) -> Any:
    """(B, n): decisions of minimum cost; refuses costs that have none."""
    answer = problem.solve(C)
    if bool((answer.status != SolveStatus.OPTIMAL).any()):
        codes = on_host(answer.status)
        bad = np.flatnonzero(codes != SolveStatus.OPTIMAL)
        status = SolveStatus(int(codes[bad[0]]))
        raise InputError(
            f"The {kind} cost of instance {bad[0]} has no optimal decision ({status.name}; "
            f"{len(bad)} of {len(C)} instances have none). {status.sentence}"
        )
    return answer.x


def on_host(values: Any) -> np.ndarray:
    """A numpy array of values that are one, or a tensor on a GPU."""
    return values.cpu().numpy() if is_cuda(values) else values
