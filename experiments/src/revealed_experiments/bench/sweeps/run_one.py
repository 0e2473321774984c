"""`revealed bench run`: perform what a configuration says, and judge the model as it learns."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.cli.commands.options import positive
from revealed.errors import InputError

from ..record import surroundings
from ..tables import Table, show
from .runs import DIVERGED, FAILED, FINISHED, OURS, Run, RunConfig, rounded

if TYPE_CHECKING:
    from revealed.datasets import DataSet, Split
    from revealed.fit import History

GENERATORS = ("noisy_paths", "paper_paths", "paper_knapsacks", "general_knapsacks")
SPLITS = ("train", "valid", "test")
MEASURES = ("decision_loss", "estimate_loss", "relative_regret", "gamma", "gamma_relative")
"""The last two are the paper's Gamma at margin 1, and its form that is free of scale."""
SMOOTHED_MARGIN = 0.5
"""Of the smoothed loss where none is given: half of its noise, as in the runs that are kept."""


def perform(config: RunConfig, data: DataSet | None = None) -> Run:
    """Train a model and judge it; what goes wrong becomes the status of the run, no exception.

    `data` stands in for the data set that the configuration names.
    """
    from revealed import fit, losses  # noqa: F401  the first run of a process is not to pay for these

    status, message = FINISHED, ""
    watch, model, history = None, None, None
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        began, busy = time.perf_counter(), time.process_time()
        try:
            data = data_of(config) if data is None else data
            model = _model(config, data)
            watch = Watch(data, config.epochs)
            model, history = _train(config, data, model, watch)
            watch.complete(model)
        except Exception as error:
            diverged = data is not None and model is not None and _beyond_bounds(model, data)
            status = DIVERGED if diverged else FAILED
            message = f"{type(error).__name__}: {error}"
        taken = {
            "seconds": time.perf_counter() - began,
            "processor_seconds": time.process_time() - busy,  # tells how busy the machine was
        }
    return {
        "config": config.plain(),
        "status": status,
        "message": message,
        "warnings": sorted({str(each.message) for each in caught}),
        "epochs": [] if watch is None else watch.rows(history),
        "epoch_seconds": statistics.median(watch.seconds) if watch and watch.seconds else None,
        **taken,
        "final": watch.last if watch is not None and status == FINISHED else None,
        "surroundings": {
            **_here(),
            "process": os.getpid(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    }


def judge(model: Any, data: DataSet, *, whole: bool = True) -> dict[str, dict[str, float]]:
    """The `MEASURES` on train, valid and test; unless `whole`, those that need no projection."""
    return {name: _measure(model, data, getattr(data, name), whole) for name in SPLITS}


def evaluation_epochs(epochs: int) -> set[int]:
    """After which epochs to judge: all of a short run, a dozen and the first few of a long one."""
    if epochs <= 12:
        return set(range(epochs + 1))
    evenly = np.linspace(0, epochs, 11).round().astype(int).tolist()
    return {0, 1, 2, 5, *evenly}


class Watch:
    """Asked by the training after every epoch: judges now and then, and takes the time between.

    That time is the processor's: a run has one thread, and the clock on the wall would time the
    other runs of the sweep too.
    """

    def __init__(self, data: DataSet, epochs: int) -> None:
        self._data, self._epochs = data, epochs
        self._points = evaluation_epochs(epochs)
        self._judged: dict[int, dict[str, dict[str, float]]] = {}
        self._epoch = -1
        self._since = 0.0
        self.seconds: list[float] = []
        """Of each epoch, without the judging."""

    def __call__(self, model: Any) -> dict[str, Any]:
        now = time.process_time()
        if self._epoch >= 0:
            self.seconds.append(now - self._since)
        self._epoch += 1
        if self._epoch in self._points:
            whole = self._epoch == self._epochs  # half of the time of judging is that of Gamma
            self._judged[self._epoch] = judge(model, self._data, whole=whole)
        self._since = time.process_time()
        return {}

    def complete(self, model: Any) -> None:
        """A run that ended early, since nothing was left to learn, stays where it is."""
        missing = [epoch for epoch in sorted(self._points) if epoch > self._epoch]
        if missing:
            last = judge(model, self._data)
            self._judged |= dict.fromkeys(missing, last)

    @property
    def last(self) -> dict[str, dict[str, float]]:
        return self._judged[self._epochs]

    def rows(self, history: History | None) -> list[dict[str, Any]]:
        """What was found after each epoch that was judged; without a history no losses."""
        losses = [] if history is None else [row["loss"] for row in history]
        return [
            {
                "epoch": epoch,
                "seconds": self.seconds[epoch - 1] if 0 < epoch <= len(self.seconds) else 0.0,
                "loss": losses[epoch] if epoch < len(losses) else None,
                **judged,
            }
            for epoch, judged in sorted(self._judged.items())
        ]


# --- the parts of a run --------------------------------------------------------------------------


def data_of(config: RunConfig) -> DataSet:
    """The data set that a configuration names, drawn with its seed."""
    return _draw(json.dumps(config.data, sort_keys=True), config.seed)


@lru_cache(maxsize=32)
def _draw(described: str, seed: int) -> DataSet:
    from revealed import datasets as data

    options = json.loads(described)
    name = options.pop("generator")
    if name not in GENERATORS:
        raise InputError(f"`generator` must be one of {', '.join(GENERATORS)}; got {name!r}.")
    return getattr(data, name)(tuple(options.pop("sizes")), seed=seed, **options)


def _model(config: RunConfig, data: DataSet) -> Any:
    from revealed.fit import KernelModel, LinearModel

    options = dict(config.model)
    kind, start = options.pop("kind"), options.pop("start", "zero")
    if kind == "kernel":
        return KernelModel(**options)
    if kind != "linear" or start not in ("zero", "random"):
        raise InputError(
            '`model` must be of kind "linear", with start "zero" or "random", or of kind "kernel"; '
            f"got {config.model!r}."
        )
    model = LinearModel(**options)
    if start == "random":
        _start_at_random(model, data, config.seed)
    return model


def _start_at_random(model: Any, data: DataSet, seed: int) -> None:
    """Weights as torch starts a linear layer; the same for every method that has the seed."""
    rng, d = np.random.default_rng([seed, 1]), data.train.contexts.shape[1]
    size, n = 1.0 / np.sqrt(d), data.problem.n_variables
    model.coef = rng.uniform(-size, size, (n, d))
    model.intercept = rng.uniform(-size, size, n) if model.fit_intercept else np.zeros(n)


def _train(config: RunConfig, data: DataSet, model: Any, watch: Watch) -> tuple[Any, History]:
    """The model, fitted, and what happened on the way."""
    from revealed.fit import erm, pocs
    from revealed.losses import make_loss
    from revealed.optimality.sets import OptimalitySet

    if config.optimiser == "lbfgs":
        return _train_estimator(config, data, model, watch)
    options = dict(config.method)
    name = options.pop("name")
    if name in OURS:
        options["threads"] = 1
    loss = make_loss(name, data.problem, **options)
    if loss.needs_true_costs != config.needs_true_costs:
        raise InputError(
            f"`needs_true_costs` must be {loss.needs_true_costs} for the method {config.method!r}."
        )
    margin = getattr(loss, "margin", 1.0) if name in OURS else 1.0
    margin = SMOOTHED_MARGIN if margin is None else margin
    sets = OptimalitySet(data.problem, data.train.decisions, margin=margin)
    given = (model, data.train.contexts, sets)
    if config.optimiser == "pocs":
        if name != "projection" or options.get("power", 2) != 2:
            raise InputError(
                "POCS minimizes the squared distance to the sets and nothing else; "
                f"the method {config.method!r} needs another optimiser."
            )
        return model, pocs(*given, max_iter=config.epochs, tol=0.0, threads=1, monitor=watch)
    history = erm(
        *given,
        loss=loss,
        true_costs=data.train.costs if loss.needs_true_costs else None,
        tol=0.0,
        monitor=watch,
        **config.settings,
    )
    return model, history


def _train_estimator(
    config: RunConfig, data: DataSet, model: Any, watch: Watch
) -> tuple[Any, History]:
    """`InverseRegressor` with its own defaults but for the settings of the run.

    Its noise is given as a share of the usual one, "noise_share", if at all.
    """
    from revealed.fit import InverseRegressor
    from revealed.fit.defaults import usual_noise
    from revealed.optimality.sets import OptimalitySet

    began = time.process_time()
    settings = {"model": model, "random_state": config.seed, "threads": 1} | config.training
    share = settings.pop("noise_share", None)
    if share is not None:
        sets = OptimalitySet(data.problem, data.train.decisions, margin=1.0)
        settings["noise"] = share * usual_noise(sets)
    estimator = InverseRegressor(data.problem, **settings)
    estimator.fit(data.train.contexts, data.train.decisions)
    taken = time.process_time() - began
    watch.seconds.append(taken / max(1, estimator.n_iter_))  # its steps do not stop to be judged
    return estimator.model_, estimator.history_


def _measure(model: Any, data: DataSet, split: Split, whole: bool) -> dict[str, float]:
    """The measures of `revealed.metrics` from one solve and, if `whole`, two projections."""
    from revealed import metrics

    costs = model.predict_cost(split.contexts)
    gap = data.problem.solve(costs).x - split.decisions
    regret = (split.costs * gap).sum(axis=1)
    optimum = np.abs((split.costs * split.decisions).sum(axis=1))
    given = {"costs": costs, "decisions": split.decisions}
    found = [(gap**2).sum(axis=1).mean(), regret.mean(), regret.sum() / optimum.sum()]
    if whole:
        found.append(metrics.suboptimality(data.problem, **given).mean())
        found.append(metrics.relative_suboptimality(data.problem, **given).mean())
    return {name: float(value) for name, value in zip(MEASURES, found, strict=False)}


def _beyond_bounds(model: Any, data: DataSet) -> bool:
    """Whether the model predicts what is no number, or no number to reckon with."""
    from revealed.fit.contexts import LARGEST

    try:
        costs = model.predict_cost(data.train.contexts)
    except Exception:  # it had not learned anything yet
        return False
    return not bool((np.abs(costs) <= LARGEST).all())


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch and the libraries of linear algebra: the runs are what is parallel."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _here() -> dict[str, Any]:
    """Machine and versions, looked up once in each process."""
    found = surroundings("", {})
    found["hardware"].pop("load_before")
    return {name: found[name] for name in ("hardware", "versions")}


# --- the command ---------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench run`."""
    parser.add_argument(
        "what",
        metavar="CONFIG",
        help="JSON file of a configuration, a list of them or a finished run; or the key of a run "
        "of `revealed bench synthetic`",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder to keep the runs in; what it has is skipped"
    )
    add_where(parser)


def add_where(parser: argparse.ArgumentParser) -> None:
    """The options of every command that performs runs: where they are performed."""
    parser.add_argument("--jobs", type=positive, metavar="N", help="processes (one for each core)")
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="perform the runs on this Dask cluster instead"
    )


def run(args: argparse.Namespace) -> int:
    """Perform the configurations, print what was found; 1 if one failed or came out otherwise."""
    from .sweep import sweep

    asked = _read(args.what)
    configs = [RunConfig.read(content) for content in asked]
    runs = sweep(configs, args.out, jobs=args.jobs, scheduler=args.scheduler)
    show([_table(runs)])
    for each in runs:
        if each["message"]:
            print(f"{each['status']}: {each['message']}")
    recorded = [
        (content, each) for content, each in zip(asked, runs, strict=True) if "status" in content
    ]
    unlike = [
        RunConfig.read(each).key for content, each in recorded if not same_figures(content, each)
    ]
    if recorded and not unlike:
        print("as recorded")
    for key in unlike:
        print(f"not as recorded: {key}")
    return 1 if unlike or any(each["status"] == FAILED for each in runs) else 0


def same_figures(one: Run, other: Run) -> bool:
    """Whether two runs ended alike, to the digits that a file keeps."""
    return all(rounded(one[name]) == rounded(other[name]) for name in ("status", "final"))


def _read(what: str) -> list[dict[str, Any]]:
    """What a file or a key stands for: configurations, or runs that hold one."""
    path = Path(what)
    if not path.is_file():
        from ..synthetic.experiments import find

        return [find(what).plain()]
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{path.name} must be a JSON file; {error}.") from error
    return content if isinstance(content, list) else [content]


def _table(runs: list[Run]) -> Table:
    headings = ["part", "method", "optimiser", "step", "seed", "status"]
    headings += ["decision loss", "estimate loss", "regret", "seconds"]
    rows = []
    for each in runs:
        config, test = each["config"], (each["final"] or {}).get("test")
        step = "" if config["step"] is None else f"{config['step']:g}"
        cells = [config["part"], config["label"], config["optimiser"], step, str(config["seed"])]
        figures = ["", "", ""]
        if test:
            figures = [f"{test['decision_loss']:.3f}", f"{test['estimate_loss']:.4g}"]
            figures.append(f"{test['relative_regret']:.2%}")
        rows.append([*cells, each["status"], *figures, f"{each['seconds']:.1f}"])
    return Table("On test data", headings, rows, 6)
