"""Five problems as their owners would write them in CVXPY, each with a parameter to be learned.

Each function returns the imported model, the value (p,) that its parameter lies around, and the
margin to learn with: where a part of the objective is known, a margin has to be seen against it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from revealed.importers import ImportedModel


class Loaded(NamedTuple):
    """What is learned with."""

    model: ImportedModel
    around: np.ndarray
    """(p,)"""
    margin: float = 1.0


def diet() -> Loaded:
    """Cheapest amounts of twelve foods that hold enough of five nutrients: prices."""
    import cvxpy as cp

    from revealed.importers import from_cvxpy

    rng = np.random.default_rng(1)
    contents, needs = rng.uniform(0, 3, (5, 12)), rng.uniform(4, 8, 5)
    amounts, prices = cp.Variable(12, name="amount"), cp.Parameter(12, name="price")
    rows: list[Any] = [contents @ amounts >= needs, amounts >= 0, amounts <= 2.5]
    model = from_cvxpy(cp.Problem(cp.Minimize(prices @ amounts), rows), prices)
    return Loaded(model, rng.uniform(1, 3, 12))


def transport() -> Loaded:
    """Cheapest shipment from four plants to six towns, a matrix: freight rates."""
    import cvxpy as cp

    from revealed.importers import from_cvxpy

    rng = np.random.default_rng(2)
    supply, demand = np.array([9.0, 7.0, 8.0, 6.0]), np.array([4.0, 5.0, 3.0, 6.0, 4.0, 5.0])
    shipped, rates = cp.Variable((4, 6), nonneg=True, name="shipped"), cp.Parameter((4, 6))
    rows: list[Any] = [cp.sum(shipped, axis=1) <= supply, cp.sum(shipped, axis=0) == demand]
    objective = cp.Minimize(cp.sum(cp.multiply(rates, shipped)))
    return Loaded(from_cvxpy(cp.Problem(objective, rows), rates), rng.uniform(1, 4, 24))


def production() -> Loaded:
    """Best use of four machines for ten products: values, in a problem that is maximized."""
    import cvxpy as cp

    from revealed.importers import from_cvxpy

    rng = np.random.default_rng(3)
    hours, capacity = rng.uniform(0.5, 2, (4, 10)), np.array([12.0, 10.0, 14.0, 11.0])
    made, values = cp.Variable(10, name="made"), cp.Parameter(10, name="value")
    rows: list[Any] = [hours @ made <= capacity, made >= 0, made <= 4]
    model = from_cvxpy(cp.Problem(cp.Maximize(values @ made), rows), values)
    return Loaded(model, rng.uniform(1, 2, 10))


def rebalancing() -> Loaded:
    """Money moved between eight funds, where each move has a known fee: expected losses.

    The fees are an absolute value, so CVXPY adds columns of known cost.
    """
    import cvxpy as cp

    from revealed.importers import from_cvxpy

    rng = np.random.default_rng(4)
    held = np.full(8, 1 / 8)
    share, losses = cp.Variable(8, name="share"), cp.Parameter(8, name="loss")
    fees = 0.2 * cp.norm1(share - held)
    rows: list[Any] = [cp.sum(share) == 1, share >= 0, share <= 0.4]
    model = from_cvxpy(cp.Problem(cp.Minimize(losses @ share + fees), rows), losses)
    return Loaded(model, rng.uniform(0.5, 1.5, 8), margin=0.05)


def portfolio() -> Loaded:
    """Return less risk over ten assets, a quadratic program: returns."""
    import cvxpy as cp

    from revealed.importers import from_cvxpy

    rng = np.random.default_rng(5)
    root = rng.standard_normal((10, 10)) / 3
    share, returns = cp.Variable(10, name="share"), cp.Parameter(10, name="return")
    risk = cp.quad_form(share, root @ root.T + 0.1 * np.eye(10))
    rows: list[Any] = [cp.sum(share) == 1, share >= 0]
    model = from_cvxpy(cp.Problem(cp.Maximize(returns @ share - risk), rows), returns)
    return Loaded(model, rng.uniform(0.2, 1, 10), margin=0.05)


MODELS: dict[str, Callable[[], Loaded]] = {
    "diet": diet,
    "transport": transport,
    "production": production,
    "rebalancing": rebalancing,
    "portfolio": portfolio,
}
