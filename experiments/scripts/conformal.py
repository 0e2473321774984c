"""Do conformal cones cover what they state, and what do robust decisions cost?

    python experiments/scripts/conformal.py --out experiments/results/conformal.json

Three kinds of decisions, each made under costs with noise of the decision maker's own, so that no
model explains them all. For each of 10 training sets a model is fitted to 200 decisions; its other
1,200 are split 20 times at random into 200 to calibrate on and 1,000 to judge by: 200 splits for
each kind. Coverage is the share of judged samples whose cone contains a cost that explains the
decision. Robust and plain decisions are compared on 40 samples of each training set: by the worst
cost over the cone, at the scale of the prediction, and by the true cost without the noise.

Letters: B decisions, n cost entries.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import revealed as rv
from revealed.fit.conformal import conformal_cone, decide, explanation_angles, worst_costs

LEVELS = (0.8, 0.9)
TRAINED, CALIBRATED, JUDGED = 200, 200, 1_000
SETS, SPLITS, ROBUST = 10, 20, 40
FEATURES = 4
SIDE = 5
"""Places along one side of the town."""


class Sample(NamedTuple):
    """Contexts, decisions with the constraints of each, and the mean of the true costs."""

    Z: np.ndarray
    problem: rv.LinearProgram
    X: np.ndarray
    truth: np.ndarray


def town(size: int, rng: np.random.Generator) -> rv.LinearProgram:
    """Trips between random places of a town with two-way streets: every sample has its own ends."""
    place = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    streets = np.vstack(
        [
            np.column_stack([place[:, :-1].ravel(), place[:, 1:].ravel()]),
            np.column_stack([place[:-1].ravel(), place[1:].ravel()]),
        ]
    )
    ends = np.array([rng.choice(SIDE * SIDE, 2, replace=False) for _ in range(size)])
    both = np.vstack([streets, streets[:, ::-1]])
    return rv.problems.shortest_path(both, source=ends[:, 0], target=ends[:, 1])


def draw(kind: str, coef: np.ndarray, size: int, rng: np.random.Generator) -> Sample:
    """Decisions of minimum cost under costs that depend on the context, times noise."""
    if kind == "paths":
        problem = rv.problems.grid_shortest_path(5, 5, directed="right-down")
    elif kind == "knapsacks":
        weights = np.random.default_rng(3).uniform(3.0, 8.0, coef.shape[1])
        problem = rv.problems.knapsack(weights, 0.4 * weights.sum())
    else:
        problem = town(size, rng)
    Z = rng.standard_normal((size, FEATURES))
    truth = np.maximum(3.0 + Z @ coef, 0.3)
    seen = truth * rng.uniform(0.5, 1.5, truth.shape)
    sign = -1.0 if kind == "knapsacks" else 1.0
    X = np.asarray(problem.solve(sign * seen).x)
    return Sample(Z, problem, X, sign * truth)


def n_entries(kind: str) -> int:
    return {"paths": 40, "knapsacks": 12, "routes": 4 * SIDE * (SIDE - 1)}[kind]


def one_set(kind: str, seed: int) -> dict[str, object]:
    """Splits of one training set, and its robust decisions beside the plain ones."""
    rng = np.random.default_rng([seed, 11])
    coef = rng.uniform(0.0, 1.0, (FEATURES, n_entries(kind)))
    train = draw(kind, coef, TRAINED, rng)
    est = rv.InverseRegressor(train.problem, ridge=0.01, random_state=0)
    est.fit(train.Z, rv.OptimalitySet(train.problem, train.X))
    pool = draw(kind, coef, CALIBRATED + JUDGED, rng)
    costs = np.asarray(est.predict_cost(pool.Z))
    angles = explanation_angles(pool.problem, costs, pool.X)
    splits: dict[str, list[tuple[float, float]]] = {f"{level}": [] for level in LEVELS}
    for _ in range(SPLITS):
        order = rng.permutation(len(angles))
        for level in LEVELS:
            cone = conformal_cone(angles[order[:CALIBRATED]], level)
            judged = angles[order[CALIBRATED:]]
            covered = 1.0 if cone.is_vacuous else float((judged <= cone.angle).mean())
            splits[f"{level}"].append((covered, float(np.degrees(cone.angle))))
    cone = conformal_cone(angles[:CALIBRATED], 0.8)
    some = np.arange(CALIBRATED, CALIBRATED + ROBUST)
    return {
        "splits": splits,
        "explained": float((angles == 0).mean()),
        "robust": compare(pool, costs, some, cone.angle),
    }


def compare(pool: Sample, costs: np.ndarray, some: np.ndarray, angle: float) -> dict[str, float]:
    """Sums over some samples: worst costs over the cone, predicted and true costs."""
    if not np.isfinite(angle):
        return {}
    problem = pool.problem[some] if pool.problem.n_instances else pool.problem
    c, truth = costs[some], pool.truth[some]
    began = time.process_time()
    robust = decide(problem, c, angle)
    seconds = time.process_time() - began
    plain = np.asarray(problem.solve(c).x)
    best = np.asarray(problem.solve(truth).x)
    X = np.where(robust.optimal[:, None], robust.x, plain)
    # The same shift for all decisions of a sample brings back what no decision depends on.
    shift = (c * plain).sum(axis=1) - worst_costs(problem, c, plain, 0.0)
    return {
        "unsolved": float((~robust.optimal).sum()),
        "seconds": seconds,
        "predicted_plain": float((c * plain).sum()),
        "worst_plain": float((worst_costs(problem, c, plain, angle) + shift).sum()),
        "worst_robust": float((worst_costs(problem, c, X, angle) + shift).sum()),
        "true_best": float((truth * best).sum()),
        "true_plain": float((truth * plain).sum()),
        "true_robust": float((truth * X).sum()),
    }


def summary(sets: list[dict]) -> dict[str, object]:
    """Means over splits, with the standard error over training sets, which splits share."""
    told: dict[str, object] = {"explained": float(np.mean([s["explained"] for s in sets]))}
    for level in LEVELS:
        parts = np.array([s["splits"][f"{level}"] for s in sets])  # (sets, splits, 2)
        told[f"{level}"] = {
            "splits": int(parts.shape[0] * parts.shape[1]),
            "coverage": float(parts[:, :, 0].mean()),
            "standard_error": float(parts[:, :, 0].mean(axis=1).std(ddof=1) / np.sqrt(len(sets))),
            "vacuous": int((~np.isfinite(parts[:, :, 1])).sum()),
            "median_angle": float(np.median(parts[:, :, 1])),
        }
    kept = [s["robust"] for s in sets if s["robust"]]
    total = {name: float(sum(r[name] for r in kept)) for name in kept[0]} if kept else {}
    if total:
        least = total["predicted_plain"]
        unit = total["worst_plain"] - least
        told["robust"] = {
            "training_sets": len(kept),
            "decisions": len(kept) * ROBUST,
            "unsolved": int(total["unsolved"]),
            "processor_seconds_each": total["seconds"] / (len(kept) * ROBUST),
            "worst_plain": 1.0,  # above the predicted cost of the plain decision: the unit
            "worst_robust": (total["worst_robust"] - least) / unit,
            "regret_plain": (total["true_plain"] - total["true_best"]) / abs(total["true_best"]),
            "regret_robust": (total["true_robust"] - total["true_best"]) / abs(total["true_best"]),
        }
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    kinds = ("paths", "knapsacks", "routes")
    found = {}
    for kind in kinds:
        found[kind] = summary([one_set(kind, args.seed + k) for k in range(SETS)])
        print(kind, json.dumps(found[kind], indent=1), flush=True)
    settings = {
        "seed": args.seed,
        "levels": LEVELS,
        "trained": TRAINED,
        "calibrated": CALIBRATED,
        "judged": JUDGED,
        "training_sets": SETS,
        "splits_each": SPLITS,
        "robust_level": 0.8,
        "command": "python experiments/scripts/conformal.py",
    }
    args.out.write_text(
        json.dumps({"settings": settings, "kinds": found}, indent=1) + "\n", "utf-8"
    )


if __name__ == "__main__":
    main()
