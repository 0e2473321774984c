"""How far the costs that explain new decisions may lie from predicted ones, and robust decisions.

Split conformal prediction. The score of a calibration sample is the angle between its predicted
cost and the set of costs that explain its decision, at margin 0 and after removing what no decision
depends on. If new samples are exchangeable with the calibration samples, then the cone around a new
prediction with the right quantile of these angles contains a cost that explains the new decision
with the stated probability, whatever the model. Letters: B samples, n variables.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple, Self

import numpy as np

from .._common.arrays import as_costs, to_float64
from .._common.words import count
from ..errors import InputError, ShapeError
from ..optimality.lines import without_lines
from ..optimality.sets import OptimalitySet
from ..oracles.robust import robust_decisions
from ..problems.linear import LinearProgram
from ..problems.solution import Solution, SolveStatus
from ..projection import project
from .contexts import like
from .prediction import UnsolvedDecisionWarning

RIGHT = np.pi / 2
EXACT = 1e-7
"""Sine below which a cost counts as explaining the decision: the accuracy of a projection."""


class Cone(NamedTuple):
    """The half-angle of a conformal cone, and what may be said of it."""

    level: float
    angle: float
    """Half-angle in radians; inf if the cone is vacuous."""
    size: int
    """Calibration samples."""
    explained: int
    """How many of them the prediction itself explains."""
    best_level: float
    """The highest level at which the cone is not vacuous; 0 if there is none."""

    @property
    def is_vacuous(self) -> bool:
        """Whether the cone is a half-space or more, which rules nothing out."""
        return not self.angle < RIGHT

    @property
    def statement(self) -> str:
        """What is guaranteed, in words."""
        if self.is_vacuous:
            return self._vacuous()
        where = (
            f"a cost that explains a new decision lies within {np.degrees(self.angle):.3g}° of the "
            "predicted one"
            if self.angle > 0
            else "the predicted cost itself explains a new decision"
        )
        return (
            f"With probability at least {self.level:.4g}, {where} (split conformal, "
            f"{count(self.size, 'calibration sample')}, {self.explained:,} of them explained by "
            "the prediction; on average over calibration and new samples from one distribution)."
        )

    def _vacuous(self) -> str:
        most = (
            f"The highest level that says something is {self.best_level:.4g}."
            if self.best_level > 0
            else "No level says anything: calibrate with more samples, or a better model."
        )
        return (
            f"Vacuous: at level {self.level:.4g} and with {count(self.size, 'calibration sample')} "
            f"no cone narrower than 90° has the coverage. {most}"
        )


def explanation_angles(
    problem: LinearProgram, costs: Any, decisions: Any, *, threads: int | None = None
) -> np.ndarray:
    """(B,) angles in radians between costs (B, n) and the nearest costs that explain decisions
    (B, n), without what no decision depends on; inf where the angle is 90° or more, where nothing
    but such parts explains the decision, and where the projection was not solved."""
    if not isinstance(problem, LinearProgram):
        raise InputError(
            f"Conformal cones are for LinearProgram; got {type(problem).__name__}. Of an "
            "IntegerProgram use the relaxation."
        )
    C, _ = as_costs(costs, problem.n_variables, "costs")
    axes = without_lines(problem, C)
    sets = decisions if isinstance(decisions, OptimalitySet) else OptimalitySet(problem, decisions)
    if len(sets) != len(axes):
        raise ShapeError(f"There are {len(axes)} costs and {len(sets)} decisions.")
    if not len(axes):
        return np.zeros(0)
    found = project(axes, _cones(problem, sets), threads=threads)
    size = np.linalg.norm(axes, axis=1)
    away, along = np.asarray(found.distance), np.linalg.norm(found.point, axis=1)
    angle = np.arctan2(away, along)
    angle[away <= EXACT * size] = 0.0
    nothing = (along <= EXACT * size) | (size == 0) | ~np.asarray(found.solved)
    return np.where(nothing, np.inf, angle)


def _cones(problem: LinearProgram, sets: OptimalitySet) -> OptimalitySet:
    """All costs that explain each decision, without a margin."""
    if not sets.is_plain or sets.margins.any():
        return OptimalitySet(problem, sets.decisions, 0.0, tol=sets.tol)
    return sets


def conformal_cone(angles: Any, level: float) -> Cone:
    """The cone whose half-angle is the conformal quantile of the angles (B,) of calibration
    samples; inf and NaN count as more than any angle."""
    checked_level(level)
    scores = np.sort(np.nan_to_num(to_float64(angles, "angles"), nan=np.inf))
    size = len(scores)
    rank = _rank(size, level)
    angle = float(scores[rank - 1]) if rank <= size else np.inf
    useful = int((scores < RIGHT).sum())
    return Cone(
        level=float(level),
        angle=angle if angle < RIGHT else np.inf,
        size=size,
        explained=int((scores == 0).sum()),
        best_level=useful / (size + 1),
    )


def _rank(size: int, level: float) -> int:
    """The smallest k with k / (size + 1) >= level."""
    return max(math.ceil((size + 1) * level - 1e-9), 1)


def checked_level(level: Any) -> float:
    """A probability strictly between 0 and 1."""
    number = isinstance(level, int | float | np.number) and not isinstance(level, bool)
    if not (number and 0 < level < 1):
        raise InputError(f"`level` must be between 0 and 1, such as 0.9; got {level!r}.")
    return float(level)


class ConformalDecisions:
    """Cones of costs with stated coverage around the predictions of a fitted estimator, and the
    decisions that do best in the worst case over them.

        robust = rv.ConformalDecisions(est, level=0.9).calibrate(Z_new, X_new)
        print(robust)               # the half-angle, and what is guaranteed
        robust.predict(Z)           # decisions of least worst cost over the cones

    The samples to calibrate on must be new to the estimator: not those it was fitted to, nor those
    its settings were chosen on. The guarantee is an average over samples, not one for each context,
    and it is about costs: that the cone contains one that explains the decision.

    Parameters
    ----------
    estimator : fitted InverseRegressor
        Or anything with `predict_cost` and, unless constraints come with the decisions, `problem`.
    level : float
        The probability with which the cone must contain a cost that explains the decision.

    Attributes
    ----------
    angle_ : float
        Half-angle of the cones in radians; inf if they are vacuous.
    angles_ : (B,) array
        Of the calibration samples, in ascending order; inf at 90° or more.
    cone_ : Cone
        With `statement`, which says in words what is guaranteed.
    """

    def __init__(self, estimator: Any, *, level: float = 0.9) -> None:
        self.estimator = estimator
        self.level = checked_level(level)

    def calibrate(self, Z: Any, X: Any) -> Self:
        """Measure the angles of samples that the estimator has not seen.

        Parameters
        ----------
        Z : (B, d) contexts
        X : (B, n) decisions, or an OptimalitySet with constraints of its own
        """
        angles = np.sort(self._angles(Z, X))
        self.angles_, self.cone_ = angles, conformal_cone(angles, self.level)
        self.angle_ = self.cone_.angle
        return self

    def covers(self, Z: Any, X: Any) -> np.ndarray:
        """(B,) bool: whether the cone of each sample contains a cost that explains its decision.

        A vacuous cone covers everything.

        Parameters
        ----------
        Z : (B, d) array
            Contexts.
        X : (B, n) array or OptimalitySet
            Decisions taken there.

        Returns
        -------
        (B,) bool array
        """
        cone = self._calibrated()
        angles = self._angles(Z, X)
        return np.ones(len(angles), bool) if cone.is_vacuous else angles <= cone.angle

    def predict(self, Z: Any, problem: LinearProgram | None = None) -> Any:
        """(B, n) decisions whose worst cost over the cone is least; torch in, torch out.

        Needs Clarabel (`pip install 'revealed[solvers]'`). A row without an answer is NaN, with an
        `UnsolvedDecisionWarning`.

        Parameters
        ----------
        Z : (B, d) array
            Contexts.
        problem : LinearProgram, optional
            The constraints of these instances, where they differ from those of the estimator.

        Returns
        -------
        (B, n) array
            A tensor where `Z` is one.

        Raises
        ------
        InputError
            If the cone is vacuous.
        """
        cone = self._calibrated()
        self._refuse_vacuous(cone)
        chosen = self._problem(problem)
        costs = to_float64(self.estimator.predict_cost(Z), "predict_cost(Z)")
        threads = getattr(self.estimator, "threads", None)
        answer = decide(chosen, costs, cone.angle, threads=threads)
        bad = np.flatnonzero(~answer.optimal)
        if bad.size:
            warnings.warn(
                f"{bad.size} of {len(answer)} contexts have no proved robust decision and get NaN "
                f"(first: row {bad[0]}). {SolveStatus(int(answer.status[bad[0]])).sentence}",
                UnsolvedDecisionWarning,
                stacklevel=2,
            )
        return like(Z, answer.x)

    def worst_cost(self, Z: Any, X: Any, problem: LinearProgram | None = None) -> np.ndarray:
        """(B,) the worst cost of decisions X (B, n) over the cones, each cone cut at the scale of
        its prediction.

        Costs and decisions count without what no decision depends on, so that only differences
        between decisions for the same context mean something.

        Parameters
        ----------
        Z : (B, d) array
            Contexts.
        X : (B, n) array
            Decisions to judge.
        problem : LinearProgram, optional
            The constraints of these instances, where they differ from those of the estimator.

        Returns
        -------
        (B,) array
        """
        cone = self._calibrated()
        self._refuse_vacuous(cone)
        costs = to_float64(self.estimator.predict_cost(Z), "predict_cost(Z)")
        return worst_costs(self._problem(problem), costs, to_float64(X, "X"), cone.angle)

    def __repr__(self) -> str:
        if not hasattr(self, "cone_"):
            return f"ConformalDecisions(level={self.level:g}), not calibrated"
        return f"ConformalDecisions(level={self.level:g}). {self.cone_.statement}"

    # --- parts -----------------------------------------------------------------------------------

    def _angles(self, Z: Any, X: Any) -> np.ndarray:
        problem: Any = X.problem if isinstance(X, OptimalitySet) else self.estimator.problem
        costs = to_float64(self.estimator.predict_cost(Z), "predict_cost(Z)")
        return explanation_angles(
            problem, costs, X, threads=getattr(self.estimator, "threads", None)
        )

    def _problem(self, problem: LinearProgram | None) -> LinearProgram:
        return self.estimator.problem if problem is None else problem

    def _calibrated(self) -> Cone:
        if not hasattr(self, "cone_"):
            raise InputError("Call `calibrate(Z, X)` with samples the estimator has not seen.")
        return self.cone_

    def _refuse_vacuous(self, cone: Cone) -> None:
        if cone.is_vacuous:
            raise InputError(f"There is no robust decision. {cone.statement}")


def decide(
    problem: LinearProgram, costs: np.ndarray, angle: float, *, threads: int | None = None
) -> Solution:
    """Decisions of least worst cost over cones of that half-angle around costs (B, n),
    and these worst costs; at angle 0 the plain decisions."""
    if angle == 0:
        return problem.solve(costs, threads=threads)
    return robust_decisions(problem, without_lines(problem, costs), angle, threads=threads)


def worst_costs(
    problem: LinearProgram, costs: np.ndarray, decisions: np.ndarray, angle: float
) -> np.ndarray:
    """(B,) the worst cost of decisions (B, n) over cones of that half-angle around costs (B, n),
    without what no decision depends on."""
    axes, X = without_lines(problem, costs), without_lines(problem, decisions)
    size = np.linalg.norm(axes, axis=1)
    unit = axes / np.where(size == 0, 1.0, size)[:, None]
    along = (unit * X).sum(axis=1)
    across = np.linalg.norm(X - along[:, None] * unit, axis=1)
    return size * (along + np.tan(angle) * across)
