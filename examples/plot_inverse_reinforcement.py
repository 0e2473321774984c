"""
Inverse reinforcement learning
==============================

An expert walks through grid worlds with food, danger, shade and slippery ground, and knows what
each is worth. We watch walks in four worlds and learn the reward that explains them all.

The best behavior in a Markov decision process solves a linear program over occupancy measures: how
often each action is taken in each state. Counts of a few walks are no such measure, but tell which
action is best in the states visited: `sampled_behavior` learns that, and no more.
"""

import matplotlib.pyplot as plt
import numpy as np
from _picture import caption, policy_map, save, shortfalls
from scipy.ndimage import gaussian_filter

import revealed as rv
from revealed.problems import grid_world, markov_decision_process, policy_of, sampled_behavior
from revealed.problems.catalogue.markov import MOVES

SIDE, DISCOUNT, NAMES = 10, 0.95, "food, danger, shade, effort"
WORTH, rng = np.array([1.0, -0.7, 0.4, -0.2]), np.random.default_rng(3)


def worlds(count):
    """Problems, features (B, 500, 4) of every state and action, and obstacles, of new worlds."""
    fields = gaussian_filter(rng.standard_normal((count, SIDE, SIDE, 3)), (0, 1, 1, 0))
    fields /= fields.std(axis=(1, 2), keepdims=True)
    walls = rng.random((count, SIDE, SIDE)) < 0.12
    start = (~walls).reshape(count, -1) / (~walls).sum(axis=(1, 2))[:, None]
    problem = markov_decision_process(grid_world(walls, slip=0.2), DISCOUNT, start)
    effort = np.broadcast_to(np.tile([0.0, 1, 1, 1, 1], SIDE**2)[:, None], (count, 5 * SIDE**2, 1))
    fields = np.repeat(fields.reshape(count, -1, 3), 5, axis=1)
    return problem, np.concatenate([fields, effort], axis=2), walls


def walk(transitions, policy, start, length=60):
    """(length, 2) states and actions of the expert in one world."""
    steps, state = [], rng.choice(len(start), p=start)
    for _ in range(length):
        steps.append((state, policy[state].argmax()))
        state = rng.choice(len(start), p=transitions[steps[-1]])
    return np.array(steps)


def shares(problem, features, behavior):
    """(B,): the part of the expert's true return that occupancy measures (B, 500) earn."""
    worth = features @ WORTH
    return (worth * behavior).sum(axis=1) / (worth * problem.solve(-worth).x).sum(axis=1)


# %%
# Learn from ever more walks, then from exact behavior; judge on 40 worlds that nobody has seen.
new, new_features, walls = worlds(40)
seen, features, around = worlds(4)
exact, shared, found = seen.solve(-features @ WORTH).x, rv.fit.SharedModel(fit_intercept=False), {}
expert = list(zip(grid_world(around, 0.2), policy_of(exact, 5), seen.b_eq, strict=True))
for count in (1, 5, 20, 80, "exact"):
    taken = [[walk(*world) for _ in range(count)] for world in expert] if count != "exact" else []
    problem, behavior = sampled_behavior(seen, taken, 5, DISCOUNT) if taken else (seen, exact)
    model = rv.InverseRegressor(problem, model=shared, noise=0, ridge=0).fit(features, behavior)
    share = found[count] = shares(new, new_features, model.predict(new_features, problem=new))
    print(f"{count} walks: {share.mean():.2%} of the expert's return, at worst {share.min():.2%}")
weights = -model.coef_ / np.abs(model.coef_).sum() * np.abs(WORTH).sum()
print(f"{NAMES}: worth {WORTH}, learned {weights.round(2)}")

# %%
figure = plt.figure(figsize=(13, 4.4), layout="constrained")
left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1.17, 1.05])
for axis, worth, title in ((left, WORTH, "True reward"), (middle, weights, "Learned reward")):
    ground = (new_features[0, ::5] @ worth).reshape(SIDE, SIDE)  # of staying: no effort
    best = policy_of(new.solve(-new_features @ worth).x, 5)[0].argmax(axis=1)
    picture = policy_map(axis, ground, walls[0], np.array(MOVES)[best.reshape(SIDE, SIDE)])
    caption(axis, title, "a world never seen; dots: stay, black: obstacles")
figure.colorbar(picture, ax=middle, shrink=0.8, pad=0.02, label="reward of a cell")
shortfalls(right, {k: 1 - part for k, part in found.items()}, {"99% of the return": 0.01})
caption(right, "Return that is missed", "in 40 unseen worlds, by walks watched in each of four")
save(figure, "inverse_reinforcement")
