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
from functools import partial
from pathlib import Path

import numpy as np

from revealed._common.checks import positive_int
from revealed.datasets.synthetic import Sizes, checked_sizes
from revealed.errors import InputError
from revealed.problems import grid_shortest_path
from revealed.problems.linear import LinearProgram

from .folder_writer import FolderWriter
from .grid_paths import cells_of_paths, edge_costs
from .image_set import ImageSet, ImageSplit, checked_seed, only_best
from .map_folder import ABOUT, KINDS, SPLITS
from .parallel import first_kept, mapped
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
    jobs: int = 1,
) -> ImageSet:
    """Maps of side x side tiles as a data set of pictures.

    The problem is `grid_shortest_path(side, side, neighbors=8)`; an edge costs what the tile it
    enters costs. With five costs many maps have several paths that are equally short, of which the
    oracle takes one; `unique=True` keeps only maps with a single shortest path (of 12 x 12 about
    one in four, of 18 x 18 one in eleven), so that the costs behind the decisions explain each of
    them with room to spare. `jobs` processes draw them, which changes no map.
    """
    jobs = positive_int(jobs, "jobs")
    sizes, seed = checked_sizes(sizes), checked_seed(seed)
    if not 3 <= positive_int(side, "side") <= 40:
        raise InputError(f"`side` must be 3 to 40 tiles; got {side}.")
    problem = grid_shortest_path(side, side, neighbors=8)
    splits = [_split(problem, k, count, seed, unique, jobs) for k, count in enumerate(sizes)]
    return ImageSet(f"terrain {side}x{side}", problem, *splits)


def write_terrain(
    folder: str | os.PathLike[str],
    sizes: Sizes = (10_000, 1_000, 1_000),
    *,
    side: int = 12,
    seed: int = 0,
    unique: bool = False,
    jobs: int = 1,
    overwrite: bool = False,
) -> Path:
    """Write the maps of `terrain` as the folder `folder/{side}x{side}`, and return its path.

    The layout is that of the Warcraft maps (see `map_folder`), so whatever reads those reads these.
    Besides: `terrain.json`, how the maps were made, and `SHA256SUMS`.
    """
    side, seed = positive_int(side, "side"), checked_seed(seed)
    facts = {"maps": "terrain", "version": _VERSION, "side": side, "seed": seed, "unique": unique}
    with FolderWriter(folder, f"{side}x{side}", overwrite=overwrite) as writer:
        data = terrain(sizes, side=side, seed=seed, unique=unique, jobs=jobs)
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


def _split(
    problem: LinearProgram, stream: int, count: int, seed: int, unique: bool, jobs: int
) -> ImageSplit:
    n = problem.structure.grid_shape[0]
    source = (_VERSION, n, stream, seed)
    attempt = partial(_block, problem, source, unique, None if jobs == 1 else 1)
    origins, kinds, paths = first_kept(attempt, count, jobs)
    images = np.empty((count, TILE * n, TILE * n, 3), np.uint8)
    chunks = [slice(start, start + _BLOCK) for start in range(0, count, _BLOCK)]
    drawn = mapped(_draw, ((source, origins[chunk], kinds[chunk]) for chunk in chunks), jobs)
    for chunk, pictures in zip(chunks, drawn, strict=True):
        images[chunk] = pictures
    weights = np.array(GROUND_COSTS)[kinds]
    return ImageSplit(images, paths.astype(np.float64), edge_costs(problem, weights), weights)


def _block(
    problem: LinearProgram, source: tuple[int, ...], unique: bool, threads: int | None, block: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a block of layouts, those to keep: where each comes from, its kinds, its path."""
    n = problem.structure.grid_shape[0]
    kinds = draw_layouts(np.random.default_rng([*source, block]), _BLOCK, n)
    edges = edge_costs(problem, np.array(GROUND_COSTS)[kinds])
    paths = np.asarray(problem.solve(edges, threads=threads).x)
    kept = np.arange(_BLOCK)
    if unique:
        kept = np.flatnonzero(only_best(problem, edges, paths, 0.1, threads))
    origins = np.stack([np.full(len(kept), block), kept], axis=1)
    return origins, kinds[kept], paths[kept].astype(np.uint8)


def _draw(source: tuple[int, ...], origins: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Pictures of layouts, each with the random numbers that go with its place in its block."""
    pictures = [
        draw_map(map_, np.random.default_rng([*source, *origin]))
        for map_, origin in zip(kinds, origins.tolist(), strict=True)
    ]
    return np.stack(pictures)
