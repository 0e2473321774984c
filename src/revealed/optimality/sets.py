"""Observed decisions -> the sets of costs that explain them.

A decision x* is optimal under c exactly if c = A_eq^T v - A_ub^T mu + s with

    s_j = 0 where x*_j is free,  s_j >= margin at its lower bound,  s_j <= -margin at its upper
    bound, any s_j where the bounds leave no choice,  mu_i >= margin on rows that bind,  mu_i = 0
    on others.

So a set is told by the state of every entry and row. Where what is predicted are not the costs
themselves, c is the gradient of the objective at x*, an affine function of the parameters. Letters:
B instances, n entries, m_ub inequality rows, p parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._common.affine import AffineMap, Metric
from .._common.arrays import as_costs, as_index
from .._common.checks import check_number
from ..errors import InfeasibleDecisionError, InputError, ShapeError
from ..oracles import SolveStatus
from ..problems.linear import LinearProgram
from .active_set import EntryState as EntryState
from .active_set import (
    checked_margins,
    checked_soft,
    checked_tolerance,
    read_states,
    refuse_infeasible,
)
from .cost_form import CostForm
from .infeasible import settle

if TYPE_CHECKING:
    from .mixed import MixedSets


class OptimalitySet:
    """For each decision of a batch, the convex set of costs under which it is optimal.

    A decision read from a solver is never exactly at its bounds: an entry counts as at a bound, and
    a row as binding, within `tol`, relative to 1 + |bound| and to the size of the row's terms (1
    gives way to the size of the problem where that is smaller). The default suits interior-point
    output, where 5e-6 stands for 0. `snapped` and `nearest_free` say what that decided, and
    `report()` says it in words.

    `margin` (one number, or one for each instance) keeps out the trivial c = 0 and costs that are
    merely tied. `form` says how costs come from fewer parameters, and within which limits; the set
    is then one of parameters, and may be empty. `soft` (a price, such as 100) lets the conditions
    be missed by e at 1/2 soft |e|^2, so that no set is empty and the distance counts the miss.

    A decision that breaks its constraints by more than `tol` is refused. `infeasible="repair"`
    puts the nearest one that obeys them in its place, and "weigh" also counts it for less the
    farther off it was; `repaired` and `weights` say how far and how much.
    """

    problem: Any
    """LinearProgram, QuadraticProgram or ConvexProgram."""
    decisions: np.ndarray
    """(B, n) as given, or as repaired."""
    margins: np.ndarray
    """(B,)"""
    tol: float
    form: CostForm | None
    soft: float | None
    entry_state: np.ndarray
    """(B, n) int8 codes of EntryState."""
    row_active: np.ndarray
    """(B, m_ub) whether each inequality binds."""
    row_used: np.ndarray
    """(m_ub,) whether each inequality binds for any decision of the data set; slices inherit it."""
    snapped: np.ndarray
    """(B,) the largest relative distance from a bound, or of a row from binding, that was read as
    none."""
    nearest_free: np.ndarray
    """(B,) the smallest such distance that was read as real; inf if there is none."""
    repaired: np.ndarray
    """(B,) how far each decision was moved to obey its constraints; 0 where it did."""
    weights: np.ndarray
    """(B,) what each sample counts in losses and fits; 1 unless `infeasible="weigh"`."""
    qualified: np.ndarray
    """(B,) whether the set is known to hold every cost that explains the decision: always, unless
    curved constraints leave no interior around it (see `revealed.optimality.qualification`)."""
    rows: LinearProgram
    """The rows and bounds that `entry_state` and `row_active` are about: those of the problem, or
    for curved constraints their tangents at the decisions."""
    gradient: AffineMap | None
    """Parameters -> gradient of the objective at each decision; None where they are the same."""
    normals: Any
    """Normals that no row tells, where cones have a corner; None without such cones."""
    metric: Metric | None
    """How far parameters must move for the gradient to move, where that is simple enough for the
    kernel."""
    lifted: OptimalitySet | None
    """Sets of plain costs from which the kernel finds the nearest parameters; None where it
    cannot."""

    def __init__(
        self,
        problem: Any,
        decisions: Any,
        margin: Any = 1.0,
        *,
        tol: float = 1e-5,
        form: CostForm | None = None,
        soft: float | None = None,
        infeasible: str = "refuse",
    ) -> None:
        check_program(problem)
        X, _ = as_costs(decisions, problem.n_variables, "decisions")
        problem.check_batch(len(X), "decisions")
        self.problem, self.tol, self.soft = problem, checked_tolerance(tol), checked_soft(soft)
        self.margins = checked_margins(margin, len(X))
        self.form = _checked_form(form, problem, len(X))
        self.decisions, self.repaired, self.weights = settle(problem, X, self.tol, infeasible)
        self.rows, self.normals = problem.tangent(self.decisions, self.tol)
        self._read_states()
        self.qualified = self._qualified()
        self.gradient = self._gradient()
        self.metric, self.lifted = None, None
        if len(self) and not self.is_plain:
            from ..projection.metric import lifted, metric_of

            self.metric = metric_of(self)
            self.lifted = None if self.metric is None else lifted(self, self.metric)

    def _read_states(self) -> None:
        X = self.decisions
        try:
            refuse_infeasible(self.rows, X, self.tol, self.problem.ub_rows.shape[0])
        except InfeasibleDecisionError as error:
            raise InfeasibleDecisionError(f"{error}{_hint(self.problem, X)}") from None
        found = read_states(self.rows, X, self.tol)
        self.entry_state, self.row_active, self.snapped, self.nearest_free = found
        self.row_used = np.asarray(self.row_active.any(axis=0))

    def _qualified(self) -> np.ndarray:
        if self.rows is self.problem or not hasattr(self.problem, "cones"):
            return np.ones(len(self), bool)
        from .qualification import qualified, warn_unqualified

        result = qualified(self)
        warn_unqualified(result)
        return result

    def _gradient(self) -> AffineMap | None:
        own = self.problem.gradient(self.decisions)
        if self.form is None:
            return own
        return self.form.map if own is None else own.after(self.form.map)

    @property
    def n_parameters(self) -> int:
        """Length of what is predicted: the costs, or the parameters of the form or the problem."""
        return self.problem.n_parameters if self.form is None else self.form.n_parameters

    @property
    def is_plain(self) -> bool:
        """Whether the sets are of plain costs, nothing in between and nothing besides rows."""
        beyond = (self.form, self.soft, self.gradient, self.normals)
        return all(part is None for part in beyond) and self.rows is self.problem

    @property
    def margin(self) -> float:
        """The margin of all instances; `margins` where they differ."""
        if len(self.margins) and (self.margins != self.margins[0]).any():
            raise InputError("The instances have margins of their own; read `margins` instead.")
        return float(self.margins[0]) if len(self.margins) else 0.0

    @classmethod
    def concatenate(cls, parts: Any) -> MixedSets:
        """Sets of different problems, of whatever sizes, one after the other in one batch."""
        from .mixed import MixedSets

        return MixedSets(parts)

    def __len__(self) -> int:
        return len(self.decisions)

    def __getitem__(self, index: Any) -> OptimalitySet:
        """The sets of the chosen instances: an integer, slice, mask or integer array."""
        chosen = as_index(index, len(self))
        result = object.__new__(OptimalitySet)
        result.problem = self.problem[chosen]
        same = self.rows is self.problem
        result.rows = result.problem if same else self.rows[chosen]
        result.tol, result.row_used, result.soft = self.tol, self.row_used, self.soft
        for name in _PER_INSTANCE:
            setattr(result, name, getattr(self, name)[chosen])
        result.form = None if self.form is None else self.form[chosen]
        result.gradient = None if self.gradient is None else self.gradient.take(chosen)
        result.normals = None if self.normals is None else self.normals.take(chosen)
        result.metric = None if self.metric is None else self.metric.take(chosen)
        result.lifted = None if self.lifted is None else self.lifted[chosen]
        return result

    def to(self, device: Any) -> Any:
        """The same sets on a device, such as "cuda": a `DeviceSets`, made once and kept."""
        if not self.is_plain:
            raise InputError(
                "Only sets of plain costs of a LinearProgram go to a device; those of a form, a "
                "soft set or another problem are projected on the CPU."
            )
        from ..projection.triton import on_device

        return on_device(self, device)

    def contains(self, costs: Any, *, tol: float = 1e-8) -> Any:
        """(B,) bool: whether each cost explains its decision, to a distance of `tol` |cost|."""
        from ..projection import project  # the one step to the right: membership is a distance of 0

        check_number(tol, "tol")
        c, restore = as_costs(costs, self.n_parameters, "costs")
        p = project(c, self)
        largest = np.maximum(np.abs(c).max(axis=1, initial=0.0), np.finfo(float).tiny)
        size = np.maximum(largest * np.linalg.norm(c / largest[:, None], axis=1), self.margins)
        return restore(p.solved & (p.distance <= tol * size))

    def slack(self, costs: Any) -> Any:
        """(B,): the largest margin at which each cost still explains its decision.

        Negative where some reduced cost has the wrong sign, -inf where no multipliers fit the
        free entries, inf where nothing is at a bound, NaN where the solver found none of these.
        Limits of a form are not looked at. One linear program for each instance.
        """
        c, restore = as_costs(costs, self.n_parameters, "costs")
        _same_length(c, self)
        if self.normals is not None:
            raise InputError("`slack` is for rows; these sets have cones with a corner as well.")
        c = c if self.gradient is None else self.gradient(c)
        return restore(np.array([_largest_margin(self, c[b], b) for b in range(len(c))]))

    def report(self) -> str:
        """What was decided about the entries and rows, in words."""
        states = [f"{(self.entry_state == s).sum()} {_WORDS[s]}" for s in EntryState]
        told = f"{len(self)} decisions of {self.problem.n_variables} entries: {', '.join(states)}"
        if self.row_active.size:
            told += f"; {self.row_active.sum()} of {self.row_active.size} inequalities bind"
        farthest = self.snapped.max(initial=0.0)
        nearest = self.nearest_free.min(initial=np.inf)
        limit = f"At most {self.tol:g} from a bound counts as at the bound: the farthest such entry"
        limit += f" or row is {farthest:.2g} away, the nearest that does not count {nearest:.2g}."
        lines = [f"{told}.", limit]
        close = np.flatnonzero(self.nearest_free < 100 * self.tol)
        if close.size:
            lines.append(
                f"{close.size} decisions (first: {close[0]}) come so near the limit that `tol` "
                "deserves a look."
            )
        moved = np.flatnonzero(self.repaired)
        if moved.size:
            lines.append(
                f"{moved.size} decisions (first: {moved[0]}) broke their constraints and were "
                f"moved to obey them, by up to {self.repaired.max():.3g}."
            )
        doubtful = np.flatnonzero(~self.qualified)
        if doubtful.size:
            lines.append(
                f"{doubtful.size} decisions (first: {doubtful[0]}) may be explained by more costs "
                "than their sets contain: curved constraints seem to leave no interior there."
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        spread = np.unique(self.margins)
        margin = f"{spread[0]:g}" if len(spread) == 1 else f"{len(spread)} values"
        form = "" if self.form is None else f", {self.form!r}"
        return f"OptimalitySet({len(self)} decisions, margin {margin}, {self.problem!r}{form})"


_PER_INSTANCE = (
    "decisions",
    "margins",
    "entry_state",
    "row_active",
    "snapped",
    "nearest_free",
    "repaired",
    "weights",
    "qualified",
)
_WORDS = {
    EntryState.FREE: "free",
    EntryState.AT_LOWER: "at lower",
    EntryState.AT_UPPER: "at upper",
    EntryState.FIXED: "fixed",
}


def check_program(problem: Any) -> None:
    """Refuse what is not a problem of ours."""
    if not (hasattr(problem, "tangent") and hasattr(problem, "n_parameters")):
        raise InputError(
            f"`problem` must be a LinearProgram; got {type(problem).__name__}. Build one with "
            "rv.LinearProgram(...) or from rv.problems; a QuadraticProgram or a ConvexProgram "
            "will do too."
        )


def _hint(problem: Any, X: np.ndarray) -> str:
    """What else may be wrong with infeasible decisions."""
    from ..problems.catalogue.edge_orders import in_pyepo_order

    if not in_pyepo_order(problem, X):
        return ""
    return (
        " These are paths in PyEPO's order of edges: take decisions, and costs, as "
        "theirs[:, rv.problems.pyepo_edge_order(rows, cols)]."
    )


def _checked_form(form: Any, problem: Any, size: int) -> CostForm | None:
    if form is None:
        return None
    if not isinstance(form, CostForm):
        raise InputError(
            f"`form` must be a CostForm; got {type(form).__name__}. Build one with "
            "rv.CostForm(matrix) or one of its constructors."
        )
    if form.n_costs != problem.n_parameters:
        raise ShapeError(
            f"`form` must give the {problem.n_parameters} parameters of the problem; it gives "
            f"{form.n_costs}."
        )
    form.check_batch(size)
    return form


def _same_length(costs: np.ndarray, sets: OptimalitySet) -> None:
    if len(costs) != len(sets):
        raise ShapeError(
            f"`costs` must have one row for each of the {len(sets)} decisions; got {len(costs)}. "
            "Choose the sets of a batch with `sets[index]`."
        )


def _largest_margin(sets: OptimalitySet, cost: np.ndarray, b: int) -> float:
    """max delta  s.t.  cost = A_eq^T v - A_ub^T mu + s,  s and mu on the right side by delta."""
    one = sets.rows[np.array([b])]
    active, state = sets.row_active[b], sets.entry_state[b]
    eq, ub = one.eq_rows.matrix(0).toarray(), one.ub_rows.matrix(0).toarray()[active]
    n_v, n_mu = len(eq), len(ub)
    size = max(np.abs(cost).max(initial=0.0), 1e-300)
    explain = np.hstack([eq.T, -ub.T])
    lower, upper = state == EntryState.AT_LOWER, state == EntryState.AT_UPPER
    free = state == EntryState.FREE
    rows = np.vstack(
        [
            np.hstack([explain[lower], np.ones((lower.sum(), 1))]),
            np.hstack([-explain[upper], np.ones((upper.sum(), 1))]),
            np.hstack([np.zeros((n_mu, n_v)), -np.eye(n_mu), np.ones((n_mu, 1))]),
        ]
    )
    limit = np.concatenate([cost[lower], -cost[upper], np.zeros(n_mu)]) / size
    program = LinearProgram(
        A_eq=np.hstack([explain[free], np.zeros((free.sum(), 1))]),
        b_eq=cost[free] / size,
        A_ub=rows,
        b_ub=limit,
        lb=None,
        ub=None,
    )
    objective = np.zeros((1, n_v + n_mu + 1))
    objective[0, -1] = -1.0
    answer = program.solve(objective)
    status = SolveStatus(int(answer.status[0]))
    if status is SolveStatus.OPTIMAL:
        return float(answer.x[0, -1] * size)
    return {SolveStatus.UNBOUNDED: np.inf, SolveStatus.INFEASIBLE: -np.inf}.get(status, np.nan)
