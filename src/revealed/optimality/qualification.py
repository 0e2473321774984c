"""Do multipliers describe every cost that explains a decision? They do under Slater's condition.

Where constraints are curved, KKT conditions are necessary only under a constraint qualification.
Two balls that touch in one point leave no choice there, so every cost explains the point, but
multipliers explain costs along one line only. A decision is qualified if some direction leads from
it strictly inside every curved constraint that is active there, and along the rows and bounds that
are. Three tests, cheapest first:

1. the mean of the decisions is strictly inside all curved constraints (they share the rest);
2. a direction solves the conditions as equations, as where gradients are independent;
3. a linear program finds the direction that goes in farthest.

Letters: B instances, n variables, k curved constraints.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..problems.cones import Normals
from ..problems.linear import LinearProgram
from ..problems.protocol import SmoothProblem
from .active_set import ActiveSet, EntryState

STRICTLY = 1e-6
"""How far inside a direction of length about 1 must lead, relative to gradients."""


class QualificationWarning(UserWarning):
    """Some decisions may be explained by more costs than their sets contain."""


def qualified(
    problem: SmoothProblem,
    X: np.ndarray,
    rows: LinearProgram,
    normals: Normals | None,
    active: ActiveSet,
    tol: float,
) -> np.ndarray:
    """(B,) whether a constraint qualification is established at each decision of X (B, n).

    `rows` and `normals` are the tangent of the problem there, `active` what holds with equality.
    """
    straight = problem.ub_rows.shape[0]
    curved = active.row_active[:, straight:]
    corner = np.zeros(len(X), bool) if normals is None else normals.present
    result = ~(curved.any(axis=1) | corner)
    rest = np.flatnonzero(~result)
    if rest.size and not _mean_is_inside(problem, X, tol):
        for b in rest:
            corners = [] if normals is None else normals.of(int(b))
            here = active.row_active[b], active.entry_state[b]
            result[b] = _leads_inside(rows[np.array([b])], *here, corners, straight)
    else:
        result[rest] = True
    return result


def warn_unqualified(result: np.ndarray) -> None:
    """Name the first decision whose set may be too small."""
    bad = np.flatnonzero(~result)
    if bad.size:
        warnings.warn(
            f"Decision {bad[0]} may be explained by more costs than its set contains "
            f"({bad.size} of {len(result)} may): around it the curved constraints seem to leave no "
            "interior (Slater's condition). Projections that move there are not called solved.",
            QualificationWarning,
            stacklevel=5,
        )


def _mean_is_inside(problem: SmoothProblem, X: np.ndarray, tol: float) -> bool:
    """Whether the mean decision is strictly inside every curved constraint; feasible it is, where
    all instances have the same constraints."""
    if len(X) < 2 or problem.n_instances is not None:
        return False
    middle = X.mean(axis=0)
    return problem.is_strictly_inside(middle, tol * (1.0 + np.abs(middle).max(initial=0.0)))


def _leads_inside(
    one: LinearProgram, active: np.ndarray, state: np.ndarray, corners: list[Any], straight: int
) -> bool:
    """Whether a direction leads from one decision strictly inside what is curved and active."""
    ub = one.ub_rows.matrix(0).toarray()
    curved = _unit(ub[straight:][active[straight:]])
    if not np.abs(curved).sum(axis=1).all():
        return False  # a gradient of 0: the constraint is nowhere below 0
    level = _unit(one.eq_rows.matrix(0).toarray())
    fixed = np.eye(len(state))[state == EntryState.FIXED]
    equal = np.vstack([level, fixed])
    below = np.vstack(
        [
            _unit(ub[:straight][active[:straight]]),
            -np.eye(len(state))[state == EntryState.AT_LOWER],
            np.eye(len(state))[state == EntryState.AT_UPPER],
        ]
    )
    if _as_equations(curved, np.vstack([equal, below]), corners):
        return True
    return not corners and _by_program(curved, equal, below)


def _as_equations(curved: np.ndarray, level: np.ndarray, corners: list[Any]) -> bool:
    """Whether some d has slope -1 along curved constraints, 0 along the others, and leads along the
    axis of every corner."""
    rows = np.vstack([curved, level, *(corner.matrix.T for corner in corners)])
    right = [-np.ones(len(curved)), np.zeros(len(level)), *(corner.unit for corner in corners)]
    aim = np.concatenate(right)
    d = np.linalg.lstsq(rows, aim, rcond=STRICTLY)[0]
    return bool(np.abs(rows @ d - aim).max(initial=0.0) <= STRICTLY)


def _by_program(curved: np.ndarray, equal: np.ndarray, below: np.ndarray) -> bool:
    """max t  subject to  curved d <= -t,  equal d = 0,  below d <= 0,  |d_j| <= 1."""
    n = curved.shape[1]
    pad = np.zeros((len(below), 1))
    program = LinearProgram(
        A_eq=np.hstack([equal, np.zeros((len(equal), 1))]),
        b_eq=np.zeros(len(equal)),
        A_ub=np.vstack([np.hstack([curved, np.ones((len(curved), 1))]), np.hstack([below, pad])]),
        b_ub=np.zeros(len(curved) + len(below)),
        lb=np.append(-np.ones(n), 0.0),
        ub=np.ones(n + 1),
    )
    answer = program.solve(np.append(np.zeros(n), -1.0)[None])
    return bool(answer.optimal[0] and answer.x[0, -1] > STRICTLY)


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1)
    return rows / np.where(lengths > 0, lengths, 1.0)[:, None]
