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
ENOUGH = 0.95
"""Of the accuracy of knowing the limits: the target on exact data."""
LEARNERS = ("limits known", "ours", "constant limits", "largest value seen")


def make_page(content: dict[str, Any]) -> Page:
    """What is shown of a run that is kept."""
    parts, tables, words = content["parts"], [], []
    if "exactness" in parts:
        words.append(_exactness(parts["exactness"]))
    if "recovery" in parts:
        words.append(_recovery_words(parts["recovery"]))
        tables += [_recovery(parts["recovery"]["rows"], kind) for kind in KINDS]
    if "coverage" in parts:
        words.append(_coverage_words(parts["coverage"]))
        tables.append(_coverage(parts["coverage"]["rows"]))
    if "programs" in parts:
        words.append(_PROGRAMS)
        tables.append(_programs(parts["programs"]["rows"]))
    if "flows" in parts:
        words.append(_FLOWS)
        tables.append(_flows(parts["flows"]))
    if "hidden" in parts:
        words.append(_hidden_words(parts["hidden"]["rows"]))
        tables.append(_hidden(parts["hidden"]["rows"]))
    return Page("Unknown limits, measured", _findings(parts), tables, "\n\n".join(words))


def _findings(parts: dict[str, Any]) -> str:
    told = [f"- {sentence(parts[name])}" for name, sentence in _FOUND.items() if name in parts]
    return f"{_OPENING}\n\n" + "\n".join(told)


def _recovery_found(part: dict[str, Any]) -> str:
    least = min(recovered(part["rows"]).values())
    return (
        f"On exact data decisions in new contexts are met at least {100 * least:.1f}% as often as "
        "by someone who knows the limits."
    )


def _coverage_found(part: dict[str, Any]) -> str:
    held = [row["held"]["both"] for row in part["rows"]]
    return (
        f"Intervals at {100 * part['level']:g}% hold the limit in {100 * min(held):.1f} to "
        f"{100 * max(held):.1f}% of cases."
    )


def _programs_found(part: dict[str, Any]) -> str:
    ours, other = ([row[who]["solved"] for row in part["rows"]] for who in ("ours", "gradient"))
    return (
        f"Of Tan's random programs ours solves {100 * min(ours):.0f} to {100 * max(ours):.0f}%, a "
        f"gradient method {100 * min(other):.0f} to {100 * max(other):.0f}%."
    )


def _hidden_found(part: dict[str, Any]) -> str:
    most = max(part["rows"], key=lambda row: row["hidden"])
    drawn, short = (
        100 * most["learned"][who]["links"] for who in ("drawn completions", "shortest completion")
    )
    return (
        f"With {100 * most['hidden']:.0f}% of the links of routes hidden, costs learned from drawn "
        f"completions find {drawn:.1f}% of links on unseen trips, the shortest completion "
        f"{short:.1f}%."
    )


_FOUND = {
    "recovery": _recovery_found,
    "coverage": _coverage_found,
    "programs": _programs_found,
    "hidden": _hidden_found,
}
"""By part: what it found, in a sentence."""


def recovered(rows: list[dict[str, Any]]) -> dict[str, float]:
    """By problem: the least share of decisions met on exact data, over that of knowing the limits,
    of all numbers of limits and decisions."""
    exact, found = [row for row in rows if row["kind"] == "exact"], {}
    for row in exact:
        own = [one for one in exact if _setting(one) == _setting(row)]
        share = _of_known(own, "same")
        found[row["problem"]] = min(share, found.get(row["problem"], np.inf))
    return found


def _setting(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["problem"], row["unknown"], row["size"]


def _of_known(rows: list[dict[str, Any]], measure: str) -> float:
    """Our accuracy, over that of knowing the limits."""
    ours, known = (np.mean([row[k][measure] for row in rows]) for k in ("ours", "limits known"))
    return float(ours / known)


_OPENING = """**Finding.** Right-hand sides that nobody wrote down can be learned together with
costs ([how](guide/unknown_limits.md)):"""


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
three of them unknown; {part["unseen"]} unseen contexts; seeds {seeds[0]} to {seeds[-1]}. "Limits
known" is an estimator that is given the limits in force in every sample and the true ones in unseen
contexts. The last two decide under its costs, with the mean of the true limits and with the largest
value that decisions reached. Truth is the best decision under the costs and limits that the context
says. The column "ours, of known" is our share over that of knowing the limits, of which the target
on exact data is {100 * ENOUGH:.0f}%; the least there: {told}. With noise in the limits nobody who
has to learn them repeats an entry to five digits, so those tables count decisions that use the same
entries, and the mean error of an entry, as a share of the mean entry."""


def _coverage_words(part: dict[str, Any]) -> str:
    return f"""**Intervals.** {part["size"]} decisions, limits off by {100 * part["noise"]:g}% in
each; how often intervals at {100 * part["level"]:g}% hold the limit at a context that was not seen.
Of one unknown limit vertices tell where it is active. Of two they often do not: there costs decide,
which are known or learned too. Limits with fewer than 13 active samples are left out, those that
are never active are counted apart: all that is said of them is one side."""


def _recovery(rows: list[dict[str, Any]], kind: str) -> Table:
    own = [row for row in rows if row["kind"] == kind]
    measure = "same" if kind == "exact" else "support"
    headings = ["problem", "unknown", "decisions", "told by vertices", "error of limits"]
    headings += [*LEARNERS, f"ours, of known (target {100 * ENOUGH:.0f}%)"]
    headings += ["entry error: known", "ours", "constant", "seconds"]
    lines = []
    for name, K, size in dict.fromkeys(map(_setting, own)):
        some = [r for r in own if _setting(r) == (name, K, size)]
        line = [name, str(K), f"{size:,}", _percent(some, "sure"), _error(some)]
        line += [f"{100 * np.mean([r[who][measure] for r in some]):.1f}%" for who in LEARNERS]
        share = _of_known(some, measure)
        line.append(f"{100 * share:.1f}%{'' if share >= ENOUGH else ', below'}")
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
    headings = ["problem", "unknown", "costs", "two-sided", "from below", "from above"]
    headings += ["runs", "intervals"]
    headings += ["never active", "of which the side holds"]
    lines = [
        [
            row["problem"],
            str(row["unknown"]),
            row["costs"],
            *(f"{100 * row['held'][side]:.1f}%" for side in ("both", "low", "high")),
            str(row["runs"]),
            f"{row['intervals']:,}",
            str(row["never_active"]),
            str(row["one_sided_held"]),
        ]
        for row in rows
    ]
    return Table("Coverage of intervals", headings, lines, n_words=3)


def _hidden_words(rows: list[dict[str, Any]]) -> str:
    first = rows[0]
    return f"""**Decisions seen in part.** {first["trips"]:,} taxi trips in Shanghai, of each of
which links of the network are hidden by chance; of the others it is known whether the driver used
them. Routes are completed by the shortest that agrees, by the cheapest under costs learned from
completed routes in turn, and by several under costs drawn around those (`draws=4`, the spread not
tuned; that it helps was seen on other trips first). The first two figures of each are of the
training trips: the share found of the links that drivers used and were hidden, and of the routes
all right. The last two are of {first["tested"]:,} other trips, predicted from their ends: links
(Jaccard), and exact routes."""


def _hidden(rows: list[dict[str, Any]]) -> Table:
    headings = ["hidden", "completed", "links found", "routes right", "unseen: links", "exact"]
    lines = []
    for row in sorted(rows, key=lambda row: row["hidden"]):
        for who, learned in row["learned"].items():
            own = row["completed"].get(who)
            found = [f"{100 * own[key]:.1f}%" for key in ("links", "exact")] if own else ["", ""]
            told = [f"{100 * learned[key]:.1f}%" for key in ("links", "exact")]
            lines.append([f"{100 * row['hidden']:.0f}%", who, *found, *told])
    return Table("Routes with hidden links", headings, lines, n_words=2)


_PROGRAMS = """**Random programs.** After Tan, Terekhov and Delong (*Learning Linear Programs from
Optimal Decisions*, 2020), made anew from their description: polytopes that are hulls of normal
points, costs and the right-hand sides of three facets affine in one context, 20 decisions to learn
from and 20 unseen; with two known equalities as well (their experiment 1b), in 10 variables, for in
2 these leave one point. Solved means a mean squared error of at most 1e-5 on the decisions learned
from, limits right an error of at most 1e-4 in those that were active. The gradient method is ours
to blame: Adam on the squared error of decisions, 200 steps from each of three random starts, with
0.05 |x|^2 added to what is differentiated. Its derivative is the one that cvxpylayers takes, found
by active sets and faster; cvxpylayers itself was not installed where this was run. An earlier run
of it, on one instance of each shape without equalities and from one start, solved none, in 8 to 17
seconds each. Tan's own best method, sequential quadratic programming, is not in the table. Their
experiment 1c, which learns every coefficient of one program, is not run: coefficients of the matrix
are given here, and only right-hand sides, bounds and costs are learned."""


_FLOWS = """**Flows.** Their experiment 2: four unit demands on the 13 nodes and 19 arcs of Nguyen
and Dupuis, arc costs length + w1 toll + w2 length (sin(w3 + w4 t + w5 length) + 1), capacities
1 + w6 + w7 length, w unknown, 20 contexts t seen and 20 unseen; what all of these are drawn from is
ours. Right-hand sides that share two numbers are nothing that `unknown_limits` knows, so this is a
small program around the library: capacities from the upper hull of the largest flows, then w1 to w5
by L-BFGS on the distance to the sets of costs that explain the flows, from up to 40 starts. The
gradient method learns all of w, as above. Flows are compared by their sums over demands: which
demand uses which part of a full arc is a tie under any costs."""


def _programs(rows: list[dict[str, Any]]) -> Table:
    headings = ["variables", "facets", "equalities", *_SCORES]
    lines = []
    for row in rows:
        shape = [str(row[name]) for name in ("variables", "facets", "equalities")]
        lines += [[*shape, *line] for line in _scored(row)]
    note = "Seconds are of the processor, the median instance."
    return Table("Random parametric programs", headings, lines, n_words=4, note=note)


def _flows(part: dict[str, Any]) -> Table:
    note = "Seconds are of the processor, the median instance."
    return Table("Flows on a network", list(_SCORES), _scored(part), n_words=1, note=note)


_SCORES = ("learner", "instances", "solved", "unseen met", "limits right", "seconds")


def _scored(row: dict[str, Any]) -> list[list[str]]:
    """A line for each learner."""
    lines = []
    for who, name in (("ours", "ours"), ("gradient", "gradient method")):
        one = row[who]
        told = [f"{100 * one[key]:.0f}%" for key in ("solved", "unseen", "limits_right")]
        lines.append([name, str(one["instances"]), *told, f"{one['seconds']:.2f}"])
    return lines
