"""Maps on disk, in the layout used since the Warcraft maps of blackbox differentiation.

A folder `{n}x{n}` holds, for each of train, val and test, three arrays of plain numbers:

    {split}_maps.npy             (B, H, W, 3) uint8 pictures
    {split}_vertex_weights.npy   (B, n, n) the cost of entering each cell
    {split}_shortest_paths.npy   (B, n, n) 1 on the cells of the path, else 0

each whole, or in parts `..._part0.npy`, `..._part1.npy` one after the other (in the original maps
train is in two parts from 18 x 18 on).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revealed.errors import InputError

from .checksums import SUMS, check_sums, read_sums
from .stored_files import read_array, read_facts

SPLITS = ("train", "val", "test")
KINDS = ("maps", "vertex_weights", "shortest_paths")
ABOUT = "terrain.json"
"""How made-up maps were made; the original maps have no such file."""


@dataclass(frozen=True, eq=False)
class Maps:
    """One split as it is stored."""

    maps: np.ndarray
    vertex_weights: np.ndarray
    shortest_paths: np.ndarray

    def __len__(self) -> int:
        return len(self.maps)


def find_folder(folder: str | os.PathLike[str], side: int | None) -> Path:
    """The folder `{n}x{n}` that was meant: `folder` itself, or the one in it."""
    place = Path(folder).resolve()
    if not place.is_dir():
        raise InputError(f"There is no folder {str(place)!r}.")
    own = _side(place.name)
    if own is not None and side in (None, own):
        return place
    found = {n: path for path in place.iterdir() if (n := _side(path.name)) and path.is_dir()}
    if side in found:
        return found[side]
    if side is None and len(found) == 1:
        return next(iter(found.values()))
    there = ", ".join(f"{n}x{n}" for n in sorted(found)) or "none"
    wanted = "a folder like 12x12" if side is None else f"the folder {side}x{side}"
    hint = " Choose one with `side`." if side is None and found else ""
    raise InputError(f"{str(place)!r} must be or hold {wanted}; such folders there: {there}.{hint}")


def read_maps(
    folder: Path, *, verify: bool, checksums: str | os.PathLike[str] | None, known: dict[str, str]
) -> dict[str, Maps]:
    """The three splits; files are checked by the sums given, those in the folder, or `known`."""
    files = {(split, kind): _files(folder, split, kind) for split in SPLITS for kind in KINDS}
    if verify:
        names = [path.name for paths in files.values() for path in paths]
        check_sums(folder, names, _sums(folder, checksums, known))
    return {
        split: checked_sizes(split, Maps(*(_stored(files[split, kind]) for kind in KINDS)), folder)
        for split in SPLITS
    }


def about(folder: Path) -> dict[str, Any] | None:
    """What `terrain.json` says, or None where there is none."""
    path = folder / ABOUT
    return read_facts(path) if path.is_file() else None


def _side(name: str) -> int | None:
    match = re.fullmatch(r"(\d+)x\1", name)
    return int(match[1]) if match else None


def _files(folder: Path, split: str, kind: str) -> list[Path]:
    """The file of an array, or its parts in order."""
    stem = f"{split}_{kind}"
    whole, parts = folder / f"{stem}.npy", {}
    for path in folder.glob(f"{stem}_part*.npy"):
        number = path.stem.removeprefix(f"{stem}_part")
        if number.isdecimal():
            parts[int(number)] = path
    if whole.is_file() and parts:
        raise InputError(
            f"{str(folder)!r} holds both {whole.name} and parts of it; remove the one or the other."
        )
    if not whole.is_file() and not parts:
        there = ", ".join(sorted(p.name for p in folder.glob("*.npy"))) or "no .npy file"
        raise InputError(f"{str(folder)!r} must hold {whole.name}, or parts of it; it has {there}.")
    missing = sorted(set(range(len(parts))) - set(parts))
    if missing:
        raise InputError(f"{str(folder)!r} lacks {stem}_part{missing[0]}.npy, but has later parts.")
    return [parts[number] for number in sorted(parts)] if parts else [whole]


def _sums(
    folder: Path, checksums: str | os.PathLike[str] | None, known: dict[str, str]
) -> dict[str, str]:
    if checksums is not None:
        return read_sums(Path(checksums))
    if (folder / SUMS).is_file():
        return read_sums(folder / SUMS)
    if known:
        return known
    raise InputError(
        f"No checksums are known for {str(folder)!r}: it has no {SUMS} and is not of a size whose "
        "sums were published. Give a file of them as `checksums`, or use `verify=False`."
    )


def _stored(paths: list[Path]) -> np.ndarray:
    arrays = []
    for path in paths:
        array = read_array(path)
        if arrays and array.shape[1:] != arrays[0].shape[1:]:
            raise InputError(
                f"{path.name} must go on where {paths[0].name} ends, with entries of shape "
                f"{arrays[0].shape[1:]}; it has {array.shape[1:]}."
            )
        arrays.append(array)
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def checked_sizes(split: str, maps: Maps, folder: Path) -> Maps:
    side = _side(folder.name) or 0
    count = len(maps.maps)
    pixels = maps.maps.shape[1:2]
    picture = (count, *pixels, *pixels, 3)
    if maps.maps.dtype != np.uint8 or maps.maps.shape != picture or pixels[0] % side:
        raise InputError(
            f"{split}_maps must be (B, H, H, 3) uint8 pictures with H a multiple of {side}; got "
            f"{maps.maps.shape} {maps.maps.dtype}."
        )
    for kind in KINDS[1:]:
        array = getattr(maps, kind)
        if array.shape != (count, side, side) or array.dtype.kind not in "fiub":
            raise InputError(
                f"{split}_{kind} must be numbers ({count}, {side}, {side}), one for each cell of "
                f"the {count} maps; got {array.shape} {array.dtype}."
            )
    _refuse(~(maps.vertex_weights > 0) | ~np.isfinite(maps.vertex_weights), split, KINDS[1], "> 0")
    _refuse(~np.isin(maps.shortest_paths, (0, 1)), split, KINDS[2], "0 or 1")
    return maps


def _refuse(bad: np.ndarray, split: str, kind: str, expected: str) -> None:
    rows = np.flatnonzero(bad.any(axis=(1, 2)))
    if rows.size:
        raise InputError(
            f"Every entry of {split}_{kind} must be {expected}; map {rows[0]} has others "
            f"({rows.size} such maps)."
        )
