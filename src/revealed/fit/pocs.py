"""POCS, the paper's Algorithm 1: alternate between the sets that explain the decisions and what
the model can say.

    q_i = P_i(f(z_i))            project every predicted cost onto its set
    f = argmin sum |f(z_i) - q_i|^2    fit the model to the projections

For a linear model this is preconditioned gradient descent on h, the mean of 1/2 distance^2, with
step 1: it never raises h, and converges linearly to a model that explains every decision if there
is one, else to the closest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .._common.checks import check_number, check_whole
from ..errors import InputError
from ..optimality.protocol import CostSet as Sets
from ..projection.distance import FORMS
from .bound import lower_bound
from .certificate import Certificate, Convergence
from .contexts import check_data
from .decisions import counting
from .evaluation import DistanceLoss, Evaluator
from .history import History, StopReason, has_stalled
from .models import CostModel, is_convex_model
from .objective import Objective
from .progress import Show, progress

Monitor = Callable[[CostModel], dict[str, Any]]


def pocs(
    model: CostModel,
    Z: Any,
    sets: Sets,
    *,
    loss: DistanceLoss | None = None,
    max_iter: int = 150,
    tol: float = 1e-6,
    window: int = 10,
    warm_start: bool = True,
    monitor: Monitor | None = None,
    threads: int | None = None,
    verbose: bool = False,
) -> History:
    """Fit `model` in place to contexts `Z` (B, ...) and the sets of the decisions taken there.

    Stops when every cost is within `tol` of its set, relative to the length of the cost or the
    margin (the model interpolates); when h has fallen by less than `tol`, relatively, over
    `window` iterations; or after `max_iter` updates. Data are read in chunks.

    Sets of a form, a quadratic or a convex problem make the model one of parameters. A sample that
    its set gives a weight below 1 is moved only that share of the way, which minimizes the weighted
    mean; one of weight 0 is left out.

    Parameters
    ----------
    model : LinearModel or another model
        Fitted in place.
    Z : (B, ...) array
        Contexts.
    sets : OptimalitySet or other sets
        Of the B decisions.
    loss : DistanceLoss, optional
        A squared distance, the default, or Huber's form of it.
    max_iter : int
        Largest number of updates.
    tol : float
        See above; 0 runs up to `max_iter`.
    window : int
        Iterations over which progress is judged.
    warm_start : bool
        Whether each projection starts from the last one of its sample, for which one number for
        each row of the problem and sample is kept.
    monitor : callable, optional
        `monitor(model)` returns a dict of further columns for a row of the history.
    threads : int or None
        Of projections; None for every core.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    History
        `history.reason` says why it stopped, `history.certificate` what was reached.

    Raises
    ------
    InputError
        If the gradient of the loss cannot be followed all the way, as that of the distance itself.
    """
    check_whole(max_iter, "max_iter", 0)
    check_whole(window, "window", 1)
    check_number(tol, "tol", " 0 runs up to `max_iter`.")
    check_data(len(Z), sets)
    Z, sets, _ = counting(Z, sets)
    features = model.prepare(Z, sets.n_parameters, weights=sets.weights)
    evaluator = Evaluator(sets, loss, warm_start=warm_start, threads=threads)
    return alternate(
        model,
        features,
        evaluator,
        max_iter=max_iter,
        tol=tol,
        window=window,
        monitor=monitor,
        verbose=verbose,
    )


def alternate(
    model: CostModel,
    features: Any,
    objective: Objective,
    *,
    max_iter: int,
    tol: float,
    window: int = 10,
    monitor: Monitor | None = None,
    verbose: bool = False,
    show: Show | None = None,
) -> History:
    """`pocs` for a model that is prepared and data of any kind; `show` takes rows of the history as
    they come, in place of the usual bar."""
    _refuse_kinks(objective.loss)
    history, fitting = History(), 0.0
    with progress("POCS", max_iter, verbose=verbose, show=show) as show:
        while history.reason is None:
            done = objective(model, features)
            row = {"iteration": len(history), "loss": done.h + model.penalty()} | done.row()
            row["fit_seconds"] += fitting
            history.append(row | (monitor(model) if monitor else {}))
            show(history.rows[-1] | objective.pace())
            history.reason = _reason(history, max_iter, tol, window, objective.loss)
            started = time.perf_counter()
            if history.reason is None:
                model.refit()
            fitting = time.perf_counter() - started
    facts = _convergence(model, features, objective, done, history)
    if objective.loss != DistanceLoss():
        done = objective.describe(model, features)
    history.certificate = Certificate.of(done, tol, history.reason, facts)
    return history


def _reason(
    history: History, max_iter: int, tol: float, window: int, loss: DistanceLoss
) -> StopReason | None:
    if history.rows[-1]["max_relative"] <= tol and not loss.noise:
        return StopReason.INTERPOLATED
    if has_stalled([row["loss"] for row in history.rows[-1 - window :]], tol, window):
        return StopReason.NO_PROGRESS
    return StopReason.CAP if len(history) > max_iter else None


def _convergence(
    model: CostModel, features: Any, evaluator: Objective, done: Any, history: History
) -> Convergence:
    """How far from the minimum the last evaluation was; models of any kind give no bound."""
    value, bound = done.h + model.penalty(), 0.0
    spent, made = evaluator.evaluations, evaluator.projections
    if is_convex_model(model):
        bound, _ = lower_bound(model, features, evaluator, value, *model.gradient())
    return Convergence(
        value=value,
        lower_bound=min(bound, value),
        converged=history.reason is StopReason.INTERPOLATED and not model.ridge,
        convex=evaluator.loss.is_convex,
        evaluations=spent,
        projections=made,
    )


def _refuse_kinks(loss: DistanceLoss) -> None:
    if not FORMS[loss.power].has_unit_steps:
        raise InputError(
            f"POCS needs a squared distance or Huber's form, whose gradient it may follow all the "
            f"way; power={loss.power!r} needs solver='lbfgs'."
        )
