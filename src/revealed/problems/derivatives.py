"""Derivatives of functions given as torch code, for a batch of decisions, and checks of what is
said of them.

Letters: B decisions, n variables, p parameters, k values of a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from .._common.affine import AffineMap
from .._common.rows import Rows, frozen
from ..errors import InputError, ShapeError

TRIALS = 4
"""Parameters at which the gradient is compared with the affine function it should be."""
AFFINE = 1e-8
"""Largest difference, relative to the terms that are added."""
LOOKED_AT = 32
"""Decisions at which the comparison is made."""


def _torch() -> Any:
    return import_module("torch")


def tensor(values: Any) -> Any:
    """A float64 tensor on the CPU that shares no memory."""
    torch = _torch()
    return torch.tensor(np.asarray(values, dtype=np.float64))


def over_batch(function: Callable[..., Any], *batches: Any) -> np.ndarray:
    """The function of each row, stacked; all at once where torch can."""
    torch = _torch()
    rows = [tensor(batch) for batch in batches]
    try:
        result = torch.func.vmap(function)(*rows)
    except RuntimeError:  # branches on values, loops over items: one at a time then
        result = torch.stack([function(*own) for own in zip(*rows, strict=True)])
    return result.detach().numpy()


def gradient_map(objective: Callable[..., Any], X: np.ndarray, p: int) -> AffineMap:
    """w -> grad_x phi(x, w) at each decision, refused where that is not affine in w."""
    torch = _torch()
    gradient = torch.func.grad(objective, argnums=0)
    if not len(X):
        return AffineMap(Rows.build(np.zeros((0, X.shape[1], p)), "S"), np.zeros(X.shape))
    base = _base(gradient, X, p)
    at_base = over_batch(gradient, X, np.broadcast_to(base, (len(X), p)))
    change = torch.func.jacrev(gradient, argnums=1)
    S = over_batch(change, X, np.broadcast_to(base, (len(X), p)))  # (B, n, p)
    _refuse_infinite(at_base, S, X)
    offset = at_base - S @ base
    _refuse_curved(gradient, X[:LOOKED_AT], S[:LOOKED_AT], offset[:LOOKED_AT])
    if (S == S[:1]).all():
        return AffineMap(Rows.build(S[0], "S"), frozen(offset))
    return AffineMap(Rows.build(S, "S"), frozen(offset))


def _base(gradient: Any, X: np.ndarray, p: int) -> np.ndarray:
    """Parameters at which to take the derivative: 0, or 1 where the function has none at 0."""
    at_zero = over_batch(gradient, X[:1], np.zeros((len(X[:1]), p)))
    return np.zeros(p) if np.isfinite(at_zero).all() else np.ones(p)


def _refuse_infinite(gradient: np.ndarray, S: np.ndarray, X: np.ndarray) -> None:
    bad = np.argwhere(~(np.isfinite(gradient) & np.isfinite(S).all(axis=2)))
    if bad.size:
        b, j = (int(i) for i in bad[0])
        raise InputError(
            f"The objective has no finite gradient at decision {b}, in entry {j}, which is "
            f"{X[b, j]:.6g}: no costs explain a decision there. Keep decisions inside the domain, "
            "for example by a lower bound."
        )


def _refuse_curved(gradient: Any, X: np.ndarray, S: np.ndarray, offset: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    for trial in range(TRIALS):
        w = np.abs(rng.normal(size=(len(X), S.shape[2]))) * 3.0**trial
        w *= 1.0 if trial % 2 == 0 else rng.choice([-1.0, 1.0], size=w.shape)
        got = over_batch(gradient, X, w)
        expected = np.einsum("bnp,bp->bn", S, w) + offset
        terms = np.einsum("bnp,bp->bn", np.abs(S), np.abs(w)) + np.abs(offset)
        bad = np.argwhere(~(np.abs(got - expected) <= AFFINE * (terms + 1e-12)))
        if bad.size:
            b, j = (int(i) for i in bad[0])
            raise InputError(
                "The gradient of the objective in x must be affine in the parameters w, or the "
                "parameters that explain a decision form no convex set that can be projected "
                f"onto. At decision {b}, entry {j}, some parameters give {got[b, j]:.6g}, where "
                f"the affine function through the others gives {expected[b, j]:.6g}. Let w enter "
                "linearly, times functions of x alone."
            )


def values_and_slopes(
    functions: tuple[Callable[..., Any], ...], X: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values (B, k) and gradients (B, k, n) of all functions of x, one after the other."""
    torch = _torch()
    values, slopes = [np.zeros((len(X), 0))], [np.zeros((len(X), 0, X.shape[1]))]
    for function in functions:
        flat = _flat(function)
        values.append(over_batch(flat, X))
        slopes.append(over_batch(torch.func.jacrev(flat), X))
    return np.concatenate(values, axis=1), np.concatenate(slopes, axis=1)


def affine_rows(functions: tuple[Callable[..., Any], ...], n: int) -> tuple[np.ndarray, np.ndarray]:
    """A (k, n) and b (k,) with A x = b where all functions are 0; refused where not affine."""
    points = np.random.default_rng(0).random((3, n)) + 0.5
    values, slopes = values_and_slopes(functions, points)
    rest = values - np.einsum("bkn,bn->bk", slopes, points)
    size = 1.0 + np.abs(values).max(initial=0.0)
    same = np.abs(slopes - slopes[:1]).max(initial=0.0) + np.abs(rest - rest[:1]).max(initial=0.0)
    if not same <= AFFINE * size:
        raise InputError(
            "An equality must be an affine function of x, or decisions form no convex set; the "
            "slope of one given differs from point to point."
        )
    return slopes[0], -rest[0]


def second_order(
    objective: Callable[..., Any],
    functions: tuple[Callable[..., Any], ...],
    x: np.ndarray,
    w: np.ndarray,
    multipliers: np.ndarray,
) -> np.ndarray:
    """(n, n): second derivative in x of phi(x, w) + multipliers . functions(x)."""
    torch = _torch()
    mu, fixed = tensor(multipliers), tensor(w)

    def lagrangian(point: Any) -> Any:
        total = objective(point, fixed)
        if functions:
            total = total + mu @ torch.cat([_flat(f)(point) for f in functions])
        return total

    # Not torch.func.hessian: its forward mode warns of torch's own use of deprecated parts.
    return torch.func.jacrev(torch.func.grad(lagrangian))(tensor(x)).detach().numpy()


def value_and_gradient(
    objective: Callable[..., Any], x: np.ndarray, w: np.ndarray
) -> tuple[float, np.ndarray]:
    """phi(x, w) and its gradient in x."""
    gradient, value = _torch().func.grad_and_value(objective)(tensor(x), tensor(w))
    return float(value), gradient.detach().numpy()


def check_functions(functions: Sequence[Callable[..., Any]], n: int, name: str) -> None:
    """Refuse functions of x that cannot be called, or return no tensor."""
    for i, function in enumerate(functions):
        value = _called(function, f"{name}[{i}]", tensor(np.full(n, 0.5)))
        if not isinstance(value, _torch().Tensor):
            raise InputError(
                f"`{name}[{i}](x)` must return a tensor, computed from the tensor x by torch; got "
                f"{type(value).__name__}."
            )


def _called(function: Callable[..., Any], name: str, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except RuntimeError as error:
        sizes = ", ".join(str(tuple(argument.shape)) for argument in arguments)
        raise InputError(
            f"`{name}` failed when it was called with tensors of shape {sizes}: {error}. They are "
            "float64, and so must be the tensors that it computes with; torch makes float32 of "
            "lists, so use `torch.tensor(values, dtype=torch.float64)`."
        ) from error


def check_scalar(objective: Callable[..., Any], n: int, p: int) -> None:
    """Refuse an objective that is not one number."""
    torch = _torch()
    value = _called(objective, "objective", tensor(np.full(n, 0.5)), tensor(np.ones(p)))
    if not isinstance(value, torch.Tensor) or value.ndim:
        got = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise ShapeError(
            f"`objective(x, w)` must return one number as a tensor of shape (); got {got}. "
            "End it with a sum."
        )


def _flat(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: function(x).reshape(-1)
