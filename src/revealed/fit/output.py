"""Predictions as tables, where scikit-learn was asked for pandas."""

from __future__ import annotations

from typing import Any

from ..errors import InputError

CONFIG = "_sklearn_output_config"
"""Where scikit-learn keeps what `set_output` was told, so that `clone` takes it along."""
KINDS = ("default", "pandas")


def set_output(est: Any, transform: str | None) -> Any:
    """Note what predictions are to come as; None changes nothing."""
    if transform is None:
        return est
    if transform not in KINDS:
        raise InputError(f"`transform` must be one of {', '.join(KINDS)}; got {transform!r}.")
    setattr(est, CONFIG, {"transform": transform})
    return est


def wants_pandas(est: Any) -> bool:
    """Whether predictions are to come as a DataFrame: by `set_output`, else by the setting of
    scikit-learn for all."""
    from sklearn import get_config

    told = getattr(est, CONFIG, {}).get("transform")
    return (told or get_config().get("transform_output")) == "pandas"


def as_asked(est: Any, Z: Any, values: Any) -> Any:
    """(B, n) predictions as they are, or as a DataFrame with the names of the variables and the
    index of the contexts."""
    if isinstance(values, list) or not wants_pandas(est):
        return values
    import pandas

    names = getattr(est, "decision_names_in_", None)
    columns = [f"x{j}" for j in range(values.shape[1])] if names is None else list(names)
    array = values.detach().cpu().numpy() if hasattr(values, "detach") else values
    return pandas.DataFrame(array, index=getattr(Z, "index", None), columns=columns)
