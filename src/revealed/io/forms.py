"""A cost form as tensors, and back."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..optimality.cost_form import CostForm
from .folder import Tensors, tensor
from .problems import pack_rows, unpack_rows

_LIMITS = ("lower", "upper", "cost_lower", "cost_upper")


def pack_form(form: CostForm) -> Tensors:
    """Matrix, offset and limits."""
    tensors = {f"form.{name}": np.array(getattr(form, name)) for name in _LIMITS}
    tensors["form.offset"] = np.array(form.map.offset)
    return tensors | pack_rows("form.matrix", form.map.rows)


def unpack_form(tensors: Tensors) -> CostForm:
    """The form, refused if its parts do not fit together."""
    parts = {name: _array(tensors, f"form.{name}") for name in ("offset", *_LIMITS)}
    n, p = parts["offset"].shape[-1], parts["lower"].shape[-1]
    if not n * p:
        raise InputError("The stored form has no entries.")
    matrix = unpack_rows(tensors, "form.matrix", n, p)
    return CostForm(matrix, parts.pop("offset"), **parts)


def _array(tensors: Tensors, name: str) -> np.ndarray:
    array = tensors.get(name)
    shape = (None,) if array is None or array.ndim != 2 else (None, None)
    return tensor(tensors, name, shape)
