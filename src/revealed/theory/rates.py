"""How fast h falls, as far as the contexts alone determine it.

Letters: B samples, n cost entries, d features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arrays import to_float64
from .._common.checks import check_number, check_whole
from ..errors import InputError, ShapeError

METHODS = ("gd", "pocs")


def smoothness(Z: Any, *, intercept: bool = False) -> float:
    """L = lambda_max(Z^T Z / B), the Lipschitz constant of the gradient of h; at most max |z|^2.

    Parameters
    ----------
    Z : (B, d) or (B, n, p) array
        Contexts, or features of each cost entry.
    intercept : bool
        Counts a feature that is 1 for every sample.

    Returns
    -------
    float
    """
    return float(_spectrum(Z, intercept).largest)


def pl_constant(Z: Any, *, intercept: bool = False) -> float:
    """mu = lambda_min(Z Z^T / B): 1/2 |grad h|^2 >= mu h for every model, whatever the decisions.

    0 if the contexts are linearly dependent, in particular with more samples than features (or,
    for shared coefficients, more entries in all than coefficients). Then the contexts alone
    promise no constant: the sets decide, and two of them that meet at a sharp angle can make it
    as small as they like.

    Parameters
    ----------
    Z : (B, d) or (B, n, p) array
        Contexts, or features of each cost entry.
    intercept : bool
        Counts a feature that is 1 for every sample.

    Returns
    -------
    float
    """
    return float(_spectrum(Z, intercept).smallest_of_samples)


def stated_pl_constant(Z: Any, *, intercept: bool = False) -> float:
    """lambda_min(Z^T Z / B), the constant that the paper states for h.

    It is the constant of the least-squares step (sets that are single points), and equals
    `pl_constant` for as many samples as features. With more samples it is no bound for h: of B
    samples with |z| = 1 of which one alone misses its set, 1/2 |grad|^2 = h / B. Two samples of
    min <c, x> over x1 + x2 = 1, x >= 0 are enough: z = 1, -1/2 and x* = (1, 0), (0, 1), margin 1.
    An interpolating model exists and the constant is 0.625, but at theta = (0, 1.5) the ratio is
    0.125.

    Parameters
    ----------
    Z : (B, d) or (B, n, p) array
        Contexts, or features of each cost entry.
    intercept : bool
        Counts a feature that is 1 for every sample.

    Returns
    -------
    float
    """
    return float(_spectrum(Z, intercept).smallest_of_features)


def contraction(Z: Any, *, method: str = "gd", intercept: bool = False) -> float:
    """The factor by which every step is sure to shrink h, where an interpolating model exists.

    Gradient descent with step 1/L: 1 - mu/L. POCS: 0 if mu > 0, since the fit meets every target
    and one step does it. 1 where mu = 0: h still never rises, and falls as `expected_h` says.

    Parameters
    ----------
    Z : (B, d) or (B, n, p) array
        Contexts, or features of each cost entry.
    method : "gd" or "pocs"
    intercept : bool
        Counts a feature that is 1 for every sample.

    Returns
    -------
    float
    """
    _check_method(method)
    spectrum = _spectrum(Z, intercept)
    if spectrum.smallest_of_samples == 0:
        return 1.0
    return 0.0 if method == "pocs" else 1.0 - spectrum.smallest_of_samples / spectrum.largest


def expected_h(
    Z: Any,
    *,
    h0: float,
    steps: int,
    method: str = "gd",
    travel: float = np.inf,
    intercept: bool = False,
) -> np.ndarray:
    """(steps + 1,): the most that h less its minimum can be after 0, 1, ... steps.

    The smaller of h0 contraction^t, and L travel^2 / (2t) for gradient descent or
    travel^2 / (2t) for POCS. Where no model interpolates, only the second is promised.

    Parameters
    ----------
    Z : (B, d) or (B, n, p) array
        Contexts, or features of each cost entry.
    h0 : float
        At first, h less its minimum.
    steps : int
    method : "gd" or "pocs"
    travel : float
        The distance from the start to a minimizer: between parameters for gradient descent, the
        root mean square between predicted costs for POCS. The model at the end of a fit will do
        for it, with its h in place of the minimum.
    intercept : bool
        Counts a feature that is 1 for every sample.

    Returns
    -------
    (steps + 1,) array
    """
    check_number(h0, "h0")
    check_whole(steps, "steps", 0)
    if travel != np.inf:
        check_number(travel, "travel")
    factor = contraction(Z, method=method, intercept=intercept)
    L = 1.0 if method == "pocs" else smoothness(Z, intercept=intercept)
    t = np.arange(steps + 1)
    geometric = h0 * factor ** t.astype(float)
    with np.errstate(divide="ignore"):
        sublinear = np.where(t > 0, L * travel**2 / (2.0 * np.maximum(t, 1)), np.inf)
    return np.minimum(geometric, sublinear)


@dataclass(frozen=True)
class _Spectrum:
    """Eigenvalues of Z^T Z / B (features) and Z Z^T / B (samples)."""

    largest: float
    smallest_of_features: float
    smallest_of_samples: float


def _spectrum(Z: Any, intercept: bool) -> _Spectrum:
    array = checked_contexts(Z, intercept=intercept)
    design = array.reshape(-1, array.shape[-1])
    rows, columns = design.shape
    with np.errstate(over="ignore"):
        gram = design.T @ design if columns <= rows else design @ design.T
    if not np.isfinite(gram).all():
        raise InputError(
            f"`Z` holds numbers up to {np.abs(design).max():.3g}, which cannot be squared and "
            "summed. Measure the features in another unit."
        )
    values = np.linalg.eigvalsh(gram / len(array))
    # An eigenvalue this far below the largest is rounding of 0.
    values = np.where(values <= 1e-13 * values[-1], 0.0, values)
    return _Spectrum(
        float(values[-1]),
        float(values[0]) if columns <= rows else 0.0,
        float(values[0]) if rows <= columns else 0.0,
    )


def checked_contexts(Z: Any, *, intercept: bool = False) -> np.ndarray:
    """(B, d) or (B, n, p), with a feature of 1 for the intercept."""
    array = to_float64(Z, "Z")
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise ShapeError(
            "`Z` must be (B, d) contexts or (B, n, p) features of each entry, with at least one "
            f"of each; got shape {array.shape}."
        )
    if not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0]
        raise InputError(f"`Z` must be finite; got {array[tuple(place)]} in sample {place[0]}.")
    return np.concatenate([array, np.ones((*array.shape[:-1], 1))], -1) if intercept else array


def _check_method(method: Any) -> None:
    if method not in METHODS:
        raise InputError(f"`method` must be one of {', '.join(METHODS)}; got {method!r}.")
