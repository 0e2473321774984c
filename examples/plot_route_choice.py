"""
Route choice
============

GPS traces show which streets drivers took between their own origins and destinations. A table of
streets describes each of them. What is a set of traffic lights worth, in meters of detour? One
coefficient, that of length, is given as the unit; the others are learned and read in meters:
cost of a street = length + w1 main road + w2 lights + w3 climb.
"""

import matplotlib.pyplot as plt
import numpy as np
from _picture import BLUE, INK, ORANGE, bare, caption, save

import revealed as rv

rng = np.random.default_rng(2)
SIDE, TRIPS = 12, 800
seen, new = np.arange(600), np.arange(600, TRIPS)
FEATURES = ("length", "main road, per meter", "traffic lights", "climb, per meter")
TASTE = np.array([1.0, -0.35, 120.0, 9.0])  # what drivers go by; we never see it

# %%
# A made-up town: streets between crossings, with their features, and trips between random ends.
node = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
pairs = [(node[:, :-1], node[:, 1:]), (node[:-1], node[1:])]
one_way = np.hstack([np.stack([x.ravel(), y.ravel()]) for x, y in pairs])
tail, head = np.hstack([one_way, one_way[::-1]])
length = 100 * np.exp(0.25 * rng.standard_normal((SIDE * SIDE, SIDE * SIDE)))
length = np.minimum(length, length.T)[tail, head]  # the same both ways
main = (tail // SIDE == head // SIDE) & np.isin(tail // SIDE, (3, 8)) | (
    (tail % SIDE == head % SIDE) & np.isin(tail % SIDE, (4, 9))
)
lights = np.isin(head, rng.choice(SIDE * SIDE, 30, replace=False))
hill = 25 * np.exp(-((node // SIDE - 5) ** 2 + (node % SIDE - 7) ** 2) / 9).ravel()
table = np.column_stack([length, length * main, lights, np.maximum(hill[head] - hill[tail], 0)])
origin, goal = rng.permuted(np.tile(np.arange(SIDE * SIDE), (TRIPS, 1)), axis=1)[:, :2].T
streets = np.stack([tail, head], 1)
trips = rv.problems.shortest_path(streets, source=origin, target=goal, n_nodes=SIDE * SIDE)
moods = np.exp(0.15 * rng.standard_normal((TRIPS, len(tail))))  # nobody drives like a model
routes = trips.solve(moods * (table @ TASTE)).x

# %%
# From tables to coefficients. Distances and margins count in shares of a street's length (`scale`).
model = rv.InverseRegressor(
    trips[seen], model=rv.fit.SharedModel(given={0: 1.0}, fit_intercept=False), cost_map=length,
    margin=0.0, noise=0.3, random_state=0,
).fit(table, routes[seen])  # fmt: skip
print(model.certificate_)
for name, learned, true in zip(FEATURES, model.coef_, TASTE, strict=True):
    print(f"{name:<24}{learned:8.2f}   true {true:8.2f}")
taken = model.predict(table, problem=trips[new])
shortest = trips[new].solve(np.tile(length, (len(new), 1))).x
for name, x in (("predicted", taken), ("shortest", shortest)):
    share = (np.minimum(x, routes[new]) @ length).sum() / (routes[new] @ length).sum()
    print(f"{name} routes hold {share:.0%} of the meters driven on new trips")

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
trip = int(np.argmax((taken == routes[new]).all(axis=1) * (shortest != routes[new]).sum(axis=1)))
axes[0].contourf(hill.reshape(SIDE, SIDE), levels=[3, 8, 13, 18, 25], cmap="Greens", alpha=0.35)
drawn = (tail >= 0, main, shortest[trip] > 0.5, taken[trip] > 0.5)
look = (("#d9dde2", 1), ("#aab2bb", 3), (ORANGE, 5), (BLUE, 2))
for used, (color, width) in zip(drawn, look, strict=True):
    ends = streets[used].T
    axes[0].plot(ends % SIDE, ends // SIDE, color=color, lw=width, solid_capstyle="round")
axes[0].plot(head[lights] % SIDE, head[lights] // SIDE, "o", color=INK, ms=4)
caption(axes[0], "A new trip", "blue: predicted and driven; orange: shortest; dots: lights")
bare(axes[0])
axes[0].set(xlim=(-0.5, SIDE - 0.5), ylim=(-0.5, SIDE - 0.5))
axes[1].barh(FEATURES[1:], model.coef_[1:] / TASTE[1:], color=BLUE, height=0.5)
axes[1].axvline(1, color=INK, lw=1.2, ls=":")
axes[1].set(xlabel="learned coefficient, as a share of the true one", ylim=(2.5, -0.5))
caption(axes[1], "What drivers mind", "dotted: the truth")
save(figure, "route_choice")
