"""Portfolios: shares of a budget that weigh expected returns against risk."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._common.checks import positive_int
from ...errors import InputError, ShapeError
from ..quadratic import QuadraticProgram, order_of_matrix


def portfolio(
    Q: Any = None,
    *,
    gamma: float = 1.0,
    n_assets: int | None = None,
    cap: float | None = None,
    semidefinite: bool = False,
) -> QuadraticProgram:
    """The best mix of assets: maximize <c, x> - gamma/2 x^T Q x with x >= 0 and sum x = 1.

    `c` are expected returns and `Q` is their covariance.

    Parameters
    ----------
    Q : (n, n) or (B, n, n) array, optional
        Covariance, one for each instance where it differs; all of it counts, not the variances
        alone. Give this or `n_assets`.
    gamma : float
        Aversion to risk, above 0.
    n_assets : int, optional
        Instead of `Q`: (c, Q) together is then what is predicted.
    cap : float, optional
        The largest share of any asset, at least 1/n.
    semidefinite : bool
        Whether a predicted Q is kept a covariance; only without `Q`.

    Returns
    -------
    QuadraticProgram
    """
    if (Q is None) == (n_assets is None):
        raise ShapeError(
            "A portfolio needs `Q`, the covariance of its assets, or `n_assets` where Q is to be "
            "learned; give one of the two."
        )
    n = positive_int(n_assets, "n_assets") if Q is None else order_of_matrix(Q)
    if cap is not None and not cap * n >= 1:
        raise InputError(
            f"`cap` must let {n} shares sum to 1, so be at least {1 / n:.6g}; got {cap!r}."
        )
    return QuadraticProgram(
        gamma,
        Q,
        "max",
        A_eq=np.ones((1, n)),
        b_eq=1.0,
        lb=0.0,
        ub=cap,
        semidefinite=semidefinite,
    )
