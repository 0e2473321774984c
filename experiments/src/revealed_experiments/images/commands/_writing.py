"""What the commands that write data share: options, and an account of the folder written."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from revealed.cli.commands.options import positive, whole
from revealed.errors import MissingDependencyError

from ...bench.record import available_cores
from ..checksums import SUMS, read_sums
from ..image_set import ImageSet
from ..sample_picture import draw_samples

PICTURE = "samples.png"
_SHOWN = 12


def add_options(parser: argparse.ArgumentParser, what: str) -> None:
    """The options of every command that writes data; `what` is a plural."""
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="where the folder NxN is put"
    )
    parser.add_argument("--side", type=positive, default=12, metavar="N", help="cells a side (12)")
    parser.add_argument(
        "--sizes",
        type=positive,
        nargs=3,
        default=(10_000, 1_000, 1_000),
        metavar=("TRAIN", "VAL", "TEST"),
        help=f"how many {what} (10000 1000 1000)",
    )
    parser.add_argument("--seed", type=whole, default=0, help="another one gives others (0)")
    parser.add_argument(
        "--unique", action="store_true", help=f"only {what} with a single best decision"
    )
    parser.add_argument("--jobs", type=positive, metavar="N", help="processes (one for each core)")
    parser.add_argument("--overwrite", action="store_true", help="replace a folder that is there")


def write(
    args: argparse.Namespace,
    writer: Callable[..., Path],
    generator: Callable[..., ImageSet],
    options: dict[str, Any],
) -> int:
    """Write the data set that the options describe, then tell of its files."""
    options |= {"side": args.side, "seed": args.seed, "unique": args.unique}
    jobs = args.jobs or available_cores()
    began = time.perf_counter()
    folder = writer(args.out, args.sizes, jobs=jobs, overwrite=args.overwrite, **options)
    seconds = time.perf_counter() - began
    print(f"written to {folder} in {seconds:.1f} s:")
    _tell_files(folder)
    # The first samples of a seed are the same however many are asked for.
    shown = generator((min(_SHOWN, args.sizes[0]), 0, 0), **options)
    try:
        print(f"a picture of the first samples: {draw_samples(shown, folder / PICTURE)}")
    except MissingDependencyError as error:
        print(f"no picture of samples: {error}")
    return 0


def _tell_files(folder: Path) -> None:
    sums = read_sums(folder / SUMS)
    total = 0
    for name, digits in sums.items():
        path = folder / name
        total += path.stat().st_size
        print(f"  {name:<34} {_shape(path):<28} {digits[:16]}…")
    print(f"  {SUMS:<34} check with `sha256sum --check`; {total / 2**20:,.1f} MiB in all")


def _shape(path: Path) -> str:
    if path.suffix != ".npy":
        return "how it was made"
    array = np.load(path, mmap_mode="r")
    return f"{' x '.join(map(str, array.shape))} {array.dtype}"
