"""What a stream of data has taught a model: a quadratic function of its weights, and the last few
samples.

A sample that was looked at is, from then on, a quadratic function of its cost:

    l_i(c) = <g_i, c - c_i> + t_i/2 |c - c_i|^2

with c_i the cost that the model gave, g_i the gradient of the loss there, t_i its mean curvature.
All cost entries share t_i, so the sum over samples has one small matrix for its curvature. Letters:
M recent samples, n cost entries, r outputs of the linear model, d features, q = d and 1 for the
intercept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..errors import InputError
from ..io.folder import finite, tensor
from ..optimality.active_set import ActiveSet
from ..optimality.kinds import PlainCosts
from ..optimality.sets import OptimalitySet

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Recent:
    """Samples that are kept and looked at again: where their decisions stand, and what they were
    when they were last looked at."""

    Z: np.ndarray
    """(M, d) or (M, n, p) contexts."""
    states: np.ndarray
    """(M, n) codes of EntryState."""
    active: np.ndarray
    """(M, m_ub) whether each inequality binds."""
    margins: np.ndarray
    weights: np.ndarray
    """(M,) what each counts now."""
    costs: np.ndarray
    """(M, n) c_i"""
    gradients: np.ndarray
    """(M, n) g_i"""
    curvatures: np.ndarray
    """(M,) t_i"""

    @classmethod
    def of(cls, Z: np.ndarray, sets: OptimalitySet, weights: np.ndarray) -> Recent:
        """Samples that nobody has looked at."""
        states, none = sets.entry_state, np.zeros(sets.entry_state.shape)
        return cls(Z, states, sets.row_active, sets.margins, weights, none, none, np.zeros(len(Z)))

    def __len__(self) -> int:
        return len(self.margins)

    def take(self, index: Any) -> Recent:
        """The chosen samples."""
        return Recent(*(getattr(self, name)[index] for name in _NAMES))

    def then(self, other: Recent) -> Recent:
        """These samples and the others after them."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in _NAMES)
        return Recent(*(np.concatenate(pair) for pair in pairs))

    def seen(self, index: np.ndarray, **parts: np.ndarray) -> Recent:
        """Some of the samples were looked at again."""
        new = {name: getattr(self, name).copy() for name in parts}
        for name, values in parts.items():
            new[name][index] = values
        return replace(self, **new)

    def fits(self, Z: np.ndarray, sets: OptimalitySet) -> bool:
        """Whether samples of other data may stand beside these."""
        return self.Z.shape[1:] == Z.shape[1:] and self.active.shape[1] == sets.row_active.shape[1]

    def sets(self, like: OptimalitySet) -> OptimalitySet:
        """Their sets, of the problem that the sets `like` are of: limits do not matter once it is
        known which of them are active."""
        size = len(self)
        nowhere = np.full(size, np.inf)
        active = ActiveSet(self.states.astype(np.int8), self.active, np.zeros(size), nowhere)
        problem: Any = like.problem[np.zeros(size, np.int64)]
        used = np.ones(self.active.shape[1], bool)
        kind = PlainCosts(problem, active, used, like.n_parameters)
        return like.replaced(
            problem=problem,
            decisions=np.broadcast_to(np.nan, (size, problem.n_variables)),  # not kept
            margins=self.margins,
            repaired=np.zeros(size),
            weights=self.weights,
            _kind=kind,
        )


_NAMES = ("Z", "states", "active", "margins", "weights", "costs", "gradients", "curvatures")
_WHOLE = ("states", "active")


@dataclass
class Past:
    """The sum of all l_i as a function of the weights of a linear model, at its present weights."""

    center: np.ndarray
    """(d,) what features are counted from."""
    curvature: np.ndarray
    """(q, q) of every output."""
    slope: np.ndarray
    """(r, q)"""
    weight: float
    """What all samples count together."""
    turn: int = 0
    """Looks so far, from which the draws of the next one follow."""
    prepared: int = 0
    """Samples that features were made from, for models that make them from data."""
    looked: int = 0
    """Samples so far."""
    matrix: int | None = None
    """The fingerprint of the constraints of recent samples."""
    recent: Recent | None = None

    def recenter(self, center: np.ndarray) -> None:
        """Count features from elsewhere."""
        by = self.center - center
        self.curvature, self.slope = recentered(self.curvature, by), shifted(self.slope, by)
        self.center = center

    def fade(self, share: float) -> None:
        """Let everything so far count by the share `share` only."""
        if share == 1.0:
            return
        self.curvature, self.slope = share * self.curvature, share * self.slope
        self.weight *= share
        if self.recent is not None:
            self.recent = replace(self.recent, weights=share * self.recent.weights)

    def move(self, step: np.ndarray) -> None:
        """The weights have changed by `step` (r, q)."""
        self.slope = self.slope + step @ self.curvature

    def arrays(self) -> Arrays:
        """All of it, to be kept on disk."""
        own = {name: getattr(self, name) for name in ("center", "curvature", "slope")}
        own["weight"] = np.array([self.weight])
        matrix = -1 if self.matrix is None else self.matrix
        own["counts"] = np.array([self.turn, self.prepared, self.looked, matrix], np.int64)
        if self.recent is not None:
            for name in _NAMES:
                array = getattr(self.recent, name)
                own[f"recent.{name}"] = array.astype(np.int64) if name in _WHOLE else array
        return {f"past.{name}": array for name, array in own.items()}

    @classmethod
    def of_arrays(cls, arrays: Arrays, r: int, d: int) -> Self | None:
        """What `arrays` came from; None where there was none."""
        if "past.curvature" not in arrays:
            return None
        q = arrays["past.curvature"].shape[0]
        counts = tensor(arrays, "past.counts", (4,), "i").tolist()
        result = cls(
            finite(arrays, "past.center", (d,)),
            finite(arrays, "past.curvature", (q, q)),
            finite(arrays, "past.slope", (r, q)),
            float(finite(arrays, "past.weight", (1,))[0]),
            turn=counts[0],
            prepared=counts[1],
            looked=counts[2],
            matrix=None if counts[3] < 0 else counts[3],
        )
        if q not in (d, d + 1):
            raise InputError("What a stream has taught the model is not of its features.")
        if "past.recent.Z" in arrays:
            result.recent = _recent(arrays)
        return result


def shifted(lines: np.ndarray, by: np.ndarray) -> np.ndarray:
    """(r, q) what belongs to features and to an intercept, of features larger `by` (d,)."""
    if lines.shape[1] == len(by):  # without an intercept features are not moved
        return lines
    return np.column_stack([lines[:, :-1] + np.outer(lines[:, -1], by), lines[:, -1]])


def recentered(curvature: np.ndarray, by: np.ndarray) -> np.ndarray:
    """(q, q) the curvature in features that are larger `by` (d,)."""
    return shifted(shifted(curvature, by).T, by).T


def _recent(arrays: Arrays) -> Recent:
    M = len(arrays["past.recent.Z"])
    parts = []
    for name in _NAMES:
        shape = (M, *(None for _ in arrays[f"past.recent.{name}"].shape[1:]))
        if name in _WHOLE:
            parts.append(tensor(arrays, f"past.recent.{name}", shape, "i"))
        else:
            parts.append(finite(arrays, f"past.recent.{name}", shape))
    states, active = parts[1].astype(np.int8), parts[2].astype(bool)
    return Recent(parts[0], states, active, *parts[3:])
