"""`revealed tour`: a planner's files to try the commands on, copied to a folder of one's own."""

from __future__ import annotations

import argparse
import shutil
from importlib.resources import as_file, files
from pathlib import Path

from ...errors import InputError

FILES = ("plan.mps", "contexts.csv", "decisions.csv", "next_days.csv")
STORY = """\
A bakery supplies eight shops from three depots. Every morning a dispatcher decides which depot
sends how many crates to which shop. The stock of the depots and the orders of the shops are in
plan.mps; what a crate costs on each road, with the fuel price, rain and roadworks of the day, the
dispatcher knows and we do not. contexts.csv tells what each day was like, decisions.csv what was
sent."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed tour`."""
    parser.add_argument(
        "--out", type=Path, default=Path("tour"), metavar="DIR", help="folder for the files (tour)"
    )


def run(args: argparse.Namespace) -> int:
    """Copy the files and say what to do with them."""
    copy_files(args.out)
    out = args.out
    tables = f"--contexts {out}/contexts.csv --decisions {out}/decisions.csv"
    print(STORY)
    print()
    for words, command in (
        ("What can the data teach?", f"revealed doctor --problem {out}/plan.mps {tables}"),
        (
            "Learn the costs.",
            f"revealed fit --problem {out}/plan.mps {tables} --out {out}/model",
        ),
        (
            "Decide for the days to come.",
            f"revealed predict {out}/model --contexts {out}/next_days.csv --out {out}/next.csv",
        ),
        ("Can you trust it?", f"revealed explain {out}/model {tables}"),
        ("Tell others.", f"revealed report {out}/model --out {out}/report.html"),
    ):
        print(f"  {words}\n    {command}\n")
    print(f"`revealed explore {out}/model` then shows the model in the browser, sample by sample.")
    print(f"The files are in {out}; nothing in them is real.")
    return 0


def copy_files(folder: Path) -> None:
    """Put the files of the tour into `folder`, which is made; none is overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        raise InputError(f"{folder} already has {', '.join(there)}; choose another folder.")
    with as_file(files("revealed.cli.tour") / "files") as source:
        for name in FILES:
            shutil.copyfile(source / name, folder / name)
