"""The methods of `revealed bench integer`: one training loop for all losses, and our solver."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

import revealed as rv
from revealed import losses

from .data import Data

BATCH = 32
STEPS = {"knapsack": 1e-2, "tsp": 5e-2, "cvrp": 5e-2}
"""Adam's learning rates: PyEPO's for knapsacks, CaVE's for tours and routes."""

Learner = Callable[[Data, int, int, float], dict[str, Any]]
"""(data, seed, epochs, learning rate) -> what was learned and how long it took: `costs` of the test contexts,
`epochs` in seconds each."""


def by_loss(make: Callable[[Any], Any], *, on_sets: float | None = None) -> Learner:
    """A linear model trained by Adam on a loss; `on_sets` is the margin for those that take sets,
    built once."""

    def learn(data: Data, seed: int, epochs: int, lr: float) -> dict[str, Any]:
        torch.manual_seed(seed)
        loss_fn, train = make(data.problem), data.train
        net = torch.nn.Linear(train.contexts.shape[1], data.problem.n_variables).double()
        optimizer = torch.optim.Adam(net.parameters(), lr=lr)
        Z, C, X = (torch.from_numpy(part) for part in train)
        sets = None if on_sets is None else rv.OptimalitySet(data.problem, train.decisions, on_sets)
        order, seconds = np.random.default_rng(seed), []
        for _ in range(epochs):
            before = time.perf_counter()
            for index in np.split(order.permutation(len(Z)), range(BATCH, len(Z), BATCH)):
                observed = X[index] if sets is None else sets[index]
                truth = {"true_costs": C[index]} if loss_fn.needs_true_costs else {}
                value = loss_fn(net(Z[index]), observed, **truth)
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
            seconds.append(time.perf_counter() - before)
        with torch.no_grad():
            costs = net(torch.from_numpy(data.test.contexts)).numpy()
        return {"costs": costs, "epochs": seconds}

    return learn


def by_solver(**options: Any) -> Learner:
    """`InverseRegressor`, to the minimum over all cuts that the oracle finds."""

    def learn(data: Data, seed: int, epochs: int, lr: float) -> dict[str, Any]:
        before = time.perf_counter()
        est = rv.InverseRegressor(data.problem, random_state=seed, threads=1, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            est.fit(data.train.contexts, data.train.decisions)
        told: Any = est.certificate_
        return {
            "costs": est.predict_cost(data.test.contexts),
            "epochs": [time.perf_counter() - before],
            "gap": float(told.relative_gap),
            "calls": float(est.history_.rows[-1]["calls"]),
        }

    return learn


def _smoothed(sigma: float, margin: float) -> Callable[[Any], Any]:
    return lambda problem: losses.SmoothedProjectionLoss(
        problem, margin, sigma=sigma, n_samples=1, max_calls=1, threads=1
    )


def _projection(problem: Any) -> Any:
    return losses.ProjectionLoss(problem, 1.0, max_calls=1, threads=1)


def _relaxed_cave(problem: Any) -> Any:
    """CaVE's cone of the rows and bounds that are tight; its own code adds subtours for tours."""
    return losses.CaveLoss(problem.relaxation)


SPO, PFYL, LOOP, NOISY_LOOP = "SPO+ (true costs)", "PFYL", "ours, loop", "ours, loop, noise 1"
SOLVER, CAVE = "ours, to the minimum", "CaVE+ (rows only)"
LEARNERS: dict[str, Learner] = {
    SPO: by_loss(losses.SPOPlusLoss),
    PFYL: by_loss(lambda problem: losses.FenchelYoungLoss(problem, n_samples=1)),
    LOOP: by_loss(_projection, on_sets=1.0),
    NOISY_LOOP: by_loss(_smoothed(1.0, 1.0), on_sets=1.0),
    CAVE: by_loss(_relaxed_cave),
    SOLVER: by_solver(noise=1.0, margin=1.0, ridge=1e-3, solver=rv.fit.LBFGS(tol=1e-3)),
}
