"""How far reduced costs are from proving the observed decision optimal with a margin.

Letters: B samples, n cost entries, m rows.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ...errors import InputError
from ...optimality.sets import OptimalitySet
from ...problems.linear import LinearProgram
from ...projection import project
from .._options import check_margin
from ..base import Batch, DecisionLoss
from .basis import BOTH, NONE, Bases, BasisBook, bases_of, keys_of, own_matrices
from .device_basis import bases_on_device
from .standard_form import dense_rows

BASES = ("decision", "true")


class OptimalityMarginLoss(DecisionLoss):
    """What is missing from the reduced costs of a basis until each is at least `margin`.

        sum over nonbasic j of max(0, margin - r_j),    r = c - A^T y,   y = A_B^-T c_B

    In general form: r_j <= -margin is asked of an entry at its upper bound, nothing of a fixed one,
    and the slack of a binding inequality counts as an entry of cost 0. That is what the standard
    form with a slack for each bound and row gives. An entry strictly between its bounds that the
    basis leaves out, because the decision is not a vertex, adds |r_j|.

    basis="decision" reads the basis off the decision: the entries between their bounds. Where the
    decision is degenerate, as every path is, they are too few and others complete them. Each row in
    turn takes the entry with the largest coefficient in it after eliminating those chosen before,
    the first of equal ones. Nothing says that the decision maker's costs prove the decision
    with the basis found so: of costs that explain it, the loss allows only a part.

    basis="true" takes a basis that is optimal under the true costs, as its authors do (the entries
    whose reduced costs are 0 there), and so needs them.

    The loss is convex and piecewise linear in c; where an r_j equals the margin its part of the
    gradient is 0. A given OptimalitySet says which entries are at their bounds; its own margin is
    not looked at. No oracle call for "decision", one the first time a sample comes for "true":
    bases are kept, with m^2 numbers for each decision (true cost) that differs from the others.
    For sets on a device and "decision" they are found there, of all decisions uploaded, in the
    first call; later calls read nothing back.

    Source: Sun, Liu and Li, *Maximum Optimality Margin: A Unified Approach for Contextual Linear
    Programming and Inverse Linear Programming* (ICML 2023).

    Parameters
    ----------
    problem : LinearProgram
        What the decision maker may do.
    margin : float
        What each reduced cost should be at least; 0 or more.
    basis : "decision" or "true"
        Where the basis comes from. "true" needs `true_costs` in every call.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name = "mom"
    oracle_calls = "none; for basis='true' one, the first time"
    works_on_device = True

    def __init__(
        self,
        problem: LinearProgram,
        *,
        margin: float = 1.0,
        basis: str = "decision",
        reduction: str = "mean",
    ) -> None:
        super().__init__(problem, reduction=reduction)
        if basis not in BASES:
            raise InputError(
                "`basis` must be 'decision', read off the observed decision, or 'true', from the "
                f"true costs; got {basis!r}."
            )
        self.margin, self.basis = check_margin(margin), basis
        self.needs_true_costs = basis == "true"
        self._book = BasisBook()

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        if not len(batch.costs):
            return batch.costs.sum(1), batch.costs
        bases = self.bases(batch)
        rows = dense_rows(batch.problem, batch.costs.device)
        reduced = _reduced_costs(bases, rows, batch.costs)
        missing, pull = _hinge(reduced, bases.side, self.margin)
        return missing.sum(1), _back(bases, rows, pull)

    def bases(self, batch: Batch) -> Bases:
        """The basis of each sample, kept from earlier calls where it has come before."""
        if self.basis == "true":
            return self._by_true_costs(batch)
        if batch.device_sets is not None:
            return bases_on_device(batch.device_sets)
        return self._by_decision(batch)

    def forget(self) -> None:
        """Drop the bases; they are found again, the same. Those on a device stay with the sets
        there, for a captured graph knows where they are."""
        self._book = BasisBook()

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, margin={self.margin:g}, basis={self.basis!r}"

    def _by_decision(self, batch: Batch) -> Bases:
        sets = batch.sets
        if sets is None:
            sets = OptimalitySet(batch.problem, batch.decisions.cpu(), 0.0)
        keys = keys_of([sets.entry_state, sets.row_active, *own_matrices(batch.problem)])
        bases = self._book.recall(keys, batch.costs.device)
        if bases is None:
            bases = bases_of(sets, None, batch.costs.device)
            self._book.keep(keys, bases)
        return bases

    def _by_true_costs(self, batch: Batch) -> Bases:
        assert batch.true_costs is not None  # `needs_true_costs` has asked for them
        problem, truth = batch.problem, batch.true_costs
        limits = (problem.b_eq, problem.b_ub, problem.lb, problem.ub)
        own = [*own_matrices(problem), *(part for part in limits if part.ndim == 2)]
        keys = keys_of([truth.cpu().numpy(), *own])
        bases = self._book.recall(keys, batch.costs.device)
        if bases is None:
            sets = OptimalitySet(problem, batch.decide(truth).cpu(), 0.0)
            bases = bases_of(sets, _proof(sets, truth.cpu().numpy()), batch.costs.device)
            self._book.keep(keys, bases)
        return bases


def _proof(sets: OptimalitySet, costs: np.ndarray) -> np.ndarray:
    """(B, n + m): reduced costs that prove decisions optimal, those of the logicals after those of
    the entries.

    The costs explain their own decisions, so their projection is where they are and its multipliers
    are the proof. It need not come from a basis: `bases_of` moves it to one.
    """
    y = np.array(project(costs, sets).multipliers)
    y[:, sets.rows.eq_rows.shape[0] :] *= -1.0  # mu of a row <= is minus its multiplier here
    rows = dense_rows(sets.rows, torch.device("cpu")).numpy()
    return np.hstack([costs - np.matmul(y[:, None], rows)[:, 0], -y])


def _reduced_costs(bases: Bases, rows: Tensor, costs: Tensor) -> Tensor:
    """(B, n + m)"""
    n, m = costs.shape[1], rows.shape[1]
    extended = torch.nn.functional.pad(costs, (0, m))  # logicals cost nothing
    basic = extended.gather(1, bases.columns)
    y = torch.bmm(basic[:, None], bases.inverse)
    extended[:, :n] -= torch.matmul(y, rows)[:, 0]
    extended[:, n:] -= y[:, 0]
    return extended


def _hinge(reduced: Tensor, side: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """What each reduced cost is short of its margin, (B, n + m), and the derivative of that."""
    short = (margin - side * reduced).clamp_min(0.0)
    pull = -(short > 0).to(reduced) * side
    both = side == BOTH
    if both.is_cuda or bool(both.any()):  # on a GPU it costs more to look than to do it
        short, pull = reduced.abs().where(both, short), reduced.sign().where(both, pull)
    return short.where(side != NONE, 0.0), pull


def _back(bases: Bases, rows: Tensor, pull: Tensor) -> Tensor:
    """(B, n): the derivative in the costs, from that in the reduced costs (B, n + m)."""
    n = rows.shape[2]
    through_rows = torch.matmul(rows, pull[:, :n, None])[:, :, 0] + pull[:, n:]
    through_basis = torch.bmm(bases.inverse, through_rows[:, :, None])[:, :, 0]
    return pull.scatter_add(1, bases.columns, -through_basis)[:, :n]
