"""Loaders of map folders: the original Warcraft maps, and terrain that was written like them.

The maps are those of Vlastelica, Paulus, Musil, Martius and Rolinek, *Differentiation of Blackbox
Combinatorial Solvers* (ICLR 2020), the archive `warcraft_shortest_path_oneskin`; it is not ours to
pass on, so the folder is given by the user.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from revealed.errors import InputError
from revealed.problems import grid_shortest_path
from revealed.problems.linear import LinearProgram

from .grid_paths import edge_costs, paths_of_cells
from .image_set import ImageSet, ImageSplit
from .map_folder import Maps, about, find_folder, read_maps
from .warcraft_sums import PUBLISHED


def load_warcraft(
    folder: str | os.PathLike[str],
    *,
    side: int | None = None,
    verify: bool = True,
    checksums: str | os.PathLike[str] | None = None,
) -> ImageSet:
    """Read the maps of `folder`, a `{n}x{n}` folder or one that holds it, with splits as stored.

    The problem is `grid_shortest_path(n, n, neighbors=8)`. An edge costs the weight of the cell it
    enters; the start cell is never entered, so its weight, the same for every path, is left out.
    Decisions are the stored paths, cell for cell, and each is checked against the oracle: the maps
    were solved in half precision, so a path may cost more than the best one, but only by what the
    rounding of the sums allows.

    Every file is checked against the checksum file given, else `SHA256SUMS` in the folder, else
    the MD5 sums published for the original; `verify=False` reads unchecked.
    """
    place = find_folder(folder, side)
    facts = about(place)
    return _load(place, "warcraft" if facts is None else "terrain", verify, checksums)


def load_terrain(
    folder: str | os.PathLike[str], *, side: int | None = None, verify: bool = True
) -> ImageSet:
    """Read what `write_terrain` wrote: the same data set as `terrain` gives, to the last bit."""
    place = find_folder(folder, side)
    if about(place) is None:
        raise InputError(
            f"{str(place)!r} was not written by `write_terrain`: it has no terrain.json. Use "
            "`load_warcraft` for the original maps."
        )
    return _load(place, "terrain", verify, None)


def _load(
    place: Path, name: str, verify: bool, checksums: str | os.PathLike[str] | None
) -> ImageSet:
    n = int(place.name.partition("x")[0])
    problem = grid_shortest_path(n, n, neighbors=8)
    stored = read_maps(place, verify=verify, checksums=checksums, known=PUBLISHED.get(n, {}))
    splits = [_split(problem, maps, split) for split, maps in stored.items()]
    return ImageSet(f"{name} {place.name}", problem, *splits)


def _split(problem: LinearProgram, maps: Maps, name: str) -> ImageSplit:
    weights = as_written(maps.vertex_weights)
    costs = edge_costs(problem, weights)
    decisions = paths_of_cells(problem, maps.shortest_paths, f"{name}_shortest_paths")
    _refuse_longer_paths(problem, costs, decisions, maps, name)
    return ImageSplit(maps.maps, decisions, costs, weights)


def as_written(weights: np.ndarray) -> np.ndarray:
    """Numbers of low precision as the shortest decimals that round to them: 0.8, not 0.7998047.

    Costs are written down as decimals, and stored in half precision; this gets them back exactly.
    """
    if weights.dtype.kind != "f" or weights.dtype.itemsize >= 8:
        return weights.astype(np.float64)
    values, place = np.unique(weights, return_inverse=True)
    decimals = np.array([float(str(value)) for value in values])
    return decimals[place].reshape(weights.shape)


def _refuse_longer_paths(
    problem: LinearProgram, costs: np.ndarray, decisions: np.ndarray, maps: Maps, name: str
) -> None:
    """Refuse paths that cost more than the best by more than rounding can explain.

    A sum of k numbers in a precision with spacing eps is off by at most k eps / 2 of itself, and
    two such sums are compared.
    """
    best = np.asarray(problem.solve(costs).objective)
    paid = (costs * decisions).sum(axis=1)
    kind = maps.vertex_weights.dtype
    spacing = float(np.finfo(kind if kind.kind == "f" else np.float64).eps)
    cells = decisions.sum(axis=1) + 1
    longer = np.flatnonzero(paid - best > 1.1 * cells * spacing * paid)
    if longer.size:
        i = longer[0]
        raise InputError(
            f"The paths of {name}_shortest_paths must be shortest; that of map {i} costs "
            f"{paid[i]:.6g} where {best[i]:.6g} is enough ({longer.size} such maps). Check that "
            "weights and paths belong to the same maps."
        )
