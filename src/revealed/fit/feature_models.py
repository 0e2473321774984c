"""Models that are linear in features they make themselves: shared coefficients, quadratic.

Letters: B samples, n cost entries, d features, p features of each entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._common.settings import Settings
from ..errors import InputError, ShapeError
from ..io.folder import finite, tensor
from .contexts import Common, Ragged, as_contexts
from .least_squares import RowFactor, chunks
from .models import Arrays, Curved, LinearModel, Slope, fit_to_targets


class Standardizer(NamedTuple):
    """Contexts -> contexts of mean 0 and standard deviation 1; a constant feature becomes 0."""

    mean: np.ndarray
    """(d,)"""
    scale: np.ndarray
    """(d,), inf for a constant feature."""

    @classmethod
    def of(cls, Z: np.ndarray, weights: np.ndarray | None = None) -> Standardizer:
        rows = RowFactor(Z.shape[1], center=True)
        for part in chunks(len(Z), max(2048, 2 * Z.shape[1])):
            rows.add(Z[part], None if weights is None else weights[part])
        return cls(rows.mean, np.where(rows.spread > 0, rows.spread, np.inf))

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        return (Z - self.mean) / self.scale

    def arrays(self) -> Arrays:
        """To be kept on disk."""
        return {"units.mean": self.mean, "units.scale": self.scale}

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> Standardizer:
        """What `arrays` came from."""
        mean = finite(arrays, "units.mean", (None,))
        scale = tensor(arrays, "units.scale", mean.shape)
        if not (scale > 0).all():
            raise InputError("The units of the stored features must be above 0.")
        return cls(mean, np.array(scale))


class OnFeatures(Settings):
    """A model that is a LinearModel on features it makes itself."""

    family = "convex"
    makes_features = False
    """Whether features depend on the data that were seen first."""
    fit_intercept: bool
    ridge: float
    _inner: LinearModel | None = None

    @property
    def _linear(self) -> LinearModel:
        if self._inner is None:
            self._inner = LinearModel()
        return self._inner

    @property
    def linear(self) -> LinearModel:
        """The model behind this one."""
        return self._linear

    def mapped(self, Z: Any) -> Any:
        """The features of contexts that are checked."""
        return Z

    def weighted_rows(self, features: Any, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(N, k) what each cost is linear in, (N,) the weights (B,) of the samples they are of."""
        return features, weights

    def start_anew(self) -> None:
        """Forget everything; features are then made from the next data."""
        self._inner = None

    def _linear_settings(self) -> dict[str, Any]:
        return {"fit_intercept": self.fit_intercept, "ridge": self.ridge}

    def _prepare_linear(self, rows: np.ndarray, n: int, **options: Any) -> np.ndarray:
        """Prepare the model behind this one, with the settings of this one."""
        return self._linear.set_params(**self._linear_settings()).prepare(rows, n, **options)

    @property
    def point(self) -> np.ndarray:
        return self._linear.point

    def move_to(self, point: np.ndarray) -> None:
        self._linear.move_to(point)

    def gradient(self) -> tuple[np.ndarray, Slope]:
        return self._linear.gradient()

    def set_ridge(self, ridge: float) -> None:
        self.ridge = ridge
        self._linear.set_ridge(ridge)

    def taken(self) -> tuple[np.ndarray, ...]:
        return self._linear.taken()

    def collect(self, taken: tuple[np.ndarray, ...]) -> None:
        self._linear.collect(taken)

    def cost(self, features: Any) -> np.ndarray:
        return self._linear.cost(features)

    def add(
        self, features: Any, costs: np.ndarray, targets: np.ndarray, count: float | None = None
    ) -> None:
        self._linear.add(features, costs, targets, count)

    def refit(self, step: float = 1.0) -> None:
        self._linear.refit(step)

    def penalty(self) -> float:
        return self._linear.penalty()

    def dual_lifts(self, y: np.ndarray) -> np.ndarray:
        return self._linear.dual_lifts(y)

    def levels(self) -> np.ndarray:
        return self._linear.levels()

    def dual_pull(self, features: Any, y: np.ndarray) -> np.ndarray:
        return self._linear.dual_pull(features, y)

    def dual_penalty(self, pull: np.ndarray) -> float:
        return self._linear.dual_penalty(pull)

    def offset(self, features: Any) -> Any:
        return self._linear.offset(features)

    def curvature(self, parts: Iterable[Curved]) -> np.ndarray:
        return self._linear.curvature(parts)

    def penalty_curvature(self) -> np.ndarray:
        return self._linear.penalty_curvature()

    def arrays(self) -> Arrays:
        """What was learned, to be kept on disk."""
        return {f"inner.{name}": array for name, array in self._linear.arrays().items()}

    def take_arrays(self, arrays: Arrays) -> None:
        """Be the model that `arrays` came from."""
        inner = {k.removeprefix("inner."): v for k, v in arrays.items() if k.startswith("inner.")}
        self._linear.set_params(**self._linear_settings()).take_arrays(inner)

    def torch_module(self) -> Any:
        return self._linear.torch_module()


class SharedModel(OnFeatures):
    """c_j = w . phi_j + intercept, with features phi_j of each entry and shared weights w.

    Contexts are (B, n, p); a list of B matrices (n_b, p) where samples have different numbers of
    entries; or `Common` features (n, p), the same for every sample. Fitted like a LinearModel with
    one output and as many rows as there are entries.

    Parameters
    ----------
    fit_intercept : bool
        Whether there is an intercept, one for all entries; it is not penalized.
    ridge : float
        Adds ridge/2 |w|^2 to the mean over samples. In `InverseRegressor` it is that of the
        estimator.
    standardize : bool
        Whether the penalty is that of features of standard deviation 1. `InverseRegressor` sets it.
    given : dict of int to float, or None
        Weights that are known, by the number of their feature, such as `{0: 1.0}`: they set the
        unit of costs.
    """

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        ridge: float = 0.0,
        standardize: bool = False,
        given: dict[int, float] | None = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.ridge = ridge
        self.standardize = standardize
        self.given = given
        self._p: int | None = None

    def _linear_settings(self) -> dict[str, Any]:
        return super()._linear_settings() | {"standardize": self.standardize}

    @property
    def coef(self) -> np.ndarray:
        """(p,) weights, those given among them."""
        if not self.given:
            return self._linear.coef[0]
        full = np.zeros(self._p or 0)
        full[list(self.given)] = list(self.given.values())
        full[self._learned] = self._linear.coef[0]
        return full

    @property
    def intercept(self) -> np.ndarray:
        """(1,) the same for every entry."""
        return self._linear.intercept

    @property
    def _learned(self) -> np.ndarray:
        """Numbers of the features whose weight is learned."""
        assert self._p is not None, "`prepare` comes first"
        return np.setdiff1d(np.arange(self._p), list(self.given or {}))

    def prepare(
        self, Z: Any, n: int, *, more: bool = False, weights: np.ndarray | None = None
    ) -> Any:
        Z = as_contexts(Z, ndim=3)
        if Z.shape[1] != n:
            raise ShapeError(
                f"`Z` must have shape (B, {n}, p), features of each of the {n} cost entries; "
                f"got {Z.shape}."
            )
        self._p = p = int(Z.shape[2])
        given = self.given or {}
        if any(not 0 <= k < p for k in given) or (given and len(given) >= p):
            raise InputError(
                f"`given` must name some, not all, of the {p} features by number; got "
                f"{sorted(given)}."
            )
        weights = np.ones(len(Z)) if weights is None else weights
        samples = float(weights.mean() if isinstance(Z, Common) else weights.sum())
        by_row = _by_row(weights, Z)
        self._prepare_linear(self._rows_of(Z), 1, more=more, weights=by_row, samples=samples)
        return Z

    def cost(self, features: Any) -> np.ndarray:
        costs = _as_costs(self._linear.cost(self._rows_of(features))[:, 0], features)
        return costs + self.offset(features)

    def offset(self, features: Any) -> Any:
        if not self.given:
            return 0.0
        rows, weights = _entries(features), np.array(list(self.given.values()))
        return _as_costs(rows[:, list(self.given)] @ weights, features)

    def add(
        self, features: Any, costs: np.ndarray, targets: np.ndarray, count: float | None = None
    ) -> None:
        count = float(len(features)) if count is None else count
        if isinstance(features, Common):  # all samples have the same rows: add up their residuals
            residual = (targets - costs).sum(axis=0)[:, None] / features.total
            rows = self._rows_of(features)
            self._linear.add(
                rows, np.zeros_like(residual), residual, count / features.total * len(rows)
            )
            return
        known = slice(None) if isinstance(features, np.ndarray) else features.real
        costs, targets = costs[known].reshape(-1, 1), targets[known].reshape(-1, 1)
        rows = self._rows_of(features)
        self._linear.add(rows, costs, targets, count / len(features) * len(rows))

    def predict_cost(self, Z: Any) -> np.ndarray:
        Z = as_contexts(Z, ndim=3)
        if self._p is None or Z.shape[2] != self._p:
            known = "no" if self._p is None else self._p
            raise ShapeError(f"The model has learned from {known} features; `Z` has {Z.shape[2]}.")
        return self.cost(Z)

    def fit_targets(self, Z: Any, targets: np.ndarray) -> SharedModel:
        """Least-squares fit to targets (B, n)."""
        return fit_to_targets(self, Z, targets)

    def take_arrays(self, arrays: Arrays) -> None:
        super().take_arrays(arrays)
        given = self.given or {}
        self._p = self._linear.coef.shape[1] + len(given)
        if any(not 0 <= k < self._linear.coef.shape[1] + len(given) for k in given):
            raise InputError(f"The weights {sorted(given)} that are given are not the model's.")

    def dual_lifts(self, y: np.ndarray) -> np.ndarray:
        return y.sum(axis=2, keepdims=True)

    def dual_pull(self, features: Any, y: np.ndarray) -> np.ndarray:
        if isinstance(features, Common):
            return self._linear.dual_pull(self._rows_of(features), y.sum(axis=0)[:, None])
        known = slice(None) if isinstance(features, np.ndarray) else features.real
        return self._linear.dual_pull(self._rows_of(features), y[known].reshape(-1, 1))

    def curvature(self, parts: Iterable[Curved]) -> np.ndarray:
        return sum(self._curvature(*part) for part in parts)  # pyright: ignore

    def _curvature(self, features: Any, entries: np.ndarray, hessians: np.ndarray) -> np.ndarray:
        w = self._linear.whitened(self._rows_of(features))
        if isinstance(features, Common):  # the same w for all: add up their Hessians first
            places = np.broadcast_arrays(entries[:, :, None], entries[:, None, :])
            total = sparse.csr_array(
                (hessians.ravel(), tuple(place.ravel() for place in places)), (len(w), len(w))
            )
            return w.T @ (total @ w)
        if isinstance(features, Ragged):
            w, rows = np.zeros((*features.shape[:2], w.shape[1])), w
            w[features.real] = rows
        else:
            w = w.reshape(*features.shape[:2], -1)
        w = np.take_along_axis(w, entries[:, :, None], axis=1)
        return np.einsum("bik,bil->kl", w, hessians @ w)

    def torch_module(self) -> Any:
        import torch

        if self.given:
            raise InputError("First-order solvers do not know `given` weights; use solver='lbfgs'.")
        inner = self._linear.torch_module()
        return torch.nn.Sequential(inner, torch.nn.Flatten())  # (B, n, 1) -> (B, n)

    def weighted_rows(self, features: Any, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._rows_of(features), _by_row(weights, features)

    def _rows_of(self, features: Any) -> np.ndarray:
        """(N, q) of all entries of all samples the features whose weight is learned."""
        rows = _entries(features)
        return rows[:, self._learned] if self.given else rows


def _entries(features: Any) -> np.ndarray:
    """(N, p): the features of all entries of all samples, one after the other."""
    if isinstance(features, Ragged | Common):
        return features.rows
    return features.reshape(-1, features.shape[2])


def _by_row(weights: np.ndarray, features: Any) -> np.ndarray:
    """(N,): for each row of `_entries` the weight of its sample, for common rows their mean."""
    if isinstance(features, Ragged):
        return np.repeat(weights, features.sizes)
    if isinstance(features, Common):
        return np.full(len(features.rows), weights.mean())
    return np.repeat(weights, features.shape[1])


def _as_costs(values: np.ndarray, features: Any) -> np.ndarray:
    """(B, n) from a cost for each entry; filled up with 0 where samples differ in length."""
    if isinstance(features, Common):
        return np.tile(values, (len(features), 1))
    if not isinstance(features, Ragged):
        return values.reshape(features.shape[:2])
    result = np.zeros((len(features), features.width))
    result[features.real] = values
    return result


class QuadraticModel(OnFeatures):
    """c = sum_k a_k z_k + sum_{k <= l} b_kl z_k z_l + intercept: curved, but linear in what it
    learns.

    Inside, contexts have mean 0 and standard deviation 1 before they are multiplied, so that units
    do not matter. Products that say nothing new are left out: the square of a feature of two
    values, and the product of two such features that never have their larger value together, as
    the columns of one category. `coef` is in the units of the data: d columns for the features,
    then one for each product, in the order of `products`, 0 for those left out.

    Parameters
    ----------
    fit_intercept : bool
        Whether there is an intercept; it is not penalized.
    ridge : float
        Adds ridge/2 times the sum of squared weights to the mean over samples, features and
        products taken with a standard deviation of 1. In `InverseRegressor` it is that of the
        estimator.
    """

    makes_features = True

    def __init__(self, *, fit_intercept: bool = True, ridge: float = 0.0) -> None:
        self.fit_intercept = fit_intercept
        self.ridge = ridge
        self._units: Standardizer | None = None
        self._kept = np.zeros(0, bool)

    def _linear_settings(self) -> dict[str, Any]:
        return super()._linear_settings() | {"standardize": True}

    @staticmethod
    def products(d: int) -> np.ndarray:
        """(d (d + 1) / 2, 2): which two features each product is of."""
        return np.stack(np.triu_indices(d), axis=1)

    def prepare(
        self, Z: Any, n: int, *, more: bool = False, weights: np.ndarray | None = None
    ) -> np.ndarray:
        Z = as_contexts(Z)
        if self._units is None or not more:
            self._units, self._kept = Standardizer.of(Z, weights), _new_products(Z)
        return self._prepare_linear(self._features(Z), n, more=more, weights=weights)

    def mapped(self, Z: np.ndarray) -> np.ndarray:
        return self._features(Z)

    def predict_cost(self, Z: Any) -> np.ndarray:
        return self._linear.predict_cost(self._features(as_contexts(Z)))

    def fit_targets(self, Z: Any, targets: np.ndarray) -> QuadraticModel:
        """Least-squares fit to targets (B, n)."""
        return fit_to_targets(self, Z, targets)

    def arrays(self) -> Arrays:
        assert self._units is not None, "`prepare` comes first"
        kept = {"kept": self._kept.astype(np.int64)}
        return super().arrays() | self._units.arrays() | kept

    def take_arrays(self, arrays: Arrays) -> None:
        super().take_arrays(arrays)
        self._units = Standardizer.of_arrays(arrays)
        d = len(self._units.mean)
        self._kept = tensor(arrays, "kept", (d * (d + 1) // 2,), "i").astype(bool)
        if self._linear.coef.shape[1] != d + int(self._kept.sum()):
            raise InputError("The coefficients of the quadratic model are not one for each term.")

    @property
    def coef(self) -> np.ndarray:
        """(n, d + d (d + 1) / 2), in the units of the data."""
        return self._in_units()[0]

    @property
    def intercept(self) -> np.ndarray:
        """(n,), in the units of the data."""
        return self._in_units()[1]

    @property
    def standardized_terms(self) -> tuple[LinearModel, np.ndarray, np.ndarray]:
        """The model inside, of standardized features and their products; which columns of `coef`
        its terms are; and the units that each term is divided by."""
        assert self._units is not None, "`prepare` comes first"
        scale, (i, j) = self._units.scale, self.products(len(self._units.mean)).T
        kept = np.append(np.ones(len(scale), bool), self._kept)
        return self._linear, kept, np.append(scale, scale[i] * scale[j])[kept]

    def _in_units(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts of features and products as they are, not standardized."""
        assert self._units is not None, "`prepare` comes first"
        mean, scale = self._units.mean, self._units.scale
        d, learned = len(mean), self._linear.coef
        i, j = self.products(d).T
        line, bent = learned[:, :d] / scale, np.zeros((len(learned), len(i)))
        bent[:, self._kept] = learned[:, d:] / (scale[i] * scale[j])[self._kept]
        # (z_i - m_i)(z_j - m_j) = z_i z_j - m_j z_i - m_i z_j + m_i m_j
        level = self._linear.intercept - line @ mean + bent @ (mean[i] * mean[j])
        for k in range(d):
            line[:, k] -= bent[:, i == k] @ mean[j[i == k]] + bent[:, j == k] @ mean[i[j == k]]
        return np.hstack([line, bent]), level

    def _features(self, Z: np.ndarray) -> np.ndarray:
        known = "no" if self._units is None else len(self._units.mean)
        if self._units is None or Z.shape[1] != known:
            raise ShapeError(f"The model has learned from {known} features; `Z` has {Z.shape[1]}.")
        u = self._units(Z)
        i, j = self.products(Z.shape[1])[self._kept].T
        return np.hstack([u, u[:, i] * u[:, j]])


def _new_products(Z: np.ndarray) -> np.ndarray:
    """(d (d + 1) / 2,) bool: which products of features are not made of the features already."""
    low, high = Z.min(axis=0), Z.max(axis=0)
    two = ((Z == low) | (Z == high)).all(axis=0)
    up = ((high > low) & (Z == high)).astype(np.float64)
    together = up.T @ up > 0
    i, j = QuadraticModel.products(Z.shape[1]).T
    return ~(two[i] & two[j] & ((i == j) | ~together[i, j]))
