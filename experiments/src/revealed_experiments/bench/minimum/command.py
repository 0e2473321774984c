"""`revealed bench minimum`: how many projections a fit takes to the minimum of its loss.

Every data set is fitted with default settings, and again without smoothing. POCS (the paper's
Algorithm 1) then minimizes the same function from the same start. Both are compared where POCS
ends, and at gaps of 10% to 0.01%.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ..pages import publish
from ..record import surroundings
from ..tables import target
from . import page

GAP, EVALUATIONS = 1e-6, 500
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)
"""Gaps, as shares of the minimum, at which projections are counted."""
OBJECTIVES: dict[str, dict[str, Any]] = {"default": {}, "not smoothed": {"noise": 0.0}}
FEWER = {"path 0": 50, "path 1": 50, "town": 20}
"""How many times fewer projections than POCS are asked for."""
LARGE, LARGE_GAP, LARGE_SHARE, LARGE_POCS = 100_000, 1e-4, 0.2, 150
CURVE = 120
"""Points of a curve that are kept."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench minimum`."""
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder with the paper's sp_seed0.npz and sp_seed1.npz (else our own generator)",
    )
    parser.add_argument("--quick", action="store_true", help="smoke test: one case, few steps")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results/minimum.json"),
        help="JSON file to write (%(default)s)",
    )
    parser.add_argument(
        "--page", type=Path, default=Path("docs/pocs.md"), help="page to write (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Fit, compare, print the tables, write JSON, page and picture; 1 if a target was missed."""
    from .cases import all_cases

    command = "revealed bench minimum"
    command += f" --data {args.data.name}" if args.data else ""
    content = surroundings(command + (" --quick" if args.quick else ""), {"gap": GAP})
    content |= {"benchmark": "minimum", "results": []}
    cases = all_cases(args.data)
    for key in ["feed"] if args.quick else cases:
        case = cases[key]()
        for name, options in OBJECTIVES.items():
            _say(f"{case.name}, {name}")
            most = 30 if args.quick else case.pocs
            content["results"].append({"case": key, **compare(case, name, options, most)})
    sizes = (200, 400) if args.quick else (LARGE // 10, LARGE)
    content["large"] = [large(size) for size in sizes]
    content["targets"] = [] if args.quick else _targets(content)
    return publish(content, page.make_page, args.out, args.page)


def compare(case: Any, name: str, options: dict[str, Any], most: int) -> dict[str, Any]:
    """One data set: the fit, POCS on the same function, and where each was after how much work."""
    from revealed.fit import POCS, Huber, InverseRegressor

    common = {"random_state": 0, **options}
    est, seconds = _timed(InverseRegressor(case.problem, **common), case)
    loss = Huber(delta=est.loss_.delta) if est.loss_.power == "huber" else "squared"
    same = {"noise": est.loss_.noise, "loss": loss, "ridge": est.ridge_, "random_state": 0}
    solver = POCS(max_iter=most, tol=0.0, n_draws=est.loss_.draws)
    steps, pocs_seconds = _timed(InverseRegressor(case.problem, solver=solver, **same), case)
    bound, facts = est.certificate_.lower_bound, est.certificate_.convergence
    mine = _curve(est.history_, bound)
    theirs = _curve(steps.history_, bound, per_step=len(case.contexts) * est.loss_.count)
    return {
        "name": case.name,
        "objective": name,
        "samples": len(case.contexts),
        "variables": int(case.decisions.shape[1]),
        "ridge": est.ridge_,
        "value": facts.value,
        "relative_gap": est.certificate_.relative_gap,
        "converged": facts.converged,
        "evaluations": facts.evaluations,
        "projections": facts.projections,
        "seconds": seconds,
        "pocs": {
            "iterations": most,
            "relative_gap": theirs["gap"][-1],
            "projections": theirs["projections"][-1],
            "seconds": pocs_seconds,
        },
        "levels": {f"{level:g}": _at(mine, theirs, level) for level in LEVELS},
        "at_the_end": _at(mine, theirs, theirs["gap"][-1]),
        "held": {"ours": _held(est, case), "POCS": _held(steps, case)},
        "curves": {"L-BFGS": _thinned(mine), "POCS": _thinned(theirs)},
    }


def large(size: int) -> dict[str, Any]:
    """Paths on the 5x5 grid, many of them: seconds of a fit to a gap of 1e-4 and of 150 POCS
    iterations on the same function, each in a process of its own for its peak memory."""
    from joblib import Parallel, delayed

    work = [delayed(_large)(size, solver) for solver in ("lbfgs", "pocs")]
    ours, pocs = (Parallel(n_jobs=2, pre_dispatch=1)([one])[0] for one in work)  # pyright: ignore
    return {"samples": size, "ours": ours, "pocs": pocs}


def _large(size: int, solver: str) -> dict[str, Any]:
    import resource

    from revealed.datasets import noisy_paths
    from revealed.fit import LBFGS, POCS, InverseRegressor

    data = noisy_paths((size, 0, 0), seed=1)
    Z, X = data.train.contexts, data.train.decisions
    kind: Any = LBFGS if solver == "lbfgs" else POCS
    # What "auto" comes to on these paths.
    given = {"noise": 1.9, "loss": "huber", "ridge": 0.15 / size, "random_state": 0}
    few = InverseRegressor(data.problem, solver=kind(max_iter=2, n_draws=2), **given)
    whole = kind(tol=LARGE_GAP, n_draws=2)
    if kind is POCS:
        whole = POCS(max_iter=LARGE_POCS, tol=0.0, n_draws=2)
    with warnings.catch_warnings(action="ignore"):
        few.fit(Z[:50], X[:50])  # compiles
        before = time.perf_counter()
        est = few.set_params(solver=whole).fit(Z, X)
    told: Any = est.certificate_
    return {
        "seconds": time.perf_counter() - before,
        "relative_gap": told.relative_gap,
        "converged": told.converged,
        "value": told.value,
        "projections": told.convergence.projections,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _timed(est: Any, case: Any) -> tuple[Any, float]:
    with warnings.catch_warnings(action="ignore"):  # POCS does not converge
        est.fit(case.contexts[:40], case.decisions[:40]) if est.problem.n_instances is None else 0
        before = time.perf_counter()
        est.fit(case.contexts, case.decisions)
    return est, time.perf_counter() - before


def _curve(history: Any, bound: float, per_step: int | None = None) -> dict[str, list[float]]:
    """Projections so far and the smallest gap so far, relative to the minimum."""
    loss = np.minimum.accumulate(np.asarray(history["loss"], float))
    made = (
        np.asarray(history["projections"], float)
        if per_step is None
        else per_step * (1.0 + np.arange(len(loss)))
    )
    return {"projections": made.tolist(), "gap": ((loss - bound) / bound).tolist()}


def _at(mine: dict[str, Any], theirs: dict[str, Any], gap: float) -> dict[str, float | None]:
    """Projections that each needs for a gap, and the ratio; None where it is not reached."""
    found: dict[str, float | None] = {}
    for name, curve in (("ours", mine), ("POCS", theirs)):
        there = np.flatnonzero(np.array(curve["gap"]) <= gap)
        found[name] = curve["projections"][there[0]] if there.size else None
    ours, pocs = found["ours"], found["POCS"]
    found["times_fewer"] = pocs / ours if ours and pocs else None
    return found


def _thinned(curve: dict[str, list[float]]) -> dict[str, list[float]]:
    size = len(curve["gap"])
    chosen = np.unique(np.geomspace(1, size, CURVE).astype(int) - 1)
    return {name: [values[k] for k in chosen] for name, values in curve.items()}


def _held(est: Any, case: Any) -> float:
    """Share of held-out decisions that are optimal under the predicted costs."""
    from revealed import metrics

    costs = est.predict_cost(case.held_contexts)
    each = metrics.accuracy(case.held_problem, costs=costs, decisions=case.held_decisions)
    return float(np.mean(each))


def _targets(content: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for row in content["results"]:
        if row["objective"] == "default":
            words = f"{row['name']}: "
            found.append(target(words + "relative gap, default settings", row["relative_gap"], GAP))
            found.append(target(words + "evaluations", row["evaluations"], EVALUATIONS))
            if row["case"] in FEWER:
                fewer = row["at_the_end"]["times_fewer"] or 0.0
                words += "times fewer projections than POCS"
                found.append(target(words, fewer, FEWER[row["case"]], at_least=True))
    last, first = content["large"][-1], content["large"][0]
    share = last["ours"]["seconds"] / last["pocs"]["seconds"]
    count = f"{last['samples']:,} paths: "
    found.append(target(count + "relative gap", last["ours"]["relative_gap"], LARGE_GAP))
    found.append(target(count + "seconds over those of POCS", share, LARGE_SHARE))
    found.append(target(count + "peak memory, MiB", last["ours"]["peak_mib"], 2048))
    growth = last["ours"]["seconds"] / first["ours"]["seconds"]
    times = last["samples"] / first["samples"]
    found.append(target(f"{times:g} times as many samples: times the seconds", growth, 1.2 * times))
    return found


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
