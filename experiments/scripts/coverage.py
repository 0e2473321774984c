"""How often 95% intervals of coefficients cover what they should, on simulated data.

    python experiments/scripts/coverage.py --out experiments/results/coverage.json

A world is a problem with true coefficients: costs are linear in the context, the decision maker
adds normal noise of his own to every cost. One feature has no effect, one never changes. For every
data set the intervals of the library are compared with the true coefficients and with the minimizer
of the expected loss, found from 20,000 decisions; both without the directions that the decisions
of the data set cannot tell, and at the length of the fit.

Letters: B decisions, n cost entries, d features.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import revealed as rv
from revealed.fit import CoefficientIntervals, DistanceLoss, LinearModel, coefficient_intervals
from revealed.fit.defaults import default_loss, default_ridge
from revealed.fit.lbfgs import lbfgs

KINDS = ("path", "knapsack", "assignment")
LARGE = 20_000
SIZES, NOISES = (200, 400), (0.5, 1.0)
EFFECTS, SILENT, CONSTANT = 2, 2, 3
"""Features with an effect, the number of the one without, and of the one that never changes."""


class World(NamedTuple):
    """A problem, true costs coef z + level + noise, and what the fit tends to."""

    problem: rv.LinearProgram
    coef: np.ndarray
    level: np.ndarray
    noise: float
    loss: DistanceLoss
    limit: np.ndarray
    """(n, d + 1) standardized coefficients of the fit to `LARGE` decisions, levels last."""


def problem_of(kind: str) -> rv.LinearProgram:
    """The smallest of their kind that leave something to tell."""
    if kind == "path":
        return rv.problems.grid_shortest_path(4, 4, directed="right-down")
    if kind == "knapsack":
        return rv.problems.knapsack([3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 5.0], 20.0)
    rows = np.kron(np.eye(4), np.ones((1, 4)))
    columns = np.kron(np.ones((1, 4)), np.eye(4))
    return rv.LinearProgram(A_eq=np.vstack([rows, columns]), b_eq=np.ones(8), ub=1.0)


def world_of(kind: str, noise: float, seed: int) -> World:
    """A world with coefficients of its own, and the fit to many of its decisions."""
    problem, rng = problem_of(kind), np.random.default_rng(seed)
    n = problem.n_variables
    coef = np.zeros((n, CONSTANT + 1))
    coef[:, :EFFECTS] = rng.standard_normal((n, EFFECTS))
    level = rng.uniform(-1.0, 1.0, n) + {"path": 5.0, "knapsack": -8.0}.get(kind, 0.0)
    half = World(problem, coef, level, noise, DistanceLoss(), np.zeros(0))
    Z, X = sample(half, LARGE, rng)
    sets = rv.OptimalitySet(problem, X)
    loss = default_loss(sets)
    model = LinearModel(ridge=0.1 * default_ridge(sets), standardize=True)
    lbfgs(model, Z, sets, loss=loss, tol=1e-5, max_iter=2000, describe_fit=False)
    # As many draws for each decision as a small data set has.
    loss = DistanceLoss(power=loss.power, delta=loss.delta, noise=loss.noise, draws=8)
    return half._replace(loss=loss, limit=model.standardized)


def sample(world: World, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Contexts (B, d) and decisions (B, n)."""
    Z = rng.standard_normal((size, CONSTANT + 1))
    Z[:, CONSTANT] = 1.0
    C = Z @ world.coef.T + world.level
    C += world.noise * rng.standard_normal(C.shape)
    return Z, np.asarray(world.problem.solve(C).x)


def judged(world: World, size: int, seed: int, refits: int = 50) -> dict[str, Any]:
    """One data set: how many of its intervals cover, and how many there are."""
    Z, X = sample(world, size, np.random.default_rng(seed))
    start = time.perf_counter()
    sets = rv.OptimalitySet(world.problem, X)
    found = coefficient_intervals(Z, sets, loss=world.loss, refits=refits)
    spread = np.append(np.where(Z.std(axis=0) > 1e-9, Z.std(axis=0), 1.0), 1.0)
    truth = np.column_stack([world.coef * spread[:-1], world.level + world.coef @ Z.mean(axis=0)])
    told = found.has_interval
    return {
        "seconds": time.perf_counter() - start,
        "told": int(told.sum()),
        "not_told": int((~told).sum()),
        "untellable_with_interval": int(
            told[:, CONSTANT].sum() + told[~found.identified.entries].sum()
        ),
        "truth": _covered(found, spread, truth),
        "limit": _covered(found, spread, world.limit),
        "silent": int(told[:, SILENT].sum()),
        "silent_clear": int((found.clear & told)[:, SILENT].sum()),
        "effects": int(told[:, :EFFECTS].sum()),
        "effects_clear": int((found.clear & told)[:, :EFFECTS].sum()),
    }


def _covered(found: CoefficientIntervals, spread: np.ndarray, target: np.ndarray) -> int:
    """How many intervals hold the standardized `target` (n, d + 1) at the length of the fit."""
    told = found.has_interval
    if not told.any():
        return 0
    target = found.identified.canonical(target)[told]
    value, low, high = (
        np.asarray(part * spread)[told] for part in (found.value, found.low, found.high)
    )
    target = target * (np.linalg.norm(value) / np.linalg.norm(target))
    return int(((low <= target) & (target <= high)).sum())


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Shares over all intervals, and the standard error of the first over data sets."""
    with_some = [row for row in rows if row["told"]]
    total = {name: sum(row[name] for row in rows) for name in rows[0]}
    shares = np.array([row["truth"] / row["told"] for row in with_some])
    return {
        "data_sets": len(rows),
        "without_intervals": len(rows) - len(with_some),
        "intervals": total["told"],
        "cover_truth": total["truth"] / total["told"],
        "standard_error": float(shares.std(ddof=1) / np.sqrt(len(shares))),
        "cover_limit": total["limit"] / total["told"],
        "false_effects": total["silent_clear"] / total["silent"],
        "found_effects": total["effects_clear"] / total["effects"],
        "untellable_with_interval": total["untellable_with_interval"],
        "seconds": total["seconds"] / len(rows),
    }


def main() -> None:
    """Print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=67, help="data sets of each kind (67)")
    parser.add_argument("--worlds", type=int, default=4, help="worlds of each kind (4)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    table: dict[str, Any] = {}
    print("problem     sets none  covers truth   covers limit  false effects  found  seconds")
    for kind in args.kinds:
        rows = []
        for w in range(args.worlds):
            key = [args.seed, KINDS.index(kind), w]
            seed = int(np.random.default_rng(key).integers(2**31))
            world = world_of(kind, NOISES[w % 2], seed)
            for s in range(w, args.sets, args.worlds):
                rows.append(judged(world, SIZES[s // args.worlds % 2], seed + 1 + s))
        table[kind] = told = summary(rows)
        print(
            f"{kind:11s} {told['data_sets']:4d} {told['without_intervals']:4d}  "
            f"{told['cover_truth']:.3f} ±{told['standard_error']:.3f}   "
            f"{told['cover_limit']:.3f}         {told['false_effects']:.3f}          "
            f"{told['found_effects']:.3f}  {told['seconds']:.2f}",
            flush=True,
        )
    if args.out:
        content = {"seed": args.seed, "level": 0.95, "refits": 50, "sizes": SIZES, "noises": NOISES}
        content["kinds"] = table
        args.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
