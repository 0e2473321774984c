"""Cuts of whole decisions in checkpoints: what the oracle has found once is not asked again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..optimality.integer import IntegerCosts
from ..optimality.protocol import CostSet as Sets
from ..problems.integer import INTEGRAL
from .checkpoint import Checkpoint

_PREFIX = "optimizer.cuts."


def cuts_as_tensors(sets: Sets) -> dict[str, Tensor]:
    """The alternatives known, by name; nothing for sets of other kinds."""
    if not isinstance(sets.kind, IntegerCosts):
        return {}
    found = sets.kind.alternatives.state()
    return {f"cuts.{name}": torch.from_numpy(part.copy()) for name, part in found.items()}


def take_cuts(sets: Sets, found: Checkpoint) -> Checkpoint:
    """Give sets the cuts of a checkpoint, each of them checked; the checkpoint without them."""
    kept = {k.removeprefix(_PREFIX): t for k, t in found.tensors.items() if k.startswith(_PREFIX)}
    rest = {k: t for k, t in found.tensors.items() if not k.startswith(_PREFIX)}
    if not isinstance(sets.kind, IntegerCosts):
        return found
    state = {name: t.numpy() for name, t in kept.items()}
    wrong = _fault(sets.kind, state)
    if wrong:
        raise found.refusal(f"its cuts {wrong}")
    sets.kind.alternatives.take_in(state, np.unique(sets.kind.number))
    return replace(found, tensors=rest)


def _fault(kind: IntegerCosts, state: dict[str, np.ndarray]) -> str | None:
    """What is wrong with cuts that were read: a decision that is not feasible would make bounds
    false."""
    own = kind.alternatives
    if set(state) != {"points", "points_of_group", "cuts", "cuts_of_decision"}:
        return "are not all there"
    points, sizes, cuts, counts = (
        state[k] for k in ("points", "points_of_group", "cuts", "cuts_of_decision")
    )
    whole = all(part.dtype == np.int64 and part.ndim == 1 for part in (sizes, cuts, counts))
    if not whole or points.ndim != 2 or points.shape[1] != kind.n_parameters:
        return "are of another form"
    if len(sizes) != len(own.points) or len(counts) != len(own.cuts):
        return "are of other decisions"
    negative = min(part.min(initial=0) for part in (sizes, cuts, counts)) < 0
    if negative or sizes.sum() != len(points) or counts.sum() != len(cuts):
        return "do not add up"
    if (cuts >= sizes[np.repeat(np.array(own.group_of, np.int64), counts)]).any():
        return "name decisions that are not there"
    ends = np.cumsum(sizes)
    groups, first = np.unique(kind.group, return_index=True)
    for g, b in zip(groups, first, strict=True):
        part = points[ends[g] - sizes[g] : ends[g]]
        problem = kind.problem
        some = problem if problem.n_instances is None else problem[np.full(len(part), b)]
        if not (np.asarray(some.constraint_violation(part)) <= INTEGRAL).all():
            return "hold a decision that is not feasible"
    return None
