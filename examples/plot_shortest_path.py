"""
Shortest-path planning
======================

Hikers cross a landscape from corner to corner. We know the ground (height, forest, marsh) and the
tracks they took, not what they dislike. From the tracks alone we learn the price of climbing, of
undergrowth and of wet feet, in steps on flat ground, and plan on maps of another size.

The cost of a step is linear in its features, with coefficients that all steps of all maps share.
"""

import matplotlib.pyplot as plt
import numpy as np
from _picture import INK, ORANGE, bare, caption, landscape, paired, save, tracks
from scipy.ndimage import gaussian_filter

import revealed as rv

NAMES = ("step", "slope", "forest", "marsh")
DISLIKE = np.array([1.0, 5.0, 1.5, 4.0])  # never shown to the learner
rng = np.random.default_rng(11)


def ground(count, side, rough):
    """(B, side, side, 3) maps of height, forest and marsh, between 0 and 1."""
    noise = gaussian_filter(rng.standard_normal((count, side, side, 3)), (0, rough, rough, 0))
    maps = 1 / (1 + np.exp(-2.5 * noise / noise.std(axis=(1, 2), keepdims=True)))
    maps[..., 2] *= 1 - maps[..., 0]  # marshes lie low
    return maps


def steps(problem, maps):
    """(B, n, 4) features of every step on every map."""
    tails, heads = problem.structure.tails, problem.structure.heads
    at = maps.reshape(len(maps), -1, 3)
    slope = np.abs(at[:, heads, :1] - at[:, tails, :1])
    side = maps.shape[1]
    length = np.hypot(heads // side - tails // side, heads % side - tails % side)
    length = np.broadcast_to(length[:, None], slope.shape)
    return np.concatenate([length, slope, at[:, heads, 1:] * length], axis=2)


# %%
# Learn from 40 tracks, each across a map of its own. Hikers are exact and four weights are few, so
# nothing is smoothed or kept small.
small = rv.problems.grid_shortest_path(12, 12, neighbors=8)
features = steps(small, ground(40, 12, rough=1.5))
walked = small.solve(features @ DISLIKE).x
shared = rv.fit.SharedModel(fit_intercept=False)
model = rv.InverseRegressor(small, model=shared, noise=0, ridge=0)
model.fit(features, walked)
learned = model.coef_ / model.coef_[0]
print("true dislikes, in steps:", DISLIKE, "learned:", learned.round(2))

# %%
# Plan on large maps that nobody has walked.
large = rv.problems.grid_shortest_path(40, 40, neighbors=8)
maps = ground(20, 40, rough=3)
costs = steps(large, maps) @ DISLIKE
best, planned, direct = (
    large.solve(steps(large, maps) @ weights).x for weights in (DISLIKE, learned, np.eye(4)[0])
)
extra = [(costs * plan).sum() / (costs * best).sum() - 1 for plan in (planned, direct)]
print(f"true effort over the best: learned {extra[0]:.2%}, shortest {extra[1]:.2%}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.4), layout="constrained")
i = int(np.argmax(np.abs(best - direct).sum(axis=1)))
landscape(left, maps[i])
tracks(left, large, ((best[i], INK, 6), (planned[i], "#7cc4ff", 2.4), (direct[i], ORANGE, 2)))
bare(left)
caption(left, "A landscape never walked", "black: best; blue: from tracks; orange: shortest")
paired(right, NAMES, DISLIKE, learned)
caption(right, "What hikers dislike, in steps", "black: true; blue: learned from 40 tracks alone")
save(figure, "shortest_path")
