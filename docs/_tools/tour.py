"""What the commands of the tour print, for the pages."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile

from revealed import cli

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


def without_times(text: str) -> str:
    return SECONDS.sub("- s", text)
