"""What the mathematics promises for the user's own data, next to what happened.

The loss is h(theta) = 1/(2B) sum_i dist^2(theta z_i, C_i) for a linear model with contexts Z
(B, d), or with features of each entry (B, n, p) and shared coefficients.

- h is convex and L-smooth, L = lambda_max(Z^T Z / B) <= max |z|^2: its gradient is the mean of
  (q_i - P_i(q_i)) z_i^T, and q -> q - P(q) does not expand distances.
- The gradient is R^T Z / B with the residuals R (B, n), and h = |R|^2 / (2B). So
  1/2 |grad|^2 >= mu h with mu = lambda_min(Z Z^T / B): the Polyak-Lojasiewicz inequality, as soon
  as the contexts of the samples are linearly independent (never with more samples than features).
- Whatever the data and whatever model u, gradient descent with step 1/L has
  h_T - h(u) <= L |theta_0 - u|^2 / (2T). POCS is gradient descent with step 1 in the metric
  Z^T Z / B, where h is 1-smooth, so h_T - h(u) <= D^2 / (2T), D^2 the mean squared distance between
  the costs predicted at the start and by u. The sets are polyhedra, so POCS also converges
  linearly (Bauschke and Borwein, 1996), at a rate that depends on the angles between them.

Letters: B samples, n cost entries, d features.
"""

from .guarantees import Guarantees as Guarantees
from .rates import contraction as contraction
from .rates import expected_h as expected_h
from .rates import pl_constant as pl_constant
from .rates import smoothness as smoothness
from .rates import stated_pl_constant as stated_pl_constant
from .shortest import LemmaBound as LemmaBound
from .shortest import LemmaStatus as LemmaStatus
from .shortest import delta as delta
from .shortest import delta_lemma as delta_lemma
from .shortest import gamma_bound as gamma_bound

__all__ = [  # noqa: RUF022  (in reading order)
    "smoothness",
    "pl_constant",
    "stated_pl_constant",
    "contraction",
    "expected_h",
    "delta",
    "LemmaStatus",
    "LemmaBound",
    "delta_lemma",
    "gamma_bound",
    "Guarantees",
]
