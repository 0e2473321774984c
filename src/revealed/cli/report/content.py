"""What the report says, as plain data.

Letters: B samples, n variables, d terms of the context.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...optimality.identification import LARGEST, Identified, identified
from ...optimality.sets import OptimalitySet
from ...problems.solution import SolveStatus
from ..commands.deciding import decide
from ..commands.judging import Judgment, compared
from ..commands.robust import stored_angles
from ..explain import Miss, explaining, find_misses, nearest_costs, needed, stable_changes
from ..plans import Plan
from ..store import FittedModel, Samples

SENSITIVITY = 200
"""Explained samples whose sensitivity is computed: one linear program each."""
MISSES = 12
CLOSE = 0.01
"""Share of the size of a decision's cost below which a saving is a close call."""
UNUSUAL = 2.5
"""Standard deviations from the mean beyond which a feature is unusual."""
LEVELS = (0.8, 0.9)


class Effect(NamedTuple):
    """What one standard deviation of a feature does to costs."""

    name: str
    size: float
    """Root mean square over the variables, of what decisions tell."""
    raised: list[tuple[str, float]]
    lowered: list[tuple[str, float]]


class Missed(NamedTuple):
    """A decision that the model does not repeat."""

    name: str
    held: bool
    saving: float
    changes: tuple[tuple[str, float, float], ...]
    why: str


@dataclass(frozen=True, eq=False)
class Content:
    """Everything the page shows."""

    model: FittedModel
    samples: Samples
    seen: Judgment | None
    """Of the samples shown that the model learned from; `held` of those it did not."""
    held: Judgment | None
    means: np.ndarray
    """(n,) mean predicted cost, as the planner writes costs."""
    effects: list[Effect]
    misses: list[Missed]
    n_missed: int
    changes: np.ndarray
    """How much all costs may change at once before an explained decision changes."""
    known: Identified | None
    cones: list[str]
    """What is guaranteed of costs of new decisions, at several levels."""


def gather(model: FittedModel, samples: Samples) -> Content:
    """Judge the model on samples and look at what it learned."""
    if not len(samples):
        raise InputError("There is no sample to report on; give --contexts and --decisions.")
    plans = model.plan if samples.limits is None else model.plan_of(samples.limits)
    Z, taken = samples.contexts, samples.decisions
    costs = model.costs(Z)
    answer = decide(plans.problem, costs, quiet=True)
    solved = answer.status == SolveStatus.OPTIMAL
    own = np.where(solved[:, None], answer.decisions, taken)
    verdict = compared(costs, own, taken, solved)
    every = plans[np.arange(len(samples))]
    missed = np.flatnonzero(solved & ~verdict.as_good)
    found = find_misses(every[missed], costs[missed], taken[missed], own[missed], model.given)
    found = [miss._replace(sample=int(missed[miss.sample])) for miss in found]
    looked = np.flatnonzero(verdict.as_good)[:SENSITIVITY]
    changes = stable_changes(every[looked], costs[looked], taken[looked])
    known = _known(every, taken)
    parts = [np.flatnonzero(samples.held == kind) for kind in (0, 1)]
    judged = [verdict.of(rows) if rows.size else None for rows in parts]
    return Content(
        model=model,
        samples=samples,
        seen=judged[0],
        held=judged[1],
        means=model.plan.sign * costs.mean(axis=0),
        effects=_effects(model, Z, known if model.given is None else None),
        misses=[_missed(model, samples, every, costs, verdict, m) for m in found[:MISSES]],
        n_missed=len(found),
        changes=changes[np.isfinite(changes)],
        known=known,
        cones=_cones(model),
    )


def _known(plans: Plan, taken: np.ndarray) -> Identified | None:
    """Of whole decisions that of the relaxation, which is at least as much as they tell."""
    if plans.rows.n_variables > LARGEST:
        return None
    return identified(OptimalitySet(plans.rows, taken))


def _effects(model: FittedModel, Z: np.ndarray, known: Identified | None) -> list[Effect]:
    """By size; without what no decision tells, where that is known."""
    terms = _terms(model, Z)
    moves = model.plan.sign * model.coef * terms.std(axis=0)
    if known is not None:
        moves = known.canonical(moves)
    effects = []
    for name, move in zip(model.terms, moves.T, strict=True):
        order = [int(j) for j in np.argsort(move)]
        names = model.plan.variables
        raised = [(names[j], float(move[j])) for j in order[::-1][:2] if move[j] > 0]
        lowered = [(names[j], float(move[j])) for j in order[:2] if move[j] < 0]
        effects.append(Effect(name, float(np.sqrt((move**2).mean())), raised, lowered))
    return sorted(effects, key=lambda effect: -effect.size)


def _terms(model: FittedModel, Z: np.ndarray) -> np.ndarray:
    """(B, d) what costs are linear in."""
    if model.kind != "quadratic":
        return Z
    i, j = np.triu_indices(Z.shape[1])
    return np.hstack([Z, Z[:, i] * Z[:, j]])


def _missed(
    model: FittedModel,
    samples: Samples,
    plans: Plan,
    costs: np.ndarray,
    verdict: Judgment,
    miss: Miss,
) -> Missed:
    b = miss.sample
    why = []
    if miss.saving <= CLOSE * verdict.spent[b]:
        why.append("A close call: both decisions cost nearly the same.")
    why += _unusual(model, samples, b)
    sets = explaining(plans[[b]].problem, samples.decisions[[b]], model.given)
    nearest = nearest_costs(sets, costs[[b]], model.given).costs[0]
    if np.isnan(nearest).any():
        why.append("No costs that keep to the given ones make it the best decision.")
        nearest = costs[b]
    lines = needed(model.plan, costs[b], samples.decisions[b], nearest)
    if lines:
        first, size = lines[0], float(np.abs(costs[b]).max())
        to, now = (_amount(model.plan.sign * cost, size) for cost in (first.nearest, first.cost))
        more = f", and {len(lines) - 1} others otherwise" if len(lines) > 1 else ""
        why.append(
            f"It would be the best decision if {first.variable} were at {to} instead "
            f"of {now}{more}."
        )
    return Missed(
        samples.names[b], bool(samples.held[b]), miss.saving, miss.changes[:4], " ".join(why)
    )


def _amount(cost: float, size: float) -> str:
    """A cost among others of that size: what is nothing beside them is rounding."""
    return "0" if abs(cost) < 1e-6 * size else f"{cost:.4g}"


def _unusual(model: FittedModel, samples: Samples, b: int) -> list[str]:
    """A sentence on the most unusual number of a context, if one is."""
    Z = samples.contexts
    spread = Z.std(axis=0)
    away = np.abs(Z[b] - Z.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    j = int(np.argmax(away)) if away.size else -1
    if j < 0 or away[j] < UNUSUAL or len(Z) < 20:
        return []
    return [
        f"An unusual day: {model.features.names[j]} is {away[j]:.1f} standard deviations "
        f"from its mean."
    ]


def _cones(model: FittedModel) -> list[str]:
    from ...fit.conformal import conformal_cone

    angles = stored_angles(model)
    return [] if angles is None else [conformal_cone(angles, level).statement for level in LEVELS]


def plain(content: Content) -> dict[str, Any]:
    """For JSON."""
    return {
        "samples": len(content.samples),
        "seen": content.seen.plain() if content.seen else None,
        "held": content.held.plain() if content.held else None,
        "missed": content.n_missed,
        "effects": [effect._asdict() for effect in content.effects],
        "cones": content.cones,
    }
