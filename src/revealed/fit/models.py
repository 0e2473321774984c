"""What solvers ask of a model of costs c = f(z), and the linear model that answers.

All models share one protocol, in the order in which POCS uses it:

    features = model.prepare(Z, n)         look at the data set once: map it, factor it
    costs = model.cost(features)           (B, n)
    model.add(features, costs, targets)    take in targets, chunk by chunk
    model.refit()                          least-squares fit to all targets taken in

Letters: B samples, n cost entries, d features.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np

from .._common.checks import check_number
from .._common.settings import Settings
from ..errors import ShapeError
from ..io.folder import finite
from .contexts import as_contexts, check_length
from .least_squares import CHUNK, RowFactor, chunks
from .past import Past
from .scatter import scatter

Arrays = dict[str, np.ndarray]


class Slope(NamedTuple):
    """The gradient of the penalized mean loss, as the bound on the minimum needs it."""

    weights: float
    """Squared length of its part in the penalized weights, measured against the penalty."""
    level: np.ndarray
    """(n,) its part in the intercepts, which are not penalized; 0 without intercepts."""


Curved = tuple[Any, np.ndarray, np.ndarray]
"""Features of b samples, entries (b, k) in which their loss is curved, and its Hessians (b, k, k)
there; n entries are all of them, in order."""


class CostModel(Protocol):
    """What POCS and ERM ask of a model."""

    family: str
    """What a solver must know of it: "convex" (a `ConvexModel`), "module" (trained by gradients of
    torch), "regressor" (fitted anew to targets) or "boosted" (grows by stages)."""

    @property
    def ridge(self) -> float: ...

    def prepare(
        self, Z: Any, n: int, *, more: bool = False, weights: np.ndarray | None = None
    ) -> Any:
        """The features of `Z`, checked and factored for `n` cost entries.

        A sample counts by its weight, (B,), 1 unless given: one of weight 2 is a sample that comes
        twice. `more` keeps what earlier data taught.
        """
        ...

    def cost(self, features: Any) -> np.ndarray:
        """(B, n) costs."""
        ...

    def add(
        self, features: Any, costs: np.ndarray, targets: np.ndarray, count: float | None = None
    ) -> None:
        """Take in targets (B, n); `costs` is what the model itself says there, `count` the sum of
        what the samples count (B unless said)."""
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

    def torch_module(self) -> Any:
        """A torch module from features to costs whose parameters are the model's own memory."""
        ...


class ConvexModel(CostModel, Protocol):
    """A model that is linear in what it learns, so that a solver can reach the minimum.

    `point` and `gradient` are in coordinates in which the mean loss has a curvature of at most 1.
    """

    @property
    def point(self) -> np.ndarray: ...

    def move_to(self, point: np.ndarray) -> None: ...

    def gradient(self) -> tuple[np.ndarray, Slope]:
        """Of the penalized mean loss at the point, from what `add` has taken in."""
        ...

    def set_ridge(self, ridge: float) -> None: ...

    def taken(self) -> tuple[np.ndarray, ...]:
        """The sums that `add` has made of what it took in; they are then forgotten."""
        ...

    def collect(self, taken: tuple[np.ndarray, ...]) -> None:
        """Take in what a copy of this model has `taken` from other samples."""
        ...

    # Of the dual problem (see `bound`), for y (K, b, n) or (b, n) of a chunk of samples:

    def dual_lifts(self, y: np.ndarray) -> np.ndarray:
        """(K, b, r): what each y adds to the sum that must be 0 for intercepts to be free."""
        ...

    def levels(self) -> np.ndarray:
        """(r,) the costs of the mean context, which intercepts set."""
        ...

    def dual_pull(self, features: Any, y: np.ndarray) -> np.ndarray:
        """What the y of all samples together pull the weights with."""
        ...

    def dual_penalty(self, pull: np.ndarray) -> float:
        """|pull|^2, measured against the penalty."""
        ...

    def offset(self, features: Any) -> Any:
        """The part of the costs that is given, not learned."""
        ...

    def curvature(self, parts: Iterable[Curved]) -> np.ndarray:
        """(N, N) in the coordinates of `point`: what the Hessians of samples add up to."""
        ...

    def penalty_curvature(self) -> np.ndarray:
        """(N, N) that of the penalty."""
        ...


def is_convex_model(model: Any) -> TypeGuard[ConvexModel]:
    """Whether a model is linear in what it learns."""
    return hasattr(model, "move_to")


class LinearModel(Settings):
    """c = coef z + intercept, with `coef` (n, d) and `intercept` (n,), both 0 at the start.

    Data that leave a choice (a constant feature, features that depend on each other, fewer samples
    than features) get the coefficients of smallest norm.

    For solvers the model is a point of a space in which its mean loss has a curvature of at most 1:
    `point`, `move_to` and `gradient` speak of whitened features, POCS moves by the negative
    gradient there.

    Parameters
    ----------
    fit_intercept : bool
        Whether there is an intercept; it is not penalized.
    ridge : float
        Adds ridge/2 |coef|^2 to the mean of 1/2 |c - target|^2, so its meaning does not change
        with the number of samples. In `InverseRegressor` the ridge is that of the estimator.
    standardize : bool
        Whether the penalty is that of features of standard deviation 1, so that it does not change
        with their units; coefficients stay in the units of the data. `InverseRegressor` sets it.
    """

    coef: np.ndarray
    intercept: np.ndarray

    family = "convex"
    makes_features = False
    """Whether features depend on the data that were seen first."""

    def __init__(
        self, *, fit_intercept: bool = True, ridge: float = 0.0, standardize: bool = False
    ) -> None:
        self.fit_intercept = fit_intercept
        self.ridge = ridge
        self.standardize = standardize
        self._rows: RowFactor | None = None
        self.past: Past | None = None
        """What a stream of data has taught, where there was one."""

    def prepare(
        self,
        Z: Any,
        n: int,
        *,
        more: bool = False,
        weights: np.ndarray | None = None,
        samples: float | None = None,
    ) -> np.ndarray:
        """`samples` is how many samples the rows of `Z` belong to, counted by their weights: one
        each unless given."""
        check_number(self.ridge, "ridge")
        Z = as_contexts(Z)
        self._allocate(Z.shape[1], n)
        if self._rows is None or not more:
            self._rows, self._samples = RowFactor(Z.shape[1], center=self.fit_intercept), 0.0
            self.past = None
        before = self._rows.count
        for part in chunks(len(Z), max(CHUNK, 2 * Z.shape[1])):
            self._rows.add(Z[part], None if weights is None else weights[part])
        self._samples += self._rows.count - before if samples is None else samples
        basis = self._factor()
        if basis is not None and not more:
            self._keep_span(basis)
        return Z

    def prepare_from(self, rows: RowFactor, n: int, samples: float | None = None) -> None:
        """`prepare` for data that others have looked at: `rows` is what they saw of the features,
        of as many `samples` as there are rows unless said."""
        check_number(self.ridge, "ridge")
        self._allocate(len(rows.mean), n)
        self._rows, self._samples = rows, rows.count if samples is None else samples
        self.past = None
        basis = self._factor()
        if basis is not None:
            self._keep_span(basis)

    def taken(self) -> tuple[np.ndarray, ...]:
        result = self._pull.copy(), self._lift.copy(), np.array(float(self._count))
        self._forget()
        return result

    def collect(self, taken: tuple[np.ndarray, ...]) -> None:
        pull, lift, count = taken
        self._pull += pull
        self._lift += lift
        self._count += float(count)

    def set_ridge(self, ridge: float) -> None:
        """Another penalty on the same data, from the coefficients as they are."""
        self.ridge = ridge
        self._factor()

    def cost(self, features: np.ndarray) -> np.ndarray:
        return features @ self.coef.T + self.intercept

    def add(
        self,
        features: np.ndarray,
        costs: np.ndarray,
        targets: np.ndarray,
        count: float | None = None,
    ) -> None:
        residual = targets - costs
        self._pull += residual.T @ features
        self._lift += residual.sum(axis=0)
        self._count += len(features) if count is None else count

    def refit(self, step: float = 1.0) -> None:
        # A Newton step on the least-squares problem rather than its solution from scratch: the
        # same point, but errors are relative to the step and vanish as the targets settle.
        rows = self._rows
        assert rows is not None, "`prepare` comes first"
        pull = self._pull - np.outer(self._lift, rows.mean)
        if self.ridge:
            pull -= self.ridge * self._samples * self._scale**2 * self.coef
        move = step * (pull @ self._root) @ self._root.T
        self.coef += move
        if self.fit_intercept:
            self.intercept += step * self._lift / rows.count - move @ rows.mean
        self._forget()

    @property
    def rows(self) -> RowFactor:
        """What was seen of the features: their mean and spread."""
        assert self._rows is not None, "`prepare` comes first"
        return self._rows

    @property
    def penalties(self) -> np.ndarray:
        """(k,) what half the square of each weight costs in the loss summed over samples."""
        scale = self.rows.spread if self.standardize else np.ones(len(self.rows.mean))
        return self.ridge * self._samples * scale**2

    @property
    def samples(self) -> float:
        """What the samples seen count together."""
        return self._samples

    def forget_share(self, share: float) -> None:
        """Let what was seen of the features count by the share `share` only."""
        self.rows.scale(share)
        self._samples *= share

    @property
    def standardized(self) -> np.ndarray:
        """(n, d + 1): coefficients of features of standard deviation 1, and costs of the mean
        context."""
        assert self._rows is not None, "`prepare` comes first"
        return np.column_stack([self.coef * self._rows.spread, self.levels()])

    def penalty(self) -> float:
        scale = getattr(self, "_scale", 1.0)
        return 0.5 * self.ridge * float(((scale * self.coef) ** 2).sum())

    @property
    def point(self) -> np.ndarray:
        """Where the coefficients are in whitened features, the intercepts last."""
        rows, root = self._rows, self._white
        assert rows is not None, "`prepare` comes first"
        # root^T (R^T R / samples + ridge D^2) root = 1, so this is the inverse of `move_to`.
        back = rows.product(root) / self._samples
        back += self.ridge * self._scale[:, None] ** 2 * root
        level = self.intercept + self.coef @ rows.mean
        here = [self.coef @ back]
        if self.fit_intercept:
            here.append(level[:, None] / self._level)
        return np.hstack(here).ravel()

    def move_to(self, point: np.ndarray) -> None:
        """Take the coefficients of a point in whitened features."""
        rows = self._rows
        assert rows is not None, "`prepare` comes first"
        here = point.reshape(len(self.coef), -1)
        self.coef[:] = here[:, : self._white.shape[1]] @ self._white.T
        if self.fit_intercept:
            self.intercept[:] = here[:, -1] * self._level - self.coef @ rows.mean

    def gradient(self) -> tuple[np.ndarray, Slope]:
        """Of mean loss and penalty at the point, where what `add` took in are costs less gradients
        of samples; and the part from which the distance to the minimum follows."""
        rows = self._rows
        assert rows is not None, "`prepare` comes first"
        count = self._count * self._samples / rows.count
        weights = -(self._pull - np.outer(self._lift, rows.mean)) / count
        weights += self.ridge * self._scale**2 * self.coef
        level = -self._lift / count if self.fit_intercept else np.zeros_like(self._lift)
        self._forget()
        here = [weights @ self._white]
        if self.fit_intercept:
            here.append(level[:, None] * self._level)
        return np.hstack(here).ravel(), Slope(self.dual_penalty(weights), level)

    def dual_lifts(self, y: np.ndarray) -> np.ndarray:
        return y

    def levels(self) -> np.ndarray:
        assert self._rows is not None, "`prepare` comes first"
        return self.intercept + self.coef @ self._rows.mean

    def dual_pull(self, features: np.ndarray, y: np.ndarray) -> np.ndarray:
        assert self._rows is not None, "`prepare` comes first"
        return y.T @ (features - self._rows.mean)

    def dual_penalty(self, pull: np.ndarray) -> float:
        scaled = np.divide(pull, self._scale, out=np.zeros_like(pull), where=self._scale > 0)
        return float((scaled**2).sum())

    def offset(self, features: np.ndarray) -> float:
        return 0.0

    def whitened(self, features: np.ndarray) -> np.ndarray:
        """(b, k): what a cost entry is linear in, the intercept's 1 last."""
        assert self._rows is not None, "`prepare` comes first"
        white = (features - self._rows.mean) @ self._white
        if not self.fit_intercept:
            return white
        return np.hstack([white, np.full((len(white), 1), self._level)])

    def curvature(self, parts: Iterable[Curved]) -> np.ndarray:
        n, w = len(self.coef), self._white.shape[1] + self.fit_intercept
        p, q = np.tril_indices(w)
        both = np.zeros((len(p), n, n))  # for every pair of features, summed over samples
        for features, entries, hessians in parts:
            z = self.whitened(features)
            pairs = z[:, p] * z[:, q]
            if entries.shape[1] < n:
                scatter(both, pairs, np.ascontiguousarray(entries), hessians)
            else:
                both += np.tensordot(pairs, hessians, axes=(0, 0))
        total = np.empty((n, w, n, w))
        for k in range(len(p)):
            total[:, p[k], :, q[k]] = total[:, q[k], :, p[k]] = both[k]
        return total.reshape(n * w, n * w)

    def penalty_curvature(self) -> np.ndarray:
        k = self._white.shape[1] + self.fit_intercept
        block = np.zeros((k, k))
        scaled = self._scale[:, None] * self._white
        block[: self._white.shape[1], : self._white.shape[1]] = self.ridge * scaled.T @ scaled
        return np.kron(np.eye(len(self.coef)), block)

    @property
    def linear(self) -> LinearModel:
        """Itself: models that make features have another one inside."""
        return self

    def mapped(self, Z: Any) -> Any:
        """The features of contexts that are checked."""
        return Z

    def weighted_rows(
        self, features: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(N, k) what each cost is linear in, (N,) the weights (B,) of the samples they are of."""
        return features, weights

    def predict_cost(self, Z: Any) -> np.ndarray:
        Z = as_contexts(Z)
        if not hasattr(self, "coef") or Z.shape[1] != self.coef.shape[1]:
            known = self.coef.shape[1] if hasattr(self, "coef") else "no"
            raise ShapeError(f"The model has learned from {known} features; `Z` has {Z.shape[1]}.")
        return self.cost(Z)

    def fit_targets(self, Z: Any, targets: np.ndarray) -> LinearModel:
        """Least-squares fit to targets (B, n)."""
        return fit_to_targets(self, Z, targets)

    def arrays(self) -> Arrays:
        """What was learned, to be kept on disk."""
        assert self._rows is not None, "`prepare` comes first"
        rows = {f"rows.{name}": array for name, array in self._rows.arrays().items()}
        own = {"coef": self.coef, "intercept": self.intercept}
        past = {} if self.past is None else self.past.arrays()
        return own | rows | {"samples": np.array([float(self._samples)])} | past

    def take_arrays(self, arrays: Arrays) -> None:
        """Be the model that `arrays` came from, in predictions and in `partial_fit`."""
        n, d = arrays.get("coef", np.zeros((1, 1))).shape
        self.coef = finite(arrays, "coef", (n, d))
        self.intercept = finite(arrays, "intercept", (n,))
        if "samples" not in arrays:  # coefficients alone
            self._rows = None
            return
        names = {"mean": (d,), "largest": (d,), "factor": (None, d), "count": (1,)}
        rows = {name: finite(arrays, f"rows.{name}", shape) for name, shape in names.items()}
        self._rows = RowFactor(d, center=self.fit_intercept)
        self._rows.take_arrays(rows)
        self._samples = float(finite(arrays, "samples", (1,))[0])
        self.past = Past.of_arrays(arrays, n, d)

    def torch_module(self) -> Any:
        import torch

        linear = torch.nn.Linear(1, 1, bias=self.fit_intercept, dtype=torch.float64)
        linear.weight = torch.nn.Parameter(torch.from_numpy(self.coef))
        linear.penalty_scale = torch.from_numpy(self._scale)
        if self.fit_intercept:
            linear.bias = torch.nn.Parameter(torch.from_numpy(self.intercept))
        linear.out_features, linear.in_features = self.coef.shape
        return linear

    def _allocate(self, d: int, n: int) -> None:
        if not hasattr(self, "coef"):
            self.coef, self.intercept = np.zeros((n, d)), np.zeros(n)
        elif self.coef.shape != (n, d):
            raise ShapeError(
                f"The model has learned {self.coef.shape[0]} costs from {self.coef.shape[1]} "
                f"features; these data have {n} costs and {d} features. Start with a new model."
            )
        self._pull, self._lift = np.zeros((n, d)), np.zeros(n)
        self._forget()

    def _forget(self) -> None:
        """Drop the targets that were taken in."""
        self._pull[:], self._lift[:] = 0.0, 0.0
        self._count = 0.0

    def _factor(self) -> np.ndarray | None:
        """Whiten the features; what they span where that is not everything."""
        rows = self._rows
        assert rows is not None, "`prepare` comes first"
        self._scale = rows.spread if self.standardize else np.ones(len(rows.mean))
        ridge = self.ridge * self._samples / rows.count
        self._root, basis = rows.inverse_root(ridge, self._scale if self.standardize else None)
        self._white = np.sqrt(self._samples) * self._root
        self._level = np.sqrt(self._samples / rows.count)
        return basis

    def _keep_span(self, basis: np.ndarray) -> None:
        """Drop what the data cannot see from coefficients learned earlier: the least norm again."""
        assert self._rows is not None
        kept = (self.coef @ basis) @ basis.T
        self.intercept += (self.coef - kept) @ self._rows.mean
        self.coef[:] = kept


def fit_to_targets(model: Any, Z: Any, targets: Any) -> Any:
    targets = np.asarray(targets, dtype=float)
    check_length(len(Z), len(targets))
    features = model.prepare(Z, targets.shape[1])
    for _ in range(2):  # the second step takes away what rounding has left of the first
        costs = model.cost(features)
        model.add(features, costs, targets)
        model.refit()
    return model
