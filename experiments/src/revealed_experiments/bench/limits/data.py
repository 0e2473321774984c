"""Decisions under limits that follow the context: transport, knapsacks and production plans.

Letters: B samples, n variables, d features, K unknown limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import revealed as rv

FEATURES = 3
VARIES = 0.08
"""Share by which one standard deviation of all features together moves a limit."""
KINDS = ("exact", "noisy", "rounded")
"""Of decisions: exact; costs and limits of each sample off by 5%; two decimals."""
NOISE, DECIMALS = 0.05, 2


@dataclass(frozen=True, eq=False)
class Task:
    """A problem whose last K inequality rows have limits that follow the context."""

    A_eq: np.ndarray | None
    b_eq: np.ndarray | None
    """(B, m_eq)"""
    A_ub: np.ndarray
    known: np.ndarray
    """(m,) limits of the rows before the last K."""
    limits: np.ndarray
    """(B, K) what the context says."""
    Z: np.ndarray
    costs: np.ndarray
    """(B, n) what the context says."""
    ub: np.ndarray

    @property
    def rows(self) -> list[int]:
        """The rows whose limits are unknown."""
        return list(range(len(self.known), len(self.A_ub)))

    def problem(self, limits: np.ndarray | None = None, part: slice = slice(None)) -> Any:
        """The problem of some samples, with limits of theirs or with none."""
        K = len(self.A_ub) - len(self.known)
        own = np.full((1, K), np.inf) if limits is None else limits
        b_ub = np.hstack([np.tile(self.known, (len(own), 1)), own])
        equal = (
            {}
            if self.A_eq is None or self.b_eq is None
            else {
                "A_eq": self.A_eq,
                "b_eq": self.b_eq[part],
            }
        )
        b_ub = b_ub[0] if limits is None else b_ub
        return rv.LinearProgram(A_ub=self.A_ub, b_ub=b_ub, lb=0.0, ub=self.ub, **equal)


def transport(rng: np.random.Generator, B: int, K: int) -> Task:
    """Four plants and five customers; a spare supplier at a high price fills what is missing."""
    plants, customers = 4, 5
    n = (plants + 1) * customers
    A_eq, A_ub = np.zeros((customers, n)), np.zeros((plants, n))
    for i in range(plants + 1):
        for j in range(customers):
            A_eq[j, i * customers + j] = 1.0
            if i < plants:
                A_ub[i, i * customers + j] = 1.0
    demand = rng.uniform(1.0, 3.0, (B, customers))
    Z = rng.standard_normal((B, FEATURES))
    middle = rng.uniform(1.5, 3.0, plants)
    limits = _limits(rng, Z, middle[plants - K :])
    costs = rng.uniform(2.0, 6.0, n) + 0.3 * Z @ rng.standard_normal((FEATURES, n))
    costs[:, plants * customers :] += 6.0
    return Task(A_eq, demand, A_ub, middle[: plants - K], limits, Z, costs, np.full(n, np.inf))


def knapsack(rng: np.random.Generator, B: int, K: int) -> Task:
    """Ten items that can be divided, a known budget and K unknown ones."""
    n = 10
    A = rng.uniform(0.5, 2.0, (1 + K, n))
    Z = rng.standard_normal((B, FEATURES))
    limits = _limits(rng, Z, 0.5 * A[1:].sum(axis=1))
    worth = rng.uniform(2.0, 4.0, n) + 0.3 * Z @ rng.standard_normal((FEATURES, n))
    return Task(None, None, A, 0.55 * A[:1].sum(axis=1), limits, Z, -worth, np.ones(n))


def production(rng: np.random.Generator, B: int, K: int) -> Task:
    """Eight products on four machines, of K of which the hours are unknown; sales are limited."""
    n, machines = 8, 4
    A = rng.uniform(0.5, 2.0, (machines, n)) * (rng.random((machines, n)) < 0.6)
    A[np.arange(machines), np.arange(machines)] = 1.0
    A[:, A.sum(axis=0) == 0] = 1.0
    ub = rng.uniform(2.0, 5.0, n)
    Z = rng.standard_normal((B, FEATURES))
    middle = rng.uniform(0.35, 0.6, machines) * (A @ ub)
    limits = _limits(rng, Z, middle[machines - K :])
    profit = rng.uniform(2.0, 4.0, n) + 0.3 * Z @ rng.standard_normal((FEATURES, n))
    return Task(None, None, A, middle[: machines - K], limits, Z, -profit, ub)


TASKS = {"transport": transport, "knapsack": knapsack, "production": production}


def _limits(rng: np.random.Generator, Z: np.ndarray, middle: np.ndarray) -> np.ndarray:
    effect = rng.standard_normal((FEATURES, len(middle)))
    effect *= VARIES / np.linalg.norm(effect, axis=0)
    return middle * (1.0 + Z @ effect)


def observe(task: Task, rng: np.random.Generator, kind: str, count: int) -> tuple[Any, Any, Any]:
    """The first `count` decisions as they are seen, the limits that were in force there, and which
    of them were active."""
    first = slice(0, count)
    limits, costs = task.limits[first], task.costs[first]
    if kind == "noisy":
        limits = limits * (1.0 + NOISE * rng.standard_normal(limits.shape))
        costs = costs * (1.0 + NOISE * rng.standard_normal(costs.shape))
    X = np.asarray(task.problem(limits, first).solve(costs).x)
    active = np.abs(X @ task.A_ub[task.rows].T - limits) < 1e-7
    return (np.round(X, DECIMALS) if kind == "rounded" else X), limits, active
