"""The estimator's fit to partitions: read, settle what "auto" means, minimize, say what was left
out."""

from __future__ import annotations

import uuid
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ..._common.optional import require
from ...datasets.partitions import Partitions
from ...errors import InputError
from ..agreement import checked_settings
from ..contexts import Common
from ..defaults import STRENGTH, default_loss
from ..feature_models import SharedModel
from ..keeping import Keeper
from ..lbfgs import minimize
from ..loss_names import power_and_delta
from ..models import LinearModel
from ..named_models import CHOSEN
from ..pocs import alternate
from ..solvers import LBFGS, POCS, Solver
from .executors import Executor
from .memory import bytes_of, current_bytes, samples_room
from .messages import Orders
from .objective import Loaded, PartitionedObjective
from .run import Run
from .share import chunk_of
from .watching import watching


class SkippedPartitionsWarning(UserWarning):
    """Parts of the data could not be read, and the fit went on without them."""


def fit_partitions(est: Any, data: Partitions, run: Run, given: dict[str, Any]) -> None:
    """Fit an estimator to `data` in place; `given` is what else its `fit` was given, by name."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"Partitions bring what is learned from; leave out `{name}`.")
    if isinstance(est.model, str) and est.model == CHOSEN:
        raise InputError('model="auto" chooses on data in memory; name the model.')
    model, solver = checked_settings(est, est.model, None, None)
    _refuse(est, model, solver, data)
    assert isinstance(solver, LBFGS | POCS), "others have been refused"
    executor = run.start(len(data.partitions))
    watched = watching(solver, verbose=est.verbose)
    try:
        with _alone(run), watched as watch:
            if executor.link:
                watch.say(f"Dask's dashboard: {executor.link}")
            loaded = Loaded(executor, _orders(est, model, data, run, executor), watch)
            _tell(est, loaded)
            _fit(est, model, solver, loaded, run)
    finally:
        executor.close()


def _alone(run: Run) -> Any:
    """Keeps another fit from writing to the same checkpoint."""
    if run.checkpoint is None:
        return nullcontext()
    require("torch", "Keeping checkpoints", "torch")
    from ..checkpoint import claimed

    return claimed(run.checkpoint)


def _refuse(est: Any, model: Any, solver: Solver, data: Partitions) -> None:
    if not isinstance(solver, LBFGS | POCS):
        raise InputError(
            f"Partitions are fitted with 'lbfgs' or 'pocs'; got {solver.name!r}. For torch modules "
            "see the guide page on large data."
        )
    if not isinstance(model, LinearModel | SharedModel):
        raise InputError(
            f'Partitions are for model="linear" or a SharedModel of entries; got {model!r}.'
        )
    for name in ("cost_map", "unknown_limits"):
        if getattr(est, name, None) is not None:
            raise InputError(f"Partitions are for plain costs, without `{name}`.")
    est._limits = None
    ours, theirs = data.problem.n_parameters, est.problem.n_parameters
    if ours != theirs:
        raise InputError(
            f"The partitions are of a problem of {ours} variables, the estimator's has {theirs}."
        )


def _orders(est: Any, model: Any, data: Partitions, run: Run, executor: Executor) -> Orders:
    tol = 0 if isinstance(est.decision_tol, str) else est.decision_tol
    entries = data.entry_features if isinstance(model, SharedModel) else None
    if isinstance(model, SharedModel) and entries is None:
        raise InputError(
            'model="shared" needs features of the entries: give the partitions `entry_features`.'
        )
    return Orders(
        data=data,
        margin=float(est.margin),
        infeasible=est.infeasible,
        decision_tol=tol,
        center=getattr(model, "fit_intercept", True),
        budget=share_budget(run, data, executor),
        scratch=None if run.scratch is None else str(run.scratch),
        token=uuid.uuid4().hex,
        entries=entries,
    )


def share_budget(run: Run, data: Partitions, executor: Executor) -> float:
    """Bytes of one partition that may stay in memory; refused where `memory` is too little."""
    memory = bytes_of(run.memory)
    if memory is None:
        return np.inf
    here, n = run.executor == "threads", data.problem.n_variables
    processes = 1 if here else executor.workers
    room = samples_room(
        memory,
        taken=float(current_bytes()) if here else None,
        threads=executor.threads * (executor.workers if here else 1),
        chunk=n * chunk_of(n),
    )
    return room * processes / len(data.partitions)


def _tell(est: Any, loaded: Loaded) -> None:
    """Say what was left out, and refuse if that was everything."""
    told = []
    if loaded.infeasible:
        told.append(f"{loaded.infeasible:,} decisions break their constraints and are skipped.")
    if loaded.repaired:
        told.append(
            f"{loaded.repaired:,} decisions broke their constraints and were moved to the nearest "
            "that obey."
        )
    if loaded.left_out:
        told.append(f"{loaded.left_out:,} rows have features that cannot be used; left out.")
    if loaded.skipped:
        told.append(f"{len(loaded.skipped)} parts of the data were skipped: {loaded.skipped[0]}")
        warnings.warn(" ".join(told), SkippedPartitionsWarning, stacklevel=5)
    if not loaded.total:
        raise InputError("No sample is left to learn from. " + " ".join(told))
    est.decision_report_ = " ".join(told)
    found = loaded.found
    held = sum(one.in_memory for one in found), sum(one.on_disk for one in found)
    loaded.watch.say(
        f"Read {loaded.total:,} samples in {loaded.seconds:.1f} s with {loaded.executor.words}: "
        f"{held[0] / 1e6:,.0f} MB in memory, {held[1] / 1e6:,.0f} MB in files."
    )


def _fit(est: Any, model: Any, solver: LBFGS | POCS, loaded: Loaded, run: Run) -> None:
    held = loaded.sample()
    _settle(est, model, solver, loaded)
    ours = est._fresh(model)
    _prepare(ours, loaded)
    objective = PartitionedObjective(loaded, est.loss_, held, tol=solver.tol, threads=est.threads)
    options: dict[str, Any] = {"max_iter": solver.max_iter, "tol": solver.tol}
    options["show"] = loaded.watch.step
    if isinstance(solver, LBFGS):
        keeper = _keeper(est, solver, loaded, run)
        history = minimize(ours, None, objective, keeper=keeper, **options)
    else:
        with threadpool_limits(1, user_api="blas"):
            history = alternate(ours, None, objective, **options)
    est.n_iter_ = len(history) - 1
    _keep_names(est, loaded)
    est.partitions_report_ = _report(loaded, objective)
    est._keep(ours, held[1], history)
    est._warn_unless_converged()


def _settle(est: Any, model: Any, solver: Solver, loaded: Loaded) -> None:
    """What "auto" means for the loss and the ridge."""
    free = solver.smooths and not getattr(model, "given", None)
    est.loss_ = default_loss(
        loaded.looked_at(),
        noise=est.noise,
        **power_and_delta(est.loss),
        draws=solver.n_draws,
        seed=est._seed,
        smooth=free,
        size=loaded.total,
    )
    usual = STRENGTH * loaded.squares / loaded.weight**2
    est.ridge_ = float(est.ridge) if est.ridge != "auto" else usual * free


def _keep_names(est: Any, loaded: Loaded) -> None:
    """Names of features and variables, where the data have some."""
    data, entries = loaded.orders.data, loaded.orders.entries
    est.n_features_in_ = data.n_features if entries is None else entries.shape[1]
    features = data.feature_names if entries is None else None
    for name, found in (("feature", features), ("decision", data.variable_names)):
        vars(est).pop(f"{name}_names_in_", None)
        if found is not None:
            setattr(est, f"{name}_names_in_", np.array(found, dtype=object))


def _prepare(model: Any, loaded: Loaded) -> None:
    """`model.prepare` from what the partitions saw."""
    n = loaded.orders.data.problem.n_variables
    if isinstance(model, SharedModel):
        mean = np.array([loaded.weight / loaded.whole.heaviest / loaded.total])
        model.prepare(Common(loaded.orders.entries, loaded.total), n, weights=mean)  # pyright: ignore
        return
    model.prepare_from(loaded.rows(), n)


def _keeper(est: Any, solver: Any, loaded: Loaded, run: Run) -> Keeper | None:
    if run.checkpoint is None:
        return None
    from ..checkpoint import checksum, shared_rows

    facts = loaded.orders.data.fingerprint | {
        "learned from": loaded.total,
        "constraints": shared_rows(est.problem),
        "margin": float(est.margin),
        "loss": repr(est.loss_),
        "ridge": est.ridge_,
        "model": repr(est.model),
        "tol": solver.tol,
    }
    if loaded.orders.entries is not None:
        facts["entries"] = checksum(loaded.orders.entries)
    return Keeper(run.checkpoint, facts, run.checkpoint_every)


def _report(loaded: Loaded, objective: PartitionedObjective) -> dict[str, Any]:
    """How the fit ran."""
    found = loaded.found
    return {
        "executor": loaded.executor.words,
        "dashboard": loaded.executor.link,
        "samples": loaded.total,
        "partitions": len(found),
        "skipped": loaded.skipped,
        "left_out": loaded.left_out,
        "bytes_in_memory": sum(one.in_memory for one in found),
        "bytes_on_disk": sum(one.on_disk for one in found),
        "read_seconds": loaded.seconds,
        "passes": objective.passes,
        "evaluations": objective.evaluations,
        "evaluation_seconds": objective.seconds / max(objective.evaluations, 1),
        "evaluation_processor_seconds": objective.processor / max(objective.evaluations, 1),
        "peak_bytes": max(objective.peak, *(one.peak for one in found)),
    }
