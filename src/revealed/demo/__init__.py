"""The demonstration: 200 routes, a bad guess of the costs, the nearest costs that explain them.

Read in order: `scene` makes the data and asks the library, `pictures` draws, `telling` prints.
Everything is generated from one seed; nothing is downloaded.
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `revealed demo`."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/demo"),
        metavar="DIR",
        help="folder for the two pictures, made if absent (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=_seed,
        default=7,
        metavar="N",
        help="which terrain to draw (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the demonstration; 0 if every claim it prints held, 1 if one did not."""
    from .telling import tell

    return 0 if tell(out=args.out, seed=args.seed) else 1


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a seed is a whole number, 0 or more; got {text!r}")
    return int(text)
