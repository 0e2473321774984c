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
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._arrays import as_costs, to_float64
from ..errors import InputError, ShapeError
from ..optimality import OptimalitySet
from ..problem import LinearProgram
from ..projection import Projection, ProjectionStatus, project
from ._memory import Memory, as_keys
from ._reduce import check_reduction, reduce_with_gradient

POWERS = (1, 2, "huber")
INSIDE = 1e-10
"""A distance of at most this share of the cost is rounding: its direction means nothing."""


class UnsolvedProjectionWarning(UserWarning):
    """Some projections ended above their tolerance; training goes on with what they reached."""


class ProjectionLoss(torch.nn.Module):
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

    projection: Projection | None
    """Of the last call: float64 tensors on the CPU, detached."""
    steps: int
    """Steps of all projections of the last call together."""
    unsolved: int
    """Projections of all calls so far that ended above their tolerance."""

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
        super().__init__()
        if not isinstance(problem, LinearProgram):
            raise InputError(
                f"`problem` must be a LinearProgram; got {type(problem).__name__}. "
                "Build one with rv.LinearProgram(...) or from rv.problems."
            )
        _check_options(power, delta, reduction)
        self.problem = problem
        self.margin = _one_margin(margin)
        self.power, self.delta, self.reduction = power, float(delta), reduction
        self.warm_start, self.threads = warm_start, threads
        self.projection, self.steps, self.unsolved = None, 0, 0
        self._memory = Memory()
        self._has_warned = False

    @torch.compiler.disable
    def forward(
        self, costs: Tensor, decisions: Any, *, index: Any = None, weights: Any = None
    ) -> Tensor:
        """The loss of costs (B, n) against decisions, (B, n) or an OptimalitySet.

        `weights` (B,) are constants of at least 0.
        """
        q = _as_tensor64(costs, self.problem.n_variables)
        keys = None if index is None else as_keys(index, len(q))
        sets = self._sets(decisions, keys)
        start = self._memory.recall(keys) if keys is not None and self.warm_start else None
        p = project(q, sets, warm_start=start, threads=self.threads)
        if keys is not None and self.warm_start and keys:
            self._memory.keep(keys, p.multipliers.numpy())
        self._take_stock(p)
        each = _per_sample(q, p, sets, self.power, self.delta)
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

    def _sets(self, decisions: Any, keys: list[int] | None) -> OptimalitySet:
        if not isinstance(decisions, OptimalitySet):
            own = self.problem.n_instances is not None and keys is not None
            problem = self.problem[np.array(keys, np.int64)] if own else self.problem
            return OptimalitySet(problem, decisions, 1.0 if self.margin is None else self.margin)
        _same_form(decisions.problem, self.problem)
        if self.margin is not None and (decisions.margins != self.margin).any():
            raise InputError(
                f"The loss has margin {self.margin:g}, the sets {_in_words(decisions.margins)}. "
                "Build both with one margin, or the loss with margin=None to take that of the sets."
            )
        return decisions

    def _take_stock(self, p: Projection) -> None:
        self.projection, self.steps = p, int(p.iterations.sum())
        missed = int((~p.solved).sum())
        self.unsolved += missed
        if missed and not self._has_warned:
            self._has_warned = True
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
    _check_options(power, delta, reduction)
    n, is_tensor = sets.problem.n_variables, isinstance(costs, Tensor)
    tensor = costs if is_tensor else torch.from_numpy(as_costs(costs, n)[0].copy())
    q = _as_tensor64(tensor, n)
    p = project(q, sets, warm_start=warm_start, threads=threads)
    missed = int((~p.solved).sum())
    if missed:
        _warn_unsolved(p, missed, "used as they are")
    each = _per_sample(q, p, sets, power, float(delta))
    value = reduce_with_gradient(tensor, *each, reduction=reduction, weights=weights)
    return value if is_tensor else value.numpy()[()]


# --- the mathematics -----------------------------------------------------------------------------


class _Pull(NamedTuple):
    """Each sample's loss (B,), and what its residual is multiplied by in the gradient (B,)."""

    value: Tensor
    factor: Tensor


def _squared(distance: Tensor, inside: Tensor, delta: float) -> _Pull:
    return _Pull(0.5 * distance.square(), torch.ones_like(distance))


def _plain(distance: Tensor, inside: Tensor, delta: float) -> _Pull:
    # At distance 0 any vector of length at most 1 is a subgradient; 0 leaves a right cost alone.
    return _Pull(distance, torch.where(inside, 0.0, 1.0 / distance.clamp_min(1e-300)))


def _huber(distance: Tensor, inside: Tensor, delta: float) -> _Pull:
    near = distance <= delta
    value = torch.where(near, 0.5 * distance.square(), delta * (distance - 0.5 * delta))
    return _Pull(value, torch.where(near, 1.0, delta / distance.clamp_min(delta)))


_FORMS: dict[Any, Callable[[Tensor, Tensor, float], _Pull]] = {
    2: _squared,
    1: _plain,
    "huber": _huber,
}


def _per_sample(
    q: Tensor, p: Projection, sets: OptimalitySet, power: int | str, delta: float
) -> tuple[Tensor, Tensor]:
    """Values (B,) and gradients (B, n) of the samples, float64."""
    margins = torch.from_numpy(sets.margins.copy())
    size = torch.maximum(torch.linalg.vector_norm(q, dim=1), margins)
    pull = _FORMS[power](p.distance, p.distance <= INSIDE * size, delta)
    return pull.value, pull.factor[:, None] * (q - p.point)


# --- checks --------------------------------------------------------------------------------------


def _as_tensor64(costs: Any, n: int) -> Tensor:
    """The costs in float64 on the CPU, checked and detached."""
    if not isinstance(costs, Tensor):
        raise InputError(
            f"`costs` must be a torch tensor; got {type(costs).__name__}. "
            "For numpy arrays use rv.losses.projection_loss or rv.project."
        )
    return torch.from_numpy(as_costs(costs, n)[0])


def _check_options(power: Any, delta: Any, reduction: Any) -> None:
    if isinstance(power, bool) or power not in POWERS:
        raise InputError(f"`power` must be 2, 1 or 'huber'; got {power!r}.")
    if not (isinstance(delta, int | float | np.number) and 0 < delta < np.inf):
        raise InputError(
            f"`delta` must be above 0 and finite, the distance at which the Huber loss turns "
            f"straight; got {delta!r}."
        )
    check_reduction(reduction)


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


def _same_form(given: LinearProgram, expected: LinearProgram) -> None:
    for part in (lambda p: p.eq_rows.shape, lambda p: p.ub_rows.shape):
        if part(given) != part(expected):
            raise ShapeError(
                f"The sets are of another problem: {given!r}, where the loss was built for "
                f"{expected!r}."
            )


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
