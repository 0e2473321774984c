"""Solvers as small objects with settings of their own: how a model is fitted, and for how long.

    InverseRegressor(problem, solver="adam")                      # with its usual settings
    InverseRegressor(problem, solver=Adam(lr=0.01, max_epochs=20))

They hold settings and nothing of a fit, so that one object may serve many estimators. A solver of
one's own is a class with the three methods of `Solver`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._common.checks import check_number, check_whole
from .._common.optional import require
from .._common.settings import Settings
from ..errors import InputError
from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet as Sets
from .certificate import Certificate
from .evaluation import DistanceLoss, Evaluator
from .history import History, StopReason
from .lbfgs import lbfgs
from .models import CostModel
from .online import Streaming, learn
from .pocs import pocs


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a fit is given besides its model and its data."""

    loss: DistanceLoss
    seed: int = 0
    threads: int | None = None
    verbose: bool = False
    monitor: Callable[[CostModel], dict[str, Any]] | None = None
    validation: tuple[Any, Sets] | None = None
    seen: int = 0
    """Samples of an earlier fit, for `update`."""
    unit: float = 1.0
    """What the heaviest new sample counts, for `update`."""
    prior: float | None = None
    """The ridge times the number of samples, where `update` is to hold that fixed."""

    @property
    def options(self) -> dict[str, Any]:
        """What every solver takes."""
        return {"monitor": self.monitor, "threads": self.threads, "verbose": self.verbose}


class Solver(Settings):
    """What the estimator asks of a solver."""

    name: str
    smooths = False
    """Whether the usual noise and ridge are above 0: for solvers that go to the minimum."""
    validates = False
    """Whether a fit can watch samples that are held out."""
    families: tuple[str, ...] = ("convex", "module")
    """Kinds of models that it can fit, see `CostModel.family`."""
    tol: float
    n_draws: int | None

    def check(self) -> None:
        """Refuse settings that are none; of those that only this solver knows."""
        check_number(self.tol, "tol")
        if self.n_draws is not None:
            check_whole(self.n_draws, "n_draws", 2)
            if self.n_draws % 2:
                raise InputError(
                    f"`n_draws` must be even, for draws come in pairs; got {self.n_draws}."
                )

    def fit(self, model: CostModel, Z: Any, sets: Sets, job: Job) -> History:
        """Fit `model` in place to contexts `Z` (B, ...) and the sets of the decisions there."""
        raise NotImplementedError

    def update(self, model: CostModel, Z: Any, sets: Sets, job: Job) -> History:
        """Learn from more data, in one pass over them."""
        raise NotImplementedError


def one_projection(
    model: CostModel, Z: Any, sets: Sets, *, loss: DistanceLoss, tol: float, threads: int | None
) -> History:
    """Project new data once and fit again, and keep what earlier data taught."""
    features = model.prepare(Z, sets.n_parameters, more=True, weights=sets.weights)
    done = Evaluator(sets, loss, warm_start=False, threads=threads)(model, features)
    model.refit()
    history = History([{"iteration": 0, "loss": done.h + model.penalty()} | done.row()])
    history.reason = StopReason.ONE_PASS
    history.certificate = Certificate.of(done, tol, history.reason)
    return history


class LBFGS(Solver):
    """To the minimum, for models that are linear in what they learn; the usual solver.

    Parameters
    ----------
    max_iter : int
        Largest number of evaluations of the loss.
    tol : float
        Relative distance to the minimum at which to stop.
    n_draws : int or None
        Draws of noise for each sample, an even number; None for 8, fewer for many samples.
    forgetting : float
        For `partial_fit`: the factor by which a sample counts less after each later one. 1 forgets
        nothing; with 0.99 the last 100 samples or so count.
    recent : int
        For `partial_fit`: the number of samples kept to be looked at again.
    """

    name = "lbfgs"
    smooths = True
    families = ("convex",)

    def __init__(
        self,
        *,
        max_iter: int = 500,
        tol: float = 1e-6,
        n_draws: int | None = None,
        forgetting: float = 1.0,
        recent: int = 100,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.n_draws = n_draws
        self.forgetting = forgetting
        self.recent = recent

    def check(self) -> None:
        super().check()
        check_whole(self.max_iter, "max_iter", 0)
        check_whole(self.recent, "recent", 0)
        check_number(self.forgetting, "forgetting")
        if not 0 < self.forgetting <= 1:
            raise InputError(
                f"`forgetting` must be above 0 and at most 1; got {self.forgetting!r}."
            )

    def fit(self, model: CostModel, Z: Any, sets: Sets, job: Job) -> History:
        options = {"loss": job.loss, "max_iter": self.max_iter, "tol": self.tol} | job.options
        return lbfgs(model, Z, sets, **options)  # pyright: ignore[reportArgumentType]

    def update(self, model: CostModel, Z: Any, sets: Sets, job: Job) -> History:
        return learn(model, Z, sets, job, Streaming(self.forgetting, self.recent), self.tol)


class POCS(Solver):
    """The paper's Algorithm 1: project every predicted cost, fit the model to the projections.

    Parameters
    ----------
    max_iter : int
        Largest number of updates of the model.
    tol : float
        Relative. A cost this near its set is inside, a fall of the loss this small is none.
    n_draws : int or None
        As for `LBFGS`.
    """

    name = "pocs"
    families = ("convex", "module", "regressor")

    def __init__(
        self, *, max_iter: int = 150, tol: float = 1e-6, n_draws: int | None = None
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.n_draws = n_draws

    def check(self) -> None:
        super().check()
        check_whole(self.max_iter, "max_iter", 0)

    def fit(self, model: CostModel, Z: Any, sets: Sets, job: Job) -> History:
        options = {"loss": job.loss, "max_iter": self.max_iter, "tol": self.tol} | job.options
        return pocs(model, Z, sets, **options)

    def update(self, model: CostModel, Z: Any, sets: Sets, job: Job) -> History:
        return one_projection(model, Z, sets, loss=job.loss, tol=self.tol, threads=job.threads)


class Boosting(Solver):
    """Add up scikit-learn regressors, each fitted to what the others leave over.

    Parameters
    ----------
    max_iter : int
        Largest number of regressors.
    patience : int
        Rounds without improvement on held-out samples after which to stop: those of `validation`,
        or a fifth of the data.
    tol, n_draws
        As for `POCS`.
    """

    name = "boosting"
    validates = True
    families = ("boosted",)

    def __init__(
        self,
        *,
        max_iter: int = 100,
        patience: int = 10,
        tol: float = 1e-6,
        n_draws: int | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.patience = patience
        self.tol = tol
        self.n_draws = n_draws

    def check(self) -> None:
        super().check()
        check_whole(self.max_iter, "max_iter", 0)
        check_whole(self.patience, "patience", 1)

    def fit(self, model: CostModel, Z: Any, sets: Sets, job: Job) -> History:
        from .regressors import boost

        return boost(
            model,  # pyright: ignore[reportArgumentType]
            Z,
            sets,
            loss=job.loss,
            max_iter=self.max_iter,
            patience=self.patience,
            tol=self.tol,
            validation=job.validation,
            **job.options,
        )

    def update(self, model: CostModel, Z: Any, sets: Sets, job: Job) -> History:
        raise InputError("Regressors learn from all data at once; use `fit`.")


class _FirstOrder(Solver):
    """A method of `erm`."""

    validates = True
    full_batch = False

    def _settings(self) -> dict[str, Any]:
        """Those of `erm`."""
        own = self.get_params(deep=False)
        del own["n_draws"]
        return own | {"optimizer": self.name}

    def check(self) -> None:
        super().check()
        require("torch", f"solver={self.name!r}", "torch")
        from .training import TrainSettings

        TrainSettings(**self._settings())

    def fit(self, model: CostModel, Z: Any, sets: Sets, job: Job) -> History:
        return self._train(model, Z, sets, job, self._settings())

    def update(self, model: CostModel, Z: Any, sets: Sets, job: Job) -> History:
        """One epoch."""
        return self._train(model, Z, sets, job, self._settings() | {"max_epochs": 1})

    def _train(
        self, model: CostModel, Z: Any, sets: Sets, job: Job, settings: dict[str, Any]
    ) -> History:
        from .training import erm

        form = {"power": job.loss.power, "delta": job.loss.delta, "seed": job.seed}
        return erm(
            model,
            Z,
            sets,
            loss=self._smoothed(sets, job),
            validation=job.validation,
            **settings,
            **form,
            **job.options,
        )

    def _smoothed(self, sets: Sets, job: Job) -> Any:
        """The distance averaged over noise; None for the plain distance, which `erm` knows."""
        if not job.loss.noise:
            return None
        if isinstance(sets, MixedSets):
            raise InputError("Smoothing by first-order methods is for samples of one problem.")
        from ..losses import SmoothedProjectionLoss

        return SmoothedProjectionLoss(
            sets.problem,  # pyright: ignore[reportArgumentType]  (the loss checks it)
            None,
            sigma=job.loss.noise,
            n_samples=job.loss.draws,
            power=job.loss.power,
            delta=job.loss.delta,
            seed=job.seed,
            fixed=self.full_batch,
            threads=job.threads,
        )


class _FullBatch(_FirstOrder):
    full_batch = True
    max_iter: int

    def _settings(self) -> dict[str, Any]:
        own = super()._settings()
        return own | {"max_epochs": own.pop("max_iter")}

    def check(self) -> None:
        check_whole(self.max_iter, "max_iter", 0)
        super().check()


class Armijo(_FullBatch):
    """Gradient descent on all data at once, its step found by a line search.

    Parameters
    ----------
    max_iter : int
        Largest number of updates.
    lr : float or None
        The first step that is tried; None for 1.
    patience : int or None
        Updates without improvement on `validation` data after which to stop; None: never.
    tol, n_draws
        As for `POCS`.
    """

    name = "armijo"

    def __init__(
        self,
        *,
        max_iter: int = 150,
        lr: float | None = None,
        patience: int | None = None,
        tol: float = 1e-6,
        n_draws: int | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.lr = lr
        self.patience = patience
        self.tol = tol
        self.n_draws = n_draws


class Preconditioned(_FullBatch):
    """Newton steps of the least-squares problem on all data at once; with rate 1 it is POCS.

    Parameters
    ----------
    max_iter : int
        Largest number of updates.
    lr : float or None
        Share of the way; None for 1.
    schedule : {"constant", "linear"} or float
        How `lr` falls. "linear" is a straight line that would end at 0; with a number p, update k
        goes lr / k^p of the way.
    patience, tol, n_draws
        As for `Armijo`.
    """

    name = "preconditioned"

    def __init__(
        self,
        *,
        max_iter: int = 150,
        lr: float | None = None,
        schedule: float | str = "constant",
        patience: int | None = None,
        tol: float = 1e-6,
        n_draws: int | None = None,
    ) -> None:
        self.max_iter = max_iter
        self.lr = lr
        self.schedule = schedule
        self.patience = patience
        self.tol = tol
        self.n_draws = n_draws


class SGD(_FirstOrder):
    """Stochastic gradient descent on minibatches, as `torch.optim.SGD`.

    Parameters
    ----------
    lr : float or None
        Learning rate; None for the usual one: 0.1 for SGD and Adagrad, 0.01 for Adam.
    schedule : {"constant", "linear"} or float
        How `lr` falls. "linear" is a straight line that would end at 0; a number p divides `lr` by
        (1 + epochs so far)^p.
    batch_size : int
    weight_decay : float
        Of torch's optimizer. It shrinks every parameter, where the `ridge` of the estimator spares
        intercepts and is measured in standardized features.
    max_epochs : int
        Largest number of passes over the data.
    inner_steps : int
        Updates of the model for each projection.
    patience : int or None
        Epochs without improvement on `validation` data after which to stop; None: never.
    tol, n_draws
        As for `POCS`.
    """

    name = "sgd"

    def __init__(
        self,
        *,
        lr: float | None = None,
        schedule: float | str = "constant",
        batch_size: int = 32,
        weight_decay: float = 0.0,
        max_epochs: int = 150,
        inner_steps: int = 1,
        patience: int | None = None,
        tol: float = 1e-6,
        n_draws: int | None = None,
    ) -> None:
        self.lr = lr
        self.schedule = schedule
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.max_epochs = max_epochs
        self.inner_steps = inner_steps
        self.patience = patience
        self.tol = tol
        self.n_draws = n_draws


class Adam(SGD):
    """Adam on minibatches, as `torch.optim.Adam`; the usual solver of a torch module. Its settings
    are those of `SGD`."""

    name = "adam"


class Adagrad(SGD):
    """Adagrad on minibatches, as `torch.optim.Adagrad`. Its settings are those of `SGD`."""

    name = "adagrad"


SOLVERS: dict[str, type[Solver]] = {
    kind.name: kind for kind in (LBFGS, POCS, Boosting, Armijo, Preconditioned, SGD, Adam, Adagrad)
}
"""What `solver=` may name."""


def as_solver(solver: Any, usual: str) -> Solver:
    """The solver that is meant: an object as it is, a name with its usual settings, "auto" for the
    usual one of the model."""
    if isinstance(solver, Solver):
        return solver
    name = usual if isinstance(solver, str) and solver == "auto" else solver
    if not isinstance(name, str) or name not in SOLVERS:
        raise InputError(
            f"`solver` must be auto or one of {', '.join(SOLVERS)}, or an object such as "
            f"LBFGS(max_iter=200); got {solver!r}."
        )
    return SOLVERS[name]()
