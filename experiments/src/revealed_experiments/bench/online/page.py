"""The page of `revealed bench online`, made of its results, and the picture of drift."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..pages import Page, Picture
from ..tables import Table

PUBLISHED = {
    "online gradient descent": ("8.46 ± 4.07", "0.03"),
    "online Newton step": ("7.81 ± 2.52", "0.10"),
    "cutting planes": ("2.77 ± 0.68", "0.80"),
}
"""Regret and seconds of the notebook of Sakaue, Tsuchiya, Bao and Oki, ten trials of 10,000."""
KINDS = {"none": "no drift", "abrupt": "abrupt change", "slow": "slow change"}
QUICK, FIXED = "forgetting 0.99", "best fixed model in hindsight"
FORMER = "recursive least squares, as it was"
LATE = 5
"""Windows at the end, over which the last excess is taken: a quarter of all rounds."""


def make_page(content: dict[str, Any]) -> Page:
    """What is shown of a run that is kept."""
    parts, tables, words = content["parts"], [], [_OPENING]
    if "paths" in parts:
        words.append(_paths_words(parts["paths"]))
        tables += [_shares(parts["paths"]["rows"]), _regrets(parts["paths"]["rows"])]
    if "drift" in parts:
        words.append(_drift_words(parts["drift"]))
        tables.append(_drift(parts["drift"]["rows"]))
    if "sphere" in parts:
        words.append(_sphere_words(parts["sphere"]))
        tables.append(_sphere(parts["sphere"]))
    picture = None
    if "drift" in parts:
        picture = Picture(
            "drift.png",
            "Excess cost and regret by decisions seen, with and without forgetting",
            lambda: _draw(parts["drift"]),
        )
    return Page("Streams and drift", "\n\n".join(words), tables, picture=picture)


_OPENING = """How well `partial_fit` learns from decisions that come one after the other. What it
does and when to use it is in [the guide](guide/online.md)."""


def mean_of(rows: list[dict[str, Any]], learner: str, size: int, what: str = "same") -> float:
    """The mean over seeds."""
    own = [row[what] for row in rows if (row["learner"], row["size"]) == (learner, size)]
    return float(np.mean(own))


def mean_regrets(rows: list[dict[str, Any]]) -> dict[str, float]:
    """By learner: the mean over trials."""
    names = dict.fromkeys(row["learner"] for row in rows)
    return {n: float(np.mean([r["regret"] for r in rows if r["learner"] == n])) for n in names}


def late_excess(rows: list[dict[str, Any]], kind: str) -> dict[str, float]:
    """By learner: excess cost in the last quarter of a stream, mean over seeds."""
    own = [row["windows"] for row in rows if row["kind"] == kind]
    return {name: float(np.mean([w[name][-LATE:] for w in own])) for name in own[0]}


# --- noisy paths ----------------------------------------------------------------------------------


def _paths_words(part: dict[str, Any]) -> str:
    rows = part["rows"]
    seeds, sizes = sorted({row["seed"] for row in rows}), sorted({row["size"] for row in rows})
    size = 200 if 200 in sizes else sizes[-1]
    single, whole, former = (
        f"{100 * mean_of(rows, name, size):.1f}%" for name in ("one by one", "fit", FORMER)
    )
    each = 1e3 * mean_of(rows, "one by one", sizes[-1], "seconds") / sizes[-1]
    return f"""**Noisy paths.** Right-down 5x5 grid, degree 4, as on [the page of noise](noise.md);
{part["unseen"]:,} unseen decisions; seeds {seeds[0]} to {seeds[-1]}, on which nothing was chosen.
After {size} updates with one decision each, `partial_fit` repeats {single} of unseen decisions,
`fit` on the same {size} repeats {whole}; recursive least squares on the same loss, which
`partial_fit` was before, {former}. An update takes {each:.1f} ms of the processor, whatever the
number of decisions before."""


def _shares(rows: list[dict[str, Any]]) -> Table:
    lines = _by_size(rows, lambda name, size: f"{100 * mean_of(rows, name, size):.1f}%")
    return Table("Noisy paths: unseen decisions repeated", _headings(rows), lines)


def _regrets(rows: list[dict[str, Any]]) -> Table:
    def cell(name: str, size: int) -> str:
        told = f"{100 * mean_of(rows, name, size, 'regret'):.2f}%"
        return told if name == "fit" else f"{told} ({_behind(rows, name, size)})"

    note = "In brackets: points behind `fit` on the same decisions, seed by seed, standard errors."
    lines = _by_size(rows, cell)
    return Table("Noisy paths: regret", _headings(rows), lines, note=note)


def _behind(rows: list[dict[str, Any]], learner: str, size: int) -> str:
    by = {(r["learner"], r["seed"]): r["regret"] for r in rows if r["size"] == size}
    apart = [100 * (by[learner, s] - by["fit", s]) for name, s in by if name == learner]
    error = np.std(apart, ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else 0.0
    return f"{np.mean(apart):+.2f} ± {error:.2f}"


def _headings(rows: list[dict[str, Any]]) -> list[str]:
    return ["decisions seen", *(f"{size:,}" for size in sorted({row["size"] for row in rows}))]


def _by_size(rows: list[dict[str, Any]], cell: Any) -> list[list[str]]:
    sizes = sorted({row["size"] for row in rows})
    names = dict.fromkeys(row["learner"] for row in rows)
    return [[name, *(cell(name, size) for size in sizes)] for name in names]


# --- drift ----------------------------------------------------------------------------------------


def _drift_words(part: dict[str, Any]) -> str:
    rows = part["rows"]
    seeds, late = sorted({row["seed"] for row in rows}), late_excess(rows, "abrupt")
    with_, without, fixed = (f"{100 * late[k]:.1f}%" for k in (QUICK, "nothing forgotten", FIXED))
    return f"""**Drift.** The same paths, but the hidden weights of the costs change: all at once in
the middle of {part["rounds"]:,} decisions, or little by little from the first to the last. Each
decision is predicted before it is learned from, one by one; seeds {seeds[0]} to {seeds[-1]}. "Best
fixed model in hindsight" is `fit` on the whole stream. In the last quarter after an abrupt change
the excess over the best cost is {with_} with `LBFGS(forgetting=0.99)`, {without} without
forgetting, and {fixed} for the best fixed model. Costs are noisy, so nobody comes near 0. Below:
regret against the best fixed model so far, in multiples of the mean best cost of a decision."""


def _drift(rows: list[dict[str, Any]]) -> Table:
    lines = []
    for kind, told in KINDS.items():
        own = [row["windows"] for row in rows if row["kind"] == kind]
        if not own:
            continue
        late = late_excess(rows, kind)
        for name in own[0]:
            whole = np.mean([windows[name] for windows in own])
            against = [np.sum(windows[name]) - np.sum(windows[FIXED]) for windows in own]
            ahead = 100 * np.mean(against) / len(own[0][name])
            lines.append(
                [told, name, f"{100 * whole:.2f}%", f"{ahead:+.2f}", f"{100 * late[name]:.2f}%"]
            )
    headings = ["stream", "learner", "excess cost, all decisions", "less the best fixed model"]
    headings += ["last quarter"]
    note = "Below 0: ahead of the best model that does not change. In points of the best cost."
    return Table("Drift: excess over the best cost", headings, lines, n_words=2, note=note)


def _draw(part: dict[str, Any]) -> Any:
    """The excess cost along the streams, and the regret against the best fixed model."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots(2, len(KINDS), sharex=True, sharey="row")
    for (above, below), (kind, told) in zip(axes.T, KINDS.items(), strict=True):
        own = [row["windows"] for row in part["rows"] if row["kind"] == kind]
        curves = {k: np.mean([w[k] for w in own], axis=0) for k in (own[0] if own else ())}
        for name, curve in curves.items():
            length = part["rounds"] / len(curve)
            seen, fixed = (np.arange(len(curve)) + 0.5) * length, name == FIXED
            look: Any = {"color": "0.5", "ls": ":"} if fixed else {}
            above.plot(seen, 100 * curve, label=name, **look)
            below.plot(seen + 0.5 * length, np.cumsum(curve - curves[FIXED]) * length, **look)
        above.set(title=told)
        below.set(xlabel="decisions seen")
        for ax in (above, below):
            ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set(ylabel="excess cost, %", ylim=(0, None))
    axes[1, 0].set_ylabel("regret")
    axes[0, 0].legend(fontsize=7, frameon=False)
    return figure


# --- the sphere -----------------------------------------------------------------------------------


def _sphere_words(part: dict[str, Any]) -> str:
    trials = len({row["seed"] for row in part["rows"]})
    return f"""**The problem of Sakaue et al.** (*Online Inverse Linear Optimization*, NeurIPS
2025): in each of {part["rounds"]:,} rounds the choice is between a random point of the unit sphere
(n = {part["dimension"]}) and its opposite; the agent takes the better one under a fixed hidden
objective; the learner predicts first. Regret adds up by how much the agent's choices were better;
mean and standard deviation of {trials} trials, the same for all learners. Rivals are our own
implementations with their paper's constants. Published figures are from the authors' notebook:
other trials, another machine. Ours is the estimator as it is, for a linear program of one variable,
and pays for it in time: nearly all of it is checks of input and calls. Most regret is made in the
first ten rounds, when next to nothing is known."""


def _sphere(part: dict[str, Any]) -> Table:
    lines = []
    for name in dict.fromkeys(row["learner"] for row in part["rows"]):
        own = [row for row in part["rows"] if row["learner"] == name]
        regret = [row["regret"] for row in own]
        early = np.mean([row["after"]["10"] for row in own])
        published, seconds = PUBLISHED.get(name, ("", ""))
        told = f"{np.mean(regret):.2f} ± {np.std(regret):.2f}"
        taken = f"{np.mean([row['seconds'] for row in own]):.2f}"
        lines.append([name, told, f"{early:.2f}", published, taken, seconds])
    headings = ["learner", "regret", "of it in ten rounds", "published", "seconds"]
    return Table("Choices on the sphere", [*headings, "published"], lines)
