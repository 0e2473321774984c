"""The one entry: which kind of sets comes in says who projects onto them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError, ShapeError
from ..optimality.protocol import PROJECTORS, CostSet, ProjectionOptions, check_sets
from .result import Projection


def project(
    costs: Any,
    sets: CostSet,
    *,
    method: str = "auto",
    tol: float = 1e-8,
    max_iter: int = 500,
    time_limit: float | None = None,
    warm_start: Any = None,
    threads: int | None = None,
) -> Projection:
    """Nearest costs under which the observed decisions are optimal, with the sets' margin.

        P(q) = argmin |c - q|^2   subject to   c = A_eq^T v - A_ub^T mu + s   (signs as in
        `OptimalitySet`)

    An instance is `solved` only if its residual, computed afresh from the definition, is at most
    `tol`. Where the scales of rows and columns differ so much that the residual could mislead, it
    is a proved bound on the distance to the nearest point (see `verify`).

    Tensors on a GPU stay there: `sets` are uploaded once, or come as `sets.to(device)`. Nothing is
    read back, so costs that are not finite end unsolved instead of being refused, and what the
    kernels leave above `tol` stays so.

    Parameters
    ----------
    costs : (B, n) array or tensor
        One row for each set; float32 is computed in float64. Parameters (B, p) for sets of a form
        or of a problem whose parameters are not plain costs.
    sets : OptimalitySet, DeviceSets or MixedSets
        For `MixedSets`, costs may also be a list of B vectors.
    method : str
        "auto" is the compiled kernel, and for instances it leaves above `tol` the slower solvers
        that are installed, and for small problems exact arithmetic. "kernel", "clarabel",
        "reference" and "exact" force one. Sets of other kinds know only some of these, or others;
        a method that they do not know is refused with the names of theirs.
    tol : float
        The largest residual that counts as solved, between 0 and 1.
    max_iter : int
        The most steps for one instance, at least 1; for sets of whole decisions the most
        questions to the oracle.
    time_limit : float, optional
        Seconds for the whole call.
    warm_start : Projection or array, optional
        An earlier projection onto the same sets, or its multipliers, to begin from.
    threads : int, optional
        Chosen by the size of the batch and the number of processors unless given.

    Returns
    -------
    Projection
        Points, distances, residuals and a status for each instance; arrays are of the kind of
        `costs`. For a list of costs, `point` is a list.

    Raises
    ------
    InputError
        If an option has no meaning, or costs on the CPU are not finite.
    ShapeError
        If `costs` do not have one row of the right length for each set.
    """
    check_sets(sets)
    options = ProjectionOptions(
        method=method,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        warm_start=warm_start,
        threads=threads,
    )
    return projected(costs, sets, options)


def projected(costs: Any, sets: CostSet, options: ProjectionOptions) -> Projection:
    """`project` by the projector of this kind of sets; for projectors that ask others."""
    return PROJECTORS.of(sets.kind)(costs, sets, options)


def check_options(
    size: int, expected: int, options: ProjectionOptions, methods: Sequence[str]
) -> None:
    """Refuse a batch of the wrong length and options that mean nothing; for projectors."""
    method, tol, max_iter = options.method, options.tol, options.max_iter
    time_limit, threads = options.time_limit, options.threads
    if size != expected:
        raise ShapeError(
            f"`costs` must have one row for each of the {expected} decisions; got {size}. "
            "Choose the sets of a batch with `sets[index]`."
        )
    if method not in methods:
        raise InputError(f"`method` must be one of {', '.join(methods)}; got {method!r}.")
    if not (isinstance(tol, int | float | np.number) and 0 < tol < 1):
        raise InputError(f"`tol` must be between 0 and 1; got {tol!r}. The default is 1e-8.")
    if not (isinstance(max_iter, int | np.integer) and max_iter >= 1):
        raise InputError(f"`max_iter` must be a whole number of at least 1; got {max_iter!r}.")
    number = isinstance(time_limit, int | float | np.number)
    if time_limit is not None and not (number and time_limit >= 0):
        raise InputError(f"`time_limit` must be None or seconds of at least 0; got {time_limit!r}.")
    if threads is not None and not (isinstance(threads, int | np.integer) and threads >= 1):
        raise InputError(f"`threads` must be None or at least 1; got {threads!r}.")
