"""Learned limits in `revealed explain`: what they are, and beside each decision.

Letters: B samples, K learned limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._common.words import count
from ..plans import turned
from ..store import FittedModel
from .dossier import Dossier
from .telling import table, tell

if TYPE_CHECKING:
    from ...fit.limits.model import LimitModel

LEVEL = 0.95


def limit_facts(model: FittedModel, limits: LimitModel, dossier: Dossier) -> list[dict[str, Any]]:
    """Of each learned limit, as the planner writes it: effects of features, noise, and for each
    sample the limit, its interval and where the decision stands."""
    between, said = limits.intervals(dossier.contexts, LEVEL), limits.predict(dossier.contexts)
    values = limits.unknown.values(model.plan.rows, dossier.decisions)
    found = []
    for k, limit in enumerate([limit for limit in model.limits if limit.learned]):
        sign = turned(model.plan, limit)
        ends = np.sort(sign * np.column_stack([between.low[:, k], between.high[:, k]]), axis=1)
        effects = zip(model.features.names, sign * limits.coef[k], strict=True)
        found.append(
            {
                "name": limit.name,
                "active": int(limits.active[k]),
                "learned_from": limits.samples,
                "noise": float(limits.noise[k]),
                "effects": dict(effects) if limits.identified[k] else None,
                "level": LEVEL,
                "samples": [
                    {"sample": dossier.sample(b), "limit": s, "low": low, "high": high, "used": u}
                    for b, (s, (low, high), u) in enumerate(
                        zip(sign * said[:, k], ends.tolist(), sign * values[:, k], strict=True)
                    )
                ],
            }
        )
    return found


def tell_limits(facts: list[dict[str, Any]], top: int) -> None:
    """Print it, `top` of the samples of each limit."""
    for one in facts:
        if one["effects"] is None:
            tell(
                "Limit",
                f"{one['name']} was never active: decisions show only that none went beyond it.",
            )
            continue
        largest = sorted(one["effects"].items(), key=lambda pair: -abs(pair[1]))[:3]
        moves = ", ".join(f"{name} {effect:+.3g}" for name, effect in largest if effect)
        tell(
            "Limit",
            f"{one['name']} was active in {one['active']:,} of "
            f"{count(one['learned_from'], 'decision')}; "
            f"it moves with {moves or 'no feature'} (per unit of the feature), and by "
            f"{one['noise']:.2g} that the context does not explain.",
        )
        rows = [_row(sample) for sample in one["samples"][:top]]
        level = f"{100 * one['level']:g}%"
        if rows:
            print(table(["sample", "decision", "limit", f"{level} from", "to", "slack"], rows))


def _row(sample: dict[str, Any]) -> list[str]:
    numbers = [f"{sample[name]:.5g}" for name in ("used", "limit", "low", "high")]
    return [sample["sample"], *numbers, f"{sample['limit'] - sample['used']:.3g}"]
