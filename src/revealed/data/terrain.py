"""Made-up terrain: pictures of maps, the costs of crossing them, and the shortest paths.

A map is n x n tiles of five kinds of ground, each with its cost (the five of the Warcraft maps),
and a picture of 8 pixels a tile. The path goes from the top left to the bottom right tile, over the
sides and corners of tiles. A seed gives the same maps on every machine, whatever the number of maps
asked for: the first 100 are the same of 100 and of 10,000. Train, validation and test maps are
drawn from streams of their own.

Letters: B maps, n tiles on a side.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..problem import LinearProgram
from ..problems import grid_shortest_path
from ..problems._checks import positive_int
from .folder_writer import FolderWriter
from .grid_paths import cells_of_paths, edge_costs
from .image_set import ImageSet, ImageSplit, checked_seed, only_best
from .map_folder import ABOUT, KINDS, SPLITS
from .synthetic import Sizes, checked_sizes
from .terrain_drawing import TILE, draw_map
from .terrain_layout import draw_layouts

KINDS_OF_GROUND = ("earth", "meadow", "forest", "water", "rock")
GROUND_COSTS = (0.8, 1.2, 5.3, 7.7, 9.2)
"""The cost of entering a tile of each kind, in that order."""

_BLOCK = 64  # maps laid out together; part of what a seed means
_VERSION = 1  # of the maps: another number, other maps


def terrain(
    sizes: Sizes = (10_000, 1_000, 1_000),
    *,
    side: int = 12,
    seed: int = 0,
    unique: bool = False,
) -> ImageSet:
    """Maps of side x side tiles as a data set of pictures.

    The problem is `grid_shortest_path(side, side, neighbors=8)`; an edge costs what the tile it
    enters costs. With five costs many maps have several paths that are equally short, of which the
    oracle takes one; `unique=True` keeps only maps with a single shortest path (of 12 x 12 about
    one in four, of 18 x 18 one in eleven), so that the costs behind the decisions explain each of
    them with room to spare.
    """
    sizes, seed = checked_sizes(sizes), checked_seed(seed)
    if not 3 <= positive_int(side, "side") <= 40:
        raise InputError(f"`side` must be 3 to 40 tiles; got {side}.")
    problem = grid_shortest_path(side, side, neighbors=8)
    splits = [_split(problem, k, count, seed, unique) for k, count in enumerate(sizes)]
    return ImageSet(f"terrain {side}x{side}", problem, *splits)


def write_terrain(
    folder: str | os.PathLike[str],
    sizes: Sizes = (10_000, 1_000, 1_000),
    *,
    side: int = 12,
    seed: int = 0,
    unique: bool = False,
    overwrite: bool = False,
) -> Path:
    """Write the maps of `terrain` as the folder `folder/{side}x{side}`, and return its path.

    The layout is that of the Warcraft maps (see `revealed.data.map_folder`), so whatever reads
    those reads these. Besides: `terrain.json`, how the maps were made, and `SHA256SUMS`.
    """
    side, seed = positive_int(side, "side"), checked_seed(seed)
    facts = {"maps": "terrain", "version": _VERSION, "side": side, "seed": seed, "unique": unique}
    with FolderWriter(folder, f"{side}x{side}", overwrite=overwrite) as writer:
        data = terrain(sizes, side=side, seed=seed, unique=unique)
        for name, split in zip(SPLITS, (data.train, data.valid, data.test), strict=True):
            cells = cells_of_paths(data.problem, split.decisions)
            # Half precision, as the original has them; read back, they are exact (`load_warcraft`).
            arrays = (split.images, split.cells.astype(np.float16), cells)
            parts = 2 if name == "train" and side >= 18 and len(split) > 1 else 1
            for kind, array in zip(KINDS, arrays, strict=True):
                writer.save(f"{name}_{kind}", array, parts)
        costs = dict(zip(KINDS_OF_GROUND, GROUND_COSTS, strict=True))
        counts = dict(zip(SPLITS, map(int, sizes), strict=True))
        writer.describe(ABOUT, facts | {"sizes": counts, "costs": costs})
        return writer.finish()


def _split(problem: LinearProgram, stream: int, count: int, seed: int, unique: bool) -> ImageSplit:
    n = problem.structure.grid_shape[0]
    images = np.empty((count, TILE * n, TILE * n, 3), np.uint8)
    weights = np.empty((count, n, n))
    decisions = np.empty((count, problem.n_variables))
    done = 0
    for source, kinds in _layouts(n, stream, seed):
        if done == count:
            break
        costs = np.array(GROUND_COSTS)[kinds]
        edges = edge_costs(problem, costs)
        paths = np.asarray(problem.solve(edges).x)
        kept = only_best(problem, edges, paths, gap=0.1) if unique else np.ones(len(kinds), bool)
        for place in np.flatnonzero(kept)[: count - done]:
            images[done] = draw_map(kinds[place], np.random.default_rng([*source, place]))
            weights[done], decisions[done] = costs[place], paths[place]
            done += 1
    return ImageSplit(images, decisions, edge_costs(problem, weights), weights)


def _layouts(n: int, stream: int, seed: int) -> Iterator[tuple[list[int], np.ndarray]]:
    """Blocks of layouts without end, each with the numbers that it was drawn from."""
    block = 0
    while True:
        source = [_VERSION, n, stream, seed, block]
        yield source, draw_layouts(np.random.default_rng(source), _BLOCK, n)
        block += 1
