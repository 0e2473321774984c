"""Models of costs that are linear in what they learn: c = f(z), fitted by least squares.

All share one protocol, in the order in which POCS uses it:

    features = model.prepare(Z, n)         look at the data set once: map it, factor it
    costs = model.cost(features)           (B, n)
    model.add(features, costs, targets)    take in targets, chunk by chunk
    model.refit()                          least-squares fit to all targets taken in

Letters: B samples, n cost entries, d features, p features of each entry.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._numbers import check_number, check_whole
from ..errors import InputError, ShapeError
from .contexts import Ragged, as_contexts, check_length
from .least_squares import CHUNK, RowFactor, chunks


class CostModel(Protocol):
    """What POCS and ERM ask of a model."""

    ridge: float

    def prepare(self, Z: Any, n: int, *, more: bool = False) -> Any:
        """The features of `Z`, checked and factored; `more` keeps what earlier data have told."""
        ...

    def cost(self, features: Any) -> np.ndarray:
        """(B, n) costs."""
        ...

    def add(self, features: Any, costs: np.ndarray, targets: np.ndarray) -> None:
        """Take in targets (B, n); `costs` is what the model itself says there."""
        ...

    def refit(self, step: float = 1.0) -> None:
        """Move to the least-squares fit of the targets taken in, or the share `step` of the way."""
        ...

    def penalty(self) -> float:
        """ridge/2 times the sum of squares of all weights but intercepts."""
        ...

    def predict_cost(self, Z: Any) -> np.ndarray:
        """(B, n) costs of contexts."""
        ...

    def module(self) -> Any:
        """A torch module from features to costs whose parameters are the model's own memory."""
        ...


class LinearModel:
    """c = coef z + intercept, with `coef` (n, d) and `intercept` (n,), both 0 at the start.

    `ridge` adds ridge/2 |coef|^2 to the mean of 1/2 |c - target|^2, so its meaning does not change
    with the number of samples; the intercept is free. Data that leave a choice (a constant
    feature, features that depend on each other, fewer samples than features) get the coefficients
    of smallest norm.
    """

    coef: np.ndarray
    intercept: np.ndarray

    def __init__(self, *, fit_intercept: bool = True, ridge: float = 0.0) -> None:
        check_number(ridge, "ridge")
        self.fit_intercept = fit_intercept
        self.ridge = float(ridge)
        self._rows: RowFactor | None = None

    def prepare(self, Z: Any, n: int, *, more: bool = False) -> np.ndarray:
        Z = as_contexts(Z)
        self._allocate(Z.shape[1], n)
        if self._rows is None or not more:
            self._rows = RowFactor(Z.shape[1], centre=self.fit_intercept)
        for part in chunks(len(Z), max(CHUNK, 2 * Z.shape[1])):
            self._rows.add(Z[part])
        self._root, basis = self._rows.inverse_root(self.ridge)
        if basis is not None and not more:
            self._keep_span(basis)
        return Z

    def cost(self, features: np.ndarray) -> np.ndarray:
        return features @ self.coef.T + self.intercept

    def add(self, features: np.ndarray, costs: np.ndarray, targets: np.ndarray) -> None:
        residual = targets - costs
        self._pull += residual.T @ features
        self._lift += residual.sum(axis=0)

    def refit(self, step: float = 1.0) -> None:
        # A Newton step on the least-squares problem rather than its solution from scratch: the
        # same point, but errors are relative to the step and vanish as the targets settle.
        rows = self._rows
        assert rows is not None, "`prepare` comes first"
        pull = self._pull - np.outer(self._lift, rows.mean)
        if self.ridge:
            pull -= self.ridge * rows.count * self.coef
        move = step * (pull @ self._root) @ self._root.T
        self.coef += move
        if self.fit_intercept:
            self.intercept += step * self._lift / rows.count - move @ rows.mean
        self._pull[:], self._lift[:] = 0.0, 0.0

    def penalty(self) -> float:
        return 0.5 * self.ridge * float((self.coef**2).sum())

    def predict_cost(self, Z: Any) -> np.ndarray:
        Z = as_contexts(Z)
        if not hasattr(self, "coef") or Z.shape[1] != self.coef.shape[1]:
            known = self.coef.shape[1] if hasattr(self, "coef") else "no"
            raise ShapeError(f"The model has learnt from {known} features; `Z` has {Z.shape[1]}.")
        return self.cost(Z)

    def fit_targets(self, Z: Any, targets: np.ndarray) -> LinearModel:
        """Least-squares fit to targets (B, n)."""
        return _fit_targets(self, Z, targets)

    def module(self) -> Any:
        import torch

        linear = torch.nn.Linear(1, 1, bias=self.fit_intercept, dtype=torch.float64)
        linear.weight = torch.nn.Parameter(torch.from_numpy(self.coef))
        if self.fit_intercept:
            linear.bias = torch.nn.Parameter(torch.from_numpy(self.intercept))
        linear.out_features, linear.in_features = self.coef.shape
        return linear

    def _allocate(self, d: int, n: int) -> None:
        if not hasattr(self, "coef"):
            self.coef, self.intercept = np.zeros((n, d)), np.zeros(n)
        elif self.coef.shape != (n, d):
            raise ShapeError(
                f"The model has learnt {self.coef.shape[0]} costs from {self.coef.shape[1]} "
                f"features; these data have {n} costs and {d} features. Start with a new model."
            )
        self._pull, self._lift = np.zeros((n, d)), np.zeros(n)

    def _keep_span(self, basis: np.ndarray) -> None:
        """Drop what the data cannot see from coefficients learnt earlier: the least norm again."""
        assert self._rows is not None
        kept = (self.coef @ basis) @ basis.T
        self.intercept += (self.coef - kept) @ self._rows.mean
        self.coef[:] = kept


class SharedModel:
    """c_j = w . phi_j + intercept, with features phi_j of each entry and shared weights w.

    Contexts are (B, n, p), or a list of B matrices (n_b, p) where samples have different numbers of
    entries. Fitted like a LinearModel with one output and as many rows as there are entries.
    """

    def __init__(self, *, fit_intercept: bool = True, ridge: float = 0.0) -> None:
        self._rows = LinearModel(fit_intercept=fit_intercept, ridge=ridge)
        self.ridge = self._rows.ridge

    @property
    def coef(self) -> np.ndarray:
        """(p,) weights."""
        return self._rows.coef[0]

    @property
    def intercept(self) -> np.ndarray:
        """(1,) the same for every entry."""
        return self._rows.intercept

    def prepare(self, Z: Any, n: int, *, more: bool = False) -> Any:
        Z = as_contexts(Z, ndim=3)
        if Z.shape[1] != n:
            raise ShapeError(
                f"`Z` must have shape (B, {n}, p), features of each of the {n} cost entries; "
                f"got {Z.shape}."
            )
        self._rows.prepare(_entries(Z), 1, more=more)
        return Z

    def cost(self, features: Any) -> np.ndarray:
        return _as_costs(self._rows.cost(_entries(features))[:, 0], features)

    def add(self, features: Any, costs: np.ndarray, targets: np.ndarray) -> None:
        known = slice(None) if isinstance(features, np.ndarray) else features.real
        costs, targets = costs[known].reshape(-1, 1), targets[known].reshape(-1, 1)
        self._rows.add(_entries(features), costs, targets)

    def refit(self, step: float = 1.0) -> None:
        self._rows.refit(step)

    def penalty(self) -> float:
        return self._rows.penalty()

    def predict_cost(self, Z: Any) -> np.ndarray:
        Z = as_contexts(Z, ndim=3)
        return _as_costs(self._rows.predict_cost(_entries(Z))[:, 0], Z)

    def fit_targets(self, Z: Any, targets: np.ndarray) -> SharedModel:
        """Least-squares fit to targets (B, n)."""
        return _fit_targets(self, Z, targets)

    def module(self) -> Any:
        import torch

        return torch.nn.Sequential(self._rows.module(), torch.nn.Flatten())  # (B, n, 1) -> (B, n)


def _entries(features: Any) -> np.ndarray:
    """(N, p): the features of all entries of all samples, one after the other."""
    if isinstance(features, Ragged):
        return features.rows
    return features.reshape(-1, features.shape[2])


def _as_costs(values: np.ndarray, features: Any) -> np.ndarray:
    """(B, n) from a cost for each entry; filled up with 0 where samples differ in length."""
    if not isinstance(features, Ragged):
        return values.reshape(features.shape[:2])
    result = np.zeros((len(features), features.width))
    result[features.real] = values
    return result


class KernelModel:
    """c = sum_i a_i k(z, z_i) + intercept, with k the polynomial or the Gaussian ("rbf") kernel.

    Exact with `n_components=None`: every training context is a landmark z_i (memory B^2). With a
    number, that many are drawn with `seed` (Nystroem). Either way the model is linear in features
    whose inner products are the kernel, so `ridge` penalises the norm of the function. The
    landmarks are those of the first data the model sees.
    """

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
    ) -> None:
        if kernel not in ("rbf", "poly"):
            raise InputError(f'`kernel` must be "rbf" or "poly"; got {kernel!r}.')
        if n_components is not None:
            check_whole(n_components, "n_components", 1)
        if gamma is not None:
            check_number(gamma, "gamma")
        self._kernel = {"metric": kernel, "gamma": gamma, "degree": degree, "coef0": coef0}
        self.n_components = n_components
        self.seed = seed
        self._linear = LinearModel(fit_intercept=fit_intercept, ridge=ridge)
        self.ridge = self._linear.ridge

    @property
    def coef(self) -> np.ndarray:
        """(n, rank) weights of the kernel's features."""
        return self._linear.coef

    @property
    def intercept(self) -> np.ndarray:
        """(n,)"""
        return self._linear.intercept

    def prepare(self, Z: Any, n: int, *, more: bool = False) -> np.ndarray:
        Z = as_contexts(Z)
        if self.landmarks is None:
            self._choose_landmarks(Z)
        return self._linear.prepare(self._features(Z), n, more=more)

    def cost(self, features: np.ndarray) -> np.ndarray:
        return self._linear.cost(features)

    def add(self, features: np.ndarray, costs: np.ndarray, targets: np.ndarray) -> None:
        self._linear.add(features, costs, targets)

    def refit(self, step: float = 1.0) -> None:
        self._linear.refit(step)

    def penalty(self) -> float:
        return self._linear.penalty()

    def predict_cost(self, Z: Any) -> np.ndarray:
        return self._linear.cost(self._features(as_contexts(Z)))

    def fit_targets(self, Z: Any, targets: np.ndarray) -> KernelModel:
        """Least-squares fit to targets (B, n)."""
        return _fit_targets(self, Z, targets)

    def module(self) -> Any:
        return self._linear.module()

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

        with np.errstate(over="ignore"):
            values = pairwise_kernels(Z, self.landmarks, filter_params=True, **self._kernel)
        if not np.isfinite(values).all():
            raise InputError(
                "The kernel of some contexts is too large for a number. Scale the features, or "
                "choose a smaller `gamma` or `degree`."
            )
        return values

    def _features(self, Z: np.ndarray) -> np.ndarray:
        known = "no" if self.landmarks is None else self.landmarks.shape[1]
        if Z.shape[1] != known:
            raise ShapeError(f"The model has learnt from {known} features; `Z` has {Z.shape[1]}.")
        return np.vstack([self._against_landmarks(Z[p]) @ self._root for p in chunks(len(Z))])


def _fit_targets(model: Any, Z: Any, targets: Any) -> Any:
    targets = np.asarray(targets, dtype=float)
    check_length(len(Z), len(targets))
    features = model.prepare(Z, targets.shape[1])
    for _ in range(2):  # the second step takes away what rounding has left of the first
        costs = model.cost(features)
        model.add(features, costs, targets)
        model.refit()
    return model
