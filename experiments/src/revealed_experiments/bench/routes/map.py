"""A map of what was learned: the cost of a meter on every link, and a trip where it matters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from revealed.datasets.routes import Routes

from .command import LENGTH, OURS

CHEAP, DEAR = 0.7, 2.5
"""Ends of the color scale, in meters for each meter."""


def draw_map(path: Path, study: Any) -> None:
    """Write a PNG with two panels."""
    from matplotlib.figure import Figure

    network = study.network
    figure = Figure(figsize=(12, 6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_costs(figure, left, network, cost_of_a_meter(network, study.own_costs()))
    _draw_trip(right, study)
    for axes in (left, right):
        axes.set_aspect(1 / np.cos(np.radians(network.position[:, 1].mean())))
        axes.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def cost_of_a_meter(network: Any, costs: np.ndarray) -> np.ndarray:
    """(L,) the cost of the cheapest move into each link, over its length; inf where none leads."""
    least = np.full(network.n_links, np.inf)
    np.minimum.at(least, network.moves[:, 1], costs)
    return 100.0 * least / network.length


def _lines(network: Any, links: np.ndarray) -> np.ndarray:
    """(len(links), 2, 2), shifted to the right of the road, so that both directions are seen."""
    ends = network.position[np.column_stack([network.start[links], network.end[links]])]
    along = ends[:, 1] - ends[:, 0]
    size = np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
    aside = np.column_stack([along[:, 1], -along[:, 0]]) / size * 1.2e-4
    return ends + aside[:, None, :]


def _draw_costs(figure: Any, axes: Any, network: Any, rate: np.ndarray) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LogNorm

    links = np.arange(network.n_links)
    lines = LineCollection(
        list(_lines(network, links)), array=rate, cmap="viridis_r", norm=LogNorm(CHEAP, DEAR),
        linewidths=2.0,
    )  # fmt: skip
    axes.add_collection(lines)
    _frame(axes, network)
    ticks = [CHEAP, 1.0, 1.5, DEAR]
    bar = figure.colorbar(lines, ax=axes, shrink=0.6, ticks=ticks, extend="both")
    bar.set_ticklabels([f"{tick:g}" for tick in ticks])
    bar.minorticks_off()
    axes.set_title("Learned cost of a meter, by the cheapest way onto the link")


def _frame(axes: Any, network: Any) -> None:
    """Show where the roads are; a few nodes of the files lie far off and would shrink the rest."""
    low, high = np.quantile(network.position, [0.01, 0.99], axis=0)
    spare = 0.06 * (high - low)
    axes.set_xlim(low[0] - spare[0], high[0] + spare[0])
    axes.set_ylim(low[1] - spare[1], high[1] + spare[1])


def _draw_trip(axes: Any, study: Any) -> None:
    from matplotlib.collections import LineCollection

    network, test = study.network, study.test
    axes.add_collection(
        LineCollection(
            list(_lines(network, np.arange(network.n_links))), colors="0.85", linewidths=1.0
        )
    )
    i = _telling_trip(study)
    judge = study.judge_of_test
    shortest = judge.cheapest(study.features.values[:, 0])[judge.trip[i]]
    drawn = (
        ("what the driver did, and the cheapest at learned costs", "#1b7837", _links(test, i), 5.0),
        ("shortest by length", "#d6604d", _entered(network, shortest), 2.0),
    )
    for label, color, links, width in drawn:
        axes.add_collection(
            LineCollection(
                list(_lines(network, links)), colors=color, linewidths=width, label=label
            )
        )
    _frame(axes, network)
    axes.legend(loc="lower right", frameon=False)
    axes.set_title("A test route that length alone gets wrong")


def _telling_trip(study: Any) -> int:
    """The route that the learned costs get right and length gets wrong by most."""
    right, wrong = study.scores[OURS].exact, study.scores[LENGTH].links
    return int(np.argmin(np.where(right, wrong, 2.0)))


def _links(routes: Routes, i: int) -> np.ndarray:
    return routes.links[i]


def _entered(network: Any, moves: np.ndarray) -> np.ndarray:
    return network.moves[moves, 1]
