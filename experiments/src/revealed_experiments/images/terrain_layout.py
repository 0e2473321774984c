"""Where the ground of made-up terrain is earth, meadow, forest, water or rock.

Two fractal fields decide: height (lakes low, rocks high) and moisture (woods where it is wet, bare
earth where it is dry). Streams and tracks, one tile wide, wind from border to border: each is the
easiest way through a random field of its own.

Letters: B maps, n tiles on a side.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from revealed.problems import grid_shortest_path, shortest_path

from .noise import fractal_noise
from .terrain_palette import EARTH, FOREST, MEADOW, ROCK, WATER


def draw_layouts(rng: np.random.Generator, count: int, n: int) -> np.ndarray:
    """(count, n, n) uint8 kinds of ground, from 0 (earth) to 4 (rock)."""
    height = fractal_noise(rng, count, (n, n), 6.0)
    moisture = fractal_noise(rng, count, (n, n), 4.0)
    wooded, bare, wet, rocky = rng.random((4, count))
    kinds = np.full((count, n, n), MEADOW, np.uint8)
    kinds[moisture > _level(moisture, 0.7 - 0.35 * wooded)] = FOREST
    kinds[moisture < _level(moisture, 0.02 + 0.1 * bare)] = EARTH
    kinds[height < _level(height, 0.1 + 0.2 * wet)] = WATER
    kinds[height > _level(height, 0.9 - 0.2 * rocky)] = ROCK
    for kind, share in ((WATER, 0.5), (EARTH, 0.9), (EARTH, 0.5)):
        there = rng.random(count) < share
        kinds[_winding_lines(rng, count, n) & there[:, None, None]] = kind
    return kinds


def _level(field: np.ndarray, share: np.ndarray) -> np.ndarray:
    """(B, 1, 1): the value that this share of each field's entries lies below."""
    ordered = np.sort(field.reshape(len(field), -1), axis=1)
    place = (share * ordered.shape[1]).astype(np.int64)
    return ordered[np.arange(len(field)), place][:, None, None]


def _winding_lines(rng: np.random.Generator, count: int, n: int) -> np.ndarray:
    """(count, n, n) bool: the easiest way from a random tile of the border to the opposite one."""
    edges, length = _grid(n)
    line = np.arange(n)
    sides = np.concatenate([line, line + n * (n - 1), n * line, n * line + n - 1])
    start = rng.choice(sides, count)
    problem = shortest_path(edges, source=start, target=n * n - 1 - start, n_nodes=n * n)
    field = fractal_noise(rng, count, (n, n), 4.0, octaves=2).reshape(count, -1)
    effort = 0.15 + np.square(field - field.min(axis=1, keepdims=True), dtype=np.float64)
    way = problem.solve(effort[:, edges[:, 1]] * length).x
    sample, edge = np.nonzero(way)
    on_line = np.zeros((count, n * n), bool)
    on_line[np.arange(count), start] = True
    on_line[sample, edges[edge, 1]] = True
    return on_line.reshape(count, n, n)


@lru_cache
def _grid(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges between neighboring tiles, (E, 2), and their lengths: 1, or 1.4 for diagonals."""
    graph = grid_shortest_path(n, n, neighbors=8).structure
    straight = np.isin(np.abs(graph.heads - graph.tails), (1, n))
    return np.stack([graph.tails, graph.heads], axis=1), np.where(straight, 1.0, 1.4)
