"""What `revealed bench minimum` shows: tables, and curves of the gap by projections."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..pages import Page, Picture
from ..tables import Table

SHOWN = "not smoothed"
"""The objective that is drawn: the paper's, with a small ridge."""


def make_page(content: dict[str, Any]) -> Page:
    """What is shown of a run that is kept."""
    results = content["results"]
    tables = [_fits(results), _beside(results), _levels(results), _large(content["large"])]
    picture = Picture(
        "pocs.png", "Gap to the minimum by projections, POCS and L-BFGS", lambda: _draw(results)
    )
    return Page("POCS and the minimum", _findings(results), tables, METHOD, picture)


METHOD = """
POCS, the paper's Algorithm 1 (`solver="pocs"`), alternates two steps: project every predicted cost
onto the set of costs that explain its decision, then fit the model to these projections by least
squares. For a linear model this is gradient descent with step 1 in whitened features. It never
raises the loss, needs no step size and no ridge. But its rate depends on the curvature of the
loss, which is small in some directions, and nothing tells it how far away the minimum is.
`solver="lbfgs"`, the default, starts with the same step, learns the curvature from past gradients
and from the active sets of a sample of projections, and stops when a bound from convex duality
proves that the minimum is near ([how](guide/minimum.md)).

Both minimize the same function from the same start. *Default*: smoothed, Huber's form,
ridge 0.15 over the number of samples. *Not smoothed*: the squared distance, the paper's loss,
with the same ridge, which makes the minimum unique and the gap provable. The feed blend and the
factory plan are made up, with rows whose units differ by up to a factor of a million and features
whose scales do too. The gap is the loss less a proved lower bound, over that bound. Projections of
the fit on a tenth of the samples, with which large fits start, are counted. The picture shows the
fits that are not smoothed.
"""


def _findings(results: list[dict[str, Any]]) -> str:
    ratios = [row["at_the_end"]["times_fewer"] for row in results]
    known = [ratio for ratio in ratios if ratio]
    slow = max(results, key=lambda row: row["pocs"]["relative_gap"])
    return f"""
**Finding.** Where POCS ends after thousands of iterations, L-BFGS arrives with {min(known):.0f} to
{max(known):.0f} times fewer projections. It then goes on to a proved gap of
{max(row["relative_gap"] for row in results):.0e} or less. POCS slows down: on the {slow["name"]}
its loss is still {1 + slow["pocs"]["relative_gap"]:.1f} times the minimum after
{slow["pocs"]["iterations"]:,} iterations.
"""


def _fits(results: list[dict[str, Any]]) -> Table:
    rows = [
        [
            row["name"],
            row["objective"],
            f"{row['samples']:,}",
            f"{row['evaluations']}",
            f"{row['projections']:,}",
            f"{row['relative_gap']:.1e}",
            f"{row['seconds']:.2f}",
            f"{100 * row['held']['ours']:.1f}",
            f"{100 * row['held']['POCS']:.1f}",
        ]
        for row in results
    ]
    headings = [
        "data", "loss", "samples", "evaluations", "projections", "gap proved", "seconds",
        "held out repeated, %", "by POCS, %",
    ]  # fmt: skip
    note = "POCS: after all of its iterations in the next table."
    return Table("Fits to the minimum", headings, rows, 2, note)


def _beside(results: list[dict[str, Any]]) -> Table:
    rows = []
    for row in results:
        end, pocs = row["at_the_end"], row["pocs"]
        rows.append(
            [
                row["name"],
                row["objective"],
                f"{pocs['iterations']:,}",
                f"{pocs['relative_gap']:.1e}",
                f"{pocs['projections']:,.0f}",
                _count(end["ours"]),
                _times(end["times_fewer"]),
                f"{pocs['seconds']:.1f}",
                f"{pocs['seconds'] / row['seconds']:.1f}",
            ]
        )
    headings = [
        "data", "loss", "POCS iterations", "gap", "projections", "L-BFGS, same gap",
        "times fewer", "POCS, s", "POCS over L-BFGS, time to the end",
    ]  # fmt: skip
    return Table("Compared with POCS", headings, rows, 2)


def _levels(results: list[dict[str, Any]]) -> Table:
    levels = list(results[0]["levels"])
    rows = []
    for row in results:
        cells = []
        for level in levels:
            at = row["levels"][level]
            cells.append(f"{_count(at['ours'])} / {_count(at['POCS'])}")
        rows.append([row["name"], row["objective"], *cells])
    headings = ["data", "loss", *(f"gap {100 * float(level):g}%" for level in levels)]
    note = "L-BFGS / POCS; a dash where POCS did not get there."
    return Table("Projections to a given gap", headings, rows, 2, note)


def _large(lines: list[dict[str, Any]]) -> Table:
    rows = []
    for line in lines:
        ours, pocs = line["ours"], line["pocs"]
        rows.append(
            [
                f"{line['samples']:,}",
                f"{ours['seconds']:.1f}",
                f"{ours['relative_gap']:.1e}",
                f"{pocs['seconds']:.1f}",
                f"{pocs['relative_gap']:.1e}",
                f"{pocs['seconds'] / ours['seconds']:.1f}",
                f"{ours['peak_mib']:.0f}",
            ]
        )
    headings = [
        "samples", "L-BFGS, s", "gap", "150 POCS iterations, s", "gap", "times faster", "peak MiB",
    ]  # fmt: skip
    return Table("Many samples: noisy 5x5 paths, default loss", headings, rows, 0)


def _draw(results: list[dict[str, Any]]) -> Any:
    """One panel for each data set: the gap by projections, both solvers."""
    import matplotlib.pyplot as plt

    shown = [row for row in results if row["objective"] == SHOWN]
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(3.3 * columns, 2.6 * lines), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axis, row in zip(axes.flat, shown, strict=False):
        for name, color in (("POCS", "#c0504d"), ("L-BFGS", "#2b5c8a")):
            curve = row["curves"][name]
            gap = np.maximum(np.array(curve["gap"], float), 1e-8)
            axis.loglog(curve["projections"], gap, color=color, linewidth=1.8, label=name)
        axis.set_title(row["name"], fontsize=10)
        axis.grid(alpha=0.25, linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("gap to the minimum")
    for axis in axes[-1]:
        axis.set_xlabel("projections")
    axes[0, 0].legend(frameon=False, fontsize=9)
    axes[0, 0].set_ylim(5e-9, None)
    return figure


def _count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _times(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"
