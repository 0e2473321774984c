"""Which model is meant: by a name, as a small object with settings, or brought from elsewhere."""

from __future__ import annotations

from typing import Any

from .._common.arrays import is_module
from ..errors import InputError
from .feature_models import QuadraticModel, SharedModel
from .kernel_model import KernelModel
from .models import CostModel, LinearModel

MODELS: dict[str, type] = {
    "linear": LinearModel,
    "quadratic": QuadraticModel,
    "shared": SharedModel,
    "kernel": KernelModel,
}
"""What `model=` may name."""
CHOSEN = "auto"
"""The model that cross-validation chooses."""


def as_model(model: Any, *, by_entry: bool, boosts: bool = False) -> CostModel:
    """The model that is meant, not yet fitted.

    `by_entry` says that contexts are (B, n, p), features of each cost entry, which make "linear" a
    shared one. `boosts` says that the solver adds up regressors.
    """
    if isinstance(model, str):
        if model not in MODELS:
            raise _unknown(model)
        return SharedModel() if model == "linear" and by_entry else MODELS[model]()
    if hasattr(model, "prepare") and hasattr(model, "predict_cost"):
        return model
    if is_regressor(model):
        from .regressors import BoostedModel, RefittedModel

        return (BoostedModel if boosts else RefittedModel)(model)
    if not is_module(model):
        raise _unknown(model)
    from .torch_model import TorchModel

    return TorchModel(model)


def is_regressor(model: Any) -> bool:
    """Whether a model is one of scikit-learn's kind."""
    return hasattr(model, "get_params") and hasattr(model, "predict")


def fresh_copy(model: Any, *, ridge: float, seed: int) -> CostModel:
    """An unfitted copy with the ridge and the seed of the estimator, on standardized features."""
    from sklearn.base import clone

    copy: Any = clone(model)
    shared = {"ridge": ridge, "seed": seed, "standardize": True}
    own = copy.get_params(deep=False)
    return copy.set_params(**{name: value for name, value in shared.items() if name in own})


def refuse_own_settings(model: Any) -> None:
    """Refuse a model that brings what the estimator decides."""
    for name, instead in (("ridge", "ridge"), ("seed", "random_state")):
        if not isinstance(model, str) and getattr(model, name, 0):
            raise InputError(
                f"`{name}` of {type(model).__name__} is for fits without the estimator; give "
                f"InverseRegressor({instead}=...) instead."
            )


def label_of(model: Any) -> str:
    """A name, or an object as it is written."""
    return model if isinstance(model, str) else repr(model)


def _unknown(model: Any) -> InputError:
    return InputError(
        f"`model` must be one of {', '.join(MODELS)}, {CHOSEN}, an object such as "
        f"KernelModel(gamma=0.1), a torch.nn.Module or a scikit-learn regressor; got {model!r}."
    )
