"""The distance from a predicted cost to the costs that explain the decision, as a loss.

    power=2         1/2 dist^2, the paper's h             gradient  q - P(q)
    power=1         dist, robust to wrong decisions       gradient  (q - P(q)) / dist
    power="huber"   1/2 dist^2 up to `delta`, then straight: delta (dist - delta/2)
    power="welsch"  1/2 dist^2 near the set, at most delta^2: gives up what is far away (not convex)

Nothing is differentiated through a solver: the gradient of a distance to a convex set is the
residual itself. Letters: B samples, n cost entries.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from .._common.arrays import as_costs, to_float64
from .._common.device import is_cuda
from ..errors import InputError
from ..optimality.cost_form import CostForm
from ..optimality.mixed import MixedSets, padded
from ..optimality.protocol import CostSet
from ..optimality.sets import OptimalitySet
from ..problems.linear import LinearProgram
from ..problems.protocol import Problem, check_same_shape
from ..projection import Projection, ProjectionStatus, project
from ..projection.distance import FORMS, check_delta, check_power, length_of, value_and_gradient
from ..projection.result import refuse_empty
from ..projection.triton import DeviceSets, on_device, project_on_device
from ._device import OnDevice, distance_on_device, with_device_weights
from ._memory import Memory, as_keys
from ._questions import Questions
from ._reduce import (
    check_reduction,
    reduce_with_gradient,
    share_of_each,
    with_known_gradient,
    with_own_weights,
)
from .base import DecisionLoss, own_instances, refuse_non_tensor


class TrivialCostWarning(UserWarning):
    """The cost 0 explains every decision, so the loss can be 0 where nothing was learned."""


class UnsolvedProjectionWarning(UserWarning):
    """Some projections ended above their tolerance; training goes on with what they reached."""


@dataclass
class _Seen:
    """What the calls of a loss have seen. Not a part of the module, whose attributes are slow."""

    last: Projection | None = None
    size: np.ndarray | None = None
    unsolved: int = 0
    has_warned: bool = False
    has_looked: bool = False
    """Whether the margins of a first batch have been looked at."""


class ProjectionLoss(DecisionLoss):
    """How far predicted costs are from explaining the observed decisions.

        loss_fn = ProjectionLoss(problem, margin=1.0)
        loss = loss_fn(net(z), x_star)                              # decisions as they are, or
        loss = loss_fn(net(z[i]), sets[i], index=i)                 # sets built once and sliced

    The first form builds the sets anew in each call; building an `OptimalitySet` for the whole
    data set and slicing it is faster. `index` names the samples of the batch: the multipliers of
    their last visit are then where the next projection starts (`warm_start=False` to prevent
    it), and for a problem whose constraints differ by instance it says which instances raw
    decisions belong to. The start changes the time, not the answer beyond its tolerance.

    The mean is over samples, with `weights` divided by their sum; it is 0 for an empty batch.
    The arithmetic is in float64. The loss comes back in the dtype of the costs, in float32 if
    that is a half-precision one; the gradient always in the dtype of the costs. The module has no
    parameters and its `state_dict` is empty.

    Sets of several problems (`OptimalitySet.concatenate`) take costs filled up to the longest.
    Samples count as much as the `weights` of their sets say.

    Costs on a GPU are dealt with there. With `device_sets = sets.to("cuda")` and
    `loss_fn(net(z[i]), device_sets[i], index=i)` nothing goes to the host and back, the warm starts
    live on the device, and after a first call the step can be captured in a CUDA graph. Unsolved
    projections are then counted without a warning, and costs shorter than float64 are projected to
    1e-6 of the move instead of 1e-8, which is still finer than their own rounding.

    Parameters
    ----------
    problem : LinearProgram, QuadraticProgram, ConvexProgram, IntegerProgram or OracleProblem
        What the decision maker may do.
    margin : float or None
        How clearly costs must favor the decision. It must agree with the margin of sets that are
        given. None takes that of the sets, and 1 for raw decisions.
    form : CostForm or None
        How costs follow from what is predicted, which is then parameters (B, p). It is used for
        raw decisions; sets bring a form of their own.
    power : 1, 2, "huber" or "welsch"
        2 for half the squared distance, 1 for the distance, "huber" for the square up to `delta`
        and a straight line beyond, "welsch" for a loss of at most `delta` squared (not convex).
    delta : float
        Where "huber" and "welsch" bend; the others do not use it.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    warm_start : bool
        Whether a projection starts where the last one of the same sample ended. Needs `index`.
    max_calls : int or None
        For an IntegerProgram or OracleProblem, the most questions to the oracle for each sample of
        a step. None asks until the projection is exact. With 1 the distance is that from the costs
        that explain the decision against all alternatives found so far: at most the true one, and
        equal to it once no alternative is missing. `unsolved` counts those that were not exact.
    ask_every : int
        With `max_calls`: the first of so many calls of the loss asks the oracle. The others make do
        with the decisions that were found before, for any sample with the same constraints.
    threads : int or None
        Of the projections; None for every core.
    """

    name = "projection"
    oracle_calls = "none"
    accepts = Problem

    def __init__(
        self,
        problem: Problem,
        margin: float | None = 1.0,
        *,
        form: CostForm | None = None,
        power: int | str = 2,
        delta: float = 1.0,
        reduction: str = "mean",
        warm_start: bool = True,
        max_calls: int | None = None,
        ask_every: int = 1,
        threads: int | None = None,
    ) -> None:
        super().__init__(problem, reduction=reduction)  # pyright: ignore[reportArgumentType]
        check_power(power)
        check_delta(delta)
        self.margin, self.form = _one_margin(margin), form
        self.power, self.delta = power, float(delta)
        self.warm_start, self.threads = warm_start, threads
        self.questions = Questions(max_calls, ask_every)
        self._memory, self._seen = Memory(), _Seen()
        self._device = OnDevice()

    @property
    def projection(self) -> Projection | None:
        """Of the last call, in numpy arrays; asking waits for the device."""
        return self._seen.last or self._device.projection()

    @property
    def size(self) -> np.ndarray | None:
        """(B,) length of each cost of the last call or, where that is more, its margin."""
        return self._device.size() if self._seen.last is None else self._seen.size

    @property
    def steps(self) -> int:
        """Steps of all projections of the last call together."""
        return 0 if self.projection is None else int(self.projection.iterations.sum())

    @property
    def unsolved(self) -> int:
        """Projections of all calls so far that ended above their tolerance; asking waits for the
        device."""
        return self._seen.unsolved + self._device.unsolved()

    def evaluate(
        self,
        costs: Tensor,
        decisions: Any,
        *,
        true_costs: Any = None,
        index: Any = None,
        weights: Any = None,
    ) -> Tensor:
        """The loss of predicted costs against observed decisions; calling the module does the same.

        Parameters
        ----------
        costs : (B, n) tensor
            Predicted costs; parameters (B, p) where there is a form.
        decisions : (B, n) array or tensor, OptimalitySet or DeviceSets
            The observed decisions, or the sets of costs that explain them.
        true_costs
            Not looked at.
        index : (B,) array or tensor of int, optional
            Which samples these are: for warm starts, and for raw decisions of a problem whose
            constraints differ by instance.
        weights : (B,) array or tensor, optional
            How much each sample counts: constants of at least 0. Those of the sets count too.

        Returns
        -------
        Tensor
            One number, or (B,) with `reduction="none"`.
        """
        refuse_non_tensor(costs)
        if isinstance(decisions, DeviceSets) or (costs.is_cuda and self._is_plain(decisions)):
            return self._evaluate_on_device(costs, decisions, index, weights)
        q, _ = as_costs(costs, self._width(decisions))
        keys = None if index is None else as_keys(index, len(q))
        sets = self._sets(decisions, index, len(q))
        self._look_for_trivial_cost(sets)
        q = padded(q, sets) if isinstance(sets, MixedSets) else q
        if self.questions.most is not None:
            p = project(q, sets, threads=self.threads, **self.questions.options())
        elif keys is None or not self.warm_start:
            p = project(q, sets, threads=self.threads)
        else:
            places = self._memory.places(keys)
            start = self._memory.recall(places)
            p = project(q, sets, warm_start=start, threads=self.threads)
            self._memory.keep(keys, places, p.multipliers)
        self._take_stock(p)
        size = self._seen.size = length_of(q, sets.margins)
        each = value_and_gradient(q, p, size, self.power, self.delta)
        weights = with_own_weights(weights, sets)
        return reduce_with_gradient(costs, *each, reduction=self.reduction, weights=weights)

    def _is_plain(self, decisions: Any) -> bool:
        """Whether decisions are, or raw ones will make, sets of plain costs."""
        if isinstance(decisions, CostSet):
            return isinstance(decisions, OptimalitySet) and decisions.is_plain
        return self.form is None and isinstance(self.problem, LinearProgram)

    def _width(self, decisions: Any) -> int:
        """How many numbers are predicted for a sample."""
        if isinstance(decisions, CostSet):
            return decisions.n_parameters
        return self.problem.n_parameters if self.form is None else self.form.n_parameters

    def forget(self) -> None:
        """Drop the warm starts, so that the next epoch begins like the first."""
        self._memory = Memory()
        self._device.memory.forget()

    def extra_repr(self) -> str:
        bend = f", delta={self.delta:g}" if FORMS[self.power].uses_delta else ""
        return (
            f"{self.problem!r}, margin={self.margin}, power={self.power!r}{bend}, "
            f"reduction={self.reduction!r}"
        )

    def _sets(self, decisions: Any, index: Any, size: int) -> Any:
        if not isinstance(decisions, CostSet):
            problem = own_instances(self.problem, index, size)
            margin, form = 1.0 if self.margin is None else self.margin, self.form
            if form is not None and form.n_instances is not None and index is not None:
                form = form[as_keys(index, size)]
            return OptimalitySet(problem, decisions, margin, form=form)
        if decisions.problem is not None:
            check_same_shape(decisions.problem, self.problem)
        if self.margin is not None and (decisions.margins != self.margin).any():
            self._refuse_margins(decisions.margins)
        return decisions

    def _look_for_trivial_cost(self, sets: CostSet) -> None:
        """Once: with margin 0 the cost 0 is in every set of plain costs, and training may end
        there."""
        if self._seen.has_looked or not len(sets):
            return
        self._seen.has_looked = True
        plain = isinstance(sets, OptimalitySet) and sets.is_plain
        if plain and not sets.margins.any() and _integral(sets):
            warnings.warn(
                "With margin 0 the cost 0 explains every decision, and so do all that tie it with "
                "others: training may end at costs that say nothing. Use margin=1, or "
                "SmoothedProjectionLoss, whose noise sets the scale.",
                TrivialCostWarning,
                stacklevel=4,
            )

    def _evaluate_on_device(
        self, costs: Tensor, decisions: Any, index: Any, weights: Any
    ) -> Tensor:
        self._seen.last = None
        if isinstance(decisions, DeviceSets):
            sets, keys = self._check_device_sets(decisions), index
            self._look_for_trivial_cost(sets.table.host)
        else:
            own = self._sets(decisions, index, len(costs))
            self._look_for_trivial_cost(own)
            sets = on_device(own, costs.device)
            keys = None if index is None else as_keys(index, len(costs))
        q = costs.detach()
        p = self._device.project(q, sets, keys if self.warm_start else None, threads=self.threads)
        weights = with_device_weights(weights, sets)
        share = share_of_each(p.distance, weights, self.reduction)
        each = self._device.weigh(q, sets, p, self.power, self.delta, share)
        return with_known_gradient(costs, *each, self.reduction)

    def _check_device_sets(self, sets: DeviceSets) -> DeviceSets:
        """What can be known without asking the device."""
        check_same_shape(sets.table.host.problem, self.problem)
        if self.margin not in (None, sets.table.margin):
            self._refuse_margins(sets.table.host.margins)
        return sets

    def _refuse_margins(self, margins: np.ndarray) -> NoReturn:
        raise InputError(
            f"The loss has margin {self.margin:g}, the sets {_in_words(margins)}. "
            "Build both with one margin, or the loss with margin=None to take that of the sets."
        )

    def _take_stock(self, p: Projection) -> None:
        self._seen.last = p
        if p.solved.all():
            return
        refuse_empty(p)
        missed = int((~p.solved).sum())
        self._seen.unsolved += missed
        if not self._seen.has_warned and self.questions.most is None:
            self._seen.has_warned = True
            _warn_unsolved(p, missed, "counted in `unsolved` and not reported again")


def projection_loss(
    costs: Any,
    sets: CostSet,
    *,
    power: int | str = 2,
    delta: float = 1.0,
    reduction: str = "mean",
    weights: Any = None,
    warm_start: Any = None,
    threads: int | None = None,
) -> Any:
    """`ProjectionLoss` as a plain function of costs (B, n) and their sets.

    Torch in, torch out, with a gradient; numpy in, numpy out. On a GPU nothing is read back, so
    nothing is warned about.

    Parameters
    ----------
    costs : (B, n) array or tensor
        Predicted costs; parameters (B, p) where the sets have a form.
    sets : OptimalitySet or DeviceSets
        Of the B observed decisions. The margin is theirs.
    power : 1, 2, "huber" or "welsch"
        As in `ProjectionLoss`.
    delta : float
        Where "huber" and "welsch" bend.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    weights : (B,) array or tensor, optional
        How much each sample counts, at least 0. Those of the sets count too.
    warm_start : Projection, optional
        An earlier projection onto the same sets, to start from.
    threads : int or None
        None for every core.

    Returns
    -------
    Tensor, or numpy number or array
        One number, or (B,) with `reduction="none"`.
    """
    check_power(power)
    check_delta(delta)
    check_reduction(reduction)
    is_tensor = isinstance(costs, Tensor)
    placed = _on_device_with(costs, sets)
    if placed is not None:
        refuse_non_tensor(costs)
        q = costs.detach()
        p = project_on_device(q, placed, warm_start=warm_start, threads=threads)
        each = distance_on_device(q, placed, p, power, float(delta))
        weights = with_device_weights(weights, placed)
        return reduce_with_gradient(costs, *each, reduction=reduction, weights=weights)
    if not isinstance(sets, CostSet):
        raise InputError(
            f"`sets` must be an OptimalitySet; got {type(sets).__name__}. "
            "Build it with rv.OptimalitySet(problem, decisions, margin)."
        )
    q, _ = as_costs(costs, sets.n_parameters)
    q = padded(q, sets) if isinstance(sets, MixedSets) else q
    p = project(q, sets, warm_start=warm_start, threads=threads)
    refuse_empty(p)
    weights = with_own_weights(weights, sets)
    missed = int((~p.solved).sum())
    if missed:
        _warn_unsolved(p, missed, "used as they are")
    each = value_and_gradient(q, p, length_of(q, sets.margins), power, float(delta))
    tensor = costs if is_tensor else torch.from_numpy(q.copy())
    value = reduce_with_gradient(tensor, *each, reduction=reduction, weights=weights)
    return value if is_tensor else value.numpy()[()]


def _on_device_with(costs: Any, sets: CostSet) -> DeviceSets | None:
    """The sets on a device, where they are there or can go to the GPU that the costs are on."""
    if isinstance(sets, DeviceSets):
        return sets
    if is_cuda(costs) and isinstance(sets, OptimalitySet) and sets.is_plain:
        return on_device(sets, costs.device)
    return None


# --- checks ---------------------------------------------------------------------------------------


def _one_margin(margin: Any) -> float | None:
    if margin is None:
        return None
    array = to_float64(margin, "margin")
    if array.ndim or not 0 <= array < np.inf:
        raise InputError(
            f"`margin` of a loss must be one finite number of at least 0, or None for that of the "
            f"sets; got {margin!r}. Margins of their own go into the OptimalitySet."
        )
    return float(array)


def _integral(sets: CostSet) -> bool:
    """Whether all decisions are whole numbers, as those of paths and matchings."""
    return bool((sets.decisions == np.round(sets.decisions)).all())


def _warn_unsolved(p: Projection, missed: int, rest: str) -> None:
    status = ProjectionStatus(int(p.status[~p.solved][0]))
    warnings.warn(
        f"{missed} of {len(p.solved)} projections are not exact; they are {rest}. "
        f"{status.sentence}",
        UnsolvedProjectionWarning,
        stacklevel=4,
    )


def _in_words(margins: np.ndarray) -> str:
    distinct = np.unique(margins)
    return f"{distinct[0]:g}" if len(distinct) == 1 else f"{len(distinct)} different ones"
