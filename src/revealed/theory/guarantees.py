"""What is promised for a data set next to what a fit did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arrays import to_float64
from .._common.words import shapes
from ..errors import ShapeError
from ..optimality.sets import OptimalitySet
from .rates import checked_contexts, contraction, pl_constant, smoothness, stated_pl_constant
from .shortest import LemmaBound, LemmaStatus, delta, delta_lemma, gamma_bound, outside_unit_box


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
        """What is promised for a data set, from its contexts and sets, and what a fit did.

        Parameters
        ----------
        Z : (B, d) or (B, n, p) array
            Contexts.
        sets : OptimalitySet
            Of plain costs of a LinearProgram.
        history : array or History
            Values of h by iteration.
        method : "pocs" or "gd"
        intercept : bool
            Counts a feature that is 1 for every sample.
        h_min : float
            The least h there can be, 0 if some model interpolates.
        gamma : (B,) array, optional
            Values of `metrics.suboptimality` at the end.

        Returns
        -------
        Guarantees
        """
        values = _history(history)
        deltas = delta(sets)
        inside = outside_unit_box(sets) is None
        shape = checked_contexts(Z).shape
        if shape[0] != len(sets):
            raise ShapeError(
                f"`Z` must have one row for each of the {len(sets)} sets; got {shape[0]}."
            )
        return cls(
            shape=shape,
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

    def __repr__(self) -> str:
        return shapes(self)

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


def _history(history: Any) -> np.ndarray:
    values = to_float64(history["h"] if hasattr(history, "rows") else history, "history")
    if values.ndim != 1 or len(values) == 0:
        raise ShapeError(
            "`history` must be the values of h by iteration, at least one, or a History with a "
            f"column h; got shape {values.shape}."
        )
    return values
