"""The page of `revealed bench limits`, made of its results."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..pages import Page
from ..tables import Table

KINDS = {
    "exact": "exact decisions",
    "noisy": "costs and limits off by 5%",
    "rounded": "decisions with two decimals",
}
LEARNERS = ("limits known", "ours", "constant limits", "largest value seen")


def make_page(content: dict[str, Any]) -> Page:
    """What is shown of a run that is kept."""
    parts, tables, words = content["parts"], [], [_OPENING]
    if "exactness" in parts:
        words.append(_exactness(parts["exactness"]))
    if "recovery" in parts:
        words.append(_recovery_words(parts["recovery"]))
        tables += [_recovery(parts["recovery"]["rows"], kind) for kind in KINDS]
    if "coverage" in parts:
        words.append(_coverage_words(parts["coverage"]))
        tables.append(_coverage(parts["coverage"]["rows"]))
    return Page("Unknown limits, measured", "\n\n".join(words), tables)


def recovered(rows: list[dict[str, Any]]) -> dict[str, float]:
    """By problem: the share of decisions met on exact data, over that of knowing the limits."""
    found = {}
    for name in dict.fromkeys(row["problem"] for row in rows):
        own = [row for row in rows if row["problem"] == name and row["kind"] == "exact"]
        ours, known = (np.mean([row[k]["same"] for row in own]) for k in ("ours", "limits known"))
        found[name] = float(ours / known)
    return found


_OPENING = """How well right-hand sides that nobody wrote down are learned together with costs. What
is learned and how is in [the guide](guide/unknown_limits.md)."""


def _exactness(part: dict[str, Any]) -> str:
    worst, looked = part["worst"], part["projections"]
    return f"""**Exactness.** On {part["problems"]} random problems with up to
{part["most_unknown"]} unknown rows and bounds, the nearest pair of costs and limits agrees with
trying every guess of what is active, each projected by the slow reference, to
{max(worst.values()):.1e} of the length of the pair. Trying every guess took
{looked["enumerate"]:,} projections, branch and bound {looked["branch"]:,}."""


def _recovery_words(part: dict[str, Any]) -> str:
    shares = recovered(part["rows"])
    seeds = sorted({row["seed"] for row in part["rows"]})
    told = ", ".join(f"{name} {100 * share:.1f}%" for name, share in shares.items())
    return f"""**Recovery.** Limits linear in three features, which move them by 8%; one, two or
three of them unknown; {part["unseen"]} unseen contexts; seeds {seeds[0]} to {seeds[-1]}. "Limits known" is an estimator that is given the limits in force in every
sample and the true ones in unseen contexts. The last two decide under its costs, with the mean of
the true limits and with the largest value that decisions reached. Truth is the best decision under
the costs and limits that the context says. Decisions met on exact data, as a share of those with
known limits: {told}. With noise in the limits nobody who has to learn them repeats an entry to
five digits, so those tables count decisions that use the same entries, and the mean error of an
entry, as a share of the mean entry."""


def _coverage_words(part: dict[str, Any]) -> str:
    return f"""**Intervals.** {part["size"]} decisions, limits off by {100 * part["noise"]:g}% in
each; how often intervals at {100 * part["level"]:g}% hold the limit at a context that was not seen.
Where two limits are unknown, costs are known here, so that what is active can be told. Limits with
fewer than 13 active samples are left out, those that are never active are counted apart: all that
is said of them is one side."""


def _recovery(rows: list[dict[str, Any]], kind: str) -> Table:
    own = [row for row in rows if row["kind"] == kind]
    measure = "same" if kind == "exact" else "support"
    headings = ["problem", "unknown", "decisions", "told by vertices", "error of limits"]
    headings += [*LEARNERS, "entry error: known", "ours", "constant", "seconds"]
    lines = []
    for name, K, size in dict.fromkeys((r["problem"], r["unknown"], r["size"]) for r in own):
        some = [r for r in own if (r["problem"], r["unknown"], r["size"]) == (name, K, size)]
        line = [name, str(K), f"{size:,}", _percent(some, "sure"), _error(some)]
        line += [f"{100 * np.mean([r[who][measure] for r in some]):.1f}%" for who in LEARNERS]
        line += [f"{100 * np.mean([r[who]['error'] for r in some]):.1f}%" for who in LEARNERS[:3]]
        lines.append([*line, f"{np.mean([r['seconds'] for r in some]):.1f}"])
    counted = "decisions met" if measure == "same" else "the same entries used"
    note = "Seconds are of the processor, one thread, other work on the machine."
    return Table(f"{KINDS[kind].capitalize()}: {counted}", headings, lines, n_words=2, note=note)


def _percent(rows: list[dict[str, Any]], key: str) -> str:
    return f"{100 * np.mean([row[key] for row in rows]):.0f}%"


def _error(rows: list[dict[str, Any]]) -> str:
    known = [row["limit_error"] for row in rows if row["limit_error"] is not None]
    return f"{100 * np.mean(known):.2g}%" if known else "never active"


def _coverage(rows: list[dict[str, Any]]) -> Table:
    headings = ["problem", "unknown", "two-sided", "from below", "from above", "intervals"]
    headings += ["never active", "of which the side holds"]
    lines = [
        [
            row["problem"],
            str(row["unknown"]),
            *(f"{100 * row['held'][side]:.1f}%" for side in ("both", "low", "high")),
            f"{row['intervals']:,}",
            str(row["never_active"]),
            str(row["one_sided_held"]),
        ]
        for row in rows
    ]
    return Table("Coverage of intervals", headings, lines, n_words=2)
