"""How a benchmark ends: its figures as JSON, and a page that is made of nothing else.

What a page says comes from the file beside which it lies, to the last digit: `make_page` of the
command that wrote it, given the file's content, must give the page again.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .record import write_json
from .tables import Table, show, show_targets


class Page(NamedTuple):
    """Words and tables of a benchmark."""

    title: str
    words: str
    """Paragraphs, set apart by empty lines."""
    tables: Sequence[Table]

    def markdown(self, content: dict[str, Any]) -> str:
        """The page with its origin: from which command on which machine it comes."""
        hardware, versions = content["hardware"], content["versions"]
        origin = (
            f"Written by `{content['command']}` on {content['when'][:10]} "
            f"({hardware['processor']}, {hardware['cores']} cores; Python {versions['python']}, "
            f"revealed {versions.get('revealed', 'from source')}). Do not edit: run it again."
        )
        paragraphs = [_wrapped(text) for text in self.words.strip().split("\n\n")]
        tables = [table.markdown() for table in self.tables]
        return "\n\n".join([f"# {self.title}", *paragraphs, *tables, _wrapped(origin)]) + "\n"


def publish(
    content: dict[str, Any],
    make_page: Callable[[dict[str, Any]], Page],
    out: Path,
    page: Path | None = None,
) -> int:
    """Write the JSON and the page (of the same name unless given), print the tables and targets;
    1 if a target was missed."""
    page = page or out.with_suffix(".md")
    kept = write_json(out, content)
    made = make_page(kept)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(made.markdown(kept), "utf-8")
    show(made.tables)
    show_targets(kept["targets"])
    for note in kept.get("notes", ()):
        print(note)
    print(f"written to {out} and {page}")
    return 0 if all(target["holds"] for target in kept["targets"]) else 1


def _wrapped(paragraph: str) -> str:
    """Lines of even length, whatever was filled in; the items of a list stay apart."""
    items = paragraph.split("\n- ") if paragraph.startswith("- ") else [paragraph]
    return "\n".join(
        textwrap.fill(("- " if k else "") + " ".join(item.split()), 100)
        for k, item in enumerate(items)
    )
