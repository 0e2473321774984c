"""Tables that a benchmark prints and writes as a page, so that no figure is ever typed by hand."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
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


def positive(text: str) -> int:
    """An option's value as a whole number of at least 1, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1; got {text!r}")
    return int(text)


def target(name: str, value: float, bound: float, *, at_least: bool = False) -> dict[str, Any]:
    """A target with the value found; `value` may not exceed `bound`, or not fall below it."""
    holds = value >= bound if at_least else value <= bound
    sign = ">=" if at_least else "<="
    return {"name": name, "value": value, "bound": f"{sign} {bound:g}", "holds": bool(holds)}


def write_page(
    path: Path, title: str, words: str, tables: Sequence[Table], content: dict[str, Any]
) -> None:
    """Write a Markdown page: words, tables, and from which command on which machine they come."""
    hardware, versions = content["hardware"], content["versions"]
    origin = (
        f"Written by `{content['command']}` on {content['when'][:10]} "
        f"({hardware['processor']}, {hardware['cores']} cores; Python {versions['python']}, "
        f"revealed {versions.get('revealed', 'from source')}). Do not edit: run it again."
    )
    paragraphs = [_wrapped(text) for text in words.strip().split("\n\n")]
    parts = [f"# {title}", *paragraphs, *(table.markdown() for table in tables), _wrapped(origin)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(parts) + "\n", "utf-8")


def _wrapped(paragraph: str) -> str:
    """Lines of even length, whatever was filled in; the items of a list stay apart."""
    items = paragraph.split("\n- ") if paragraph.startswith("- ") else [paragraph]
    return "\n".join(
        textwrap.fill(("- " if k else "") + " ".join(item.split()), 100)
        for k, item in enumerate(items)
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
