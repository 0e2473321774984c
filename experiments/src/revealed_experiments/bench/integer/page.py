"""What `revealed bench integer` shows: regret and seconds by problem and method, and targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..pages import Page
from ..tables import Table, target
from .names import LOOP, PFYL, SPO

WORDS = """
Knapsacks (32 items, two budgets), tours and routes of vehicles (20 customers, capacity 30, at most
5 vehicles) as the generators of PyEPO and CaVE draw them (degree 4, noise 0.5), learned by a linear
model. All losses run in one training loop (Adam, batches of 32, learning rate 0.01 for knapsacks,
0.05 for tours and routes) and ask the same exact oracle, once for each sample and step; SPO+ sees
true costs, the others only decisions. "Ours, loop" is `SmoothedProjectionLoss` with one draw of
noise 1, margin 0 for knapsacks and 1 elsewhere, chosen on other seeds. CaVE+, where it is shown,
has the cone of rows and bounds only; its own code adds the subtours and capacities that its solver
found. "Tightened rows" is `InverseRegressor` with its defaults on `problem.tightened(X)`, the
relaxation with rows made tight that leave a decision no room; its seconds are of the whole fit.

Regret is the cost of predicted decisions above the least, as a share of that, on test samples, with
the standard deviation over seeds: of the last network, and of the mean of the networks of the
second half of training; "same" the share of decisions that the latter repeats exactly. Processor
seconds are of one epoch, from the third on, on a machine that was busy with other work: compare
rows of one table.

Routes are shown for some of the seeds 44, 45, 46, 49 and 50: there an exact solve takes about ten
milliseconds. On the other five of CaVE's seeds vehicles are far from full, and a solve can take
seconds.

Means that CaVE's article published, of last networks and ten seeds, are SPO+ 5.95%, PFYL 6.56%,
CaVE+ 6.20% for 20 nodes, 7.57%, 8.03%, 7.69% for 50, and 5.94%, 6.32%, 6.44% for routes.
"""
BOUNDS = {"tsp-20": 6.2, "cvrp-20": 6.3}
SLOWER = 1.5


def make_page(content: dict[str, Any]) -> Page:
    """The page of a file of results."""
    rows = content["results"]
    return Page("Whole decisions: results", WORDS, [_table(n, part) for n, part in _parts(rows)])


def targets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was asked for, of problems that have been run; rivals are averaged where ours is."""
    found = []
    for name, part in _parts(rows):
        seconds = _means(part, "cpu")
        if LOOP not in seconds:
            continue
        for words, which in (("last network", "regret"), ("averaged", "regret_averaged")):
            regret = _means(part, which)
            if name in BOUNDS:
                found.append(target(f"{name}: regret, {words}", regret[LOOP], BOUNDS[name]))
            if name == "knapsack" and {SPO, PFYL} <= set(regret):
                found.append(target(f"{name}: regret, {words}", regret[LOOP], regret[PFYL]))
                lead = regret[LOOP] - regret[SPO]
                found.append(target(f"{name}: less that of SPO+, {words}", lead, 0.5))
        if SPO in seconds:
            ratio = seconds[LOOP] / seconds[SPO]
            found.append(target(f"{name}: seconds of an epoch, ours by SPO+", ratio, SLOWER))
    return found


def _parts(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    names = dict.fromkeys(row["problem"] for row in rows)
    return [(name, [row for row in rows if row["problem"] == name]) for name in names]


def _means(rows: list[dict[str, Any]], what: str) -> dict[str, float]:
    """By method, over its seeds."""
    return {
        method: float(np.mean([_value(row, what) for row in rows if row["method"] == method]))
        for method in dict.fromkeys(row["method"] for row in rows)
    }


def _value(row: dict[str, Any], what: str) -> float:
    each = row[what]
    return float(np.mean(each[2:] or each)) if isinstance(each, list) else float(each)


def _table(problem: str, rows: list[dict[str, Any]]) -> Table:
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        seconds = np.mean([_value(row, "cpu") for row in mine])
        same = np.mean([row["same_averaged"] for row in mine])
        seeds = [row["seed"] for row in mine]
        which = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
        shown = [_spread(mine, "regret"), _spread(mine, "regret_averaged"), f"{same:.0f}"]
        lines.append([method, *shown, f"{seconds:.3g}", which])
    heads = ["method", "regret in %", "averaged", "same in %", "processor seconds", "seeds"]
    return Table(problem, heads, lines)


def _spread(rows: list[dict[str, Any]], what: str) -> str:
    each = np.array([row[what] for row in rows])
    return f"{each.mean():.2f}" + (f" ± {each.std(ddof=1):.2f}" if len(each) > 1 else "")
