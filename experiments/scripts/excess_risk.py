"""How far the learned model's risk is above the least, over samples and over steps.

    python experiments/scripts/excess_risk.py            the paper's 5x5 paths, five seeds

Risk is the mean of 1/2 dist^2 at margin 1 on fresh contexts; the least risk of a linear model is
estimated by a fit to many samples, to its minimum. POCS makes a step of length 1, so the corollary
for T steps promises D^2 / (2 T) above the least training loss, with D^2 the mean squared distance
between the first predictions and those of the minimizer. What samples promise has no known constant
for more samples than features; the table says what was measured.
"""

import argparse
from pathlib import Path

import numpy as np

import revealed as rv
from revealed.datasets import paper_paths
from revealed.fit import LinearModel, lbfgs, pocs
from revealed_experiments.bench.record import surroundings, write_json

MANY, FRESH = 3_000, 2_000
SAMPLES = (10, 30, 100, 300, 1_000)
STEPS = (1, 3, 10, 30, 100, 300)
OUT = Path("experiments/results/synthetic/excess_risk.json")
"""Beside the runs, whose page shows it."""


def half_squares(model: LinearModel, split, problem) -> float:
    sets = rv.OptimalitySet(problem, split.decisions)
    return float(0.5 * (rv.project(model.predict_cost(split.contexts), sets).distance ** 2).mean())


def best_model(split, problem) -> LinearModel:
    """Near the least h on these samples."""
    model = LinearModel(fit_intercept=False)
    sets = rv.OptimalitySet(problem, split.decisions)
    lbfgs(model, split.contexts, sets, max_iter=400, tol=1e-6, describe_fit=False)
    return model


def of_seed(seed: int) -> dict[str, list[float]]:
    data = paper_paths((MANY, 0, FRESH), seed=seed)
    problem, test = data.problem, data.test
    best = best_model(data.train, problem)
    least = half_squares(best, test, problem)
    over_samples = []
    for size in SAMPLES:
        found = best_model(data.train.head(size), problem)
        over_samples.append(half_squares(found, test, problem) - least)
    seen = data.train.head(SAMPLES[-1])
    sets = rv.OptimalitySet(problem, seen.decisions)
    own = best_model(seen, problem)
    least_seen = half_squares(own, seen, problem)
    model = LinearModel(fit_intercept=False)
    history = pocs(model, seen.contexts, sets, max_iter=max(STEPS), tol=0.0)
    gaps = np.asarray(history["h"]) - least_seen
    travel = float((own.predict_cost(seen.contexts) ** 2).sum(axis=1).mean())
    return {
        "samples": over_samples,
        "steps": [float(gaps[step]) for step in STEPS],
        "promised": [travel / (2 * step) for step in STEPS],
        "rate": [float((gaps[-1] / gaps[STEPS[-2]]) ** (1 / (STEPS[-1] - STEPS[-2])))],
        "least": [least],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    found = [of_seed(seed) for seed in range(args.seeds)]
    command = f"python experiments/scripts/excess_risk.py --seeds {args.seeds}"
    content = surroundings(command, {"seeds": args.seeds, "many": MANY, "fresh": FRESH})
    content |= {"benchmark": "excess_risk", "targets": []}
    for name, axis in (("samples", SAMPLES), ("steps", STEPS)):
        content[name] = [
            {
                "at": at,
                "excess": float(np.mean([each[name][k] for each in found])),
                "error": float(np.std([each[name][k] for each in found], ddof=1))
                / len(found) ** 0.5,
            }
            for k, at in enumerate(axis)
        ]
    for k, row in enumerate(content["steps"]):
        row["promised"] = float(np.mean([each["promised"][k] for each in found]))
    content["rate"] = float(np.mean([each["rate"][0] for each in found]))
    content["least"] = float(np.mean([each["least"][0] for each in found]))
    write_json(args.out, content)
    print(content["samples"], content["steps"], content["rate"], content["least"], sep="\n")


if __name__ == "__main__":
    main()
