"""What `revealed fit` leaves behind: a plan, what was learnt about contexts, and the cost model.

Letters: B rows, n variables, d features.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..plans import PARTS, Limit, Plan, with_limits
from ..tables import Feature, FeatureMap, Table, TableFile
from ..tables.names import plain_name
from .folder import WITH_LIMITS, Facts, Tensors, read_folder, tensor, write_folder
from .plan import pack_plan, unpack_plan


@dataclass(frozen=True, eq=False)
class Samples:
    """Some of the samples that a model was fitted and judged on, kept to be looked at later."""

    names: tuple[str, ...]
    """(B,) what people call them."""
    contexts: np.ndarray
    """(B, d) encoded."""
    decisions: np.ndarray
    """(B, n)"""
    held: np.ndarray
    """(B,) int64: 1 for samples that the model did not learn from."""
    limits: np.ndarray | None = None
    """(B, k) what the limits of the model are, as the planner writes them and NaN for the plan's
    own; None where it has none."""

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A linear cost model of a plan: costs = coef z + intercept, z the encoded context."""

    plan: Plan
    features: FeatureMap
    coef: np.ndarray
    """(n, d)"""
    intercept: np.ndarray
    """(n,)"""
    margin: float
    key: str | None = None
    """The column that tells rows of a table apart."""
    training: dict[str, Any] = field(default_factory=dict)
    """How it was fitted and how well: plain facts, for people and for `explain`."""
    samples: Samples | None = None
    limits: tuple[Limit, ...] = ()
    """Numbers of the plan that every context brings its own of."""

    def __post_init__(self) -> None:
        if self.plan.problem.n_instances is not None:
            raise InputError("A model has one plan; what differs by sample are its `limits`.")
        shape = (self.plan.problem.n_variables, len(self.features.names))
        if self.coef.shape != shape or self.intercept.shape != shape[:1]:
            raise InputError(
                f"A model of {shape[0]} variables and {shape[1]} features needs `coef` of shape "
                f"{shape} and `intercept` of shape {shape[:1]}; got {self.coef.shape} and "
                f"{self.intercept.shape}."
            )
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise InputError("The coefficients of the model are not all finite.")

    def costs(self, Z: np.ndarray) -> np.ndarray:
        """(B, n) costs of encoded contexts (B, d), to be minimised."""
        return Z @ self.coef.T + self.intercept

    def read_contexts(self, file: TableFile) -> tuple[np.ndarray, Table]:
        """(B, d) encoded contexts of a table, and the table."""
        key = self.key if self.key in file.names else None
        return self.features.read(file, key)

    def plan_of(self, limits: np.ndarray | None) -> Plan:
        """The plan of samples with these limits (B, k)."""
        if not self.limits:
            return self.plan
        if limits is None:
            raise InputError(f"Every sample needs its own {self.limits[0].name}; none was given.")
        return with_limits(self.plan, self.limits, limits)


def save_model(model: FittedModel, folder: str | os.PathLike[str]) -> Path:
    """Write the model to a folder, which is made if need be; returns it."""
    place = Path(folder)
    facts, tensors = pack_plan(model.plan)
    index = {
        "problem": facts,
        "features": model.features.plain(),
        "key": model.key,
        "model": {"kind": "linear", "margin": model.margin},
        "training": model.training,
    }
    tensors |= {"coef": model.coef, "intercept": model.intercept}
    if model.samples is not None:
        index["samples"] = list(model.samples.names)
        tensors |= {f"samples.{name}": getattr(model.samples, name) for name in _SAMPLES}
    if model.limits:
        index["limits"] = [asdict(limit) for limit in model.limits]
        if model.samples is not None and model.samples.limits is not None:
            tensors["samples.limits"] = model.samples.limits
    write_folder(place, index, tensors, version=WITH_LIMITS if model.limits else 1)
    return place


def load_model(folder: str | os.PathLike[str]) -> FittedModel:
    """The model in a folder; nothing in it is run, and what does not fit together is refused."""
    facts, tensors = read_folder(folder)
    told = facts.part("model")
    if told.get("kind", str) != "linear":
        raise InputError(
            f"{told.where}: this version of revealed knows models of kind 'linear', not "
            f"{told.get('kind', str)[:40]!r}."
        )
    margin = told.get("margin", float)
    if margin < 0:
        raise InputError(f"{told.where}: 'margin' must be at least 0; got {margin:g}.")
    plan = unpack_plan(facts.part("problem"), tensors)
    features = FeatureMap(tuple(_feature(item) for item in facts.parts("features")))
    _refuse_repeated(features)
    limits = (
        tuple(_limit(item, plan) for item in facts.parts("limits")) if facts.has("limits") else ()
    )
    shape = (plan.problem.n_variables, len(features.names))
    return FittedModel(
        plan,
        features,
        _finite(tensors, "coef", shape),
        _finite(tensors, "intercept", shape[:1]),
        margin,
        plain_name(facts.get("key", str)) if facts.has("key") else None,
        facts.plain("training"),
        _samples(facts, tensors, shape, limits) if facts.has("samples") else None,
        limits,
    )


_SAMPLES = ("contexts", "decisions", "held")


def _samples(
    facts: Facts, tensors: Tensors, shape: tuple[int, int], limits: tuple[Limit, ...]
) -> Samples:
    names = facts.words("samples")
    n, d = shape
    size = (len(names), len(limits))
    return Samples(
        names,
        _finite(tensors, "samples.contexts", (len(names), d)),
        _finite(tensors, "samples.decisions", (len(names), n)),
        tensor(tensors, "samples.held", (len(names),), "i"),
        tensor(tensors, "samples.limits", size) if limits else None,
    )


def _limit(facts: Facts, plan: Plan) -> Limit:
    part, index = facts.get("part", str), facts.get("index", int)
    if part not in PARTS or not 0 <= index < len(getattr(plan.problem, part)):
        raise InputError(f"{facts.where}: there is no {part[:20]!r} number {index} in the plan.")
    return Limit(part, index, *(plain_name(facts.get(name, str)) for name in ("name", "column")))


def _feature(facts: Facts) -> Feature:
    name = plain_name(facts.get("name", str))
    if facts.has("levels"):
        levels = facts.words("levels")
        if not levels or len(set(levels)) != len(levels):
            raise InputError(f"{facts.where}: 'levels' must be different words, at least one.")
        return Feature(name, levels=levels)
    scale = facts.get("scale", float)
    if not scale > 0:
        raise InputError(f"{facts.where}: 'scale' must be above 0; got {scale:g}.")
    return Feature(name, facts.get("mean", float), scale)


def _refuse_repeated(features: FeatureMap) -> None:
    names = [feature.name for feature in features.features]
    if len(set(names)) != len(names):
        raise InputError("The model names a feature twice.")


def _finite(tensors: Tensors, name: str, shape: tuple[int, ...]) -> np.ndarray:
    array = tensor(tensors, name, shape)
    if not np.isfinite(array).all():
        raise InputError(f"The tensor {name!r} of the model holds numbers that are not finite.")
    return array
