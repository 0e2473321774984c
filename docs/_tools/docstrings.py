"""Docstrings as they are written here, for autodoc: plain text, `code` in single backticks, and
what is indented after a paragraph, or set in columns, shown as it stands.

reStructuredText would read |x| as a substitution, * as emphasis and an indented formula as a
quotation; so each docstring is rewritten before anything else looks at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sphinx.ext.napoleon import Config, NumpyDocstring

SECTIONS = Config(napoleon_use_param=False)
"""Names that share a line share what is said of them."""
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
TITLE = re.compile(r"(?<!\S)\*([A-Z][^*]*)\*(?=[\s.,;:)]|$)")
UNFINISHED = re.compile(r"(?<!\S)\*[A-Z][^*]*$")
SPECIAL = re.compile(r"([*|\\]|_(?=\W|$))")
RULE = re.compile(r"-{3,}")
"""Below a heading such as Parameters; sections are read as numpydoc does."""
COLUMNS = re.compile(r"\S {3,}\S")
ITEM = re.compile(r"[-*] |\d+[.)] |[\w, `*]+ : ")


def rewrite(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """The handler of `autodoc-process-docstring`: change the lines in place."""
    told = converted(lines)
    if any(RULE.fullmatch(line) for line in lines):
        told = str(NumpyDocstring(told, SECTIONS, app, what, name, obj, options)).splitlines()
    lines[:] = told


def skip_constants(
    app: Any, what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """The handler of `autodoc-skip-member`: settings of a module are no part of its interface."""
    return True if what == "module" and name.isupper() else None


def converted(lines: list[str]) -> list[str]:
    """The docstring as reStructuredText."""
    told: list[str] = []
    under_item, literal, sections = False, False, False
    for line in _joined(lines):
        sections |= RULE.fullmatch(line) is not None
        indented = line.startswith("  ")
        in_columns = not (indented or sections) and COLUMNS.search(line) is not None
        if not line.strip():
            told.append("")
            continue
        if in_columns or (indented and not under_item):
            if not literal:
                told += ["", "::", ""]
            literal = True
            told.append(f"   {line}")
            continue
        if literal:
            told.append("")
        literal = False
        if not indented:
            under_item = sections or bool(ITEM.match(line))
        # Names in sections are numpydoc's to read.
        told.append(line if sections and not indented else inline(line))
    return told


def _joined(lines: list[str]) -> Iterator[str]:
    """The lines, one that ends within `code` or a *Title* together with the next."""
    held = ""
    for line in lines:
        line = f"{held} {line.strip()}" if held else line
        held = line if line.count("`") % 2 or UNFINISHED.search(line) else ""
        if not held:
            yield line
    if held:
        yield held


def inline(line: str) -> str:
    """One line of prose: code to double backticks, a *Title* kept, everything else literal."""
    parts = CODE.split(line)
    plain = [_literal(part) for part in parts[::2]]
    if re.match(r"- ", line):
        plain[0] = line[: len(line) - len(line.lstrip())] + plain[0].lstrip("\\")
    code = [f"``{part}``" for part in parts[1::2]]
    told = plain[0]
    for word, rest in zip(code, plain[1:], strict=True):
        told += word + ("\\ " + rest if rest[:1].isalnum() else rest)
    return told


def _literal(text: str) -> str:
    parts = [SPECIAL.sub(r"\\\1", part) for part in TITLE.split(text)]
    parts[1::2] = [f"*{title}*" for title in parts[1::2]]
    return "".join(parts)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", rewrite)
    app.connect("autodoc-skip-member", skip_constants)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
