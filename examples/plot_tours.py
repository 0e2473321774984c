"""
Tours, learned from tours alone
===============================

A driver visits the same twelve places every day, in an order that depends on the day. How long each
road takes is known to the driver only. From 150 tours and what the days were like, which roads are
slow on which days? A tour is a whole decision: no multipliers explain it, but an exact solver of
tours can be asked whether a cost makes another one shorter.
"""

# %%
# Days, roads and the tours that were driven
# ------------------------------------------
# A road takes as long as it is, and longer or shorter by what the day is like. Times are hidden.
import matplotlib.pyplot as plt
import numpy as np

import revealed as rv

rng = np.random.default_rng(0)
nodes = 12
places = rng.random((nodes, 2))
problem = rv.problems.traveling_salesman(nodes)
i, j = np.triu_indices(nodes, 1)
length = np.linalg.norm(places[i] - places[j], axis=1)

Z = rng.standard_normal((350, 3))
effect = 0.3 * rng.standard_normal((3, len(length)))
times = length * np.exp(Z @ effect) * rng.uniform(0.9, 1.1, (350, len(length)))
X = problem.solve(times).x

# %%
# Learn from 150 of them
# ----------------------
# The fit minimizes over the tours found so far, asks the solver whether the costs reached make
# another tour shorter, and ends when there is none.
est = rv.InverseRegressor(problem, noise=0.5, ridge=1e-3, solver=rv.fit.LBFGS(tol=1e-2))
est.fit(Z[:150], X[:150])
print(est.certificate_)
print("questions to the solver, for each tour:", est.history_.rows[-1]["calls"] / 150)

# %%
# Tours of other days
# -------------------
# Predicted tours are whole: one round trip each. How much longer are they than the best?
tours = est.predict(Z[150:])
best = (times[150:] * X[150:]).sum()
print(f"longer than the best: {100 * ((times[150:] * tours).sum() / best - 1):.1f}%")
usual = problem.solve(times[:150].mean(axis=0)[None]).x[0]
print(f"the best tour of an average day: {100 * ((times[150:] @ usual).sum() / best - 1):.1f}%")

# %%
# Two of these days, as driven and as predicted.
driven = {"color": "0.8", "lw": 6, "label": "driven"}
figure, axes = plt.subplots(1, 2, figsize=(8, 4.4), layout="constrained")
for axis, day in zip(axes, (0, 1), strict=True):
    for tour, style in ((X[150 + day], driven), (tours[day], {"lw": 2, "label": "predicted"})):
        order = rv.problems.tour_of(tour)
        loop = places[np.append(order, order[0])]
        axis.plot(*loop.T, marker="o", **style)
    shared = int((X[150 + day] * tours[day]).sum())
    axis.set(title=f"{shared} of {nodes} roads as driven", xticks=[], yticks=[], aspect="equal")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()
