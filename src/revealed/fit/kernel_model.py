"""Kernel models: linear in features whose inner products are the kernel.

Letters: B samples, n cost entries, d features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.checks import check_number, check_whole
from ..errors import InputError, ShapeError
from ..io.folder import finite
from .contexts import as_contexts
from .feature_models import OnFeatures, Standardizer
from .least_squares import chunks
from .models import Arrays, fit_to_targets


class KernelModel(OnFeatures):
    """c = sum_i a_i k(z, z_i) + intercept, with k the polynomial or the Gaussian ("rbf") kernel.

    The model is linear in features whose inner products are the kernel. The landmarks z_i are those
    of the first data the model sees.

    Parameters
    ----------
    kernel : "rbf" or "poly"
        exp(-gamma |z - z_i|^2), or (gamma <z, z_i> + coef0)^degree.
    gamma : float or None
        As above; None for 1/d.
    degree : int
        Of "poly".
    coef0 : float
        Of "poly".
    n_components : int or None
        How many training contexts to draw as landmarks (Nystroem). None takes every one, which is
        exact and needs memory B^2.
    fit_intercept : bool
        Whether there is an intercept; it is not penalized.
    ridge : float
        Penalizes the norm of the function: ridge/2 times its square is added to the mean loss. In
        `InverseRegressor` it is that of the estimator.
    seed : int
        Of the draw of landmarks; in `InverseRegressor` that of the estimator.
    standardize : bool
        Whether the kernel is that of contexts of mean 0 and standard deviation 1, whatever their
        units. `InverseRegressor` sets it.
    """

    makes_features = True
    landmarks: np.ndarray | None = None
    """(components, d)"""

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int | None = None,
        fit_intercept: bool = True,
        ridge: float = 0.0,
        seed: int = 0,
        standardize: bool = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.fit_intercept = fit_intercept
        self.ridge = ridge
        self.seed = seed
        self.standardize = standardize
        self._units: Standardizer | None = None

    @property
    def coef(self) -> np.ndarray:
        """(n, rank) weights of the kernel's features."""
        return self._linear.coef

    @property
    def intercept(self) -> np.ndarray:
        """(n,)"""
        return self._linear.intercept

    def prepare(
        self, Z: Any, n: int, *, more: bool = False, weights: np.ndarray | None = None
    ) -> np.ndarray:
        self._check_settings()
        Z = as_contexts(Z)
        if self.landmarks is None:
            self._units = Standardizer.of(Z, weights) if self.standardize else None
            self._choose_landmarks(Z)
        return self._prepare_linear(self._features(Z), n, more=more, weights=weights)

    def mapped(self, Z: np.ndarray) -> np.ndarray:
        return self._features(Z)

    def start_anew(self) -> None:
        super().start_anew()
        self.landmarks = None

    def arrays(self) -> Arrays:
        assert self.landmarks is not None, "`prepare` comes first"
        units = {} if self._units is None else self._units.arrays()
        return super().arrays() | units | {"landmarks": self.landmarks, "root": self._root}

    def take_arrays(self, arrays: Arrays) -> None:
        self._check_settings()
        super().take_arrays(arrays)
        self.landmarks = finite(arrays, "landmarks", (None, None))
        self._units = Standardizer.of_arrays(arrays) if self.standardize else None
        if self._units is not None and len(self._units.mean) != self.landmarks.shape[1]:
            raise InputError("The landmarks of the kernel have another number of features.")
        rank = self._linear.coef.shape[1]
        root = finite(arrays, "root", (len(self.landmarks), rank))
        self._root = np.asfortranarray(root)  # as it was made: products are the same to the bit

    def predict_cost(self, Z: Any) -> np.ndarray:
        return self._linear.cost(self._features(as_contexts(Z)))

    def fit_targets(self, Z: Any, targets: np.ndarray) -> KernelModel:
        """Least-squares fit to targets (B, n)."""
        return fit_to_targets(self, Z, targets)

    def _check_settings(self) -> None:
        if self.kernel not in ("rbf", "poly"):
            raise InputError(f'`kernel` must be "rbf" or "poly"; got {self.kernel!r}.')
        if self.n_components is not None:
            check_whole(self.n_components, "n_components", 1)
        if self.gamma is not None:
            check_number(self.gamma, "gamma")

    def _choose_landmarks(self, Z: np.ndarray) -> None:
        count = self.n_components or len(Z)
        if count < len(Z):
            chosen = np.random.default_rng(self.seed).choice(len(Z), count, replace=False)
            Z = Z[np.sort(chosen)]
        self.landmarks = np.array(Z)
        # K = U S U^T, so k(z, landmarks) U S^-1/2 has the kernel as its inner product. Directions
        # that are nothing but rounding are left out: divided by their S they would be noise.
        S, U = np.linalg.eigh(self._against_landmarks(self.landmarks))
        keep = S > len(S) * np.finfo(float).eps * S.max(initial=0.0)
        self._root = U[:, keep] / np.sqrt(S[keep])

    def _against_landmarks(self, Z: np.ndarray) -> np.ndarray:
        from sklearn.metrics.pairwise import pairwise_kernels

        marks = self.landmarks
        if self._units is not None and marks is not None:
            Z, marks = self._units(Z), self._units(marks)
        options = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        with np.errstate(over="ignore"):
            values = pairwise_kernels(Z, marks, self.kernel, filter_params=True, **options)
        if not np.isfinite(values).all():
            raise InputError(
                "The kernel of some contexts is too large for a number. Scale the features, or "
                "choose a smaller `gamma` or `degree`."
            )
        return values

    def _features(self, Z: np.ndarray) -> np.ndarray:
        known = "no" if self.landmarks is None else self.landmarks.shape[1]
        if Z.shape[1] != known:
            raise ShapeError(f"The model has learned from {known} features; `Z` has {Z.shape[1]}.")
        return np.vstack([self._against_landmarks(Z[p]) @ self._root for p in chunks(len(Z))])
