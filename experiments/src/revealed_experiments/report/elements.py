"""Markup from Python: everything is escaped unless it is markup already."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

VOID = frozenset({"br", "col", "meta"})


class Html(str):
    """Text that is markup; any other text is escaped where it enters a tag or a template."""

    def __html__(self) -> str:
        """Tells Jinja2 that this is escaped."""
        return self


def tag(name: str, *children: object, **attributes: object) -> Html:
    """An element. `class_` and `data_value` become `class` and `data-value`; None leaves one out.

    True gives an attribute without a value, and children that are None or empty are left out.
    """
    opening = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        opening.append(key if value is True else f'{key}="{html.escape(printable(str(value)))}"')
    if name in VOID:
        return Html(f"<{' '.join(opening)}>")
    return Html(f"<{' '.join(opening)}>{join(children)}</{name}>")


def join(children: Iterable[object], between: str = "") -> Html:
    """Children one after the other, escaped where they are not markup."""
    return Html(between.join(text(child) for child in children if child is not None))


def text(child: object) -> Html:
    """The markup of anything: as it is if it is markup, escaped if it is not."""
    return child if isinstance(child, Html) else Html(html.escape(printable(str(child))))


def printable(plain: str) -> str:
    """Text without characters that show as nothing, turn the line around or are no text at all."""
    kept = "\n\t\u00a0"  # not counted as printable, but harmless
    return "".join(c if c.isprintable() or c in kept else "\ufffd" for c in plain)


def words(plain: str) -> Html:
    """Plain words in which `code` stands between backticks."""
    pieces = plain.split("`")
    return join(tag("code", piece) if k % 2 else piece for k, piece in enumerate(pieces))


def paragraph(plain: str, class_: str | None = None) -> Html:
    """A paragraph of plain words, with `code` between backticks."""
    return tag("p", words(plain), class_=class_)


def slug(name: str) -> str:
    """A name fit for an id or a file: small letters, digits and hyphens, never empty."""
    spelled = name.lower().replace("+", " plus ")
    return re.sub(r"[^a-z0-9]+", "-", spelled).strip("-") or "x"


def command_box(commands: Iterable[str]) -> Html:
    """Commands as one block with a button that copies them."""
    lines = "\n".join(command for command in commands if command)
    if not lines:
        return Html("")
    button = tag("button", "Copy", class_="copy", type="button", aria_label="Copy the command")
    return tag("div", tag("pre", tag("code", lines)), button, class_="command")


def details(summary: str, *children: object) -> Html:
    """Something a reader may unfold."""
    return tag("details", tag("summary", summary), *children)


def folded_command(commands: Iterable[str], files: str = "") -> Html:
    """The command behind a figure or a table, and where its files are, folded away under it."""
    summary = "Command and files" if files else "Command"
    return details(summary, command_box(commands), paragraph(files, "note") if files else None)
