"""The online problem of Sakaue, Tsuchiya, Bao and Oki (2025): ours, and our versions of its rivals.

The agent's objective c* is uniform on the unit sphere. In each round the choice is between a point
x, uniform on the sphere, and -x; the agent takes the better one under c*. The learner predicts
first. Its regret in the round is <c*, taken - predicted>.

Rivals see the points as vectors. For ours the choice is a linear program of one variable t in
[-1, 1] with the cost -<w, x> t, so x is the context and w what is learned; the decision is 1 or -1.
A cost explains it if it is at least the margin on the right side.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

import revealed as rv
from revealed.fit import LinearModel

CLOUD = 10_000
"""Points for each dimension that cutting planes begin with."""


class Learner(Protocol):
    """A method that predicts the objective."""

    def guess(self) -> np.ndarray:
        """(n,) the objective as known so far."""
        ...

    def learn(self, taken: np.ndarray, predicted: np.ndarray) -> None:
        """See what the agent took, where this learner would have taken `predicted`."""
        ...


class GradientDescent:
    """Online gradient descent on the suboptimality loss, in the unit ball (Bärmann et al. 2017)."""

    def __init__(self, n: int, rounds: int, rng: np.random.Generator) -> None:
        self.c, self.step = np.zeros(n), 4.0 / np.sqrt(rounds)  # two diameters of 2

    def guess(self) -> np.ndarray:
        return self.c

    def learn(self, taken: np.ndarray, predicted: np.ndarray) -> None:
        c = self.c + self.step * (taken - predicted)
        self.c = c / max(1.0, float(np.linalg.norm(c)))


class NewtonStep:
    """The online Newton step on their exp-concave loss, with the constants of the paper."""

    def __init__(self, n: int, rounds: int, rng: np.random.Generator) -> None:
        self.c, self.rate = np.zeros(n), 1.0 / 20.0  # 1 / (5 x diameter x diameter)
        self.gamma = 1.0 / (1.0 + 8.0 * self.rate) ** 2
        self.A = n / (4.0 * self.gamma**2) * np.eye(n)

    def guess(self) -> np.ndarray:
        return self.c

    def learn(self, taken: np.ndarray, predicted: np.ndarray) -> None:
        slope = self.rate * (predicted - taken)
        if slope.any():
            self.A += np.outer(slope, slope)
            self.c = nearest_in_ball(self.A, self.A @ self.c - slope / self.gamma)


class CuttingPlanes:
    """The centroid of what is left of the ball, as the mean of a cloud of points: every mistake
    cuts away those on the wrong side of it (after Gollapudi et al. 2021)."""

    def __init__(self, n: int, rounds: int, rng: np.random.Generator) -> None:
        points = rng.standard_normal((n * CLOUD, n))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        self.points = points * rng.random((len(points), 1)) ** (1.0 / n)
        self.c, self.rng = self.points.mean(axis=0), rng

    def guess(self) -> np.ndarray:
        return self.c

    def learn(self, taken: np.ndarray, predicted: np.ndarray) -> None:
        normal = taken - predicted
        if not normal.any():
            return
        left = self.points[(self.points - self.c) @ normal >= 0]
        if len(left):
            self.points = left
            self.c = left.mean(axis=0)


class Ours:
    """`InverseRegressor.partial_fit`, one decision at a time."""

    def __init__(self, n: int) -> None:
        self.problem = rv.LinearProgram(lb=np.array([-1.0]), ub=np.array([1.0]))
        model = LinearModel(fit_intercept=False)
        self.est = rv.InverseRegressor(self.problem, model=model, threads=1)
        self.n, self.fitted = n, False

    def guess(self) -> np.ndarray:
        return -self.est.coef_[0] if self.fitted else np.zeros(self.n)

    def learn(self, taken: np.ndarray, predicted: np.ndarray) -> None:
        self.est.partial_fit(taken[None], np.ones((1, 1)))  # the context is the point taken: t = 1
        self.fitted = True


LEARNERS: dict[str, Callable[[int, int, np.random.Generator], Learner]] = {
    "partial_fit": lambda n, rounds, rng: Ours(n),
    "online gradient descent": GradientDescent,
    "online Newton step": NewtonStep,
    "cutting planes": CuttingPlanes,
}


def play(name: str, n: int, rounds: int, seed: int) -> tuple[np.ndarray, float]:
    """(rounds,) the regret so far after each round, and the processor seconds of the learner."""
    rng = np.random.default_rng([seed, n])
    objective, *points = on_sphere(rng, rounds + 1, n)
    learner = LEARNERS[name](n, rounds, np.random.default_rng([seed, n, 1]))
    regret, seconds = np.empty(rounds), 0.0
    for k, x in enumerate(points):
        began = time.process_time()
        predicted = x if learner.guess() @ x > 0 else -x
        seconds += time.process_time() - began
        taken = x if objective @ x > 0 else -x
        regret[k] = objective @ (taken - predicted)
        began = time.process_time()
        learner.learn(taken, predicted)
        seconds += time.process_time() - began
    return np.cumsum(regret), seconds


def on_sphere(rng: np.random.Generator, count: int, n: int) -> np.ndarray:
    """(count, n) uniform on the unit sphere."""
    points = rng.standard_normal((count, n))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def nearest_in_ball(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The point of the unit ball nearest to A^-1 b in the norm of A."""
    values, vectors = np.linalg.eigh(A)
    along = vectors.T @ b
    if np.linalg.norm(along / values) <= 1.0:
        return vectors @ (along / values)
    low, high = 0.0, float(np.linalg.norm(along))  # there (A + high)^-1 b is inside
    for _ in range(60):
        middle = 0.5 * (low + high)
        outside = np.linalg.norm(along / (values + middle)) > 1.0
        low, high = (middle, high) if outside else (low, middle)
    return vectors @ (along / (values + high))
