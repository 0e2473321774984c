"""Observed decisions -> the sets of costs that explain them.

A decision x* is optimal under c exactly if c = A_eq^T v - A_ub^T mu + s with

    s_j = 0 where x*_j is free,  s_j >= margin at its lower bound,  s_j <= -margin at its upper
    bound, any s_j where the bounds leave no choice,  mu_i >= margin on active rows,  mu_i = 0
    on others.

So a set is given by the state of every entry and row. Where what is predicted are not the costs
themselves, c is the gradient of the objective at x*, an affine function of the parameters. Letters:
B instances, n entries, m_ub inequality rows, p parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self, TypeVar

import numpy as np

from .._common.affine import AffineMap
from .._common.arrays import as_choice, as_costs, to_float64
from .._common.records import Record
from ..errors import InputError, ShapeError
from ..problems.cones import Normals
from ..problems.linear import LinearProgram
from ..problems.protocol import Problem, check_problem
from ..problems.solution import Solution
from .active_set import ActiveSet as ActiveSet
from .active_set import EntryState as EntryState
from .active_set import checked_margins, checked_soft, checked_tolerance
from .completion import Completion, plain_costs
from .cost_form import CostForm
from .infeasible import settle
from .kinds import Conditions, Parameters, PlainCosts
from .margin import largest_margins
from .mixed import MixedSets
from .protocol import PREPARATIONS, READERS, UPLOADS, CostSet, SetKind, Terms

T = TypeVar("T")


class OptimalitySet(Record, CostSet):
    """For each decision of a batch, the convex set of costs under which it is optimal.

    A decision read from a solver is never exactly at its bounds, so bounds and rows count as
    reached within `tol`. `snapped` and `nearest_free` say what that decided, and `report()` says
    it in words.

    Parameters
    ----------
    problem : LinearProgram, QuadraticProgram, ConvexProgram, IntegerProgram or OracleProblem
        What the decision maker may do.
    decisions : (B, n) array or tensor
        Observed decisions, taken as optimal.
    margin : float or (B,) array
        How clearly a cost must favor the decision, at least 0. A positive margin keeps out the
        trivial c = 0 and costs that are merely tied.
    tol : float
        How near to a bound counts as at it, and to a row as binding: relative to 1 + |bound| and
        to the size of the row's terms (1 gives way to the size of the problem where that is
        smaller). The default suits interior-point output, where 5e-6 stands for 0.
    form : CostForm, optional
        How costs come from fewer parameters, and within which limits. The set is then one of
        parameters, and may be empty.
    soft : float, optional
        A price, such as 100, that lets the conditions be missed by e at 1/2 soft |e|^2, so that
        no set is empty and the distance counts the miss.
    infeasible : "refuse", "repair" or "weigh"
        What to do with a decision that breaks its constraints by more than `tol`: refuse it, put
        the nearest one that obeys them in its place, or also count it for less the farther off
        it was. `repaired` and `weights` say how far and how much.
    observed : (B, n) bool array, optional
        Which entries of decisions were seen, for a LinearProgram. The others, which may be NaN,
        are filled in as the cheapest feasible decision that agrees: at first under costs of 1,
        later under those that are given to `completed`. `InverseRegressor.fit` does that in turns.

    Raises
    ------
    InputError
        If a decision is refused, an argument has no meaning, or no feasible decision agrees with
        what was observed.
    ShapeError
        If decisions, margins, `observed` or the form do not fit the problem.

    Examples
    --------
    >>> import numpy as np
    >>> import revealed as rv
    >>> problem = rv.problems.knapsack([1.0, 1.0], capacity=1.0)
    >>> sets = rv.OptimalitySet(problem, np.array([[1.0, 0.0]]))
    >>> sets.contains(np.array([[-3.0, -1.0]]))
    array([ True])
    """

    problem: Problem
    decisions: np.ndarray
    """(B, n) as given, or as repaired."""
    margins: np.ndarray
    """(B,)"""
    tol: float
    observed: np.ndarray | None
    """(B, n) which entries of decisions were seen; None where all were."""
    repaired: np.ndarray
    """(B,) how far each decision was moved to obey its constraints; 0 where it did."""
    weights: np.ndarray
    """(B,) what each sample counts in losses and fits; 1 unless `infeasible="weigh"`, or given by
    `replaced(weights=...)`."""
    _kind: SetKind
    _cache: dict[Any, Any]

    def __init__(
        self,
        problem: Problem,
        decisions: Any,
        margin: Any = 1.0,
        *,
        tol: float = 1e-5,
        form: CostForm | None = None,
        soft: float | None = None,
        infeasible: str = "refuse",
        observed: Any = None,
    ) -> None:
        check_problem(problem)
        mask = None
        if observed is not None:
            decisions, mask = _completed_at_first(problem, decisions, observed)
        X = _finite(decisions, problem)
        problem.check_batch(len(X), "decisions")
        tol, soft = checked_tolerance(tol), checked_soft(soft)
        margins = checked_margins(margin, len(X))
        form = _checked_form(form, problem, len(X))
        X, repaired, weights = settle(problem, X, tol, infeasible)
        kind = READERS.of(problem)(problem, X, Terms(margins, tol, form, soft))
        self._set(problem=problem, decisions=X, margins=margins, tol=tol, observed=mask)
        self._set(repaired=repaired, weights=weights, _kind=kind, _cache={})
        if isinstance(kind, Parameters) and len(X):
            prepare = PREPARATIONS.find(Parameters)
            self._set(_kind=replace(kind, prepared=prepare and prepare(self)))

    # --- what kind of sets these are -------------------------------------------------------------

    @property
    def kind(self) -> SetKind:
        """What these sets hold beyond decisions, margins and weights; says which projector serves
        them."""
        return self._kind

    @property
    def conditions(self) -> Conditions:
        """The kind of sets that multipliers explain; sets of other kinds have no active rows."""
        if not isinstance(self._kind, Conditions):
            raise InputError(
                f"Sets of {self.problem!r} are {type(self._kind).__name__}: they have no rows and "
                "bounds whose active ones could be named."
            )
        return self._kind

    @property
    def is_plain(self) -> bool:
        """Whether the sets are of plain costs, nothing in between and nothing besides rows."""
        return isinstance(self._kind, PlainCosts)

    @property
    def n_parameters(self) -> int:
        """Length of what is predicted: the costs, or the parameters of the form or the problem."""
        return self._kind.n_parameters

    @property
    def rows(self) -> LinearProgram:
        """The rows and bounds that `entry_state` and `row_active` are about: those of the problem,
        or for curved constraints their tangents at the decisions."""
        return self.conditions.rows

    @property
    def entry_state(self) -> np.ndarray:
        """(B, n) int8 codes of EntryState."""
        return self.conditions.active.entry_state

    @property
    def row_active(self) -> np.ndarray:
        """(B, m_ub) whether each inequality is active."""
        return self.conditions.active.row_active

    @property
    def row_used(self) -> np.ndarray:
        """(m_ub,) whether each inequality is active for any decision of the data set; slices
        inherit it."""
        return self.conditions.row_used

    @property
    def snapped(self) -> np.ndarray:
        """(B,) the largest relative distance from a bound, or of a row from being active, that was
        read as none."""
        return self.conditions.active.snapped

    @property
    def nearest_free(self) -> np.ndarray:
        """(B,) the smallest such distance that was read as real; inf if there is none."""
        return self.conditions.active.nearest_free

    @property
    def form(self) -> CostForm | None:
        """How costs come from fewer parameters; None where costs are predicted."""
        return self._kind.form if isinstance(self._kind, Parameters) else None

    @property
    def soft(self) -> float | None:
        """The price of missing the conditions; None where they are hard."""
        return self._kind.soft if isinstance(self._kind, Parameters) else None

    @property
    def gradient(self) -> AffineMap | None:
        """Parameters -> gradient of the objective at each decision; None where they are the
        same."""
        return self._kind.gradient if isinstance(self._kind, Parameters) else None

    @property
    def normals(self) -> Normals | None:
        """Normals that no row holds, where cones have a corner; None without such cones."""
        return self._kind.normals if isinstance(self._kind, Parameters) else None

    @property
    def semidefinite_block(self) -> tuple[int, int] | None:
        """Where among the problem's parameters a positive semidefinite matrix begins, and its
        order; None where there is none."""
        return self._kind.semidefinite_block if isinstance(self._kind, Parameters) else None

    @property
    def qualified(self) -> np.ndarray:
        """(B,) whether the set is known to hold every cost that explains the decision: always,
        unless curved constraints leave no interior around it (see `optimality.qualification`)."""
        if isinstance(self._kind, Parameters):
            return self._kind.qualified
        return np.ones(len(self), bool)

    @property
    def margin(self) -> float:
        """The margin of all instances; `margins` where they differ."""
        if len(self.margins) and (self.margins != self.margins[0]).any():
            raise InputError("The instances have margins of their own; read `margins` instead.")
        return float(self.margins[0]) if len(self.margins) else 0.0

    # --- other sets from these -------------------------------------------------------------------

    @classmethod
    def concatenate(cls, parts: Any) -> MixedSets:
        """Sets of different problems, of whatever sizes, one after the other in one batch.

        Parameters
        ----------
        parts : list of OptimalitySet
            At least one.

        Returns
        -------
        MixedSets
        """
        parts = tuple(parts)
        bad = [type(part).__name__ for part in parts if not isinstance(part, OptimalitySet)]
        if bad or not parts:
            raise InputError(
                "`parts` must be a list of at least one OptimalitySet; got "
                f"{bad[0] if bad else 'none'}."
            )
        return MixedSets(parts)

    def __len__(self) -> int:
        return len(self.decisions)

    def __getitem__(self, index: Any) -> OptimalitySet:
        """The sets of the chosen decisions: an integer, slice, mask or integer array.

        A slice without a step is a view: nothing is copied.
        """
        chosen = as_choice(index, len(self))
        problem = self.problem[chosen]
        arrays = {name: getattr(self, name)[chosen] for name in _PER_INSTANCE}
        if self.observed is not None:
            arrays["observed"] = self.observed[chosen]
        return self.replaced(problem=problem, _kind=self._kind.take(chosen, problem), **arrays)

    def replaced(self, **parts: Any) -> Self:
        """A copy with some parts replaced, such as `weights`; they are taken as they are.

        Parameters
        ----------
        **parts
            New values by the name of the attribute. Nothing is checked or converted.
        """
        return super().replaced(_cache={}, **parts)

    def completed(self, costs: Any) -> OptimalitySet:
        """The sets of the cheapest decisions that agree with what was observed.

        Parameters
        ----------
        costs : (B, p) array or tensor
            Costs, or the parameters of the form.

        Returns
        -------
        OptimalitySet
            The same sets where all entries were observed.

        Raises
        ------
        InputError
            If some costs have no cheapest decision.
        """
        if self.observed is None:
            return self
        c, _ = as_costs(costs, self.n_parameters, "costs")
        return self.filled(self.completion.complete(c if self.form is None else self.form.costs(c)))

    @property
    def completion(self) -> Completion:
        """What completes decisions that were observed in part."""
        there = np.ones(self.decisions.shape, bool) if self.observed is None else self.observed
        seen = np.where(there, self.decisions, np.nan)
        return self.cached("completion", lambda: Completion(self.problem, seen))

    def filled(self, decisions: np.ndarray) -> OptimalitySet:
        """The sets of other decisions (B, n) that agree with what was observed."""
        new = OptimalitySet(
            self.problem, decisions, self.margins, tol=self.tol, form=self.form, soft=self.soft
        )
        return new.replaced(observed=self.observed, repaired=self.repaired, weights=self.weights)

    def as_plain(
        self,
        rows: LinearProgram,
        decisions: np.ndarray,
        entry_state: np.ndarray,
        margins: np.ndarray | None = None,
    ) -> OptimalitySet:
        """Sets of plain costs of `rows` with these active inequalities and other entries, for
        projectors that restate sets of parameters as such; nothing is checked.

        Parameters
        ----------
        rows : LinearProgram
            Has the inequalities of these sets, and any entries.
        decisions : (B, n) array
        entry_state : (B, n) int8 array
        margins : (B,) array, optional
            Those of these sets unless given.
        """
        active = self.conditions.active._replace(entry_state=np.ascontiguousarray(entry_state))
        kind = PlainCosts(rows, active, self.row_used, rows.n_variables)
        margins = self.margins if margins is None else margins
        return self.replaced(problem=rows, decisions=decisions, margins=margins, _kind=kind)

    def cached(self, key: Any, build: Callable[[], T]) -> T:
        """The result of `build()`, computed once and kept under `key`; slices do not share it."""
        if key not in self._cache:
            self._cache.setdefault(key, build())
        return self._cache[key]

    def to(self, device: Any) -> CostSet:
        """The same sets on a device, made once and kept.

        Parameters
        ----------
        device : str or torch.device
            Such as "cuda".

        Returns
        -------
        DeviceSets

        Raises
        ------
        InputError
            Unless the sets are of plain costs of a LinearProgram.
        """
        upload = UPLOADS.find(type(self._kind))
        if upload is None:
            raise InputError(
                "Only sets of plain costs of a LinearProgram go to a device; those of a form, a "
                "soft set or another problem are projected on the CPU."
            )
        return upload(self, device)

    # --- questions about costs -------------------------------------------------------------------

    def solve(self, parameters: Any, **options: Any) -> Solution:
        """Decisions of minimum cost under other parameters; see `Problem.solve`.

        Parameters
        ----------
        parameters : (B, p) array or tensor
            Costs, or the parameters of the form.
        **options
            Passed on to the `solve` of the problem, such as `time_limit`.

        Returns
        -------
        Solution
        """
        costs = parameters if self.form is None else self.form.costs(parameters)
        return self.problem.solve(costs, **options)

    def max_margin(self, costs: Any) -> Any:
        """(B,): the largest margin at which each cost still explains its decision.

        One linear program for each instance. Limits of a form are not looked at.

        Parameters
        ----------
        costs : (B, p) array or tensor
            One row for each set.

        Returns
        -------
        (B,) array or tensor
            Negative where some reduced cost has the wrong sign, -inf where no multipliers fit the
            free entries, inf where nothing is at a bound, NaN where the solver found none of these.

        Raises
        ------
        InputError
            If a decision touches a cone at a corner, or the sets have no rows and bounds.
        """
        c, restore = as_costs(costs, self.n_parameters, "costs")
        if len(c) != len(self):
            raise ShapeError(
                f"`costs` must have one row for each of the {len(self)} decisions; got {len(c)}. "
                "Choose the sets of a batch with `sets[index]`."
            )
        if self.normals is not None:
            raise InputError(
                "`max_margin` is for rows; these sets have cones with a corner as well."
            )
        c = c if self.gradient is None else self.gradient(c)
        return restore(largest_margins(self.conditions, c))

    def report(self) -> str:
        """What was decided about the entries and rows, in words."""
        entry_state, row_active = self.entry_state, self.row_active
        states = [f"{(entry_state == s).sum()} {_WORDS[s]}" for s in EntryState]
        text = f"{len(self)} decisions of {self.problem.n_variables} entries: {', '.join(states)}"
        if row_active.size:
            text += f"; {row_active.sum()} of {row_active.size} inequalities bind"
        farthest = self.snapped.max(initial=0.0)
        nearest = self.nearest_free.min(initial=np.inf)
        limit = f"At most {self.tol:g} from a bound counts as at the bound: the farthest such entry"
        limit += f" or row is {farthest:.2g} away, the nearest that does not count {nearest:.2g}."
        lines = [f"{text}.", limit]
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


_PER_INSTANCE = ("decisions", "margins", "repaired", "weights")
_WORDS = {
    EntryState.FREE: "free",
    EntryState.AT_LOWER: "at lower",
    EntryState.AT_UPPER: "at upper",
    EntryState.FIXED: "fixed",
}


def _finite(decisions: Any, problem: Problem) -> np.ndarray:
    """Decisions (B, n) with a number in every entry."""
    try:
        return as_costs(decisions, problem.n_variables, "decisions")[0]
    except ShapeError:
        raise
    except InputError as error:
        if not np.isnan(to_float64(decisions, "decisions")).any():
            raise
        hint = "If NaN stands for what was not seen, say so with `observed`, a mask of what was."
        raise InputError(f"{error} {hint}") from error


def _completed_at_first(
    problem: Problem, decisions: Any, observed: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Decisions (B, n) with the entries that were not observed filled in, and which were."""
    X, mask = to_float64(decisions, "decisions"), np.asarray(observed)
    if mask.dtype != bool or mask.shape != X.shape:
        raise ShapeError(
            "`observed` must be a boolean mask of the shape of the decisions, "
            f"{X.shape}, True where an entry was seen; got {mask.dtype} of shape {mask.shape}."
        )
    missing = np.argwhere(mask & np.isnan(X))
    if missing.size:
        row, column = missing[0]
        raise InputError(
            f"`observed` says that entry {column} of row {row} was seen, but it is NaN."
        )
    completion = Completion(problem, np.where(mask, X, np.nan))
    costs = np.broadcast_to(plain_costs(completion.problem), X.shape)
    return completion.complete(np.array(costs)), mask


def _checked_form(form: Any, problem: Problem, size: int) -> CostForm | None:
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
