"""
Portfolio
=========

A manager chooses every week the mix of assets that is best for what the manager expects:

    maximize <c, x> - gamma/2 x^T Q x   subject to   sum x = 1,   x >= 0

We see the mixes and what was known of each asset, not what the manager made of it. First Q is known
and we learn how expected returns c follow from what was known. Then Q is not known either: c and Q
are learned together, Q as a mix of covariance estimates.

The manager is made up, so that we can compare. Prices are real where skfolio is installed (`pip
install --no-deps skfolio`). For portfolios best in hindsight see `revealed bench portfolio`.
"""

import matplotlib.pyplot as plt
import numpy as np
from _picture import caption, paired, save

import revealed as rv
from revealed.datasets.prices import FEATURES, load_sp500, portfolio_periods, synthetic_prices

try:
    prices = load_sp500()
except rv.MissingDependencyError as missing:
    print(missing)
    prices = synthetic_prices()
known = portfolio_periods(prices)
BELIEF = np.array([-0.6, 0.0, 0.4, 0.8, -0.3, 0.5])  # of the manager: what makes an asset rise
EAGER = 0.35  # the manager's risk is a mix of two estimates: this share of the last quarter's
quarter, year = known.estimates[:, 0], known.estimates[:, 1]
cut = len(year) // 2
past, future = slice(cut), slice(cut, None)

# %%
# Q known: the explaining set of c is that of a linear program, moved by gamma Q x*.
alone = rv.problems.portfolio(year)
mixes = alone.solve(known.features @ BELIEF).x
shared = rv.fit.SharedModel(fit_intercept=False)
model = rv.InverseRegressor(alone[past], model=shared, margin=0.0)
model.fit(known.features[past], mixes[past])
planned = model.predict(known.features[future], problem=alone[future])
print(f"Q known: off by {np.abs(planned - mixes[future]).max():.1e} at most in later weeks")

# %%
# Q unknown: the parameters are (c, Q) and the model is shared weights of their features. Portfolios
# reveal no unit: the margin sets one, and weights are compared after rescaling.
both = rv.problems.portfolio(n_assets=len(prices.names))
true = both.pack(known.features @ BELIEF, EAGER * quarter + (1 - EAGER) * year)
eager_mixes = both.solve(true).x
(weeks, n, p), nothing = known.features.shape, np.zeros(known.returns.shape)
context = np.zeros((weeks, both.n_parameters, p + 2))
context[:, :n, :p] = known.features
context[:, n:, p], context[:, n:, p + 1] = (both.pack(nothing, Q)[:, n:] for Q in (quarter, year))
joint = rv.InverseRegressor(both, model=shared)
joint.fit(context[past], eager_mixes[past])
weights = joint.coef_ / joint.coef_[p:].sum()
replanned = joint.predict(context[future])
print(f"Q unknown: off by {np.abs(replanned - eager_mixes[future]).max():.1e} at most")
print("weights of returns and estimates:", weights.round(3), "true:", BELIEF, EAGER, 1 - EAGER)

# %%
figure = plt.figure(figsize=(12.5, 5.2), layout="constrained")
grid = figure.add_gridspec(2, 2, width_ratios=[1.5, 1])
shown, palette = slice(-150, None), plt.get_cmap("twilight_shifted")(np.linspace(0.08, 0.92, n))
for k, (mix, title) in enumerate(((eager_mixes, "Held"), (replanned, "Predicted"))):
    axis = figure.add_subplot(grid[k, 0])
    axis.stackplot(known.days[shown].astype("O"), mix[shown].T, colors=palette, lw=0)
    axis.set(ylim=(0, 1), yticks=[0, 1], yticklabels=["0", "100%"])
    axis.margins(x=0)
    caption(axis, title, f"shares of {n} assets; " + ("never seen", "c and Q learned before")[k])
right = figure.add_subplot(grid[:, 1])
paired(right, (*FEATURES, "quarter's Q", "year's Q"), [*BELIEF, EAGER, 1 - EAGER], weights)
caption(right, "What the manager believes", "weights; black: true; blue: learned from shares alone")
save(figure, "portfolio")
