"""Minimize over whole decisions: rounds of L-BFGS on the cuts known and of asking the oracle.

The loss over known cuts is convex, at most the true one, and costs no oracle call. So it is
minimized first, then the oracle is asked at the costs reached, for some of the draws in each round.
Where it finds no violated alternative, for any sample and draw, the two losses agree there and the
minimum of one is that of the other: the bound from below is exact all along. Letters: B samples, n
variables, K draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..optimality.integer import IntegerCosts
from ..optimality.protocol import CostSet as Sets
from ..optimality.sets import OptimalitySet
from ..projection import ProjectionStatus, project
from ..projection.distance import length_of, value_and_gradient
from .certificate import Certificate, Convergence
from .evaluation import DistanceLoss, Evaluator
from .history import History, StopReason
from .least_squares import chunks
from .models import ConvexModel
from .progress import progress

ROUNDS = 200
"""Most rounds of cuts."""
COARSE = 1e-2
"""How near the minimum of the known cuts to go while cuts are still missing."""
EXPLAINED = 1e-6
"""Relative distance at which a cost explains its decision: about as exact as solvers are."""
FEW_DRAWS = 2
"""Draws that the oracle is asked about in one round, in turn."""
PART = 2048
"""Costs that are projected together."""


def needs_cuts(sets: Sets) -> bool:
    """Whether sets are of whole decisions, with cuts that an oracle still has to find."""
    kind = sets.kind
    return isinstance(kind, IntegerCosts) and not kind.known_only


def known_cuts(sets: Any) -> OptimalitySet:
    """The larger sets of the cuts known at the time; projecting onto them asks no oracle."""
    return sets.replaced(_kind=replace(sets.kind, known_only=True))


def minimize_over_cuts(
    minimize: Any,
    model: ConvexModel,
    features: Any,
    sets: Sets,
    *,
    loss: DistanceLoss | None,
    max_iter: int,
    tol: float,
    threads: int | None,
    verbose: bool = False,
    **options: Any,
) -> History:
    """Fit `model` in place; `minimize` is `lbfgs`, which takes the `options`.

    `max_iter` bounds the evaluations over known cuts, all rounds together.
    """
    known = Evaluator(known_cuts(sets), loss, cache=True, threads=threads)
    oracle = _Oracle(sets, known, threads)
    common = options | {"features": features, "evaluator": known, "threads": threads}
    rows: list[dict[str, Any]] = []
    fine = complete = False
    certificate: Certificate | None = None
    with progress("Cuts and minima", max_iter, verbose=verbose) as show:
        oracle.tell = lambda: show({"iteration": known.evaluations, "h": oracle.h})
        for turn in range(ROUNDS):
            added = oracle.ask(model, features, _in_turn(turn, known.loss.count))
            if not added and fine:
                added = oracle.ask(model, features, np.arange(known.loss.count))
                complete = not added
            left = max_iter - known.evaluations
            if complete or left <= 0:
                break
            # A round that adds cuts leaves another loss to go down; only its neighborhood matters.
            fine = not added
            near = tol if fine else max(tol, COARSE)
            part = minimize(
                model, None, known.sets, max_iter=left, tol=near, describe_fit=fine, **common
            )
            certificate = part.certificate if fine else certificate
            rows.append(part.rows[-1] | {"iteration": len(rows), "calls": oracle.calls})
            oracle.h = float(rows[-1]["h"])
    return _history(rows, complete, model, features, oracle, certificate, tol)


def _in_turn(turn: int, count: int) -> np.ndarray:
    return np.unique(np.arange(FEW_DRAWS * turn, FEW_DRAWS * (turn + 1)) % count)


class _Oracle:
    """Asked about the costs of a model with its draws; counts what that takes."""

    def __init__(self, sets: Sets, known: Evaluator, threads: int | None) -> None:
        self.sets, self.known, self.threads = sets, known, threads
        self.calls, self.unproved = 0, 0
        """Of the last asking: costs about which the oracle proved nothing."""
        self.tell: Callable[[], None] = lambda: None
        """Called after every part, for a progress bar; `h` is that of the last minimum."""
        self.h = np.nan

    def ask(self, model: ConvexModel, features: Any, draws: np.ndarray) -> int:
        """Ask once about every sample with each of these draws; how many cuts that added."""
        alternatives = self.sets.kind.alternatives
        before, self.unproved = alternatives.n_cuts, 0
        for near, _, _ in self.projections(model, features, draws, 1):
            self.calls += int(near.calls.sum())
            missed = (near.status != ProjectionStatus.SOLVED) & (
                near.status != ProjectionStatus.MAX_ITER
            )
            self.unproved += int(missed.sum())
            self.tell()
        return alternatives.n_cuts - before

    def projections(self, model: ConvexModel, features: Any, draws: np.ndarray, budget: int) -> Any:
        """Of parts of the samples: projections, their costs and which samples they are."""
        for part in chunks(len(self.sets), PART):
            index = np.arange(part.start, part.stop)
            for draw in draws:
                costs = self.known.costs(model, features[part], index, np.full(len(index), draw))
                own = self.sets[index]
                near = project(costs, own, max_iter=budget, threads=self.threads)
                yield near, costs, index

    def value(self, model: ConvexModel, features: Any) -> float:
        """The mean loss by distances of points known to be in the sets: from above where the oracle
        has not proved them the nearest."""
        loss, total = self.known.loss, 0.0
        weights = np.asarray(self.sets.weights)
        draws = np.arange(loss.count)
        for near, costs, index in self.projections(model, features, draws, 1):
            above = replace(near, outer=near.point, bound=near.distance)
            size = length_of(costs, np.asarray(self.sets.margins)[index])
            value, _ = value_and_gradient(costs, above, size, loss.power, loss.delta)
            total += float(weights[index] @ value)
        return total / (weights.sum() * loss.count) + model.penalty()


def _history(
    rows: list[dict[str, Any]],
    complete: bool,
    model: ConvexModel,
    features: Any,
    oracle: _Oracle,
    certificate: Certificate | None,
    tol: float,
) -> History:
    """The rounds as rows, and what is proved: the bound of the known cuts from below, the loss by
    points in the sets from above."""
    history = History(rows)
    exact = complete and oracle.unproved == 0
    bound = 0.0 if certificate is None else certificate.lower_bound
    value = oracle.value(model, features)
    converged = exact and certificate is not None and certificate.converged
    history.reason = StopReason.CONVERGED if converged else StopReason.CAP
    facts = Convergence(
        value=value,
        lower_bound=min(bound, value),
        converged=converged,
        convex=oracle.known.loss.is_convex,
        evaluations=oracle.known.evaluations,
        projections=oracle.known.projections,
    )
    # The rounds have asked about costs with noise. Which decisions the costs themselves explain is
    # asked once more: known cuts would flatter the model.
    done = Evaluator(oracle.sets, warm_start=False, threads=oracle.threads).look(model, features)
    done = replace(done, unsolved=done.unsolved + oracle.unproved)
    history.certificate = Certificate.of(done, min(tol, EXPLAINED), history.reason, facts)
    return history
