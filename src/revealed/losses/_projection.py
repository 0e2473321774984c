"""The distance from a predicted cost to the costs that explain the decision, as a loss.

    power=2         1/2 dist^2, the paper's h             gradient  q - P(q)
    power=1         dist, robust to wrong decisions       gradient  (q - P(q)) / dist
    power="huber"   1/2 dist^2 up to `delta`, then straight: delta (dist - delta/2)

Nothing is differentiated through a solver: the gradient of a distance to a convex set is the
residual itself. Letters: B samples, n cost entries.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._arrays import as_costs, to_float64
from ..errors import InputError
from ..optimality import OptimalitySet
from ..problem import LinearProgram
from ..projection import Projection, ProjectionStatus, project
from ._base import DecisionLoss, check_same_form, own_instances, refuse_non_tensor
from ._memory import Memory, as_keys
from ._reduce import check_reduction, reduce_with_gradient

POWERS = (1, 2, "huber")
INSIDE = 1e-10
"""A distance of at most this share of the cost is rounding: its direction means nothing."""


class UnsolvedProjectionWarning(UserWarning):
    """Some projections ended above their tolerance; training goes on with what they reached."""


@dataclass
class _Seen:
    """What the calls of a loss have seen. Not a part of the module, whose attributes are slow."""

    last: Projection | None = None
    size: np.ndarray | None = None
    unsolved: int = 0
    has_warned: bool = False


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
    that is a half-precision one; the gradient always in the dtype of the costs.

    `margin=None` takes the margin of the sets it is given (1 for raw decisions); any other value
    must agree with theirs. The module has no parameters and its `state_dict` is empty.
    """

    name = "projection"
    oracle_calls = "none"

    def __init__(
        self,
        problem: LinearProgram,
        margin: float | None = 1.0,
        *,
        power: int | str = 2,
        delta: float = 1.0,
        reduction: str = "mean",
        warm_start: bool = True,
        threads: int | None = None,
    ) -> None:
        super().__init__(problem, reduction=reduction)
        check_power(power)
        check_delta(delta)
        self.margin = _one_margin(margin)
        self.power, self.delta = power, float(delta)
        self.warm_start, self.threads = warm_start, threads
        self._memory, self._seen = Memory(), _Seen()

    @property
    def projection(self) -> Projection | None:
        """Of the last call, in numpy arrays."""
        return self._seen.last

    @property
    def size(self) -> np.ndarray | None:
        """(B,) length of each cost of the last call or, where that is more, its margin."""
        return self._seen.size

    @property
    def steps(self) -> int:
        """Steps of all projections of the last call together."""
        return 0 if self.projection is None else int(self.projection.iterations.sum())

    @property
    def unsolved(self) -> int:
        """Projections of all calls so far that ended above their tolerance."""
        return self._seen.unsolved

    def evaluate(
        self,
        costs: Tensor,
        decisions: Any,
        *,
        true_costs: Any = None,
        index: Any = None,
        weights: Any = None,
    ) -> Tensor:
        """The loss of costs (B, n) against decisions, (B, n) or an OptimalitySet.

        `weights` (B,) are constants of at least 0. `true_costs` are not looked at.
        """
        refuse_non_tensor(costs)
        q, _ = as_costs(costs, self.problem.n_variables)
        keys = None if index is None else as_keys(index, len(q))
        sets = self._sets(decisions, index, len(q))
        if keys is None or not self.warm_start:
            p = project(q, sets, threads=self.threads)
        else:
            places = self._memory.places(keys)
            start = self._memory.recall(places)
            p = project(q, sets, warm_start=start, threads=self.threads)
            self._memory.keep(keys, places, p.multipliers)
        self._take_stock(p)
        size = self._seen.size = length_of(q, sets.margins)
        each = value_and_gradient(q, p, size, self.power, self.delta)
        return reduce_with_gradient(costs, *each, reduction=self.reduction, weights=weights)

    def forget(self) -> None:
        """Drop the warm starts, so that the next epoch begins like the first."""
        self._memory = Memory()

    def extra_repr(self) -> str:
        bend = f", delta={self.delta:g}" if self.power == "huber" else ""
        return (
            f"{self.problem!r}, margin={self.margin}, power={self.power!r}{bend}, "
            f"reduction={self.reduction!r}"
        )

    def _sets(self, decisions: Any, index: Any, size: int) -> OptimalitySet:
        if not isinstance(decisions, OptimalitySet):
            problem = own_instances(self.problem, index, size)
            return OptimalitySet(problem, decisions, 1.0 if self.margin is None else self.margin)
        check_same_form(decisions.problem, self.problem)
        if self.margin is not None and (decisions.margins != self.margin).any():
            raise InputError(
                f"The loss has margin {self.margin:g}, the sets {_in_words(decisions.margins)}. "
                "Build both with one margin, or the loss with margin=None to take that of the sets."
            )
        return decisions

    def _take_stock(self, p: Projection) -> None:
        self._seen.last = p
        if p.solved.all():
            return
        missed = int((~p.solved).sum())
        self._seen.unsolved += missed
        if not self._seen.has_warned:
            self._seen.has_warned = True
            _warn_unsolved(p, missed, "counted in `unsolved` and not reported again")


def projection_loss(
    costs: Any,
    sets: OptimalitySet,
    *,
    power: int | str = 2,
    delta: float = 1.0,
    reduction: str = "mean",
    weights: Any = None,
    warm_start: Any = None,
    threads: int | None = None,
) -> Any:
    """`ProjectionLoss` as a plain function of costs (B, n) and their sets.

    Torch in, torch out, with a gradient; numpy in, numpy out. `warm_start` is an earlier
    Projection of the same sets.
    """
    if not isinstance(sets, OptimalitySet):
        raise InputError(
            f"`sets` must be an OptimalitySet; got {type(sets).__name__}. "
            "Build it with rv.OptimalitySet(problem, decisions, margin)."
        )
    check_power(power)
    check_delta(delta)
    check_reduction(reduction)
    is_tensor = isinstance(costs, Tensor)
    q, _ = as_costs(costs, sets.problem.n_variables)
    p = project(q, sets, warm_start=warm_start, threads=threads)
    missed = int((~p.solved).sum())
    if missed:
        _warn_unsolved(p, missed, "used as they are")
    each = value_and_gradient(q, p, length_of(q, sets.margins), power, float(delta))
    tensor = costs if is_tensor else torch.from_numpy(q.copy())
    value = reduce_with_gradient(tensor, *each, reduction=reduction, weights=weights)
    return value if is_tensor else value.numpy()[()]


# --- the mathematics -----------------------------------------------------------------------------
# Distances (B,) in, each sample's loss and what its residual is multiplied by in the gradient out.
# Plain arithmetic, so that numpy arrays and tensors of any device go through it alike.


def _squared(distance: Any, outside: Any, delta: float) -> tuple[Any, Any]:
    return 0.5 * distance * distance, None


def _plain(distance: Any, outside: Any, delta: float) -> tuple[Any, Any]:
    # At distance 0 any vector of length at most 1 is a subgradient; 0 leaves a right cost alone.
    return distance, outside / (distance + ~outside)


def _huber(distance: Any, outside: Any, delta: float) -> tuple[Any, Any]:
    near = distance.clip(max=delta)
    return near * (distance - 0.5 * near), near / (distance + (distance == 0))


_FORMS: dict[Any, Callable[[Any, Any, float], tuple[Any, Any]]] = {
    2: _squared,
    1: _plain,
    "huber": _huber,
}


def value_and_gradient(
    q: Any, p: Projection, size: Any, power: int | str, delta: float
) -> tuple[Any, Any]:
    """Values (B,) and gradients (B, n) of the samples; `size` as from `length_of`."""
    value, factor = _FORMS[power](p.distance, p.distance > INSIDE * size, delta)
    residual = q - p.point
    return value, residual if factor is None else factor[:, None] * residual


def length_of(q: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """(B,): |q|, or the margin where that is more: what a distance is small or large against."""
    return np.maximum(np.sqrt(np.einsum("ij,ij->i", q, q)), margins)


# --- checks --------------------------------------------------------------------------------------


def check_power(power: Any) -> None:
    """Refuse anything but the three forms."""
    if isinstance(power, bool) or power not in POWERS:
        raise InputError(f"`power` must be 2, 1 or 'huber'; got {power!r}.")


def check_delta(delta: Any) -> None:
    """Refuse anything but a finite number above 0."""
    if not (isinstance(delta, int | float | np.number) and 0 < delta < np.inf):
        raise InputError(
            f"`delta` must be above 0 and finite, the distance at which the Huber loss turns "
            f"straight; got {delta!r}."
        )


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
