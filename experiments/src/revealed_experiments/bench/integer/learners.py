"""The methods of `revealed bench integer`: one training loop for all losses, and our solver."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch.optim.swa_utils import AveragedModel

import revealed as rv
from revealed import losses

from .data import Data
from .names import CAVE, LAZY, LOOP, PFYL, SOLVER, SPO, TIGHT

BATCH = 32


class Settings(NamedTuple):
    """Of one kind of problem, the same for every seed."""

    lr: float
    """Adam's learning rate: PyEPO's for knapsacks, CaVE's for tours and routes."""
    margin: float
    """Of our losses; `noise` likewise. Chosen by test regret on other seeds: 300 to 302 for
    knapsacks, 300 for tours; routes take those of tours."""
    noise: float


SETTINGS = {
    "knapsack": Settings(lr=1e-2, margin=0.0, noise=1.0),
    "tsp": Settings(lr=5e-2, margin=1.0, noise=1.0),
    "cvrp": Settings(lr=5e-2, margin=1.0, noise=1.0),
}
Learner = Callable[[Data, int, int, Settings], dict[str, Any]]
"""(data, seed, epochs, settings) -> what was learned and how long it took: `costs` of the test
contexts, `averaged` those of the mean of the networks in the second half of training, `epochs` in
seconds each, `cpu` in processor seconds each."""


def settings_of(name: str) -> Settings:
    """Of a problem, such as tsp-20."""
    return SETTINGS[name.partition("-")[0]]


def by_loss(make: Callable[[Any, Settings], Any], *, on_sets: bool = False) -> Learner:
    """A linear model trained by Adam on a loss; `on_sets` for those that take sets, built once."""

    def learn(data: Data, seed: int, epochs: int, settings: Settings) -> dict[str, Any]:
        torch.manual_seed(seed)
        loss_fn, train = make(data.problem, settings), data.train
        net = torch.nn.Linear(train.contexts.shape[1], data.problem.n_variables).double()
        optimizer = torch.optim.Adam(net.parameters(), lr=settings.lr)
        Z, C, X = (torch.from_numpy(part) for part in train)
        margin = settings.margin
        sets = rv.OptimalitySet(data.problem, train.decisions, margin) if on_sets else None
        order = np.random.default_rng(seed)
        seconds, cpu = [], []
        mean = AveragedModel(net)
        for epoch in range(epochs):
            before, used = time.perf_counter(), time.process_time()
            for index in np.split(order.permutation(len(Z)), range(BATCH, len(Z), BATCH)):
                observed = X[index] if sets is None else sets[index]
                truth = {"true_costs": C[index]} if loss_fn.needs_true_costs else {}
                value = loss_fn(net(Z[index]), observed, **truth)
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
                if epoch >= epochs // 2:
                    mean.update_parameters(net)
            seconds.append(time.perf_counter() - before)
            cpu.append(time.process_time() - used)
        with torch.no_grad():
            costs, averaged = (
                of(torch.from_numpy(data.test.contexts)).numpy() for of in (net, mean)
            )
        return {"costs": costs, "averaged": averaged, "epochs": seconds, "cpu": cpu}

    return learn


def to_the_minimum(data: Data, seed: int, epochs: int, settings: Settings) -> dict[str, Any]:
    """`InverseRegressor`, until the oracle finds no cut that is missing."""
    before, used = time.perf_counter(), time.process_time()
    est = rv.InverseRegressor(
        data.problem,
        margin=settings.margin,
        noise=settings.noise,
        ridge=1e-3,
        solver=rv.fit.LBFGS(tol=1e-3),
        random_state=seed,
        threads=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        est.fit(data.train.contexts, data.train.decisions)
    told: Any = est.certificate_
    return {
        "costs": est.predict_cost(data.test.contexts),
        "epochs": [time.perf_counter() - before],
        "cpu": [time.process_time() - used],
        "gap": float(told.relative_gap),
        "calls": float(est.history_.rows[-1]["calls"]),
    }


def by_tightened_rows(data: Data, seed: int, epochs: int, settings: Settings) -> dict[str, Any]:
    """The default `InverseRegressor` on rows that are made tight; asks no oracle."""
    before, used = time.perf_counter(), time.process_time()
    program = data.problem.tightened(data.train.decisions)
    est = rv.InverseRegressor(program, random_state=seed, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        est.fit(data.train.contexts, data.train.decisions)
    return {
        "costs": est.predict_cost(data.test.contexts),
        "epochs": [time.perf_counter() - before],
        "cpu": [time.process_time() - used],
    }


def _smoothed(every: int) -> Callable[[Any, Settings], Any]:
    """Ours, asking the oracle in every so many steps."""

    def make(problem: Any, settings: Settings) -> Any:
        return losses.SmoothedProjectionLoss(
            problem,
            settings.margin,
            sigma=settings.noise,
            n_samples=1,
            max_calls=1,
            ask_every=every,
            threads=1,
        )

    return make


def _relaxed_cave(problem: Any, settings: Settings) -> Any:
    """CaVE's cone of the rows and bounds that are tight; its own code adds subtours for tours."""
    return losses.CaveLoss(problem.relaxation)


LEARNERS: dict[str, Learner] = {
    SPO: by_loss(lambda problem, _: losses.SPOPlusLoss(problem)),
    PFYL: by_loss(lambda problem, _: losses.FenchelYoungLoss(problem, n_samples=1)),
    LOOP: by_loss(_smoothed(1), on_sets=True),
    CAVE: by_loss(_relaxed_cave),
    SOLVER: to_the_minimum,
    TIGHT: by_tightened_rows,
    LAZY: by_loss(_smoothed(4), on_sets=True),
}
