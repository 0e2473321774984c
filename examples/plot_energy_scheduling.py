"""
Energy-cost-aware scheduling
============================

A plant starts its tasks when electricity is cheap. We see forecasts of the day and when each task
was started, never what it cost. From past schedules we learn what an hour of running must cost as a
function of the forecasts, and plan new days with that.

In the days made up here the plant also pays a night shift, which no market price tells: plans made
with market prices run tasks at night. Regression on the true costs, which nobody sees, does better.
Starting task j at time t costs the energy of its run times the prices of those half-hours, c = S w;
w comes from forecasts with coefficients that all half-hours share. Days are made up unless given::

    python examples/plot_energy_scheduling.py [folder with the ICON files [load, 1 to 8]]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from _picture import BLUE, INK, bars, caption, gantt, paired, save

import revealed as rv
from revealed.datasets.energy import load_energy, synthetic_energy

given = sys.argv[1:]
days = load_energy(given[0], load=int([*given, 6][1])) if given else synthetic_energy()
problem = days.tasks.problem()
energy = days.tasks.energy(problem)  # S, (starts, half-hours)
hour = np.arange(days.prices.shape[1]) / 2
night = np.where((hour < 6) | (hour >= 22), 25.0, 0.0) * (not given)  # hidden
costs = (days.prices + night) @ energy.T
schedules = problem.solve(costs).x
past, future = slice(2 * len(costs) // 3), slice(2 * len(costs) // 3, None)

# %%
# Learn from schedules alone. Real prices are not a linear function of forecasts, so no coefficients
# explain every day: the loss, in Huber's form and averaged over noise, keeps odd days from ruling.
forecasts = np.einsum("np,bpf->bnf", energy, days.features)  # S z: features of each start
model = rv.InverseRegressor(problem, model=rv.fit.SharedModel(fit_intercept=False))
model.fit(forecasts[past], schedules[past])
ours = model.predict(forecasts[future])

# %%
# What plans cost at the prices that came and the shifts. Regression sees past prices; we do not.
known = np.insert(days.features[past].reshape(-1, days.features.shape[2]), 0, 1.0, axis=1)
bills = np.stack([days.prices[past].ravel(), (days.prices + night)[past].ravel()], axis=1)
slopes, true = np.linalg.lstsq(known, bills, rcond=None)[0][1:].T
plans = {
    "average market day": problem.solve(0 * costs[future] + days.prices[past].mean(0) @ energy.T).x,
    "regression on market prices": problem.solve(forecasts[future] @ slopes).x,
    "regression on true costs": problem.solve(forecasts[future] @ true).x,
    "from schedules alone": ours,
}
best = (costs[future] * schedules[future]).sum()
extra = {name: (costs[future] * plan).sum() / best - 1 for name, plan in plans.items()}
print("extra cost:", ", ".join(f"{name} {share:.2%}" for name, share in extra.items()))

# %%
# The held-out day of median regret, and what the learned prices listen to.
figure = plt.figure(figsize=(12, 5.8), layout="constrained")
grid = figure.add_gridspec(2, 2, width_ratios=[2, 1], height_ratios=[1, 1.6])
(top, right), (below, corner) = grid.subplots()
i = int(np.argsort(((ours - schedules[future]) * costs[future]).sum(axis=1))[len(ours) // 2])
price, learned = days.prices[future][i] + night, days.features[future][i] @ model.coef_
learned = price.mean() + price.std() * (learned - learned.mean()) / learned.std()
top.stairs(price, np.arange(49) / 2, baseline=None, color=INK, lw=1.4)
top.stairs(learned, np.arange(49) / 2, baseline=None, color=BLUE, lw=2)
top.set(xlim=(0, 24), xticks=range(0, 25, 4), xticklabels=[])
caption(top, "A held-out day", "black: what an hour cost, never seen; blue: learned, rescaled")
gantt(below, problem, days.tasks, ((schedules[future][i], INK), (ours[i], BLUE)))
caption(below, "When tasks run", "gray: windows; black: best in hindsight; blue: planned by us")
bars(right, extra, "from schedules alone", "{:.2%}")
caption(right, "Extra cost", f"over perfect foresight, {len(ours)} held-out days")
named = [k for k, name in enumerate(days.names) if name[:3] not in ("sin", "cos")]
weights = [(each / np.abs(each).sum())[named] for each in (slopes, model.coef_)]
paired(corner, [days.names[k] for k in named], *weights)
caption(corner, "What moves a price", "relative weights; black: regression, blue: ours")
save(figure, "energy_scheduling")
