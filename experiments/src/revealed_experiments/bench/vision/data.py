"""Pictures for `revealed bench vision`, drawn once and kept in a folder.

    FOLDER/<name>/{train,valid,test}_{images,decisions,costs,cells}.npy

<name> is a digest of the generator and its options but the sizes: a smaller data set is the head of
a larger one. A folder is there whole or not at all, and its arrays are read where they lie, so that
the workers of a sweep share them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from revealed.errors import InputError
from revealed.problems import grid_matching, grid_shortest_path

from ...images import ImageSet, ImageSplit, digit_boards, load_warcraft, terrain

SPLITS = ("train", "valid", "test")
ARRAYS = ("images", "decisions", "costs", "cells")
GENERATORS = {"terrain": terrain, "digit_boards": digit_boards}
STORED = "warcraft"
"""Maps that are read from a folder rather than drawn."""
PROBLEMS = {
    STORED: lambda side: grid_shortest_path(side, side, neighbors=8),
    "terrain": lambda side: grid_shortest_path(side, side, neighbors=8),
    "digit_boards": lambda side: grid_matching(side, side),
}
"""What the decisions of each generator solve."""
WORTH_IT = 600
"""Samples from which on several processes draw them."""


def prepare(
    options: dict[str, Any],
    folder: Path,
    *,
    digits: str | os.PathLike[str] = "sklearn",
    warcraft: str | os.PathLike[str] | None = None,
    jobs: int,
) -> ImageSet:
    """Draw the data that `options` describes unless they are there, in `jobs` processes.

    `digits` is where this machine has the digits that the options call "mnist", `warcraft` the
    folder of the original maps.
    """
    place, sizes = folder / _name(options), options["sizes"]
    there = _sizes(place)
    if not all(have >= want for have, want in zip(there, sizes, strict=True)):
        larger = [max(pair) for pair in zip(there, sizes, strict=True)]
        more = options | {"sizes": larger}
        _keep(place, draw(more, digits=digits, warcraft=warcraft, jobs=jobs))
    return load(options, folder)


def draw(
    options: dict[str, Any],
    *,
    digits: str | os.PathLike[str] = "sklearn",
    warcraft: str | os.PathLike[str] | None = None,
    jobs: int = 1,
) -> ImageSet:
    """The data that {"generator": ..., "sizes": ..., and its options} describes."""
    rest = dict(options)
    name = rest.pop("generator")
    if name == STORED:
        return _stored(warcraft, rest["side"], rest["sizes"])
    if name not in GENERATORS:
        known = ", ".join((*GENERATORS, STORED))
        raise InputError(f"`generator` must be one of {known}; got {name!r}.")
    if rest.get("digits", "sklearn") != "sklearn":
        rest["digits"] = digits
    sizes = tuple(rest.pop("sizes"))
    # A few are drawn before other processes have even started.
    return GENERATORS[name](sizes, jobs=jobs if sum(sizes) >= WORTH_IT else 1, **rest)


def _stored(folder: str | os.PathLike[str] | None, side: int, sizes: list[int]) -> ImageSet:
    """The first maps of each split of a folder in the layout of the original."""
    if folder is None:
        raise InputError("The original maps are not drawn but read: give `--warcraft DIR`.")
    data = load_warcraft(folder, side=side)
    there = [len(getattr(data, split)) for split in SPLITS]
    if any(have < want for have, want in zip(there, sizes, strict=True)):
        raise InputError(
            f"{str(folder)!r} must hold at least {sizes} maps of {side} x {side} for training, "
            f"validation and test; it holds {there}."
        )
    heads = [getattr(data, split).head(n) for split, n in zip(SPLITS, sizes, strict=True)]
    return ImageSet(data.name, data.problem, *heads)


def load(options: dict[str, Any], folder: Path) -> ImageSet:
    """The data as `prepare` left them; their arrays stay on disk until they are looked at."""
    place = folder / _name(options)
    splits = [
        ImageSplit(*(_array(place, split, kind)[:count] for kind in ARRAYS))
        for split, count in zip(SPLITS, options["sizes"], strict=True)
    ]
    problem = PROBLEMS[options["generator"]](options["side"])
    return ImageSet(place.name, problem, *splits)


def _array(place: Path, split: str, kind: str) -> np.ndarray:
    return np.load(place / f"{split}_{kind}.npy", mmap_mode="r")


def _sizes(place: Path) -> list[int]:
    return [len(_array(place, split, "cells")) if place.is_dir() else 0 for split in SPLITS]


def _name(options: dict[str, Any]) -> str:
    text = json.dumps({k: v for k, v in options.items() if k != "sizes"}, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return f"{options['generator']}-{options['side']}-{digest}"


def _keep(place: Path, data: ImageSet) -> None:
    draft = place.with_name(f"{place.name}.{os.getpid()}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for split in SPLITS:
        for kind in ARRAYS:
            np.save(draft / f"{split}_{kind}.npy", getattr(getattr(data, split), kind))
    shutil.rmtree(place, ignore_errors=True)
    os.replace(draft, place)
