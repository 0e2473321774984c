"""What a batch of cost sets offers, and all that projections, losses, fits and metrics rely on.

    CostSet   for each decision of a batch, the set of costs that explain it
    SetKind   what the sets of one kind hold beyond decisions, margins and weights

A projector is registered for a kind. There are two ways to add one:

1. For a new kind of problem: a record with the members of `SetKind`, a function that reads it from
   decisions (`READERS`) and a projector (`PROJECTORS`). `OptimalitySet(problem, X)` then builds
   these sets, and losses and fits take decisions of the problem as they are.
2. A class of its own with the members of `CostSet`, which is its own kind, and a projector.

Letters: B decisions, n variables, p parameters (what is predicted; costs, unless said otherwise).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from .._common.arrays import Choice, as_costs
from .._common.checks import check_number
from .._common.registry import Registry
from ..errors import InputError
from ..problems.protocol import Problem

if TYPE_CHECKING:
    from .cost_form import CostForm


@runtime_checkable
class CostSet(Protocol):
    """For each decision of a batch, the closed convex set of costs that explain it."""

    decisions: Any
    """(B, n)"""
    margins: Any
    """(B,) by how much each decision is to beat its alternatives; 0 for plain optimality."""
    weights: Any
    """(B,) what each sample counts in losses and fits; None on a device where all count 1."""
    n_parameters: int
    """p, the length of what is predicted for a sample."""
    problem: Problem | None
    """That all decisions are of; None where they are of several, or of none that is known."""

    @property
    def kind(self) -> Any:
        """What a projector is chosen by the class of: the sets themselves, unless one class of
        sets has several kinds."""
        return self

    def __len__(self) -> int:
        """B"""
        ...

    def __getitem__(self, index: Any) -> CostSet:
        """The sets of the chosen decisions: an integer, slice, mask or integer array."""
        ...

    def solve(self, parameters: Any, **options: Any) -> Any:
        """Decisions under other parameters, each of its own problem.

        Parameters
        ----------
        parameters : (B, p) array or tensor
        **options
            Passed on to the `solve` of the problem, such as `time_limit`.

        Returns
        -------
        Solution or list of array
            What `Problem.solve` returns, or its `x` alone.
        """
        ...

    def on_host(self) -> CostSet:
        """The same sets in the memory of the host: these, unless they are on a device."""
        return self

    def contains(self, costs: Any, *, tol: float = 1e-8) -> Any:
        """(B,) bool: whether each cost explains its decision.

        Parameters
        ----------
        costs : (B, p) array or tensor
            One row for each set.
        tol : float
            A distance of up to `tol` |cost| from the set or, where that is more, `tol` times the
            margin counts as none.

        Returns
        -------
        (B,) bool array or tensor
        """
        check_number(tol, "tol")
        c, restore = as_costs(costs, self.n_parameters, "costs")
        p = PROJECTORS.of(self.kind)(c, self, ProjectionOptions())
        largest = np.maximum(np.abs(c).max(axis=1, initial=0.0), np.finfo(float).tiny)
        size = np.maximum(largest * np.linalg.norm(c / largest[:, None], axis=1), self.margins)
        return restore(p.solved & (p.distance <= tol * size))


@runtime_checkable
class SetKind(Protocol):
    """What an `OptimalitySet` of one kind holds beyond decisions, margins and weights."""

    n_parameters: int

    def take(self, index: Choice, problem: Problem) -> Self:
        """That of the chosen decisions, whose problem is `problem`."""
        ...


class Terms(NamedTuple):
    """On what terms decisions are explained; checked."""

    margins: np.ndarray
    """(B,)"""
    tol: float
    """Relative: how near to a bound counts as at it."""
    form: CostForm | None
    """How costs come from fewer parameters."""
    soft: float | None
    """What it costs to miss the conditions; None where they are hard."""


@dataclass(frozen=True, kw_only=True)
class ProjectionOptions:
    """What a caller may ask of a projector; see `revealed.project`."""

    method: str = "auto"
    tol: float = 1e-8
    max_iter: int = 500
    time_limit: float | None = None
    warm_start: Any = None
    threads: int | None = None


class Nearest(Protocol):
    """What a projector returns, as far as sets are concerned: a `Projection`."""

    point: Any
    distance: Any
    solved: Any


Reader = Callable[[Any, np.ndarray, Terms], Any]
"""(problem, feasible decisions (B, n), terms) -> what the sets hold, a `SetKind`."""
Projector = Callable[[Any, Any, ProjectionOptions], Any]
"""(costs (B, p), sets, options) -> a `revealed.Projection`."""

READERS: Registry[Reader] = Registry("reader of optimality sets", home="revealed.optimality")
"""By the class of the problem."""
PREPARATIONS: Registry[Callable[[Any], Any]] = Registry(
    "preparation of sets", home="revealed.projection"
)
"""By kind: what a projector makes of sets once, when they are built, for all their slices."""
PROJECTORS: Registry[Projector] = Registry("projector", home="revealed.projection")
"""By kind."""
UPLOADS: Registry[Callable[[Any, Any], Any]] = Registry("upload", home="revealed.projection")
"""By kind: (sets, device) -> the sets there."""


def check_sets(sets: Any) -> None:
    """Refuse what is not a batch of cost sets."""
    # Python 3.11 goes through all members of a protocol, 20 microseconds, even for its subclasses.
    if CostSet not in type(sets).__mro__ and not isinstance(sets, CostSet):
        raise InputError(
            f"`sets` must be an OptimalitySet; got {type(sets).__name__}. "
            "Build one with rv.OptimalitySet(problem, decisions)."
        )
