"""
Rational choice
===============

Households spend a budget on what they like best at the prices of the week. We see who they are,
what everything cost and what they bought, and learn what a unit of each good is worth to whom. That
predicts what they would buy at prices never seen; a regression on prices cannot.

    maximize <u(z), x>   subject to   <prices, x> <= budget,   0 <= x <= 1
"""

import matplotlib.pyplot as plt
import numpy as np
from _picture import BLUE, INK, ORANGE, caption, save

import revealed as rv

GOODS = ("bread", "milk", "fruit", "fish", "meat", "coffee", "wine", "books")
TRAITS = ("children", "age", "income")
rng = np.random.default_rng(4)
base = rng.uniform(2, 6, len(GOODS))  # prices in an ordinary week
taste = base * rng.uniform(0.8, 1.2, len(GOODS))  # what a unit is worth to everyone ...
listens = base[:, None] * rng.normal(0, 0.35, (len(GOODS), len(TRAITS)))  # ... and to some


def market(prices, budget):
    """What households may buy; the budget as a whole is 1, so prices are shares of it."""
    return rv.LinearProgram(A_ub=(prices / budget)[:, None, :], b_ub=1.0, ub=1.0)


def households(count):
    """Traits, prices, budgets."""
    prices, budget = base * rng.uniform(0.7, 1.3, (count, 8)), rng.uniform(0.3, 0.7, (count, 1))
    return rng.standard_normal((count, 3)), prices, budget * base.sum()


# %%
# Learn from 400 baskets; the unit of utility is not revealed, so the margin sets one.
traits, prices, budget = households(400)
baskets = market(prices, budget).solve(-(taste + traits @ listens.T)).x
model = rv.InverseRegressor(market(prices, budget), random_state=0).fit(traits, baskets)
print(model.certificate_)

# %%
# A tax doubles the price of wine. We solve the household's problem anew; regression extends a line.
new_traits, new_prices, new_budget = households(400)
ones = np.ones((400, 1))
slopes = np.linalg.lstsq(np.hstack([traits, prices, budget, ones]), baskets, rcond=None)[0]
wine, factors, found = GOODS.index("wine"), np.linspace(0.5, 2.0, 16), []
for factor in factors:
    then = new_prices.copy()
    then[:, wine] = factor * base[wine]
    shop, rows = market(then, new_budget), np.hstack([new_traits, then, new_budget, ones])
    truth = shop.solve(-(taste + new_traits @ listens.T)).x
    found.append((truth, np.clip(rows @ slopes, 0, 1), model.predict(new_traits, problem=shop)))
demand = dict(zip(("truth", "regression", "ours"), np.swapaxes(found, 0, 1), strict=True))
for name in ("ours", "regression"):
    error = np.abs(demand[name] - demand["truth"]).mean(axis=(1, 2))  # (16,)
    print(f"{name}: off by {error[5]:.3f} units a good at usual prices, {error[-1]:.3f} at twice")

# %%
figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
looks = {"truth": (INK, 4, ":"), "regression": (ORANGE, 1.8, "-"), "ours": (BLUE, 2.2, "-")}
for axis, good in zip(axes, ("wine", "books"), strict=False):
    for name, (color, width, dashes) in looks.items():
        mean = demand[name][:, :, GOODS.index(good)].mean(axis=1)
        axis.plot(100 * factors, mean, color=color, lw=width, ls=dashes, label=name)
    axis.axvspan(70, 130, color="#eef0f3", zorder=0)
    axis.set(xlabel="price of wine, per cent of the usual", ylim=(0, None), xlim=(50, 200))
    caption(axis, f"Demand for {good}", "mean of 400 new households; gray: prices ever seen")
learned = model.coef_ * (listens**2).sum() / (listens * model.coef_).sum()
axes[2].axline((0, 0), slope=1, color="#c4c9cf", lw=1)
for k, mark in enumerate("o^s"):
    axes[2].plot(listens[:, k], learned[:, k], mark, ms=7, mec="white", color=BLUE, label=TRAITS[k])
axes[2].set(xlabel="true", ylabel="learned, rescaled", aspect="equal")
caption(axes[2], "What traits add to a good's worth", "one mark for each good and trait")
axes[0].legend(), axes[2].legend(loc="upper left")
save(figure, "rational_choice")
