"""What `revealed bench noise` shows: tables of means with paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..pages import Page, Picture
from ..tables import Table
from . import names as n

Results = Sequence[dict[str, Any]]
MEASURES = {
    "regret": "regret, %",
    "decision_loss": "decision loss",
    "estimate_loss": "estimate loss",
}


def column(results: Results, setting: str, name: str, measure: str = "regret") -> np.ndarray:
    """(seeds,) one measure of one method."""
    rows = [row["found"] for row in results if row["setting"] == setting]
    return np.array([row[name][measure] for row in rows if name in row])


def gap(
    results: Results, setting: str, name: str, other: str, measure: str = "regret"
) -> np.ndarray:
    """(seeds,) one method less another, seed by seed."""
    return column(results, setting, name, measure) - column(results, setting, other, measure)


def make_page(content: dict[str, Any]) -> Page:
    """What is shown of a run that is kept."""
    results = content["results"]
    noisy = list(dict.fromkeys(r["setting"] for r in results if r["kind"] == "noisy"))
    exact = list(dict.fromkeys(r["setting"] for r in results if r["kind"] != "noisy"))
    chosen = [name for name in noisy if len(column(results, name, n.CHOSEN))]
    tables = [_lead_table(results, noisy), _noisy_table(results, noisy)]
    tables.append(_chosen_table(results, chosen))
    tables += [_exact_table(results, name) for name in exact]
    about = "By how much the regret of ours exceeds that of PFYL, setting by setting"
    picture = Picture("noise.png", about, lambda: _draw(results, noisy))
    return Page("Noisy decisions", _findings(results, noisy), tables, _method(content), picture)


def _draw(results: Results, names: list[str]) -> Any:
    """Ours less PFYL in every setting, with two standard errors."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.2, 0.32 * len(names) + 1.1), layout="constrained")
    axis.axvline(0, color="#767c84", linewidth=1)
    for row, name in enumerate(names):
        values = gap(results, name, n.OURS, n.PFYL)
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
        axis.errorbar(values.mean(), row, xerr=2 * error, fmt="o", color="#0067b1", linewidth=1.6)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_xlabel("regret of ours less that of PFYL, points, with two standard errors")
    axis.set_title("Left of the line ours is ahead", loc="left", fontsize=10)
    axis.grid(axis="x", alpha=0.25, linewidth=0.6)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    return figure


def _lead_table(results: Results, names: list[str]) -> Table:
    rows = []
    for name in names:
        rivals = [n.PFYL, n.LONG, n.PLAIN]
        cells = [_difference(gap(results, name, n.OURS, r)) if _has(results, name, r) else ""
                 for r in rivals]  # fmt: skip
        rows.append([name, f"{column(results, name, n.OURS).mean():.2f}", *cells])
    means = np.mean([gap(results, name, n.OURS, n.PFYL).mean() for name in names])
    rows.append(["mean", "", f"{means:+.2f}", "", ""])
    headings = ["setting", "ours, regret in %", "less PFYL", "less PFYL, longer", "less unsmoothed"]
    note = "Points of regret, seed by seed, with standard errors. Below 0: ours is ahead."
    return Table("Ours and PFYL, both with default settings", headings, rows, 1, note)


def _noisy_table(results: Results, names: list[str]) -> Table:
    methods = (n.OURS, n.PLAIN, n.PFYL, n.LONG, n.SPO, n.REGRESSION, n.FLOOR)
    rows = [[name, *(_mean(results, s, name) for s in names)] for name in methods]
    return Table("Regret in %, every method", ["method", *names], rows, 1)


def _chosen_table(results: Results, names: list[str]) -> Table:
    methods = (n.OURS, n.CHOSEN, n.PFYL, n.QUADRATIC_PFYL, n.QUADRATIC_SPO, n.FLOOR)
    rows = [[name, *(_mean(results, s, name) for s in names)] for name in methods]
    took = [f"{100 * column(results, s, n.CHOSEN, 'quadratic').mean():.0f}%" for s in names]
    rows.append(["quadratic features chosen in", *took])
    seconds = [f"{column(results, s, n.CHOSEN, 'seconds').mean():.1f}" for s in names]
    rows.append(["seconds to choose and fit, one thread", *seconds])
    note = (
        "`InverseRegressorCV` chooses ridge and features by 5-fold cross-validation on the "
        "training decisions. Quadratic PFYL and SPO+ are given squares and products from the start."
    )
    return Table("Regret in %, with a model that is chosen", ["method", *names], rows, 1, note)


def _exact_table(results: Results, setting: str) -> Table:
    methods = (n.OURS, n.POCS, n.ARMIJO, n.PFYL, n.TUNED_PFYL, n.TUNED_SPO)
    rows = []
    for name in methods:
        cells = [name]
        for measure in MEASURES:
            values = column(results, setting, name, measure)
            cells.append(f"{values.mean():.3f}")
            rise = gap(results, setting, name, n.OURS, measure)
            cells.append("" if name == n.OURS else _difference(rise, 3))
        rows.append(cells)
    headings = ["method"]
    for words in MEASURES.values():
        headings += [words, "less ours"]
    title = setting[0].upper() + setting[1:]
    return Table(title, headings, rows, 1)


def _findings(results: Results, noisy: list[str]) -> str:
    gaps = {name: gap(results, name, n.OURS, n.PFYL) for name in noisy}
    mean = np.mean([values.mean() for values in gaps.values()])
    worst = max(gaps, key=lambda name: gaps[name].mean())
    return f"""
**Finding.** On noisy decisions the default of `InverseRegressor` is level with the perturbed
Fenchel-Young loss (PFYL): {mean:+.2f} points of regret on average over {len(noisy)} settings, at
worst {gaps[worst].mean():+.2f} ({worst}). Choosing the features matters more than the loss.

On exact decisions, the difference of its decision loss (below 0: ours is better):

{_on_exact(results)}
"""


def _method(content: dict[str, Any]) -> str:
    seeds = content["settings"]["seeds"]
    return f"""
Noisy paths: shortest paths on the right-down 5x5 grid. Costs are a power of a hidden linear
function of five features, times uniform noise in [0.5, 1.5] for every edge of every sample
(`revealed.datasets.noisy_paths`, PyEPO's generator), so no model explains all decisions. 1,000
training samples and degree 4 unless said otherwise; {content["settings"]["test"]:,} test samples;
seeds {seeds[0]} to {seeds[-1]}, not used for any choice. *Random*: a share of training decisions is
replaced by those of random costs. *Suboptimal*: every training decision may cost up to 5% more
than the best one.

*Ours*: `InverseRegressor(problem)`, nothing set. *Not smoothed*: `noise=0`. *PFYL*: noise 1, 10
draws, Adam with step 0.01, batches of 32, 20 epochs, as in PyEPO. *Longer*, and *PFYL* on exact
data: the same with as many updates as 1,000 samples get in 20 epochs. *Mean cost known*: decisions
under the expected true cost; no model of the context can do better. *Step chosen*: 100 epochs, the
step of 1, 0.1 and 0.01 that does best on validation decisions. Only rows that say so see a true
cost.
"""


def _on_exact(results: Results) -> str:
    """Decision loss of ours less that of the closest decision-only rivals, in words."""
    told = []
    for setting in dict.fromkeys(row["setting"] for row in results if row["kind"] != "noisy"):
        each = [
            f"{_difference(gap(results, setting, n.OURS, rival, 'decision_loss'))} from {rival}"
            for rival in (n.POCS, n.PFYL)
        ]
        told.append(f"- {setting}: {' and '.join(each)}")
    return "\n".join(told)


def _has(results: Results, setting: str, name: str) -> bool:
    return len(column(results, setting, name)) > 0


def _mean(results: Results, setting: str, name: str) -> str:
    values = column(results, setting, name)
    return f"{values.mean():.2f}" if len(values) else ""


def _difference(values: np.ndarray, digits: int = 2) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():+.{digits}f} ± {error:.{digits}f}"
