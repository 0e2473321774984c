"""Tables that a benchmark prints and writes as a page, so that no figure is ever typed by hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """Rows of text under headings; the first `n_words` columns are words, the others figures."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_words: int = 1
    note: str = ""

    def markdown(self) -> str:
        """The table as Markdown, with its title above and its note below."""
        rule = ["---"] * self.n_words + ["---:"] * (len(self.headings) - self.n_words)
        lines = [f"## {self.title}", "", *map(_line, (self.headings, rule, *self.rows))]
        return "\n".join([*lines, "", self.note] if self.note else lines)


def show(tables: Sequence[Table]) -> None:
    """Print the tables with rich."""
    from rich.console import Console
    from rich.table import Table as RichTable

    # A file has no width of its own, and 80 columns break every line of these tables.
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    for table in tables:
        drawn = RichTable(title=table.title, title_justify="left")
        for k, heading in enumerate(table.headings):
            drawn.add_column(heading, justify="left" if k < table.n_words else "right")
        for row in table.rows:
            drawn.add_row(*row)
        console.print(drawn)
        if table.note:
            console.print(f"[dim]{table.note}[/]")


def show_targets(targets: Sequence[dict[str, Any]]) -> None:
    """Print each target with what was found."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    for target in targets:
        mark = "[green]holds [/]" if target["holds"] else "[red]missed[/]"
        console.print(f"{mark}  {target['name']}: {target['value']:.3g} ({target['bound']})")


def target(name: str, value: float, bound: float, *, at_least: bool = False) -> dict[str, Any]:
    """A target with the value found; `value` may not exceed `bound`, or not fall below it."""
    holds = value >= bound if at_least else value <= bound
    sign = ">=" if at_least else "<="
    return {"name": name, "value": value, "bound": f"{sign} {bound:g}", "holds": bool(holds)}


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
