"""Learned limits: linear functions of the context, their intervals, and what is known of them.

Letters: B contexts, d features, K unknown limits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.special import stdtrit

from ..._common.checks import check_number
from ...errors import InputError
from ...problems.linear import LinearProgram
from ...problems.unknown import UnknownLimits
from .censored import CensoredFit

SIDES = ("both", "low", "high")


@dataclass(frozen=True, eq=False)
class LimitIntervals:
    """Between which numbers each limit lies at each context."""

    low: np.ndarray
    """(B, K), -inf where nothing is known from this side."""
    high: np.ndarray
    """(B, K), inf where nothing is known from this side."""
    level: float
    """Confidence."""
    identified: np.ndarray
    """(K,) limits that were active in some sample. The others have one side only: no decision
    stands at them, so all that is known is that none goes beyond."""


@dataclass(frozen=True, eq=False)
class LimitModel:
    """Limits b_k = <coef_k, z> + intercept_k; `predict` says what they are in new contexts."""

    unknown: UnknownLimits
    """Which limits of the problem these are."""
    coef: np.ndarray
    """(K, d); NaN for a limit that was never active."""
    intercept: np.ndarray
    """(K,); infinite for a limit that was never active."""
    noise: np.ndarray
    """(K,) standard deviation of the limits themselves around what the context says."""
    active: np.ndarray
    """(K,) in how many samples each limit was active."""
    samples: int
    """How many were learned from."""
    mean: np.ndarray
    """(d,) of the contexts learned from."""
    scale: np.ndarray
    """(d,) their standard deviations."""
    covariance: np.ndarray
    """(K, d + 1, d + 1) of intercept and coefficients of standardized features."""
    freedom: np.ndarray
    """(K,) degrees of freedom of the t distribution."""
    seen: np.ndarray
    """(B, d) contexts learned from; empty where every limit was active in some sample."""
    values: np.ndarray
    """(B, K) where decisions stood there: the bounds of limits that were never active."""

    @classmethod
    def of(
        cls,
        unknown: UnknownLimits,
        fits: list[CensoredFit | None],
        active: np.ndarray,
        units: tuple[np.ndarray, np.ndarray],
        seen: np.ndarray,
        values: np.ndarray,
        covariances: list[np.ndarray | None],
    ) -> LimitModel:
        """From fits in standardized features, `units` being their means and scales."""
        (mean, scale), K, d = units, len(fits), seen.shape[1]
        coef, covariance = np.full((K, d), np.nan), np.full((K, d + 1, d + 1), np.nan)
        intercept, noise = unknown.sense * np.inf, np.full(K, np.nan)
        freedom = np.zeros(K)
        for k, fit in enumerate(fits):
            if fit is None:
                continue
            theta = unknown.sense[k] * fit.theta
            coef[k] = theta[1:] / scale
            intercept[k] = theta[0] - coef[k] @ mean
            noise[k] = 0.0 if fit.exact else fit.scale
            covariance[k], freedom[k] = covariances[k], fit.freedom
        keep = slice(None) if any(fit is None for fit in fits) else slice(0)
        return cls(
            unknown,
            coef,
            intercept,
            noise,
            active,
            len(seen),
            mean,
            scale,
            covariance,
            freedom,
            seen[keep],
            values[keep],
        )

    @property
    def identified(self) -> np.ndarray:
        """(K,) limits that were active in some sample."""
        return np.isfinite(self.intercept)

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """(B, K) limits; infinite where one was never active, for then no number is known.

        Parameters
        ----------
        Z : (B, d) array
            Contexts.

        Returns
        -------
        (B, K) array
        """
        found = np.tile(self.intercept, (len(Z), 1))
        known = self.identified
        found[:, known] += Z @ self.coef[known].T
        return found

    def closed(self, problem: LinearProgram, Z: np.ndarray) -> tuple[LinearProgram, np.ndarray]:
        """The problem with the limits of contexts Z, and (B,) where they leave a variable no value
        at all; there the unknown limits are left out.

        Parameters
        ----------
        problem : LinearProgram
            The one learned with.
        Z : (B, d) array
            Contexts.

        Returns
        -------
        LinearProgram
            With B instances.
        (B,) bool array
            Where the limits leave a variable no value.
        """
        limits = self.predict(Z)
        crossed = self.unknown.crossed(problem, limits)
        limits[crossed] = np.inf * self.unknown.sense
        return self.unknown.closed(problem, limits), crossed

    def intervals(self, Z: np.ndarray, level: float = 0.95, side: str = "both") -> LimitIntervals:
        """Confidence intervals of the limits in contexts Z, without the limits' own noise.

        Parameters
        ----------
        Z : (B, d) array
        level : float
            Confidence. Two-sided, or for `side` "low" or "high" with one finite end.
        side : "both", "low" or "high"

        Returns
        -------
        LimitIntervals
            A limit that was never active has one finite end whatever the side: a limit linear in
            the context that all decisions obeyed cannot lie on the other side of it. That end is no
            matter of confidence, and infinite in contexts outside of those learned from.
        """
        check_number(level, "level")
        if not 0 < level < 1 or side not in SIDES:
            raise InputError(
                "`level` must be between 0 and 1 and `side` one of both, low, high; got "
                f"{level!r} and {side!r}."
            )
        middle, shape = self.predict(Z), (len(Z), len(self.unknown))
        low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        F = np.column_stack([np.ones(len(Z)), (Z - self.mean) / self.scale])
        for k, known in enumerate(self.identified):
            if known:
                half = self._half_width(F, k, level if side == "both" else 2.0 * level - 1.0)
                if side != "high":
                    low[:, k] = middle[:, k] - half
                if side != "low":
                    high[:, k] = middle[:, k] + half
            elif self.unknown.sense[k] > 0:
                low[:, k] = self._envelope(F, k)
            else:
                high[:, k] = -self._envelope(F, k)
        return LimitIntervals(low, high, level, self.identified)

    def _half_width(self, F: np.ndarray, k: int, level: float) -> np.ndarray:
        variance = np.einsum("bi,ij,bj->b", F, self.covariance[k], F)
        quantile = stdtrit(self.freedom[k], 0.5 + 0.5 * level)
        return quantile * np.sqrt(np.maximum(variance, 0.0))

    def _envelope(self, F: np.ndarray, k: int) -> np.ndarray:
        """(B,) the least that a linear limit which is at least every value seen can be there; by
        duality a linear program over the coefficients."""
        own = np.column_stack([np.ones(len(self.seen)), (self.seen - self.mean) / self.scale])
        r, result = self.unknown.sense[k] * self.values[:, k], np.full(len(F), -np.inf)
        for b, f in enumerate(F):
            found = linprog(f, A_ub=-own, b_ub=-r, bounds=(None, None), method="highs")
            if found.status == 0:
                result[b] = found.fun
        return result

    # --- on disk ---------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """What `from_arrays` needs besides which limits they are of."""
        return {name: np.asarray(getattr(self, name), np.float64) for name in _ARRAYS}

    @classmethod
    def from_arrays(
        cls, unknown: UnknownLimits, arrays: dict[str, np.ndarray], samples: int
    ) -> LimitModel:
        """The model that had these `arrays`; refused where they do not fit together."""
        K, d = len(unknown), len(np.atleast_1d(arrays["mean"]))
        shapes = {"coef": (K, d), "covariance": (K, d + 1, d + 1), "mean": (d,), "scale": (d,)}
        shapes |= {name: (K,) for name in ("intercept", "noise", "active", "freedom")}
        shapes |= {"seen": (len(arrays["values"]), d), "values": (len(arrays["values"]), K)}
        bad = [name for name, shape in shapes.items() if arrays[name].shape != shape]
        if bad:
            raise InputError(f"The stored limits do not fit together: {bad[0]} has another shape.")
        return cls(unknown=unknown, samples=samples, **{name: arrays[name] for name in _ARRAYS})


_ARRAYS = (
    "coef",
    "intercept",
    "noise",
    "active",
    "mean",
    "scale",
    "covariance",
    "freedom",
    "seen",
    "values",
)


@dataclass(frozen=True)
class LimitCertificate:
    """What is known of learned limits; print it to read it."""

    names: list[str]
    """Of the limits, in words."""
    active: list[int]
    """In how many samples each limit was active."""
    noise: list[float]
    """Of each limit, in its units; NaN for one that was never active."""
    samples: int
    """How many were learned from."""
    sure: int
    """Samples whose active limits the vertex test tells."""
    outliers: list[int]
    """Samples that contradict the others."""
    starts: int
    """Starts that were tried; 1 where nothing had to be guessed."""
    agreeing: int
    """Starts that ended as well as the best, to one part in a thousand."""
    rounds: int
    """Of labels, limits and costs in turn."""
    objective: list[float]
    """Of labels, limits and costs together, round by round."""
    warnings: list[str]
    """What else should be known, in sentences."""

    def __str__(self) -> str:
        lines = [self._labels()]
        for name, count, noise in zip(self.names, self.active, self.noise, strict=True):
            if not count:
                lines.append(
                    f"{_capital(name)} was never active: decisions tell on which side of them it "
                    "lies and nothing else, so it has a one-sided interval and no value."
                )
            else:
                varies = f"around what the context says it varies by {noise:.2g}"
                lines.append(
                    f"{_capital(name)} was active in {count:,} of {self.samples:,} decisions; "
                    f"{varies if noise else 'it follows the context exactly'}."
                )
        if self.outliers:
            lines.append(
                f"{len(self.outliers):,} decisions contradict the limits that the others tell "
                f"(first: row {self.outliers[0]})."
            )
        return " ".join([*lines, *self.warnings])

    def _labels(self) -> str:
        if self.sure == self.samples:
            return (
                f"Which limits are active follows from the vertices for all {self.samples:,} "
                "decisions."
            )
        return (
            f"Which limits are active follows from the vertices for {self.sure:,} of "
            f"{self.samples:,} decisions; for the others it was learned along with limits and "
            f"costs ({self.rounds} rounds, none of which raised the objective). That is a local "
            f"optimum: {self.agreeing} of {self.starts} starts ended there."
        )


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
