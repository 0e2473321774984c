"""Tutorials with what their code prints and draws: every block runs when the page is read."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

PLAYED = ("tutorials/data_scientist", "tutorials/researcher")
BLOCK = re.compile(r"^```python\n(.*?)^```\n", flags=re.MULTILINE | re.DOTALL)
PICTURES = Path(__file__).resolve().parents[1] / "generated/played"
PATHS = re.compile(r"/tmp/\S+")


def show_outputs(app: Any, docname: str, source: list[str]) -> None:
    """Put behind every block of a tutorial what it prints and draws."""
    if docname in PLAYED:
        source[0] = played(source[0], docname.rpartition("/")[2])


def played(text: str, name: str) -> str:
    """The page with outputs; its blocks run one after the other in one namespace."""
    import matplotlib.pyplot as plt

    plt.close("all")  # pictures are those of the page's own blocks
    names: dict[str, Any] = {"__name__": name}
    parts, end = [], 0
    for number, block in enumerate(BLOCK.finditer(text)):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block[1], f"{name}, block {number}", "exec"), names)
        parts += [text[end : block.end()], _output(printed.getvalue())]
        parts += _pictures(f"{name}-{number}")
        end = block.end()
    return "".join([*parts, text[end:]])


def _output(printed: str) -> str:
    shown = PATHS.sub("(a temporary folder)", printed.rstrip())
    return f"\n```{{code-block}} text\n:class: output\n\n{shown}\n```\n" if shown else ""


def _pictures(stem: str) -> list[str]:
    """Save the figures that are open, close them, and say where they are."""
    import matplotlib.pyplot as plt

    PICTURES.mkdir(parents=True, exist_ok=True)
    parts = []
    for k in plt.get_fignums():
        name = f"{stem}-{k}.png"
        plt.figure(k).savefig(PICTURES / name, dpi=160, bbox_inches="tight", facecolor="white")
        parts.append(
            f"\n```{{image}} ../generated/played/{name}\n:class: played\n"
            ":alt: Drawn by the block above.\n```\n"
        )
    plt.close("all")
    return parts


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", show_outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
