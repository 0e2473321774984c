"""What the mathematics promises for the user's own data, next to what happened.

The loss is h(theta) = 1/(2B) sum_i dist^2(theta z_i, C_i) for a linear model with contexts Z
(B, d), or with features of each entry (B, n, p) and shared coefficients.

- h is convex and L-smooth, L = lambda_max(Z^T Z / B) <= max |z|^2: its gradient is the mean of
  (q_i - P_i(q_i)) z_i^T, and q -> q - P(q) does not expand distances.
- The gradient is R^T Z / B with the residuals R (B, n), and h = |R|^2 / (2B). So
  1/2 |grad|^2 >= mu h with mu = lambda_min(Z Z^T / B): the Polyak-Lojasiewicz inequality, as soon
  as the contexts of the samples are linearly independent (never with more samples than features).
- Whatever the data and whatever model u, gradient descent with step 1/L has
  h_T - h(u) <= L |theta_0 - u|^2 / (2T). POCS is gradient descent with step 1 in the metric
  Z^T Z / B, where h is 1-smooth, so h_T - h(u) <= D^2 / (2T), D^2 the mean squared distance between
  the costs predicted at the start and by u. The sets are polyhedra, so POCS also converges
  linearly (Bauschke and Borwein, 1996), at a rate that depends on the angles between them.

Letters: B samples, n cost entries, d features.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from ._arrays import to_float64
from .errors import InputError, ShapeError
from .optimality import EntryState, OptimalitySet
from .projection import project

METHODS = ("gd", "pocs")


def smoothness(Z: Any, *, intercept: bool = False) -> float:
    """L = lambda_max(Z^T Z / B), the Lipschitz constant of the gradient of h; at most max |z|^2.

    `intercept=True` counts a feature that is 1 for every sample.
    """
    return float(_spectrum(Z, intercept).largest)


def pl_constant(Z: Any, *, intercept: bool = False) -> float:
    """mu = lambda_min(Z Z^T / B): 1/2 |grad h|^2 >= mu h for every model, whatever the decisions.

    0 if the contexts are linearly dependent, in particular with more samples than features (or,
    for shared coefficients, more entries in all than coefficients). Then the contexts alone
    promise no constant: the sets decide, and two of them that meet at a sharp angle can make it
    as small as they like.
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
    """
    return float(_spectrum(Z, intercept).smallest_of_features)


def contraction(Z: Any, *, method: str = "gd", intercept: bool = False) -> float:
    """The factor by which every step is sure to shrink h, where an interpolating model exists.

    Gradient descent with step 1/L: 1 - mu/L. POCS: 0 if mu > 0, since the fit meets every target
    and one step does it. 1 where mu = 0: h still never rises, and falls as `expected_h` says.
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
    """(steps + 1,): the most that h less its minimum can be after 0, 1, ... steps, h0 at first.

    The smaller of h0 contraction^t, and L travel^2 / (2t) for gradient descent or
    travel^2 / (2t) for POCS. `travel` is the distance from the start to a minimiser: between
    parameters for gradient descent, the root mean square between predicted costs for POCS. The
    model at the end of a fit will do for it, with its h in place of the minimum. Where no model
    interpolates, only the second is promised.
    """
    factor = contraction(Z, method=method, intercept=intercept)
    L = 1.0 if method == "pocs" else smoothness(Z, intercept=intercept)
    t = np.arange(steps + 1)
    geometric = h0 * factor ** t.astype(float)
    with np.errstate(divide="ignore"):
        sublinear = np.where(t > 0, L * travel**2 / (2.0 * np.maximum(t, 1)), np.inf)
    return np.minimum(geometric, sublinear)


# --- the smallest cost that explains a decision --------------------------------------------------


def delta(sets: OptimalitySet) -> np.ndarray:
    """(B,): the smallest norm of a cost that explains each decision, exactly: |P(0)|.

    0 only if the margin is 0 or the decision is at no bound. NaN where the projection is not
    certain; none has been seen.
    """
    p = project(np.zeros((len(sets), sets.problem.n_variables)), sets)
    return np.where(p.solved, p.distance, np.nan)


class LemmaStatus(IntEnum):
    """Whether a decision gives the lemma ground to stand on."""

    HOLDS = 0
    DEGENERATE = 1
    NOT_A_VERTEX = 2

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    LemmaStatus.HOLDS: "The decision is a nondegenerate vertex: its basis is unique.",
    LemmaStatus.DEGENERATE: "The decision is degenerate: fewer entries are free than rows bind, "
    "so several bases, and many multipliers, go with one cost. `delta` is exact all the same.",
    LemmaStatus.NOT_A_VERTEX: "The decision is no vertex: the columns of its free entries depend "
    "on one another, so there is no basis. `delta` is exact all the same.",
}


@dataclass(frozen=True, eq=False)
class LemmaBound:
    """Lower bounds on `delta` by the margin through the basis."""

    value: np.ndarray
    """(B,) NaN where the lemma has no ground."""
    status: np.ndarray
    """(B,) int8 codes of LemmaStatus; `LemmaStatus(code).sentence` gives the reason."""

    @property
    def reason(self) -> np.ndarray:
        """(B,) the sentences."""
        return np.array([LemmaStatus(int(code)).sentence for code in self.status], dtype=object)


def delta_lemma(sets: OptimalitySet) -> LemmaBound:
    """A lower bound on `delta` from the basis of each decision, without any projection.

    Standard form first: a nondegenerate vertex of A x = b, x >= 0 has basis B (columns of the
    positive entries) and rest N. s_B = 0 in c = A^T v + s gives v = B^-T c_B, hence

        s_N = c_N - N^T B^-T c_B = M c,      M = [-(B^-1 N)^T, I],

    and the margin asks s_N >= margin in each of its k entries. From s_j = M_j c <= |M_j| |c|
    and from sqrt(k) margin <= |M c| <= sigma_max(M) |c|,

        |c| >= margin max( max_j 1/|M_j|,  sqrt(k)/sigma_max(M) ).

    In general form an entry at its upper bound has its row of M negated, a fixed entry has none,
    and a binding row adds a row of its own: its slack is not in the basis, costs nothing, and its
    reduced cost mu_i is the i-th entry of -B^-T c_B. Dependent equality rows (a flow problem has
    one) are left out of the count.

    All rests on the basis being unique. A path, a matching or an assignment is nearly always
    degenerate; `status` says so and the value is NaN. One dense decomposition for each instance.
    """
    ranks = _equality_ranks(sets)
    results = [_lemma_of(sets, b, int(ranks[b])) for b in range(len(sets))]
    return LemmaBound(
        np.array([value for value, _ in results], dtype=np.float64),
        np.array([status for _, status in results], dtype=np.int8),
    )


def gamma_bound(
    h: Any, sets: OptimalitySet, *, deltas: np.ndarray | None = None, diameter: float | None = None
) -> Any:
    """sqrt(2 n h) / delta: an upper bound on Gamma for decisions in [0, 1].

    x(c) is optimal under c, so with p = P(c)

        Gamma = <p, x(c) - x*>/|p| <= <p - c, x(c) - x*>/|p| <= dist |x(c) - x*| / delta,

    and |x(c) - x*| <= sqrt(n) in [0, 1]^n. `h` as one number, the mean of 1/2 dist^2, bounds the
    mean of Gamma with the smallest delta; as (B,) numbers 1/2 dist_i^2 it bounds each. `deltas`
    are those of `delta(sets)` if they are at hand. Observed decisions outside [0, 1] are refused
    unless `diameter`, the largest |x - x'| between feasible decisions, takes the place of sqrt(n);
    that the predicted ones stay inside too is for the problem to see to.
    """
    width = np.sqrt(sets.problem.n_variables) if diameter is None else float(diameter)
    if diameter is None:
        _refuse_outside_unit_box(sets)
    value = to_float64(h, "h")
    smallest = delta(sets) if deltas is None else np.asarray(deltas)
    if value.ndim == 0:
        smallest = smallest.min(initial=np.inf)
    elif value.shape != smallest.shape:
        raise ShapeError(
            f"`h` must be one number or ({len(sets)},), one for each set; got {value.shape}."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = width * np.sqrt(2.0 * value) / smallest
    bound = np.where(value == 0, 0.0, bound)
    return float(bound) if value.ndim == 0 else bound


# --- all of it, next to what happened ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Guarantees:
    """What is promised for a data set, and what a fit did; `print` it for the table."""

    shape: tuple[int, ...]
    """Of the contexts."""
    method: str
    smoothness: float
    pl_constant: float
    stated_pl_constant: float
    contraction: float
    """Promised for each step."""
    deltas: np.ndarray
    """(B,)"""
    lemma: LemmaBound
    gamma_bound: float
    """On the mean of Gamma at the end; NaN if decisions leave [0, 1]."""
    h: np.ndarray
    """By iteration, less its minimum where that is known not to be 0."""
    gamma: float | None = None
    """The mean of Gamma at the end, if measured."""

    @classmethod
    def measure(
        cls,
        Z: Any,
        sets: OptimalitySet,
        history: Any,
        *,
        method: str = "pocs",
        intercept: bool = False,
        h_min: float = 0.0,
        gamma: Any = None,
    ) -> Guarantees:
        """From contexts, sets, and the values of h by iteration (an array, or a History).

        `h_min` is the least h there can be, 0 if some model interpolates. `gamma` are values of
        `metrics.suboptimality` at the end.
        """
        values = _history(history)
        deltas = delta(sets)
        inside = _outside_unit_box(sets) is None
        return cls(
            shape=_contexts(Z, False).shape,
            method=method,
            smoothness=smoothness(Z, intercept=intercept),
            pl_constant=pl_constant(Z, intercept=intercept),
            stated_pl_constant=stated_pl_constant(Z, intercept=intercept),
            contraction=contraction(Z, method=method, intercept=intercept),
            deltas=deltas,
            lemma=delta_lemma(sets),
            gamma_bound=gamma_bound(values[-1], sets, deltas=deltas) if inside else np.nan,
            h=values - h_min,
            gamma=None if gamma is None else float(to_float64(gamma, "gamma").mean()),
        )

    @property
    def observed_contraction(self) -> float:
        """The mean factor of a step: (h_T / h_0)^(1/T), up to where h is lost in rounding."""
        alive = np.flatnonzero(self.h > 1e-20 * max(self.h[0], 0.0))
        last = int(alive[-1]) if alive.size else 0
        return float((self.h[last] / self.h[0]) ** (1.0 / last)) if last else 0.0

    @property
    def rises(self) -> int:
        """Steps in which h rose by more than rounding."""
        return int((np.diff(self.h) > 1e-12 * np.abs(self.h[:-1])).sum())

    def __str__(self) -> str:
        head = (
            f"contexts {self.shape}: L = {self.smoothness:.4g}, mu = {self.pl_constant:.4g} "
            f"(the paper's: {self.stated_pl_constant:.4g}); method {self.method}"
        )
        rows = [("theory says", "happened"), *self._rows()]
        width = max(len(left) for left, _ in rows)
        lines = [f"{left:<{width}} | {right}" for left, right in rows]
        rule = "-" * (width + 1) + "+" + "-" * max(len(right) + 1 for _, right in rows)
        return "\n".join([head, lines[0], rule, *lines[1:]])

    def _rows(self) -> list[tuple[str, str]]:
        steps = len(self.h) - 1
        rate = f"every step leaves at most {self.contraction:.4g} of h"
        if self.contraction == 1:
            rate = "contexts alone give h no rate but 1/steps"
        holds = self.lemma.status == LemmaStatus.HOLDS
        lemma = "no lemma on delta: decisions degenerate or no vertices"
        if holds.any():
            least = np.nanmin(self.lemma.value)
            lemma = f"delta >= {least:.4g} (lemma, at {holds.sum()} of {len(holds)} decisions)"
        gamma = f"mean Gamma <= {self.gamma_bound:.4g}"
        if np.isnan(self.gamma_bound):
            gamma = "no bound on Gamma: decisions leave [0, 1]"
        return [
            ("h never rises", f"it rose in {self.rises} of {steps} steps"),
            (rate, f"{self.observed_contraction:.4g} on average"),
            (lemma, f"delta = {self.deltas.min():.4g}, exactly"),
            (gamma, "not measured" if self.gamma is None else f"{self.gamma:.4g}"),
        ]


# --- private -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Spectrum:
    """Eigenvalues of Z^T Z / B (features) and Z Z^T / B (samples)."""

    largest: float
    smallest_of_features: float
    smallest_of_samples: float


def _spectrum(Z: Any, intercept: bool) -> _Spectrum:
    array = _contexts(Z, intercept)
    design = array.reshape(-1, array.shape[-1])
    rows, columns = design.shape
    gram = design.T @ design if columns <= rows else design @ design.T
    values = np.linalg.eigvalsh(gram / len(array))
    # An eigenvalue this far below the largest is rounding of 0.
    values = np.where(values <= 1e-13 * values[-1], 0.0, values)
    return _Spectrum(
        float(values[-1]),
        float(values[0]) if columns <= rows else 0.0,
        float(values[0]) if rows <= columns else 0.0,
    )


def _contexts(Z: Any, intercept: bool) -> np.ndarray:
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


def _history(history: Any) -> np.ndarray:
    values = to_float64(history["h"] if hasattr(history, "rows") else history, "history")
    if values.ndim != 1 or len(values) == 0:
        raise ShapeError(
            "`history` must be the values of h by iteration, at least one, or a History with a "
            f"column h; got shape {values.shape}."
        )
    return values


def _outside_unit_box(sets: OptimalitySet) -> tuple[int, int] | None:
    """The first entry of a decision outside [0, 1] by more than the sets' tolerance."""
    X, tol = sets.decisions, 2.0 * sets.tol
    outside = np.argwhere((X < -tol) | (X > 1.0 + tol))
    return (int(outside[0][0]), int(outside[0][1])) if len(outside) else None


def _refuse_outside_unit_box(sets: OptimalitySet) -> None:
    place = _outside_unit_box(sets)
    if place is not None:
        raise InputError(
            f"The bound sqrt(2 n h)/delta is for decisions in [0, 1]; decision {place[0]} has "
            f"{sets.decisions[place]:.6g} in entry {place[1]}. Give `diameter`, the largest "
            "distance between two feasible decisions, instead."
        )


def _equality_ranks(sets: OptimalitySet) -> np.ndarray:
    """(B,): how many equality rows are independent."""
    rows = sets.problem.eq_rows
    if rows.shape[0] == 0:
        return np.zeros(len(sets), int)
    count = len(sets) if rows.per_instance else 1
    ranks = [np.linalg.matrix_rank(rows.matrix(i).toarray()) for i in range(count)]
    return np.broadcast_to(np.array(ranks, int), (len(sets),)) if count else np.zeros(0, int)


def _lemma_of(sets: OptimalitySet, b: int, equality_rank: int) -> tuple[float, LemmaStatus]:
    """The bound of one decision, or the reason why there is none."""
    one = sets.problem[np.array([b])]
    state, active = sets.entry_state[b], sets.row_active[b]
    E = np.vstack([one.eq_rows.matrix(0).toarray(), one.ub_rows.matrix(0).toarray()[active]])
    free = state == EntryState.FREE
    basis = E[:, free]
    if np.linalg.matrix_rank(basis) < free.sum() if basis.size else free.any():
        return np.nan, LemmaStatus.NOT_A_VERTEX
    if free.sum() < equality_rank + active.sum():
        return np.nan, LemmaStatus.DEGENERATE
    M = _reduced_cost_matrix(E, free, state, int(active.sum()))
    if len(M) == 0:
        return 0.0, LemmaStatus.HOLDS
    lengths = np.linalg.norm(M, axis=1)
    largest = np.linalg.norm(M, 2)
    return sets.margins[b] * max(1.0 / lengths.min(), np.sqrt(len(M)) / largest), LemmaStatus.HOLDS


def _reduced_cost_matrix(
    E: np.ndarray, free: np.ndarray, state: np.ndarray, n_active: int
) -> np.ndarray:
    """(k, n): M with M c the signed reduced costs of entries at a bound and of binding rows."""
    multipliers = np.zeros((len(E), len(free)))  # c -> y with E_F^T y = c_F
    multipliers[:, free] = np.linalg.pinv(E[:, free].T) if free.any() else 0.0
    sign = np.select([state == EntryState.AT_LOWER, state == EntryState.AT_UPPER], [1.0, -1.0], 0.0)
    reduced = sign[:, None] * (np.eye(len(free)) - E.T @ multipliers)
    # y = (v, -mu): the multipliers of binding rows, which stand last in E.
    return np.vstack([reduced[sign != 0], -multipliers[len(E) - n_active :]])
