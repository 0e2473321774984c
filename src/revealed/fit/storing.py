"""A fitted estimator as a folder of safetensors and JSON: its model, problem, settings and record.

`loading` reads it. The command line reads it too where features and variables have names and the
model is a linear or quadratic one of a linear program: then the index says all that it asks for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.settings import Settings
from .._common.words import plain_name
from ..errors import InputError
from ..io.folder import UNNAMED, WITH_WHOLE, plain, write_folder
from ..io.problems import pack_form, pack_problem
from ..optimality.cost_form import CostForm
from ..problems.integer import IntegerProgram
from ..problems.linear import LinearProgram
from .certificate import Certificate
from .feature_models import QuadraticModel
from .models import LinearModel
from .named_models import MODELS

READABLE = {"linear": LinearModel, "quadratic": QuadraticModel}
"""Models that the command line knows."""
MODULE = "module"
"""The kind of a model that is a torch module."""


def save_estimator(
    est: Any,
    folder: str | os.PathLike[str],
    features: Sequence[str] | None,
    variables: Sequence[str] | None,
) -> Path:
    """Write a fitted estimator to a folder, which is made if need be; returns it."""
    check_is_fitted(est, "model_")
    kind = _kind_of(est.model_)
    names = _names(est, features, variables)
    problem, tensors = pack_problem(est.problem)
    tensors |= {f"model.{name}": array for name, array in est.model_.arrays().items()}
    if est.form_ is not None:
        tensors |= pack_form(est.form_)
    limits = getattr(est, "limits_", None)
    if limits is not None:
        tensors |= {f"limits.{name}": array for name, array in limits.arrays().items()}
    if isinstance(est.cost_map, np.ndarray | list | tuple):
        tensors["cost_units"] = np.asarray(est.cost_map, np.float64)
    index: dict[str, Any] = {
        "problem": problem,
        "model": {"kind": kind, "margin": float(est.margin), "settings": _settings(est.model_)},
        "training": finite_only(training_facts(est)),
        "estimator": plain(_facts(est), "the estimator"),
    }
    readable = _is_readable(est, kind, names)
    if readable:
        index["problem"] |= _plan_facts(est.problem, names["variables"])
        index["features"] = [{"name": n, "mean": 0.0, "scale": 1.0} for n in names["features"]]
        tensors |= {"coef": np.array(est.coef_), "intercept": np.array(est.intercept_)}
    place = Path(folder)
    named = WITH_WHOLE if isinstance(est.problem, IntegerProgram) else 1
    write_folder(place, index, tensors, version=named if readable else UNNAMED)
    return place


def training_facts(est: Any) -> dict[str, Any]:
    """How a fit went, as plain facts: for people, and for what computes with the same loss."""
    loss, certificate = est.loss_, est.certificate_
    facts: dict[str, Any] = {
        "kind": getattr(est, "chosen_model_", est.model),
        "choice": getattr(est, "choice_", None),
        "ridge": est.ridge_,
        "noise": loss.noise,
        "power": loss.power,
        "delta": loss.delta,
        "draws": loss.draws,
        "loss_seed": loss.seed,
    }
    facts["kind"] = facts["kind"] if isinstance(facts["kind"], str) else _kind_of(est.model_)
    return facts if certificate is None else facts | _reached(certificate)


def _reached(certificate: Certificate) -> dict[str, Any]:
    facts = {
        "samples": certificate.samples,
        "loss": certificate.value,
        "lower_bound": certificate.lower_bound,
        "relative_gap": certificate.relative_gap,
        "converged": certificate.converged,
        "h": certificate.h,
        "interpolates": certificate.interpolates,
        "inside": certificate.inside,
        "mean_distance": certificate.mean_distance,
        "max_distance": certificate.max_distance,
        "unsolved": certificate.unsolved,
        "reason": certificate.reason.value,
        "certificate": str(certificate),
    }
    if certificate.convergence is not None:
        facts |= {"evaluations": certificate.convergence.evaluations}
    return facts


def finite_only(value: Any) -> Any:
    """Facts as JSON can hold them: what is not a finite number becomes null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {name: finite_only(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_only(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _kind_of(model: Any) -> str:
    for name, kind in MODELS.items():
        if type(model) is kind:
            return name
    if getattr(model, "family", "") == "module":
        return MODULE
    regressor = getattr(model, "regressor", model)
    raise InputError(
        f"A {type(regressor).__name__} has no form on disk that holds data and no code; keep the "
        "decisions and fit again, or use a linear, quadratic, shared or kernel model or a torch "
        "module."
    )


def _names(
    est: Any, features: Sequence[str] | None, variables: Sequence[str] | None
) -> dict[str, list[str]]:
    """Names of features and variables: those given, else those of the tables learned from."""
    own = {
        "features": (features, "feature_names_in_"),
        "variables": (variables, "decision_names_in_"),
    }
    sizes = {"features": est.n_features_in_, "variables": est.problem.n_variables}
    found: dict[str, list[str]] = {}
    for what, (given, attribute) in own.items():
        names = getattr(est, attribute, None) if given is None else given
        if names is None:
            continue
        words = [plain_name(str(name)) for name in names]
        if len(words) != sizes[what] or len(set(words)) != len(words) or not all(words):
            raise InputError(f"`{what}` must be {sizes[what]} different names; got {len(words)}.")
        found[what] = words
    return found


def _is_readable(est: Any, kind: str, names: dict[str, list[str]]) -> bool:
    """Whether the command line can read the model."""
    problem = est.problem
    return (
        kind in READABLE
        and len(names) == 2
        and est.form_ is None
        and getattr(est, "limits_", None) is None
        and (type(problem) is LinearProgram or _is_plain_integer(problem))
        and problem.n_instances is None
    )


def _is_plain_integer(problem: Any) -> bool:
    """Whether rows, bounds and whole variables are all there is to know of a problem."""
    plain = type(problem) is IntegerProgram and problem.structure is None
    return plain and bool(problem.integer.any() and (problem.distance == 1).all())


def _plan_facts(problem: LinearProgram | IntegerProgram, variables: list[str]) -> dict[str, Any]:
    """What makes a problem one with names."""
    if isinstance(problem, IntegerProgram):
        whole = [
            name for name, is_whole in zip(variables, problem.integer, strict=True) if is_whole
        ]
        return _plan_facts(problem.relaxation, variables) | {"integers": whole, "whole": True}
    return {
        "name": "problem",
        "catalogue": None,
        "maximize": False,
        "variables": variables,
        "equalities": [f"eq{i + 1}" for i in range(problem.eq_rows.shape[0])],
        "inequalities": [f"ub{i + 1}" for i in range(problem.ub_rows.shape[0])],
        "integers": [],
    }


def _facts(est: Any) -> dict[str, Any]:
    """Settings as they were asked for, and what the fit left beside the model."""
    asked = est.get_params(deep=False)
    del asked["problem"], asked["cost_map"]
    return {
        "class": type(est).__name__,
        "settings": {name: encoded(value) for name, value in asked.items()},
        "cost_map": _cost_map_kind(est.cost_map),
        "fitted": _fitted(est),
        "certificate": _certificate(est.certificate_),
        "history": est.history_.rows if est.history_ is not None else None,
        "reason": _reason(est.history_),
    }


def _fitted(est: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "n_features_in_": est.n_features_in_,
        "n_iter_": est.n_iter_,
        "ridge_": est.ridge_,
        "seed": est._seed,
        "loss_": asdict(est.loss_),
        "decision_report_": est.decision_report_,
    }
    for name in ("feature_names_in_", "decision_names_in_"):
        if hasattr(est, name):
            facts[name] = [str(word) for word in getattr(est, name)]
    limits = getattr(est, "limits_", None)
    if limits is not None:
        facts["limits_"] = {"unknown": limits.unknown.as_dict, "samples": limits.samples}
    if hasattr(est, "choice_"):
        for name in ("chosen_model_", "best_score_", "n_splits_", "choice_"):
            facts[name] = getattr(est, name)
        facts["cv_results_"] = {k: np.asarray(v).tolist() for k, v in est.cv_results_.items()}
    return facts


def _settings(model: Any) -> dict[str, Any]:
    own = model.get_params(deep=False)
    own.pop("module", None)
    return plain({name: encoded(value) for name, value in own.items()}, "the model")


def encoded(value: Any) -> Any:
    """A setting as JSON can hold it: an object as its name and settings. What is of no use without
    its code, such as a splitter of scikit-learn, is named only."""
    if isinstance(value, Settings):
        own = value.get_params(deep=False)
        return {"object": type(value).__name__, "settings": {k: encoded(v) for k, v in own.items()}}
    if isinstance(value, dict):
        return {"pairs": [[key, encoded(item)] for key, item in value.items()]}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, list | tuple):
        return [encoded(item) for item in value]
    if value is None or isinstance(value, str | int | float | np.generic):
        return value
    return {"code": type(value).__name__}


def _cost_map_kind(cost_map: Any) -> str | None:
    if cost_map is None:
        return None
    return "form" if isinstance(cost_map, CostForm) else "units"


def _reason(history: Any) -> str | None:
    return None if history is None or history.reason is None else history.reason.value


def _certificate(certificate: Certificate | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    return asdict(certificate) | {"reason": certificate.reason.value}
