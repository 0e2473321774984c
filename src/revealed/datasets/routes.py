"""Drivers' routes on a road network, from files in the layout of Zhao and Liang (2022).

A folder holds `edge.txt` (one directed road link a line), `node.txt` (coordinates), `transit.npy`
(the moves that are allowed from a link to the next, with the kind of turn) and tables of routes,
`path.csv` or a part of a cross-validation such as `train_CV0_size10000.csv`.

Letters: L links, M moves, N nodes, B routes.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..problems import shortest_path
from ..problems.linear import LinearProgram

_EDGE_COLUMNS = ("u", "v", "name", "highway", "oneway", "length", "lanes", "n_id")
_NODE_COLUMNS = ("osmid", "y", "x")
_ROUTE_COLUMNS = ("ori", "des", "path")


class Turn(IntEnum):
    """The codes of the second column of `transit.npy`, clockwise from straight on."""

    STRAIGHT = 0
    SLIGHT_RIGHT = 1
    RIGHT = 2
    SHARP_RIGHT = 3
    U_TURN = 4
    SHARP_LEFT = 5
    LEFT = 6
    SLIGHT_LEFT = 7


@dataclass(frozen=True)
class RoadNetwork:
    """Directed road links and the moves between them.

    A driver on a link chooses the next link, so a state is a link and what has a cost is a move:
    it can then distinguish left turns from right ones, which a graph of junctions cannot.
    """

    start: np.ndarray
    """(L,) node at which each link begins."""
    end: np.ndarray
    """(L,) node at which it ends."""
    length: np.ndarray
    """(L,) meters."""
    road_class: np.ndarray
    """(L,) OpenStreetMap's `highway`; of links that have several, the first."""
    name: np.ndarray
    """(L,) street; empty where it has none."""
    one_way: np.ndarray
    """(L,) bool"""
    lanes: np.ndarray
    """(L,) NaN where the map does not say."""
    position: np.ndarray
    """(N, 2) longitude and latitude."""
    moves: np.ndarray
    """(M, 2) link left, link entered; ordered."""
    turn: np.ndarray
    """(M,) codes of `Turn`."""

    @property
    def n_links(self) -> int:
        return len(self.length)

    @property
    def n_moves(self) -> int:
        return len(self.moves)


@dataclass(frozen=True)
class Routes:
    """Routes that were driven, each from its own first link to its own last."""

    network: RoadNetwork
    links: tuple[np.ndarray, ...]
    """B arrays of links, in the order in which they were driven."""
    skipped: int = 0
    """Routes of the file that enter a link twice and were left out: they are no paths."""

    @property
    def origin(self) -> np.ndarray:
        """(B,) first link."""
        return np.array([route[0] for route in self.links], dtype=np.int64)

    @property
    def destination(self) -> np.ndarray:
        """(B,) last link."""
        return np.array([route[-1] for route in self.links], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.links)

    def __getitem__(self, index: np.ndarray) -> Routes:
        """The routes whose numbers are in an integer array."""
        return Routes(self.network, tuple(self.links[i] for i in index), 0)

    def problem(self) -> LinearProgram:
        """Cheapest way from each route's first link to its last; one cost for each move."""
        return shortest_path(
            self.network.moves,
            source=self.origin,
            target=self.destination,
            n_nodes=self.network.n_links,
        )

    def decisions(self) -> np.ndarray:
        """(B, M) bool: the moves each route makes."""
        taken = np.zeros((len(self), self.network.n_moves), dtype=bool)
        row = np.repeat(np.arange(len(self)), [len(route) - 1 for route in self.links])
        pairs = [np.column_stack([route[:-1], route[1:]]) for route in self.links]
        if pairs:
            taken[row, find_moves(self.network.moves, self.network.n_links, np.vstack(pairs))] = 1
        return taken


def load_road_network(folder: str | Path) -> RoadNetwork:
    """Read `edge.txt`, `node.txt` and `transit.npy`.

    The column `cnt` of `edge.txt` is not read: it counts how often drivers used a link, which is
    what a model is to find out.

    Parameters
    ----------
    folder : path
        Where the three files are.

    Returns
    -------
    RoadNetwork
        Links with their lengths and classes, and the moves between them.

    Raises
    ------
    InputError
        If a file is missing, cannot be read or does not fit the others.
    """
    folder = Path(folder)
    nodes = _table(folder / "node.txt", _NODE_COLUMNS)
    number = {row["osmid"]: i for i, row in enumerate(nodes)}
    edges = _table(folder / "edge.txt", _EDGE_COLUMNS)
    for i, row in enumerate(edges):
        if row["n_id"] != str(i):
            raise InputError(f"edge.txt: link {i} has n_id {row['n_id']!r}; number them in order.")
        for end in ("u", "v"):
            if row[end] not in number:
                raise InputError(f"edge.txt: node {row[end]} of link {i} is not in node.txt.")
    length = _numbers(edges, "length", "edge.txt")
    if not (length > 0).all():
        i = int(np.flatnonzero(~(length > 0))[0])
        raise InputError(f"edge.txt: the length of link {i} must be above 0; got {length[i]:g}.")
    start, end = (np.array([number[row[key]] for row in edges]) for key in ("u", "v"))
    moves, turn = _read_moves(folder / "transit.npy", start, end)
    return RoadNetwork(
        start=start,
        end=end,
        length=length,
        road_class=np.array([_first(row["highway"]) for row in edges]),
        name=np.array([_first(row["name"]) for row in edges]),
        one_way=np.array([row["oneway"].strip() in ("1", "True") for row in edges]),
        lanes=_numbers(edges, "lanes", "edge.txt", missing=np.nan),
        position=np.column_stack([_numbers(nodes, key, "node.txt") for key in ("x", "y")]),
        moves=moves,
        turn=turn,
    )


def load_routes(folder: str | Path, name: str, network: RoadNetwork) -> Routes:
    """Read a table of routes, for example `test_CV0.csv`, driven on `network`.

    A route with a move that the network does not allow is refused. One that enters a link twice
    is not a path, and no costs above 0 make it cheapest: it is left out, and counted in `skipped`.

    Parameters
    ----------
    folder : path
        Where the table is.
    name : str
        Of the file.
    network : RoadNetwork
        What `load_road_network` has read.

    Returns
    -------
    Routes
        `problem()` and `decisions()` of it are what an estimator takes.
    """
    path = Path(folder) / name
    kept, skipped = [], 0
    for row_number, row in enumerate(_table(path, _ROUTE_COLUMNS)):
        links = _links(row, path.name, row_number, network.n_links)
        if len(np.unique(links)) < len(links):
            skipped += 1
        else:
            kept.append((row_number, links))
    _refuse_unknown_moves(kept, path.name, network)
    return Routes(network, tuple(links for _, links in kept), skipped)


def find_moves(moves: np.ndarray, n_links: int, pairs: np.ndarray) -> np.ndarray:
    """The number of each (link, next link) of `pairs` among the ordered `moves`; -1 if unknown."""
    known = moves[:, 0] * n_links + moves[:, 1]
    asked = pairs[:, 0] * n_links + pairs[:, 1]
    place = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return np.where(known[place] == asked, place, -1)


def _read_moves(path: Path, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The moves ordered by the link left, then the link entered, and their turns."""
    if not path.is_file():
        raise InputError(f"The folder must hold {path.name}; {str(path.parent)!r} does not.")
    try:
        table = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise InputError(f"{path.name} must be a plain array of numbers; it is not.") from error
    if table.ndim != 2 or table.shape[1] != 3 or table.dtype.kind not in "iu" or not len(table):
        raise InputError(
            f"{path.name} must hold whole numbers in rows (link, turn, next link); got "
            f"{table.dtype} of shape {table.shape}."
        )
    outside = (table < 0).any(1) | (table[:, [0, 2]] >= len(start)).any(1) | (table[:, 1] > 7)
    if outside.any():
        i = int(np.flatnonzero(outside)[0])
        raise InputError(f"{path.name}: row {i}, {table[i].tolist()}, names no link or no turn.")
    table = table[np.lexsort((table[:, 2], table[:, 0]))].astype(np.int64)
    apart = np.flatnonzero(end[table[:, 0]] != start[table[:, 2]])
    if apart.size:
        left, _, entered = table[apart[0]].tolist()
        raise InputError(f"{path.name}: link {entered} does not begin where link {left} ends.")
    return table[:, [0, 2]], table[:, 1]


def _links(row: dict[str, str], file: str, number: int, n_links: int) -> np.ndarray:
    parts = row["path"].split("_")
    if not all(part.isdecimal() and int(part) < n_links for part in parts):
        raise InputError(
            f"{file}: row {number} must list links from 0 to {n_links - 1}, joined by '_'; got "
            f"{row['path'][:40]!r}."
        )
    if (row["ori"], row["des"]) != (parts[0], parts[-1]):
        raise InputError(
            f"{file}: row {number} goes from {parts[0]} to {parts[-1]}, but its `ori` and `des` "
            f"are {row['ori']} and {row['des']}."
        )
    return np.array(parts, dtype=np.int64)


def _refuse_unknown_moves(
    routes: Sequence[tuple[int, np.ndarray]], file: str, network: RoadNetwork
) -> None:
    for number, links in routes:
        pairs = np.column_stack([links[:-1], links[1:]])
        unknown = np.flatnonzero(find_moves(network.moves, network.n_links, pairs) < 0)
        if unknown.size:
            left, entered = pairs[unknown[0]]
            raise InputError(
                f"{file}: row {number} moves from link {left} to {entered}, which transit.npy does "
                "not allow. Check that routes and network belong together."
            )


def _table(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    if not path.is_file():
        raise InputError(f"The folder must hold {path.name}; {str(path.parent)!r} does not.")
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in columns if name not in (reader.fieldnames or ())]
        if missing:
            raise InputError(f"{path.name} must have a column {missing[0]!r} in its first line.")
        rows = list(reader)
    if not rows:
        raise InputError(f"{path.name} holds no line but the first.")
    return rows


def _numbers(
    rows: Sequence[dict[str, str]], key: str, file: str, *, missing: float | None = None
) -> np.ndarray:
    """A column as numbers; an empty cell is `missing`, or refused."""
    values = np.empty(len(rows))
    for i, row in enumerate(rows):
        text = row[key].strip()
        try:
            values[i] = missing if not text and missing is not None else float(text)
        except ValueError:
            raise InputError(
                f"{file}: {key!r} of line {i} must be a number; got {text!r}."
            ) from None
    return values


def _first(text: str) -> str:
    """The first of a cell that may hold a Python list of words, `['a', 'b']`."""
    return text.strip("[] ").split(",")[0].strip("' ")
