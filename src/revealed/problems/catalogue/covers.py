"""Choices that must cover a demand: sets, shifts, facilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._common.arrays import to_float64
from ..._common.checks import check_whole
from ...errors import ShapeError
from ..integer import IntegerProgram


def set_cover(covers: Any) -> IntegerProgram:
    """Choose sets of least cost so that every element is in one of them.

    Parameters
    ----------
    covers : (m, n) array or sparse matrix
        Element i is in set j where it is not 0.

    Returns
    -------
    IntegerProgram
        Decisions are (n,), 0 or 1.
    """
    matrix = _incidence(covers, "covers")
    return IntegerProgram(A_ub=-matrix, b_ub=-1.0, lb=0.0, ub=1.0)


def shift_scheduling(covers: Any, demand: Any, most: float = np.inf) -> IntegerProgram:
    """How many people to put on each shift, at least `demand` at work in every period.

    Parameters
    ----------
    covers : (m, n) array or sparse matrix
        People on shift j are at work in period i where it is not 0.
    demand : float, (m,) or (B, m) array
        People needed in each period; (B, m) for a demand of each instance.
    most : float
        The most people on one shift.

    Returns
    -------
    IntegerProgram
        Decisions are (n,) whole numbers.
    """
    matrix = _incidence(covers, "covers")
    return IntegerProgram(A_ub=-matrix, b_ub=-to_float64(demand, "demand"), lb=0.0, ub=most)


def facility_location(
    n_facilities: int, n_customers: int, capacity: Any = None, demand: Any = None
) -> IntegerProgram:
    """Which facilities to open, and which of them serves each customer.

    Each customer is served by one facility that is open. Costs are those of opening and of serving.

    Parameters
    ----------
    n_facilities, n_customers : int
        F and C.
    capacity : float or (F,) array, optional
        The most demand that each facility serves; no limit unless given.
    demand : (C,) array, optional
        Demand of each customer, 1 unless given. Only looked at with `capacity`.

    Returns
    -------
    IntegerProgram
        Decisions are (F + F C,), 0 or 1: open[f], then serves[f, c] facility by facility.
    """
    check_whole(n_facilities, "n_facilities", 1)
    check_whole(n_customers, "n_customers", 1)
    F, C = n_facilities, n_customers
    once = sparse.hstack([sparse.csr_array((C, F)), sparse.kron(np.ones((1, F)), sparse.eye(C))])
    opened = sparse.kron(sparse.eye(F), np.ones((C, 1)))
    rows, sides = [sparse.hstack([-opened, sparse.eye(F * C)])], [np.zeros(F * C)]
    if capacity is not None:
        size = np.broadcast_to(to_float64(capacity, "capacity"), (F,))
        need = np.ones(C) if demand is None else to_float64(demand, "demand")
        if need.shape != (C,):
            raise ShapeError(f"`demand` must have shape ({C},); got {need.shape}.")
        served = sparse.kron(sparse.eye(F), need[None])
        rows.append(sparse.hstack([-sparse.diags_array(size), served]))
        sides.append(np.zeros(F))
    A_ub = sparse.csr_array(sparse.vstack(rows))
    A_ub.eliminate_zeros()
    return IntegerProgram(
        A_eq=sparse.csr_array(once), b_eq=1.0, A_ub=A_ub, b_ub=np.concatenate(sides), ub=1.0
    )


def _incidence(covers: Any, name: str) -> np.ndarray:
    matrix = to_float64(covers.toarray() if sparse.issparse(covers) else covers, name)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ShapeError(
            f"`{name}` must be (m, n), what each of n choices covers; got shape {matrix.shape}."
        )
    return (matrix != 0).astype(float)
