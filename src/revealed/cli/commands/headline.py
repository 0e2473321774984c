"""The figures by which a model is judged, in words."""

from __future__ import annotations

from typing import Any

from ..._common.words import count
from .telling import percent, tell
from .words import Words


def tell_figures(heading: str, figures: dict[str, Any], words: Words, more: str = "") -> None:
    """How many decisions are repeated, exactly and nearly, and what the others cost."""
    if not figures["samples"]:
        return
    low, high = figures["interval"]
    tell(
        heading,
        f"{figures['repeated']:,} of {count(figures['samples'], 'decision')} repeated exactly "
        f"({percent(figures['repeated_share'])}, 95% interval {percent(low)} to {percent(high)})"
        + (
            f", {figures['near']:,} ({percent(figures['near_share'])}) to within 1%"
            if "near" in figures
            else ""
        )
        + (f"; {more}." if more else "."),
    )
    if figures.get("extra_cost") is not None:
        tell("", f"The observed decisions {_extra(figures['extra_cost'], words)}.")


def _extra(share: float, words: Words) -> str:
    if words.best == "cheapest":
        return f"cost {fine(share)} more than the cheapest under the learned costs"
    return f"are worth {fine(share)} less than the best under the learned values"


def tell_baselines(baselines: dict[str, Any], words: Words) -> None:
    """What the model must beat, in the same figures on the same samples."""
    parts = []
    for name, what in (
        ("most_frequent", "Always the most frequent decision"),
        ("no_context", f"{words.costs} without context".capitalize()),
    ):
        figures = baselines[name]
        said = f"{what}: {percent(figures['repeated_share'])} repeated exactly"
        if figures["infeasible"]:
            said += f" (breaks the plan on {percent(figures['infeasible'] / baselines['samples'])})"
        if figures.get("own_extra_cost") is not None:
            own = _extra(figures["own_extra_cost"], words).replace("the learned", "these")
            said += f"; the observed decisions {own}"
        parts.append(said)
    tell("Baselines", f"{'. '.join(parts)}.")


def unconvincing(facts: dict[str, Any]) -> list[str]:
    """A warning where the model repeats no more decisions than a baseline does."""
    held = facts["held"]["samples"] > 0
    own, others = facts["held" if held else "seen"], facts["baselines"]
    baselines = (others[name] for name in ("most_frequent", "no_context"))
    best = max((figures["repeated"], figures["near"]) for figures in baselines)
    if own["repeated"] == own["samples"] or (own["repeated"], own["near"]) > best:
        return []
    rows = "held-out decisions" if held else "decisions that it learned from"
    return [
        f"The model does not beat the baselines: it repeats {own['repeated']:,} of "
        f"{own['samples']:,} {rows}, the better baseline {best[0]:,}. Nothing shows that the "
        "contexts explain the decisions: check that each row belongs to its decision, and that "
        "the columns hold what the decisions depend on."
    ]


def fine(share: float) -> str:
    """A small share, with two figures: 0.13%."""
    if share < 5e-7:
        return "0%"
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:.0f}%"
