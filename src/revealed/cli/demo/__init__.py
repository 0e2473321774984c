"""The demonstration: trips through a town, and the costs of its streets learned from them alone.

Read in order: `scene` makes the data and asks the library, `pictures` draws, `telling` prints.
Everything is generated from one seed; nothing is downloaded.
"""

import argparse
from pathlib import Path

from ..commands.options import positive, whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `revealed demo`."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/demo"),
        metavar="DIR",
        help="folder for the three pictures, made if absent (default: %(default)s)",
    )
    for name, default, words in (
        ("--seed", 7, "which town and trips to draw"),
        ("--trips", 3000, "trips to learn from"),
        ("--held-out", 500, "further trips to judge by"),
        ("--iterations", 500, "evaluations of the loss at most"),
    ):
        parser.add_argument(
            name,
            type=whole if name == "--seed" else positive,
            default=default,
            metavar="N",
            help=f"{words} (default: %(default)s)",
        )


def run(args: argparse.Namespace) -> int:
    """Run the demonstration; 0 if every claim it prints held, 1 if one did not."""
    from .telling import tell

    held = tell(
        out=args.out,
        seed=args.seed,
        trips=args.trips,
        held_out=args.held_out,
        iterations=args.iterations,
    )
    return 0 if held else 1
