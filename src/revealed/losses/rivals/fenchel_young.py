"""A smooth convex loss whose gradient is the difference of two decisions.

Letters: K draws, B samples, n cost entries.
"""

from __future__ import annotations

from torch import Tensor

from .._random import PerturbingLoss
from ..base import Batch


class FenchelYoungLoss(PerturbingLoss):
    """How far the observed decision is from optimal under noisy costs, on average.

        E <s, x* - x(s)>  =  <c, x*> - E min_x <s, x>,   s = c + sigma xi,  xi standard normal

        gradient  x* - E x(s);  the mean of `n_samples` draws stands for E

    Convex and smooth in c. The first form is the one computed: it is at least 0 for every draw,
    and 0 exactly if no draw moves the decision away from x*, so it can be watched. It is the
    Fenchel-Young loss without its constant, the conjugate of E max_x <., x> at x*, which is 0 at
    every vertex: for decisions of a solver nothing is left out. (PyEPO estimates the second form:
    sigma <mean of the draws, x*> below ours, and the same gradient.)

    Needs no true costs. `n_samples` oracle calls for each sample. With `floor` the oracle and the
    value see s raised to it, for graphs with cycles, where noise below 0 has no shortest path;
    the gradient is that of the loss without it.

    Source: Berthet, Blondel, Teboul, Cuturi, Vert and Bach, *Learning with Differentiable
    Perturbed Optimizers* (NeurIPS 2020).

    Parameters
    ----------
    problem : LinearProgram or other problem with linear costs
        What the decision maker may do.
    n_samples : int
        Draws of noise for each sample of a call.
    sigma : float
        Standard deviation of the noise, above 0.
    seed : int
        Of the draws.
    floor : float or None
        Raise costs to at least this before the oracle sees them; None leaves them as they are.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name = "pfyl"
    oracle_calls = "n_samples"

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        _, costs, chosen = self.perturb(batch)
        gap = batch.decisions - chosen  # (K, B, n)
        return (costs * gap).sum(2).mean(0), gap.mean(0)
