"""
Inverse reinforcement learning
==============================

An expert walks through grid worlds with obstacles and slippery ground. Every world has fields of
food, danger and shade; the expert knows what each is worth, we do not. We watch what the expert
does in a few worlds and learn the reward that explains it, with coefficients that all worlds share.

The best behavior in a Markov decision process is a linear program over occupancy measures (how
often each action is taken in each state), so observed behavior is a decision like any other.
"""

import matplotlib.pyplot as plt
import numpy as np
from _picture import caption, policy_map, save, shortfalls
from scipy.ndimage import gaussian_filter

import revealed as rv
from revealed.problems import grid_world, markov_decision_process, occupancy_of, policy_of
from revealed.problems.catalogue.markov import MOVES

SIDE, DISCOUNT, NAMES = 10, 0.95, ("food", "danger", "shade", "effort")
WORTH = np.array([1.0, -0.7, 0.4, -0.2])  # what the expert knows
rng = np.random.default_rng(3)


def worlds(count):
    """Problems, features (B, 500, 4) of every state and action, and obstacles, of new worlds."""
    fields = gaussian_filter(rng.standard_normal((count, SIDE, SIDE, 3)), (0, 1, 1, 0))
    fields /= fields.std(axis=(1, 2), keepdims=True)
    walls = rng.random((count, SIDE, SIDE)) < 0.12
    free = ~walls.reshape(count, -1)
    start = free / free.sum(axis=1, keepdims=True)
    problem = markov_decision_process(grid_world(walls, slip=0.2), DISCOUNT, start)
    ground = np.repeat(fields.reshape(count, -1, 3), len(MOVES), axis=1)
    effort = np.tile([0.0, 1.0, 1.0, 1.0, 1.0], SIDE * SIDE)  # all but staying
    effort = np.broadcast_to(effort[:, None], (count, len(effort), 1))
    return problem, np.concatenate([ground, effort], axis=2), walls


def shares(problem, features, behavior):
    """(B,): the part of the expert's true return that occupancy measures (B, 500) earn."""
    reward = features @ WORTH
    expert = problem.solve(-reward).x
    return (reward * behavior).sum(axis=1) / (reward * expert).sum(axis=1)


# %%
# Watch the expert, who is exact, in ever more worlds; judge on 40 that nobody has seen.
unseen, unseen_features, walls = worlds(40)
seen, features, _ = worlds(16)
behavior, found = seen.solve(-features @ WORTH).x, {}
for count in (1, 2, 4, 8, 16):
    few, shared = slice(count), rv.fit.SharedModel(fit_intercept=False)
    model = rv.InverseRegressor(seen[few], model=shared, noise=0, ridge=0)
    model.fit(features[few], behavior[few])
    home = shares(seen[few], features[few], model.predict(features[few])).min()
    found[count] = shares(unseen, unseen_features, model.predict(unseen_features, problem=unseen))
    print(f"{count:2d} worlds watched: {home:.2%} of the expert's return there at worst; unseen:")
    print(f"   {found[count].mean():.2%} on average, {found[count].min():.2%} at worst")
weights = -model.coef_ / np.abs(model.coef_).sum() * np.abs(WORTH).sum()
print("true worth", dict(zip(NAMES, WORTH.tolist(), strict=True)), "learned", weights.round(2))
drift = occupancy_of(np.full((40, SIDE**2, 5), 0.2), grid_world(walls, 0.2), DISCOUNT, unseen.b_eq)
aimless = shares(unseen, unseen_features, drift).mean()

# %%
figure = plt.figure(figsize=(13, 4.4), layout="constrained")
left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1.17, 1.05])
for axis, worth, title in ((left, WORTH, "True reward"), (middle, weights, "Learned reward")):
    ground = (unseen_features[0, ::5] @ worth).reshape(SIDE, SIDE)  # of staying: no effort
    best = policy_of(unseen.solve(-unseen_features @ worth).x, 5)[0].argmax(axis=1)
    picture = policy_map(axis, ground, walls[0], np.array(MOVES)[best.reshape(SIDE, SIDE)])
    caption(axis, title, "a world never seen; dots: stay, black: obstacles")
figure.colorbar(picture, ax=middle, shrink=0.8, pad=0.02, label="reward of a cell")
marks = {"99% of the expert's return": 0.01, "walking at random": 1 - aimless}
shortfalls(right, {count: 1 - share for count, share in found.items()}, marks)
right.set_xlabel("worlds watched")
caption(right, "Return that is missed", "share of the expert's own, in 40 unseen worlds")
save(figure, "inverse_reinforcement")
