"""`revealed data terrain`: made-up maps with shortest paths, in the layout of the Warcraft maps."""

from __future__ import annotations

import argparse

from ..terrain import terrain, write_terrain
from ._writing import add_options, write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed data terrain`."""
    add_options(parser, "maps")


def run(args: argparse.Namespace) -> int:
    """Write the maps; they are read back by `revealed_experiments.images.load_terrain`."""
    return write(args, write_terrain, terrain, {})
