"""How a benchmark ends: its figures as JSON, and a page that is made of nothing else.

What a page says comes from the file beside which it lies, to the last digit: `make_page` of the
command that wrote it, given the file's content, must give the page again.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from revealed._common.words import count

from .record import write_json
from .tables import Table, show, show_targets


class Picture(NamedTuple):
    """A figure of matplotlib, which lies beside the page in `images`."""

    name: str
    """Of the file, such as noise.png."""
    about: str
    """What it shows, for those who cannot see it."""
    draw: Callable[[], Any]

    def save(self, folder: Path) -> Path:
        """Draw it into `folder`/images."""
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        path = folder / "images" / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        figure = self.draw()
        figure.savefig(path, dpi=150)
        plt.close(figure)
        return path


class Page(NamedTuple):
    """What a benchmark found, and after it how that was measured."""

    title: str
    findings: str
    """Paragraphs, set apart by empty lines."""
    tables: Sequence[Table]
    method: str = ""
    """Paragraphs below the tables."""
    picture: Picture | None = None

    def markdown(self, content: dict[str, Any]) -> str:
        """The page with its origin: from which command on which machine it comes."""
        hardware, versions = content["hardware"], content["versions"]
        machine = f"{hardware['processor']}, {count(hardware['cores'], 'core')}"
        origin = (
            f"Written by `{content['command']}` on {content['when'][:10]} "
            f"({machine}; Python {versions['python']}, "
            f"revealed {versions.get('revealed', 'from source')}). Do not edit: run it again."
        )
        parts = [f"# {self.title}", *_paragraphs(self.findings)]
        if self.picture:
            parts.append(f"![{self.picture.about}](images/{self.picture.name})")
        parts += [table.markdown() for table in self.tables]
        if self.method:
            parts += ["## How it was measured", *_paragraphs(self.method)]
        return "\n\n".join([*parts, _wrapped(origin)]) + "\n"


def verdicts(targets: Sequence[dict[str, Any]], digits: str) -> str:
    """What was asked for and found, a line each."""
    return (
        "\n".join(
            f"- {t['name']}: {t['value']:{digits}} ({t['bound']}, "
            f"{'holds' if t['holds'] else 'missed'})"
            for t in targets
        )
        or "A smoke test: too short for any claim."
    )


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
    if made.picture:
        made.picture.save(page.parent)
    show(made.tables)
    show_targets(kept["targets"])
    for note in kept.get("notes", ()):
        print(note)
    print(f"written to {out} and {page}")
    return 0 if all(target["holds"] for target in kept["targets"]) else 1


def _paragraphs(words: str) -> list[str]:
    return [_wrapped(text) for text in words.strip().split("\n\n")]


def _wrapped(paragraph: str) -> str:
    """Lines of even length, whatever was filled in; the items of a list stay apart."""
    items = paragraph.split("\n- ") if paragraph.startswith("- ") else [paragraph]
    return "\n".join(
        textwrap.fill(("- " if k else "") + " ".join(item.split()), 100)
        for k, item in enumerate(items)
    )
