"""The help of every command, as a page."""

from __future__ import annotations

import argparse
import os
from argparse import ArgumentParser
from collections.abc import Iterator

from revealed import cli

WIDTH = 96


def page() -> str:
    """Every command with what `--help` prints."""
    os.environ["COLUMNS"] = str(WIDTH)
    parts = []
    for name, parser in _commands(cli.build_parser(), "revealed"):
        parts.append(f"## {name}\n\n```text\n{parser.format_help().strip()}\n```\n")
    return "\n".join(parts)


def _commands(parser: ArgumentParser, name: str) -> Iterator[tuple[str, ArgumentParser]]:
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not below:
        yield name, parser
    for action in below:
        for word, child in action.choices.items():
            yield from _commands(child, f"{name} {word}")
