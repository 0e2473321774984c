"""Minimize the penalized mean loss of a convex model: L-BFGS in whitened features.

There the loss has a curvature of at most 1, so the negative gradient itself is a safe step: it is
POCS, and never raises the loss. L-BFGS learns from past gradients how much farther it may go, and
from the active sets of a sample of projections (`curvature`). A fit ends when the distance to the
minimum is proved to be small, not when progress is slow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from .._common.checks import check_number, check_whole
from ..optimality.protocol import CostSet as Sets
from .contexts import check_data
from .curvature import has_metric
from .cuts import minimize_over_cuts, needs_cuts
from .decisions import counting
from .descent import STRICTER, Descent, Monitor
from .evaluation import DistanceLoss, Evaluator
from .history import History, StopReason
from .keeping import Keeper
from .models import ConvexModel
from .objective import Objective
from .progress import Show, progress
from .quasi_newton import Metric

PART, NEAR_ENOUGH, MOST_ON_PART = 500, 3e-3, 60
"""Samples that a fit to at least four times as many starts on, how near its minimum to go, and in
at most how many evaluations."""
WIDER, ABOUT = 4.0, 1e-2
"""A loss that is not convex begins near the minimum of Huber's form with the bend and the noise at
this many times its delta, and how near that is."""


def lbfgs(
    model: ConvexModel,
    Z: Any,
    sets: Sets,
    *,
    loss: DistanceLoss | None = None,
    max_iter: int = 500,
    tol: float = 1e-6,
    monitor: Monitor | None = None,
    threads: int | None = None,
    verbose: bool = False,
    evaluator: Evaluator | None = None,
    features: Any = None,
    describe_fit: bool = True,
    sample_curvature: bool = True,
) -> History:
    """Fit `model` in place to contexts `Z` (B, ...) and the sets of the decisions taken there.

    With a ridge above 0 the fit has converged when the loss is within `tol` of the minimum,
    relatively, and that is proved by a bound from below. Without a ridge there is no such bound: it
    ends when every cost lies in its set, or when the gradient has fallen to `tol` of the root of
    twice the loss.

    A loss that is not convex has several minima. Coefficients that are 0 begin near the minimum of
    a convex loss (`WIDER`); others begin where they are.

    Parameters
    ----------
    model : LinearModel, QuadraticModel, SharedModel or KernelModel
        Fitted in place.
    Z : (B, ...) array
        Contexts.
    sets : OptimalitySet or other sets
        Of the B decisions; their weights count.
    loss : DistanceLoss, optional
        Which function of the distance is averaged; half its square unless given.
    max_iter : int
        Largest number of evaluations of the loss.
    tol : float
        Relative distance to the minimum at which to stop; 0 runs up to `max_iter`.
    monitor : callable, optional
        `monitor(model)` returns a dict of further columns for a row of the history.
    threads : int or None
        Of projections; None for every core.
    verbose : bool
        Whether to show progress.
    evaluator, features : optional
        Those of an earlier call on the same data, to start from its projections.
    describe_fit : bool
        False does without a certificate and a proof, and stops when the next step promises a fall
        well below `tol`.
    sample_curvature : bool
        Whether to learn the curvature from a sample of projections; False is faster where `tol` is
        1e-3 or more.

    Returns
    -------
    History
        `history.certificate` says what was reached, `history.reason` why the fit ended.
    """
    check_whole(max_iter, "max_iter", 0)
    check_number(tol, "tol", " 0 runs up to `max_iter`.")
    if features is None:
        check_data(len(Z), sets)
        Z, sets, _ = counting(Z, sets)
        features = model.prepare(Z, sets.n_parameters, weights=sets.weights)
    if evaluator is None and needs_cuts(sets):
        options = {"monitor": monitor, "verbose": verbose}
        return minimize_over_cuts(
            lbfgs, model, features, sets, loss=loss, max_iter=max_iter, tol=tol, threads=threads,
            **options,
        )  # fmt: skip
    return minimize(
        model,
        features,
        evaluator or Evaluator(sets, loss, cache=True, threads=threads),
        max_iter=max_iter,
        tol=tol,
        monitor=monitor,
        verbose=verbose,
        describe_fit=describe_fit,
        sample_curvature=sample_curvature,
    )


def minimize(
    model: ConvexModel,
    features: Any,
    objective: Objective,
    *,
    max_iter: int = 500,
    tol: float = 1e-6,
    monitor: Monitor | None = None,
    verbose: bool = False,
    show: Show | None = None,
    describe_fit: bool = True,
    sample_curvature: bool = True,
    keeper: Keeper | None = None,
) -> History:
    """`lbfgs` for a model that is prepared and data of any kind; `keeper` keeps checkpoints, and
    `show` takes rows of the history as they come, in place of the usual bar."""
    # Threads of the linear algebra wait for work in a loop, on the cores that projections use.
    with (
        threadpool_limits(1, user_api="blas"),
        progress("L-BFGS", max_iter, verbose=verbose, show=show) as show,
    ):
        found = None if keeper is None else keeper.found
        before = 0
        if found is None:
            before = _start_on_a_part(model, features, objective, max_iter, tol)
        run = Descent(model, features, objective, max_iter, tol, monitor, keeper)
        if found is None:
            run.before = before
        run.curved = sample_curvature and has_metric(model, objective)
        if not describe_fit:
            run.proves, run.hope = False, STRICTER
        run.minimize(show)
        if describe_fit:
            run.finish()
    return run.history


def refit(
    model: ConvexModel,
    features: Any,
    evaluator: Evaluator,
    metric: Metric | None,
    *,
    close: float = 0.02,
    max_iter: int = 500,
) -> bool:
    """Go from where the model is to a minimum that is not far; whether it was reached.

    `metric` is the inverse curvature there: it foretells the first step, and the minimum counts as
    reached when the step still to go is no longer than the share `close` of the way made. Without
    one (models too large for it) the loss must be within about `close**4` of its minimum.
    """
    run = Descent(model, features, evaluator, max_iter, close**4, None)
    here = run._start
    run.curved, run.proves, run.hope = False, False, STRICTER
    if metric is not None and here.value > 0:
        run.metric = metric
        fall = 0.5 * float(here.gradient @ metric(here.gradient))
        run.tol = close**2 * fall / here.value
    run.minimize(lambda row: None)
    if run.history.reason in (StopReason.CONVERGED, StopReason.INTERPOLATED):
        return True
    # Rounding ends a line search where the minimum is at hand.
    if metric is None:
        return False
    left, made = metric(run.here.gradient), run.here.x - here.x
    return bool(np.linalg.norm(left) <= close * np.linalg.norm(made))


def _start_on_a_part(
    model: ConvexModel, features: Any, objective: Objective, max_iter: int, tol: float
) -> int:
    """Bring the model near the minimum on a tenth of many samples, where an evaluation takes a
    tenth of the time; how many projections that took."""
    if model.point.any() or not max_iter:
        return 0
    found = objective.part(features, PART)
    if found is None:
        return 0 if objective.loss.is_convex else _start_convex(model, features, objective)
    chosen, part = found
    before = _start_on_a_part(model, chosen, part, max_iter, tol)
    run = Descent(model, chosen, part, min(max_iter, MOST_ON_PART), max(tol, NEAR_ENOUGH), None)
    run.curved, run.proves = has_metric(model, part), False
    run.minimize(lambda row: None)
    return before + part.projections


def _start_convex(model: ConvexModel, features: Any, objective: Objective) -> int:
    """Bring the model near the minimum of a smooth convex loss; how many projections that took.

    The convex loss is smoothed; no figure is kept yet of what that is worth.
    """
    features, evaluator = objective.in_memory(features)
    wide = WIDER * evaluator.loss.delta
    noise = max(evaluator.loss.noise, wide)
    loss = replace(evaluator.loss, power="huber", delta=wide, noise=noise, draws=2)
    smooth = Evaluator(evaluator.sets, loss, cache=True, threads=evaluator.threads)
    run = Descent(model, features, smooth, MOST_ON_PART, ABOUT, None)
    run.curved, run.proves = has_metric(model, smooth), False
    run.minimize(lambda row: None)
    return smooth.projections
