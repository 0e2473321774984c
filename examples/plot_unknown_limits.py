"""
A van that shrinks in the rain
==============================

A bakery decides every morning how much of each product to bake. We know its oven and what customers
take at most. We know neither what a product earns nor how much the van holds: covers for rainy days
take room, and on market days it carries tables too. Both are learned from past mornings alone::

    python examples/plot_unknown_limits.py
"""

import matplotlib.pyplot as plt
import numpy as np
from _picture import BLUE, INK, ORANGE, bars, caption, save

import revealed as rv

rng = np.random.default_rng(5)
products = ["loaves", "rolls", "tarts", "cakes", "pretzels", "buns"]
days, cut, n = 500, 300, len(products)
rain, market = rng.uniform(0, 10, days), (rng.random(days) < 0.3).astype(float)  # mm; 0 or 1
warmth = rng.standard_normal(days)
Z = np.column_stack([rain, market, warmth])
oven, room = rng.uniform(0.5, 1.5, n), rng.uniform(0.5, 2.0, n)
wanted = rng.uniform(8, 16, n)
van = 0.75 * room @ wanted - 2.5 * rain - 9.0 * market  # what it holds: nobody wrote it down
profit = rng.uniform(2, 4, n) + 0.3 * np.outer(warmth, rng.standard_normal(n))
hours = 0.6 * oven @ wanted
rows = np.vstack([oven, room])
true = rv.LinearProgram(
    A_ub=rows, b_ub=np.column_stack([np.full(days, hours), van]), lb=0.0, ub=wanted
)
mornings = true.solve(-profit).x
past, future = slice(cut), slice(cut, None)

# %%
# The van is row 1; what the problem holds there is not looked at.
known = rv.LinearProgram(A_ub=rows, b_ub=[hours, np.inf], lb=0.0, ub=wanted)
model = rv.InverseRegressor(known, unknown_limits={"ub": [1]}).fit(Z[past], mornings[past])
learned = model.predict_limits(Z[future])[:, 0]
per_mm, on_market_days, _ = model.limits_.coef[0]
print(model.certificate_.limits)
print(f"a millimeter of rain takes {-per_mm:.2f} crates, a market day {-on_market_days:.2f}")

# %%
# Plans made for the largest load ever seen do not fit on rainy days.
loads = mornings @ room
guesses = {"learned": learned, "mean load": loads[past].mean(), "largest load": loads[past].max()}
met = {}
for name, guess in guesses.items():
    limit = np.broadcast_to(guess, days - cut)
    told = np.column_stack([np.full(days - cut, hours), limit])
    problem = rv.LinearProgram(A_ub=rows, b_ub=told, lb=0.0, ub=wanted)
    plan = problem.solve(model.predict_cost(Z[future])).x
    met[name] = float((np.abs(plan - mornings[future]) < 1e-4).all(axis=1).mean())
print("mornings met exactly:", ", ".join(f"{name} {share:.0%}" for name, share in met.items()))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for at_market, color, words in ((0, BLUE, "other days"), (1, ORANGE, "market days")):
    here = market == at_market
    left.plot(rain[here], loads[here], ".", color=color, alpha=0.35, mew=0, ms=8)
    ends = np.array([[0.0, at_market, 0.0], [10.0, at_market, 0.0]])
    left.plot([0, 10], model.predict_limits(ends)[:, 0], color=color, lw=2, label=words)
left.set(xlabel="rain, mm", ylabel="crates in the van", xlim=(0, 10))
left.legend(loc="lower left", labelcolor=INK)
caption(left, "What the van holds", "dots: loads of mornings; lines: the learned limit")
bars(right, met, "learned", "{:.0%}")
caption(right, "Unseen mornings met exactly", "learned costs, under three limits of the van")
save(figure, "unknown_limits")
