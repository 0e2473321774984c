"""`revealed report`: one page about a model for people who will not run it."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...errors import InputError
from ..store import load_model
from .explore import samples_of
from .telling import tell, tell_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed report`."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder written by revealed fit")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help="the page; one that is there is replaced (report.html)",
    )
    parser.add_argument(
        "--contexts", type=Path, metavar="FILE", help="other samples than those kept in the model"
    )
    parser.add_argument("--decisions", type=Path, metavar="FILE", help="what was decided on these")
    parser.add_argument("--id", metavar="COLUMN", help="column by which both tables are matched")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    from ..report import gather, render
    from ..report.content import plain

    if args.out.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out must end in .html; got {args.out.name!r}.")
    model = load_model(args.model)
    content = gather(model, samples_of(model, args))
    args.out.write_text(render(content), "utf-8")
    if args.json:
        tell_json({"written": str(args.out)} | plain(content))
    else:
        tell("Written", f"{args.out}, one file to pass on or print.")
    return 0
