"""What `revealed fit` leaves behind: a plan, what was learned about contexts, and the cost model.

Letters: B rows, n variables, d features.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...io.folder import (
    UNNAMED,
    WITH_COSTS,
    WITH_LIMITS,
    WITH_WHOLE,
    Facts,
    Tensors,
    finite,
    read_folder,
    tensor,
    write_folder,
)
from ..plans import (
    COLUMNS,
    GivenCosts,
    Limit,
    Plan,
    limit_names,
    refuse_limits,
    turned,
    with_limits,
)
from ..tables import Bad, Feature, FeatureMap, Table, TableFile
from ..tables.dates import PARTS
from ..tables.names import plain_name
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
    """A cost model of a plan: costs = coef t + intercept, t the terms of the encoded context: its
    features, and for a quadratic model their squares and products too."""

    plan: Plan
    features: FeatureMap
    coef: np.ndarray
    """(n, terms)"""
    intercept: np.ndarray
    """(n,)"""
    margin: float
    key: str | None = None
    """The column that identifies rows of a table."""
    training: dict[str, Any] = field(default_factory=dict)
    """How it was fitted and how well: plain facts, for people and for `explain`."""
    samples: Samples | None = None
    limits: tuple[Limit, ...] = ()
    """Numbers of the plan that every context brings its own of."""
    kind: str = "linear"
    """Or "quadratic"."""
    learned: dict[str, np.ndarray] | None = None
    """Arrays of the `LimitModel` of the `limits` that are learned, which come last; None where none
    are."""
    given: GivenCosts | None = None
    """What was known of the costs beforehand: `costs` keeps to it."""

    def __post_init__(self) -> None:
        if self.plan.problem.n_instances is not None:
            raise InputError("A model has one plan; what differs by sample are its `limits`.")
        shape = (self.plan.problem.n_variables, len(self.terms))
        if self.coef.shape != shape or self.intercept.shape != shape[:1]:
            raise InputError(
                f"A model of {shape[0]} variables and {shape[1]} terms needs `coef` of shape "
                f"{shape} and `intercept` of shape {shape[:1]}; got {self.coef.shape} and "
                f"{self.intercept.shape}."
            )
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise InputError("The coefficients of the model are not all finite.")
        if self.samples is not None and self.limits:
            own, size = self.samples.limits, (len(self.samples), len(self.limits))
            if own is None or own.shape != size:
                got = None if own is None else own.shape
                raise InputError(f"The samples need `limits` of shape {size}; got {got}.")

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of what costs are linear in."""
        return term_names(self.kind, self.features.names)

    def costs(self, Z: np.ndarray) -> np.ndarray:
        """(B, n) costs of encoded contexts (B, d), to be minimized."""
        if self.kind == "quadratic":
            i, j = np.triu_indices(Z.shape[1])
            Z = np.hstack([Z, Z[:, i] * Z[:, j]])
        costs = Z @ self.coef.T + self.intercept
        return costs if self.given is None else self.given.within(costs)

    def beyond(self, Z: np.ndarray) -> int:
        """How many contexts (B, d) have a cost that `costs` brings back to a given limit."""
        if self.given is None:
            return 0
        free = replace(self, given=None).costs(Z)
        return int((self.given.within(free) != free).any(axis=1).sum())

    def read_contexts(self, file: TableFile, bad: Bad | None = None) -> tuple[np.ndarray, Table]:
        """(B, d) encoded contexts of a table, and the table; rows that cannot be read are refused,
        or entered in `bad`."""
        key = self.key if self.key in file.names else None
        return self.features.read(file, key, bad)

    def limits_at(self, Z: np.ndarray, own: np.ndarray | None) -> np.ndarray | None:
        """(B, k) limits in encoded contexts Z (B, d) as the planner writes them: those of the table
        (B, k - K), then those that are learned; NaN for the plan's own, and where none is known."""
        if self.learned is None:
            return own
        said = Z @ np.nan_to_num(self.learned["coef"]).T + self.learned["intercept"]
        said = said * [turned(self.plan, limit) for limit in self.limits if limit.learned]
        said = np.where(np.isfinite(said), said, np.nan)
        return said if own is None else np.hstack([own, said])

    def plan_of(self, limits: np.ndarray | None) -> Plan:
        """The plan of samples with these limits (B, k)."""
        if not self.limits:
            return self.plan
        if limits is None:
            raise InputError(f"Every sample needs its own {self.limits[0].name}; none was given.")
        return with_limits(self.plan, self.limits, limits)


def term_names(kind: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The features, and for a quadratic model their squares and products, as (i, j), i <= j."""
    if kind == "linear":
        return names
    i, j = np.triu_indices(len(names))
    pairs = zip(i.tolist(), j.tolist(), strict=True)
    return (*names, *(f"{names[a]}²" if a == b else f"{names[a]} x {names[b]}" for a, b in pairs))


def save_model(model: FittedModel, folder: str | os.PathLike[str]) -> Path:
    """Write the model to a folder, which is made if need be; returns it."""
    place = Path(folder)
    facts, tensors = pack_plan(model.plan)
    index = {
        "problem": facts,
        "features": model.features.plain(),
        "key": model.key,
        "model": {"kind": model.kind, "margin": model.margin},
        "training": _finite_only(model.training),
    }
    tensors |= {"coef": model.coef, "intercept": model.intercept}
    if model.samples is not None:
        index["samples"] = list(model.samples.names)
        tensors |= {f"samples.{name}": getattr(model.samples, name) for name in _SAMPLES}
    if model.limits:
        index["limits"] = [asdict(limit) for limit in model.limits]
        if model.samples is not None and model.samples.limits is not None:
            tensors["samples.limits"] = model.samples.limits
    if model.learned is not None:
        tensors |= {f"limits.{name}": array for name, array in model.learned.items()}
    if model.given is not None:
        tensors |= {f"given.{name}": getattr(model.given, name) for name in (*COLUMNS, "group")}
    write_folder(place, index, tensors, version=_version(model))
    return place


def _version(model: FittedModel) -> int:
    """The oldest version whose readers decide as this model does."""
    if model.plan.is_whole:
        return WITH_WHOLE
    if model.given is not None:
        return WITH_COSTS
    return WITH_LIMITS if model.limits else 1


def load_model(folder: str | os.PathLike[str]) -> FittedModel:
    """The model in a folder; nothing in it is run, and what does not fit together is refused."""
    facts, tensors = read_folder(folder)
    if facts.get("version", int) == UNNAMED:
        raise InputError(
            f"{os.fspath(folder)} was saved in Python without names, or is no linear or quadratic "
            "model of a LinearProgram. Read it with revealed.load, or save it with "
            "est.save(folder, features=[...], variables=[...])."
        )
    stored = facts.part("model")
    kind = stored.get("kind", str)
    if kind not in KINDS:
        raise InputError(
            f"{stored.where}: this version of revealed knows models of kind 'linear' and "
            f"'quadratic', not {kind[:40]!r}."
        )
    margin = stored.get("margin", float)
    if margin < 0:
        raise InputError(f"{stored.where}: 'margin' must be at least 0; got {margin:g}.")
    plan = unpack_plan(facts.part("problem"), tensors)
    if plan.is_whole != (facts.get("version", int) == WITH_WHOLE):
        raise InputError(
            f"{facts.where}: a model of version {WITH_WHOLE} has whole variables, and no other has."
        )
    features = FeatureMap(tuple(_feature(item) for item in facts.parts("features")))
    _refuse_repeated(features)
    limits = _limits(facts, plan, features)
    shape = (plan.problem.n_variables, len(features.names))
    terms = len(term_names(kind, features.names))
    return FittedModel(
        plan,
        features,
        finite(tensors, "coef", (shape[0], terms)),
        finite(tensors, "intercept", shape[:1]),
        margin,
        plain_name(facts.get("key", str)) if facts.has("key") else None,
        _training(facts.part("training")),
        _samples(facts, tensors, plan, shape, limits) if facts.has("samples") else None,
        limits,
        kind,
        _learned(tensors, limits, shape[1]),
        _given(facts, tensors, shape[0]),
    )


KINDS = ("linear", "quadratic")
_NUMBERS = ("ridge", "noise", "delta", "held_out")
"""Facts of the training that `explain` computes with; whole numbers with the largest allowed."""
_WHOLE = {"draws": 4096, "samples": 2**63 - 1}
_SAMPLES = ("contexts", "decisions", "held")


def _finite_only(value: Any) -> Any:
    """Facts as JSON can hold them: what is not a finite number becomes null."""
    if isinstance(value, dict):
        return {name: _finite_only(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite_only(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _training(facts: Facts) -> dict[str, Any]:
    """What is known of the training; what is computed with must have its type."""
    for name in filter(facts.has, _NUMBERS):
        if facts.get(name, float) < 0:
            raise InputError(f"{facts.where}: {name!r} must be at least 0.")
    for name, most in _WHOLE.items():
        if facts.has(name) and not 0 <= facts.get(name, int) <= most:
            raise InputError(f"{facts.where}: {name!r} must be between 0 and {most:,}.")
    content = facts.content
    if type(content.get("power", 2)) not in (int, str):
        raise InputError(f"{facts.where}: 'power' must be a number or a word.")
    if facts.has("draws") and facts.get("draws", int) % 2:
        raise InputError(f"{facts.where}: 'draws' must be an even number.")
    # A seed may have more digits than an array takes.
    for name in filter(facts.has, ("seed", "loss_seed")):
        if type(content[name]) is not int or content[name] < 0:
            raise InputError(f"{facts.where}: {name!r} must be a whole number of at least 0.")
    return content


def _samples(
    facts: Facts,
    tensors: Tensors,
    plan: Plan,
    shape: tuple[int, int],
    limits: tuple[Limit, ...],
) -> Samples:
    names = facts.words("samples")
    n, d = shape
    own = None
    if limits:
        own = tensor(tensors, "samples.limits", (len(names), len(limits)))
        refuse_limits(plan, limits, own, lambda b, column: f"Sample {names[b]!r}: {column}")
    return Samples(
        names,
        finite(tensors, "samples.contexts", (len(names), d)),
        finite(tensors, "samples.decisions", (len(names), n)),
        tensor(tensors, "samples.held", (len(names),), "i"),
        own,
    )


def _limits(facts: Facts, plan: Plan, features: FeatureMap) -> tuple[Limit, ...]:
    """The limits of a model; one of the version that is for them has some."""
    version, has_limits = facts.get("version", int), facts.has("limits")
    if version < WITH_WHOLE and has_limits != (version >= WITH_LIMITS):
        raise InputError(
            f"{facts.where}: a model of version {WITH_LIMITS} has 'limits', and version 1 has none."
        )
    names = limit_names(plan) if has_limits else {}
    limits = tuple(_limit(item, names) for item in facts.parts("limits")) if has_limits else ()
    places, learned = {limit.place for limit in limits}, {f.name for f in features.features}
    if has_limits and (len(places) != len(limits) or not limits):
        raise InputError(f"{facts.where}: 'limits' must be different ones, at least one.")
    for limit in limits:
        if limit.column in learned:
            raise InputError(f"{facts.where}: {limit.column!r} is both a feature and a limit.")
    return limits


def _learned(tensors: Tensors, limits: tuple[Limit, ...], d: int) -> dict[str, np.ndarray] | None:
    """The arrays of learned limits, the shapes of those that are computed with checked."""
    count = sum(limit.learned for limit in limits)
    if not count:
        return None
    if any(limit.learned for limit in limits[: len(limits) - count]):
        raise InputError("The learned limits of a model come after those of the table.")
    tensor(tensors, "limits.coef", (count, d))
    tensor(tensors, "limits.intercept", (count,))
    return {k.removeprefix("limits."): v for k, v in tensors.items() if k.startswith("limits.")}


def _given(facts: Facts, tensors: Tensors, n: int) -> GivenCosts | None:
    """What was given of the costs; a model of the version that is for it has some."""
    if facts.get("version", int) != WITH_COSTS:
        return None
    known, lower, upper = (tensor(tensors, f"given.{name}", (n,)) for name in COLUMNS)
    group = tensor(tensors, "given.group", (n,), "i")
    if not ((group >= 0) & (group <= np.arange(n))).all() or (group[group] != group).any():
        raise InputError("The tensor 'given.group' must name the first variable of each group.")
    if np.isinf(known).any() or not (lower <= upper).all() or not np.isnan(known).any():
        raise InputError("The given costs of the model must be finite, and their limits in order.")
    return GivenCosts(known, lower, upper, group)


def _limit(facts: Facts, names: dict[str, list[tuple[str, int]]]) -> Limit:
    part, index = facts.get("part", str), facts.get("index", int)
    name, column = (plain_name(facts.get(word, str)) for word in ("name", "column"))
    if names.get(name) != [(part, index)]:
        raise InputError(
            f"{facts.where}: in the plan {name[:40]!r} is not number {index} of {part[:20]!r}."
        )
    learned = facts.has("learned") and facts.content["learned"] is True
    return Limit(part, index, name, column, learned)


def _feature(facts: Facts) -> Feature:
    name = plain_name(facts.get("name", str))
    if facts.has("levels"):
        levels = facts.words("levels")
        if not levels or len(set(levels)) != len(levels):
            raise InputError(f"{facts.where}: 'levels' must be different words, at least one.")
        fill = plain_name(facts.get("fill", str)) if facts.has("fill") else None
        if fill is not None and fill not in levels:
            raise InputError(f"{facts.where}: 'fill' must be one of the 'levels'.")
        return Feature(name, levels=levels, fill=fill, **_date_part(facts))
    scale = facts.get("scale", float)
    if not scale > 0:
        raise InputError(f"{facts.where}: 'scale' must be above 0; got {scale:g}.")
    fill = facts.get("fill", float) if facts.has("fill") else None
    return Feature(name, facts.get("mean", float), scale, fill=fill)


def _date_part(facts: Facts) -> dict[str, Any]:
    """What makes a category the weekday or month of a date; nothing for others."""
    if not facts.has("part"):
        return {}
    stored = {name: plain_name(facts.get(name, str)) for name in ("column", "part", "style")}
    if stored["part"] not in PARTS or stored["style"] not in ("ymd", "dmy", "mdy"):
        raise InputError(f"{facts.where}: 'part' or 'style' is not one that is known.")
    return stored


def _refuse_repeated(features: FeatureMap) -> None:
    names = [feature.name for feature in features.features]
    if len(set(names)) != len(names):
        raise InputError("The model names a feature twice.")
