"""What `revealed bench integer` shows: regret and seconds by problem and method."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..pages import Page
from ..tables import Table

WORDS = """
Knapsacks (32 items, two budgets) and tours as PyEPO's generators draw them (degree 4, noise 0.5),
learned by a linear model. All losses run in one training loop (Adam, learning rate 0.01, batches of
32) and ask the same exact oracle; SPO+ sees true costs, the others only decisions. "To the minimum"
is `InverseRegressor`, which ends when the oracle finds no alternative that is missing.

Regret is the cost of predicted decisions above the least, as a share of that, on test samples;
"same" the share of decisions repeated exactly. Seconds are of one epoch, from the third on, or of
the whole fit to the minimum, on a machine that was busy with other work: compare rows of one table.
"""


def make_page(content: dict[str, Any]) -> Page:
    """The page of a file of results."""
    rows = content["results"]
    names = dict.fromkeys(row["problem"] for row in rows)
    tables = [_table(name, [row for row in rows if row["problem"] == name]) for name in names]
    return Page("Whole decisions: results", WORDS, tables)


def _table(problem: str, rows: list[dict[str, Any]]) -> Table:
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        regret = np.array([row["regret"] for row in mine])
        seconds = np.mean([np.mean(row["epochs"][2:] or row["epochs"]) for row in mine])
        spread = f" ± {regret.std(ddof=1):.2f}" if len(mine) > 1 else ""
        same = np.mean([row["same"] for row in mine])
        told = [f"{regret.mean():.2f}{spread}", f"{same:.0f}", f"{seconds:.3g}", str(len(mine))]
        lines.append([method, *told])
    heads = ["method", "regret in %", "same in %", "seconds", "seeds"]
    return Table(problem, heads, lines)
