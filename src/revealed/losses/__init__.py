"""Predicted costs and observed decisions -> a number to train on; every loss is called alike.

    loss_fn = ProjectionLoss(problem)               # or any other class here
    loss_fn = make_loss("spo+", problem)            # the same by the name in tables and files
    loss = loss_fn(net(z), x_star)                  # true_costs=c too, where `needs_true_costs`

Ours are `ProjectionLoss` and its smoothed form; the others are what people use instead, on our own
oracles.
"""

from typing import Any

from .._common.optional import installed, missing
from ..errors import InputError
from ..problems.linear import LinearProgram

if not installed("torch"):
    raise missing("torch", "`revealed.losses`", "torch")

from .base import Batch as Batch
from .base import DecisionLoss as DecisionLoss
from .data import DecisionBatch as DecisionBatch
from .data import DecisionDataset as DecisionDataset
from .projection import ProjectionLoss as ProjectionLoss
from .projection import TrivialCostWarning as TrivialCostWarning
from .projection import UnsolvedProjectionWarning as UnsolvedProjectionWarning
from .projection import projection_loss as projection_loss
from .rivals.barrier import BarrierLoss as BarrierLoss
from .rivals.blackbox import BlackboxLoss as BlackboxLoss
from .rivals.cave import CaveLoss as CaveLoss
from .rivals.contrastive import ContrastiveLoss as ContrastiveLoss
from .rivals.fenchel_young import FenchelYoungLoss as FenchelYoungLoss
from .rivals.optimality_margin import OptimalityMarginLoss as OptimalityMarginLoss
from .rivals.optnet import OptNetLoss as OptNetLoss
from .rivals.perturbed import PerturbedLoss as PerturbedLoss
from .rivals.qptl import QPTLLoss as QPTLLoss
from .rivals.regression import RegressionLoss as RegressionLoss
from .rivals.spo_plus import SPOPlusLoss as SPOPlusLoss
from .rivals.straight_through import StraightThroughLoss as StraightThroughLoss
from .smoothed import SmoothedProjectionLoss as SmoothedProjectionLoss

LOSSES: dict[str, type[DecisionLoss]] = {
    loss.name: loss
    for loss in (
        ProjectionLoss,
        SmoothedProjectionLoss,
        StraightThroughLoss,
        BlackboxLoss,
        OptimalityMarginLoss,
        QPTLLoss,
        OptNetLoss,
        BarrierLoss,
        PerturbedLoss,
        FenchelYoungLoss,
        CaveLoss,
        ContrastiveLoss,
        SPOPlusLoss,
        RegressionLoss,
    )
}
"""Every loss by its name, ours first."""

_SAME_CLASS = {"cave+": ("cave", {"variant": "plus"})}


def make_loss(name: str, problem: LinearProgram, **options: Any) -> DecisionLoss:
    """The loss of that name with its options.

    Parameters
    ----------
    name : str
        A key of `LOSSES`, such as "projection", "spo+" or "pfyl"; or "cave+", which is "cave" with
        `variant="plus"`.
    problem : LinearProgram or other problem
        What the decision maker may do.
    **options
        Those of the class, such as `margin=0.5` or `n_samples=20`.

    Returns
    -------
    DecisionLoss

    Raises
    ------
    InputError
        If there is no loss of that name.

    Examples
    --------
    >>> import revealed as rv
    >>> problem = rv.problems.grid_shortest_path(5, 5, directed="right-down")
    >>> loss_fn = rv.losses.make_loss("spo+", problem)
    """
    base, preset = _SAME_CLASS.get(name, (name, {}))
    if base not in LOSSES:
        known = ", ".join((*LOSSES, *_SAME_CLASS))
        raise InputError(f"`name` must be one of {known}; got {name!r}.")
    return LOSSES[base](problem, **(preset | options))
