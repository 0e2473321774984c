"""What `revealed bench learning` measures: four experiments, each returning plain figures."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
from scipy import sparse

from revealed.datasets import DataSet, Split, noisy_paths
from revealed.fit import LinearModel, pocs
from revealed.optimality.sets import OptimalitySet
from revealed.projection import project

Figures = dict[str, Any]
MARGIN = 1.0


def against_usual_loop(data: DataSet, iterations: int, timed: int, rounds: int) -> Figures:
    """POCS through our projection and through CVXPY with ECOS: the same iterates, in turn.

    The usual loop is timed on its first iterations and scaled, since it takes the same time for
    each. Building the sets and compiling either program is left out on both sides.
    """
    sets = OptimalitySet(data.problem, data.train.decisions, margin=MARGIN)
    contexts = data.train.contexts
    pocs(_model(data), contexts, sets, max_iter=2, tol=0.0)  # compile, or load what was compiled
    usual = _UsualLoop(data, sets)
    ours: dict[str, list[float]] = {"1": [], "all": []}
    theirs, values = [], np.zeros(0)
    for _ in range(rounds):
        for threads in ours:
            started = time.perf_counter()
            limit = 1 if threads == "1" else None
            history = pocs(
                _model(data), contexts, sets, max_iter=iterations, tol=0.0, threads=limit
            )
            ours[threads].append(time.perf_counter() - started)
            values = history["h"]
        theirs.append(usual.run(timed))
    each = statistics.median(theirs) / timed
    return {
        "data": data.name,
        "samples": len(contexts),
        "iterations": iterations,
        "ours_s": {threads: statistics.median(times) for threads, times in ours.items()},
        "usual_iterations_timed": timed,
        "usual_s_per_iteration": each,
        "usual_s_scaled": each * iterations,
        "ratio": {t: each * iterations / statistics.median(times) for t, times in ours.items()},
        # At the same iterate; what is left is the accuracy of ECOS at its default tolerance.
        "relative_gap_in_h": abs(usual.h - values[timed - 1]) / values[timed - 1],
    }


class _UsualLoop:
    """One CVXPY problem with parameters, solved sample by sample, then the same least squares."""

    def __init__(self, data: DataSet, sets: OptimalitySet) -> None:
        from ..projection.cases import Case
        from ..projection.paper_route import ecos_as_published

        self._data = data
        self._costs = np.zeros((len(sets), data.problem.n_variables))
        self._case = Case(
            name=data.name,
            regime="learning",
            costs=self._costs,
            A_eq=sparse.csr_array(data.problem.A_eq),  # type: ignore[arg-type]
            A_ub=sparse.csr_array(data.problem.A_ub),  # type: ignore[arg-type]
            entry_state=np.asarray(sets.entry_state),
            row_active=np.asarray(sets.row_active),
            margin=MARGIN,
            sets=sets,
        )
        (self._rival,) = ecos_as_published(self._case)
        self._rival.prepare(self._case)
        self.h = 0.0
        """At the last iterate that was projected."""

    def run(self, iterations: int) -> float:
        """Seconds for that many iterations from a start of 0."""
        model = _model(self._data)
        features = model.prepare(self._data.train.contexts, self._costs.shape[1])
        started = time.perf_counter()
        for _ in range(iterations):
            self._costs[:] = model.cost(features)  # the program reads this array
            points = np.array([self._rival.solve(i) for i in range(len(self._costs))])
            self.h = float(0.5 * ((points - self._costs) ** 2).sum(axis=1).mean())
            model.add(features, self._costs, points)
            model.refit()
        return time.perf_counter() - started


def _model(data: DataSet) -> LinearModel:
    return LinearModel(fit_intercept=not (data.train.contexts[:, -1] == 1.0).all())


# --- growth with the number of samples -----------------------------------------------------------


def growth(sizes: tuple[int, ...], iterations: int) -> Figures:
    """Seconds an iteration and peak memory for each number of samples, in a process of its own."""
    rows = [_in_new_process(size, iterations) for size in sizes]
    total = [row["projection_s"] + row["least_squares_s"] for row in rows]
    return {
        "iterations": iterations,
        "rows": rows,
        "exponent": float(np.polyfit(np.log(sizes), np.log(total), 1)[0]),
        # 1 when a further sample costs what a sample costs.
        "time_a_sample_last_over_first": (total[-1] / sizes[-1]) / (total[0] / sizes[0]),
    }


def _in_new_process(size: int, iterations: int) -> Figures:
    """The peak of a process never falls again, so every size needs a process of its own."""
    command = [
        sys.executable,
        "-m",
        __spec__.name,
        str(size),
        str(iterations),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)


def _grow(size: int, iterations: int) -> Figures:
    """Median seconds of an iteration, without the first, which has no warm start."""
    import resource

    warm = noisy_paths((8, 0, 0), seed=1)
    few = OptimalitySet(warm.problem, warm.train.decisions, margin=MARGIN)
    pocs(LinearModel(), warm.train.contexts, few, max_iter=2)  # load the compiled kernels
    data = noisy_paths((size, 0, 0), seed=42)
    sets = OptimalitySet(data.problem, data.train.decisions, margin=MARGIN)
    history = pocs(LinearModel(), data.train.contexts, sets, max_iter=iterations, tol=0.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "samples": size,
        "projection_s": float(np.median(history["projection_seconds"][1:])),
        "least_squares_s": float(np.median(history["fit_seconds"][1:])),
        "unsolved": int(history["unsolved"].sum()),
        "peak_mib": (peak if sys.platform == "darwin" else 1024 * peak) / 2**20,
    }


# --- warm starts and inner steps -----------------------------------------------------------------


def warm_start_gain(side: int, samples: int, iterations: int) -> Figures:
    """Newton steps and time of the projections of one POCS run, with and without warm starts."""
    data = noisy_paths((samples, 0, 0), side=side, seed=42)
    found = {name: _projections(data, iterations, warm=warm) for name, warm in _STARTS.items()}
    return {
        "data": data.name,
        "samples": samples,
        "iterations": iterations,
        **found,
        "times_fewer_steps": found["cold"]["steps"] / found["warm"]["steps"],
        "times_faster": found["cold"]["us"] / found["warm"]["us"],
    }


_STARTS = {"cold": False, "warm": True}


def _projections(data: DataSet, iterations: int, *, warm: bool) -> Figures:
    """Mean steps and microseconds a projection from the second iteration on."""
    sets = OptimalitySet(data.problem, data.train.decisions, margin=MARGIN)
    model = LinearModel()
    features = model.prepare(data.train.contexts, data.problem.n_variables)
    steps, seconds, last = [], [], None
    for _ in range(iterations):
        costs = model.cost(features)
        started = time.perf_counter()
        near = project(costs, sets, warm_start=last if warm else None)
        seconds.append(time.perf_counter() - started)
        steps.append(float(np.mean(near.iterations)))
        model.add(features, costs, near.point)
        model.refit()
        last = near
    each = float(np.sum(seconds[1:])) / (len(sets) * max(1, iterations - 1))
    return {"steps": float(np.mean(steps[1:])), "us": 1e6 * each}


def inner_step_tradeoff(
    samples: int, epochs: int, choices: tuple[int, ...], seeds: tuple[int, ...]
) -> list[Figures]:
    """Several Adam updates for each projection: what an epoch costs, and what it reaches."""
    sets_of = {}
    for seed in seeds:
        data = noisy_paths((samples, 0, samples), seed=seed)
        sets = OptimalitySet(data.problem, data.train.decisions, margin=MARGIN)
        sets_of[seed] = data, sets
    return [_inner(sets_of, steps, epochs) for steps in choices]


def _inner(sets_of: dict[int, tuple[DataSet, OptimalitySet]], steps: int, epochs: int) -> Figures:
    from revealed import metrics
    from revealed.fit import erm

    seconds, losses, early, regrets = [], [], [], []
    for seed, (data, sets) in sets_of.items():
        model, test = LinearModel(), data.test
        started = time.perf_counter()
        history = erm(
            model,
            data.train.contexts,
            sets,
            optimizer="adam",
            lr=1e-2,
            max_epochs=epochs,
            inner_steps=steps,
            seed=seed,
            tol=0.0,
        )
        seconds.append(time.perf_counter() - started)
        losses.append(history["h"][-1])
        early.append(history["h"][1])
        regrets.append(_regret(metrics, data, test, model))
    return {
        "inner_steps": steps,
        "epochs": epochs,
        "seeds": len(sets_of),
        "seconds_an_epoch": float(np.mean(seconds)) / epochs,
        "h_in_second_epoch": float(np.mean(early)),
        "h": float(np.mean(losses)),
        "test_regret": float(np.mean(regrets)),
    }


def _regret(metrics: Any, data: DataSet, test: Split, model: LinearModel) -> float:
    return metrics.relative_regret(
        data.problem,
        costs=model.predict_cost(test.contexts),
        decisions=test.decisions,
        true_costs=test.costs,
    )


if __name__ == "__main__":
    print(json.dumps(_grow(int(sys.argv[1]), int(sys.argv[2]))))
