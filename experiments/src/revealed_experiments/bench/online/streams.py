"""A stream of noisy paths, as learners with one pass see it, and costs that drift."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import revealed as rv
from revealed.datasets import noisy_paths
from revealed.fit import LBFGS, POCS, Huber
from revealed.fit.defaults import DRAWS, STRENGTH, usual_noise
from revealed.metrics.sameness import same_decision
from revealed.problems.linear import LinearProgram

from .page import FIXED, FORMER

UNSEEN = 1000
SIDE, FEATURES, DEGREE, NOISE = 5, 5, 4, 0.5
FORGETTING = {"nothing forgotten": 1.0, "forgetting 0.99": 0.99, "forgetting 0.997": 0.997}
DRIFTS = ("none", "abrupt", "slow")
WINDOWS = 20


class Stream(NamedTuple):
    """Decisions as they come, with the costs that nobody sees."""

    problem: LinearProgram
    Z: np.ndarray
    C: np.ndarray
    X: np.ndarray


# --- one pass beside a fit to all -----------------------------------------------------------------


def repeated(sizes: list[int], seeds: range) -> Iterator[dict[str, Any]]:
    """A row for each learner, number of decisions seen and seed."""
    for seed in seeds:
        data = noisy_paths((max(sizes), 0, UNSEEN), degree=DEGREE, noise=NOISE, seed=seed)
        Z, X = data.train.contexts, data.train.decisions
        for size in sizes:
            est, seconds = _fitted(data.problem, Z[:size], X[:size])
            yield _row("fit", size, seed, est, data.test, seconds)
        learners: list[tuple[str, int, dict[str, Any]]] = [
            ("one by one", 1, {}),
            ("ten at a time", 10, {}),
            (FORMER, 1, _former(data.problem, X)),
        ]
        for name, chunk, settings in learners:
            est, seconds = rv.InverseRegressor(data.problem, threads=1, **settings), 0.0
            for start in range(0, max(sizes), chunk):
                began = time.process_time()
                est.partial_fit(Z[start : start + chunk], X[start : start + chunk])
                seconds += time.process_time() - began
                if start + chunk in sizes:
                    yield _row(name, start + chunk, seed, est, data.test, seconds)
        for size in sizes:  # all of it in one call
            est, began = rv.InverseRegressor(data.problem, threads=1), time.process_time()
            est.partial_fit(Z[:size], X[:size])
            yield _row("one call", size, seed, est, data.test, time.process_time() - began)


def _former(problem: Any, X: np.ndarray) -> dict[str, Any]:
    """What `partial_fit` was with nothing set: one projection, on the loss and with the ridge that
    the first decision led to."""
    noise = usual_noise(rv.OptimalitySet(problem, X[:1]))
    loss = Huber(delta=noise)
    return {"solver": POCS(n_draws=DRAWS), "noise": noise, "ridge": STRENGTH, "loss": loss}


def _fitted(problem: Any, Z: np.ndarray, X: np.ndarray) -> tuple[Any, float]:
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        est = rv.InverseRegressor(problem, threads=1).fit(Z, X)
    return est, time.process_time() - began


def _row(name: str, size: int, seed: int, est: Any, test: Any, seconds: float) -> dict[str, Any]:
    decided = est.predict(test.contexts)
    best = (test.costs * test.decisions).sum()
    return {
        "learner": name,
        "size": size,
        "seed": seed,
        "same": float(np.mean(same_decision(decided, test.decisions))),
        "regret": float((test.costs * decided).sum() / best - 1.0),
        "seconds": seconds,
    }


# --- drift ----------------------------------------------------------------------------------------


def drifting(kind: str, rounds: int, seed: int) -> Stream:
    """Costs as in `noisy_paths`, but with hidden weights that change: all at once in the middle, or
    little by little from the first round to the last."""
    problem = rv.problems.grid_shortest_path(SIDE, SIDE, directed="right-down")
    rng = np.random.default_rng([seed, DRIFTS.index(kind)])
    n = problem.n_variables
    first, last = rng.binomial(1, 0.5, (2, n, FEATURES)).astype(float)
    Z = rng.standard_normal((rounds, FEATURES))
    time_ = np.linspace(0.0, 1.0, rounds)
    share = {"none": 0.0 * time_, "abrupt": (time_ >= 0.5).astype(float), "slow": time_}[kind]
    before, after = Z @ first.T, Z @ last.T
    levels = before + share[:, None] * (after - before)
    C = ((levels / np.sqrt(FEATURES) + 3.0) ** DEGREE + 1.0) / 3.5**DEGREE
    C *= rng.uniform(1.0 - NOISE, 1.0 + NOISE, C.shape)
    return Stream(problem, Z, C, np.asarray(problem.solve(C).x))


def follow(kind: str, rounds: int, seed: int) -> dict[str, Any]:
    """The excess cost of every learner, window by window, as a share of the best cost there; a
    decision is made before it is learned from. "Best fixed" is the fit to the whole stream."""
    stream = drifting(kind, rounds, seed)
    fixed, _ = _fitted(stream.problem, stream.Z, stream.X)
    curves = {FIXED: _excess(stream, fixed.predict(stream.Z))}
    for name, forgetting in FORGETTING.items():
        decided = _decided_online(stream, forgetting)
        curves[name] = _excess(stream, decided)
    return {"kind": kind, "seed": seed, "rounds": rounds, "windows": curves}


def _decided_online(stream: Stream, forgetting: float) -> np.ndarray:
    solver = LBFGS(forgetting=forgetting)
    est = rv.InverseRegressor(stream.problem, solver=solver, threads=1)
    costs = np.zeros_like(stream.C)
    for k in range(len(stream.Z)):
        z = stream.Z[k : k + 1]
        costs[k] = est.predict_cost(z)[0] if k else 1.0
        est.partial_fit(z, stream.X[k : k + 1])
    return np.asarray(stream.problem.solve(costs).x)


def _excess(stream: Stream, decided: np.ndarray) -> list[float]:
    above = (stream.C * (decided - stream.X)).sum(axis=1)
    best = (stream.C * stream.X).sum(axis=1)
    parts = np.array_split(np.arange(len(above)), WINDOWS)
    return [float(above[part].sum() / best[part].sum()) for part in parts]
