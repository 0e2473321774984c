"""A fitted estimator from its folder, or from one that `revealed fit` has written.

Nothing in a folder is run. What is read is checked: types, shapes, checksums, and that the parts
belong together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._common.optional import require
from ..errors import InputError
from ..io.folder import WITH_COSTS, WITH_LIMITS, Facts, Tensors, finite, read_folder, unplain
from ..io.problems import unpack_form, unpack_named, unpack_problem
from ..problems.protocol import Problem
from ..problems.unknown import UnknownLimits
from .certificate import Certificate, Convergence
from .cross_validation import InverseRegressorCV
from .estimator import InverseRegressor
from .evaluation import DistanceLoss
from .feature_models import QuadraticModel
from .history import History, StopReason
from .limits.model import LimitCertificate, LimitModel
from .loss_names import Huber, Welsch
from .models import LinearModel
from .named_models import MODELS
from .solvers import SOLVERS
from .storing import MODULE

CLASSES: dict[str, type] = {"InverseRegressor": InverseRegressor}
CLASSES["InverseRegressorCV"] = InverseRegressorCV


def load(
    folder: str | os.PathLike[str], *, problem: Problem | None = None, module: Any = None
) -> InverseRegressor:
    """The estimator in a folder that `save` or `revealed fit` has written, ready to predict.

    Parameters
    ----------
    folder : path
    problem : problem or None
        Needed for a model of a problem that holds Python functions, such as a `ConvexProgram`;
        otherwise the stored one is used unless this is given.
    module : torch.nn.Module or None
        Needed for a model that is a torch module: one of the same kind, into which the stored
        parameters are put. Its code is not on disk.

    Returns
    -------
    InverseRegressor or InverseRegressorCV
        As it was saved: settings, model, certificate and history. From a folder of `revealed fit`,
        an estimator whose contexts (B, d) are the columns in `feature_names_in_`: numbers as they
        are in the table, and 0 or 1 for each word of a category, as `name=word`.
    """
    facts, tensors = read_folder(folder)
    with _sentences(folder):
        if facts.has("estimator"):
            return _estimator(facts, tensors, problem, module)
        return _from_command_line(facts, tensors, problem)


@contextmanager
def _sentences(folder: Any) -> Iterator[None]:
    """What does not fit together, in a sentence."""
    try:
        yield
    except InputError:
        raise
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise InputError(
            f"The model in {os.fspath(folder)!r} does not fit together: {error}. Save it again."
        ) from error


def _estimator(facts: Facts, tensors: Tensors, problem: Any, module: Any) -> Any:
    stored = Facts(unplain(facts.part("estimator").content), "estimator")
    name = stored.get("class", str)
    if name not in CLASSES:
        raise InputError(f"estimator: the class {name[:40]!r} is not known.")
    problem = unpack_problem(facts.part("problem"), tensors, problem)
    settings = _decoded_settings(stored.part("settings").content, module)
    est = CLASSES[name](problem, **settings)
    est.form_ = unpack_form(tensors) if "form.offset" in tensors else None
    kind = stored.content.get("cost_map")
    est.cost_map = {"form": est.form_, "units": None, None: None}[kind]
    if kind == "units":
        est.cost_map = finite(tensors, "cost_units", (problem.n_variables,))
    est.model_ = _model(facts.part("model"), tensors, module)
    est.limits_ = _limits(stored, tensors, problem)
    _take_facts(est, stored)
    est._take_coefficients()
    _check_fit(est)
    return est


def _model(facts: Facts, tensors: Tensors, module: Any) -> Any:
    kind = facts.get("kind", str)
    settings = _decoded_settings(unplain(facts.part("settings").content), module)
    if kind == MODULE:
        require("torch", "A model that is a torch module", "torch")
        from .torch_model import TorchModel

        if module is None:
            raise InputError(
                "The model is a torch module, whose code is not on disk. Build one of the same "
                "kind and give it: load(folder, module=...)."
            )
        model: Any = TorchModel(module, **settings)
    elif kind in MODELS:
        model = MODELS[kind](**settings)
    else:
        raise InputError(f"{facts.where}: models of kind {kind[:40]!r} are not known.")
    own = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
    model.take_arrays(own)
    return model


def _limits(stored: Facts, tensors: Tensors, problem: Any) -> LimitModel | None:
    kept = stored.part("fitted").content.pop("limits_", None)
    if kept is None:
        return None
    unknown = UnknownLimits.read(kept["unknown"], problem)
    own = {k.removeprefix("limits."): v for k, v in tensors.items() if k.startswith("limits.")}
    return LimitModel.from_arrays(unknown, own, int(kept["samples"]))


def _take_facts(est: Any, stored: Facts) -> None:
    """What a fit leaves beside the model."""
    fitted = stored.part("fitted").content
    est._seed = fitted.pop("seed")
    loss = fitted.pop("loss_")
    est.loss_ = DistanceLoss.read(loss | {"loss_seed": loss["seed"]})
    results = fitted.pop("cv_results_", None)
    if results is not None:
        est.cv_results_ = {name: np.array(values) for name, values in results.items()}
    for name in ("feature_names_in_", "decision_names_in_"):
        if name in fitted:
            setattr(est, name, np.array(fitted.pop(name), dtype=object))
    for name in _FITTED & fitted.keys():
        setattr(est, name, fitted[name])
    est.certificate_ = _certificate(stored.content.get("certificate"))
    rows, reason = stored.content.get("history"), stored.content.get("reason")
    est.history_ = None if rows is None else History([_renamed(row) for row in rows])
    if est.history_ is not None:
        est.history_.reason = None if reason is None else StopReason(reason)
        est.history_.certificate = est.certificate_


_FITTED = {
    "n_features_in_",
    "n_iter_",
    "ridge_",
    "decision_report_",
    "chosen_model_",
    "best_score_",
    "n_splits_",
    "choice_",
}


def _certificate(stored: dict[str, Any] | None) -> Certificate | None:
    if stored is None:
        return None
    own = dict(stored)
    convergence = own.pop("convergence")
    own["reason"] = StopReason(own["reason"])
    limits = own.pop("limits", None)
    if limits is not None:
        own["limits"] = LimitCertificate(**limits)
    return Certificate(
        **own, convergence=None if convergence is None else Convergence(**convergence)
    )


def _check_fit(est: Any) -> None:
    """Refuse a model that predicts another number of costs than its problem has."""
    expected = est.problem.n_parameters if est.form_ is None else est.form_.n_parameters
    coef = getattr(est, "coef_", None)
    if coef is not None and coef.ndim == 2 and coef.shape[0] != expected:
        raise InputError(
            f"The model predicts {coef.shape[0]} costs, where the problem has {expected}."
        )


def _decoded_settings(settings: dict[str, Any], module: Any) -> dict[str, Any]:
    found = {name: _decoded(value, module) for name, value in _renamed(settings).items()}
    return {name: value for name, value in found.items() if value is not _DEFAULT}


def _renamed(kept: dict[str, Any]) -> dict[str, Any]:
    """Settings of solvers and rows of histories by their names of today."""
    return {_RENAMED.get(name, name): value for name, value in kept.items()}


_RENAMED = {"lr_decay": "schedule", "step": "lr"}
_DEFAULT = object()
"""A setting that was not kept: the default takes its place."""


def _decoded(value: Any, module: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item, module) for item in value]
    if not isinstance(value, dict):
        return value
    if "pairs" in value:
        return {key: _decoded(item, module) for key, item in value["pairs"]}
    if "array" in value:
        return np.array(value["array"])
    if "code" in value:
        return _DEFAULT if module is None else module
    known = {kind.__name__: kind for kind in (*SOLVERS.values(), *MODELS.values(), Huber, Welsch)}
    name = value.get("object")
    if name == "TorchModel":
        return module
    if name not in known:
        raise InputError(f"estimator: the object {str(name)[:40]!r} is not known.")
    return known[name](**_decoded_settings(value["settings"], module))


# --- what `revealed fit` writes ------------------------------------------------------------------


def _from_command_line(facts: Facts, tensors: Tensors, problem: Any) -> InverseRegressor:
    if facts.get("version", int) == WITH_LIMITS or facts.has("limits"):
        raise InputError(
            "Every context of this model brings limits of its own. Use `revealed predict`, or "
            "revealed.cli.store.load_model."
        )
    if facts.get("version", int) == WITH_COSTS:
        raise InputError(
            "Costs of this model are known or limited beforehand. Use `revealed predict`, or "
            "revealed.cli.store.load_model."
        )
    stored = facts.part("model")
    kind, margin = stored.get("kind", str), stored.get("margin", float)
    if problem is None:
        problem = unpack_named(facts.part("problem"), tensors)
    names, mean, scale = _columns(facts)
    est: Any = InverseRegressor(problem, model=kind, margin=margin)
    est.model_ = _in_units(kind, tensors, mean, scale)
    training = facts.part("training").content
    est.loss_ = DistanceLoss.read(training)
    est.ridge_, est._seed = float(training.get("ridge") or 0.0), est.loss_.seed
    est.form_, est.limits_, est.history_, est.certificate_ = None, None, None, None
    est.n_iter_, est.decision_report_ = int(training.get("evaluations") or 0), ""
    est.n_features_in_ = len(names)
    est.feature_names_in_ = np.array(names, dtype=object)
    est.decision_names_in_ = np.array(facts.part("problem").words("variables"), dtype=object)
    est._take_coefficients()
    _check_fit(est)
    return est


def _columns(facts: Facts) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names of what the model sees, and where the numbers were centered and scaled."""
    names: list[str] = []
    units: list[tuple[float, float]] = []
    for feature in facts.parts("features"):
        name = feature.words("levels") if feature.has("levels") else ()
        own = feature.get("name", str)
        columns = [f"{own}={level}" for level in name[1:]] or [own]
        names += columns
        number = not feature.has("levels")
        pair = (feature.get("mean", float), feature.get("scale", float)) if number else (0.0, 1.0)
        units += [pair] * len(columns)
    mean, scale = np.array(units, float).reshape(-1, 2).T
    if not (scale > 0).all():
        raise InputError("The scale of every feature must be above 0.")
    return names, mean, scale


def _in_units(kind: str, tensors: Tensors, mean: np.ndarray, scale: np.ndarray) -> Any:
    """The model of numbers as they are in a table."""
    coef, intercept = finite(tensors, "coef", (None, None)), finite(tensors, "intercept", (None,))
    if kind == "quadratic":
        d = len(mean)
        model: Any = QuadraticModel()
        arrays = {"inner.coef": coef, "inner.intercept": intercept}
        arrays |= {"units.mean": mean, "units.scale": scale}
        model.take_arrays(arrays | {"kept": np.ones(d * (d + 1) // 2, np.int64)})
        return model
    if kind != "linear":
        raise InputError(f"Models of kind {kind[:40]!r} are not known.")
    if coef.shape[1] != len(mean):
        raise InputError("The coefficients of the model are not one for each feature.")
    model = LinearModel()
    own = coef / scale
    model.take_arrays({"coef": own, "intercept": intercept - own @ mean})
    return model
