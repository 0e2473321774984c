"""`revealed bench report DIR`: read, gather, write the page, and say what became of the claims."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench report`."""
    parser.add_argument(
        "folder",
        type=Path,
        metavar="DIR",
        help="folder of finished runs, as `revealed bench` wrote",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="page to write (DIR/report.html); figures go into a folder `figures` beside it",
    )


def run(args: argparse.Namespace) -> int:
    """Write the page and its figures; 1 if a claim does not hold."""
    from .claims import judge
    from .page import write_page
    from .reading import read_folder
    from .study import gather
    from .verdicts import FAILS

    out = args.out or args.folder / "report.html"
    folder = read_folder(args.folder)
    study = gather(
        folder, [_text(folder.sweep.get("command")), report_command(args.folder, args.out)]
    )
    write_page(out, study)
    claims = judge(study)
    for notice in folder.notices:
        print(f"notice: {notice}")
    for claim in claims:
        print(f"{claim.verdict}: {claim.sentence}")
    print(f"written to {out}")
    return 1 if any(claim.verdict == FAILS for claim in claims) else 0


def report_command(folder: Path, out: Path | None) -> str:
    """The command as the page repeats it: no path of this machine, only what lies below here."""
    words = ["revealed", "bench", "report", _below_here(folder)]
    words += ["--out", _below_here(out)] if out else []
    return shlex.join(words)


def _below_here(path: Path) -> str:
    relative = os.path.relpath(path.resolve(), Path.cwd())
    return path.name if relative.startswith("..") else Path(relative).as_posix()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
