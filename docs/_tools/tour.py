"""What the commands of the tour print, for the pages and the README.

`python docs/_tools/tour.py README.md` writes the outputs into the blocks that begin with
`$ revealed`; a test compares them with what the commands print.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

from revealed import cli

BLOCK = re.compile(r"^```console\n\$ revealed (\w+)(.*?)^```$", re.MULTILINE | re.DOTALL)
SHORTENED = {"doctor": 9, "explain": 16}
"""Lines that the README shows of outputs that are longer."""
SECONDS = re.compile(r"\d+\.\d+ s\b")


def play() -> dict[str, tuple[str, str]]:
    """Every command of the tour by name: the line to type, and what it prints."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            told = {"tour": ("revealed tour", _run("revealed tour"))}
            for line in re.findall(r"^ +(revealed .*)$", told["tour"][1], re.MULTILINE):
                told[line.split()[1]] = (line, _run(line))
        finally:
            os.chdir(here)
    return told


def _run(line: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = cli.main(shlex.split(line)[1:])
    if code:
        raise RuntimeError(f"`{line}` ended with exit code {code}.")
    return printed.getvalue()


def wrapped(line: str) -> str:
    """A command as the pages show it: no line too long for a phone to scroll."""
    return line.replace(" --", " \\\n    --") if len(line) > 90 else line


def block(name: str, told: dict[str, tuple[str, str]]) -> str:
    """The block of one command in the README."""
    line, printed = told[name]
    shown = printed.rstrip().splitlines()
    most = SHORTENED.get(name, len(shown))
    rest = ["..."] if len(shown) > most else []
    return "\n".join(["```console", f"$ {wrapped(line)}", *shown[:most], *rest, "```"])


def rewritten(text: str, told: dict[str, tuple[str, str]]) -> str:
    """A page with the blocks of its commands as they are printed now."""
    return BLOCK.sub(lambda found: block(found[1], told) if found[1] in told else found[0], text)


def without_times(text: str) -> str:
    return SECONDS.sub("- s", text)


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(rewritten(page.read_text("utf-8"), play()), "utf-8")
