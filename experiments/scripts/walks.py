"""The expert's return from few walks: writes `results/walks.json`.

Grid worlds as in `examples/plot_inverse_reinforcement.py`, on other seeds. Rewards are learned from
sampled walks in one, two or four worlds: by `sampled_behavior`, by repairing the counts to the
nearest occupancy measure, and from exact behavior. Judged is the share of the expert's return in 40
new worlds.

    python experiments/scripts/walks.py [--seeds 10] [--first 50]
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

import revealed as rv
from revealed.problems import grid_world, markov_decision_process, policy_of, sampled_behavior

OUT = Path(__file__).parents[1] / "results" / "walks.json"
SIDE, DISCOUNT, LENGTH, NEW = 10, 0.95, 60, 40
WORTH = np.array([1.0, -0.7, 0.4, -0.2])
WORLDS, WALKS = (1, 2, 4), (5, 20, 80)


def worlds(count: int, rng: np.random.Generator):
    """Problems, features of every state and action, transitions, of new worlds."""
    fields = gaussian_filter(rng.standard_normal((count, SIDE, SIDE, 3)), (0, 1, 1, 0))
    fields /= fields.std(axis=(1, 2), keepdims=True)
    walls = rng.random((count, SIDE, SIDE)) < 0.12
    start = (~walls).reshape(count, -1) / (~walls).sum(axis=(1, 2))[:, None]
    moves = grid_world(walls, slip=0.2)
    effort = np.broadcast_to(np.tile([0.0, 1, 1, 1, 1], SIDE**2)[:, None], (count, 5 * SIDE**2, 1))
    ground = np.repeat(fields.reshape(count, -1, 3), 5, axis=1)
    problem = markov_decision_process(moves, DISCOUNT, start)
    return problem, np.concatenate([ground, effort], axis=2), moves


def walk(moves, policy, start, rng) -> np.ndarray:
    """(LENGTH, 2) states and actions."""
    steps, state = [], rng.choice(len(start), p=start)
    for _ in range(LENGTH):
        steps.append((state, policy[state].argmax()))
        state = rng.choice(len(start), p=moves[steps[-1]])
    return np.array(steps)


def counted(walks, size: int) -> np.ndarray:
    """(size,) mean discounted visits as they are."""
    visits = np.zeros((size // 5, 5))
    for steps in walks:
        np.add.at(visits, tuple(steps.T), DISCOUNT ** np.arange(len(steps)) / len(walks))
    return visits.ravel()


def share(new, features, problem, seen, behavior, **settings) -> float:
    """Of the expert's return, on average over the new worlds."""
    shared = rv.fit.SharedModel(fit_intercept=False)
    est = rv.InverseRegressor(problem, model=shared, noise=0, ridge=0, **settings)
    taken = est.fit(seen, behavior).predict(features, problem=new)
    worth = features @ WORTH
    best = new.solve(-worth).x
    return float(((worth * taken).sum(axis=1) / (worth * best).sum(axis=1)).mean())


def trial(seed: int) -> dict[str, float]:
    """The share for each number of worlds and walks, and each way."""
    rng, found = np.random.default_rng(seed), {}
    new, features, _ = worlds(NEW, rng)
    for count in WORLDS:
        seen, own, moves = worlds(count, rng)
        exact = seen.solve(-own @ WORTH).x
        found[f"{count} exact"] = share(new, features, seen, own, exact)
        experts = list(zip(moves, policy_of(exact, 5), seen.b_eq, strict=True))
        for walks in WALKS:
            taken = [[walk(*expert, rng) for _ in range(walks)] for expert in experts]
            problem, behavior = sampled_behavior(seen, taken, 5, DISCOUNT)
            found[f"{count} {walks} revealed"] = share(new, features, problem, own, behavior)
            counts = np.stack([counted(group, seen.n_variables) for group in taken])
            repaired = share(new, features, seen, own, counts, infeasible="repair")
            found[f"{count} {walks} repaired"] = repaired
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=50)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    trials = [trial(seed) for seed in range(args.first, args.first + args.seeds)]
    table = {}
    for name in trials[0]:
        own = np.array([each[name] for each in trials])
        table[name] = {"mean": float(own.mean()), "worst": float(own.min())}
        print(name, table[name])
    OUT.write_text(json.dumps(vars(args) | {"share": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
