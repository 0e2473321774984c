"""What the device needs to know of a problem before it sees a cost, uploaded once.

Letters: n columns, m rows. The rows are put in an order of small bandwidth and cut into blocks of
16, each of which then meets only the W blocks after it in A D A^T, for every diagonal D. Blocks
are eliminated from both ends toward W in the middle, which halves the chain of dependent steps:
there are 2 H + W blocks, padded to M rows, and H steps from either end. Lists are padded to
rectangles: `take` says which entry, `weight` with which factor, and padding has weight 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from scipy.sparse import csgraph

from ...optimality.sets import OptimalitySet
from ...problems.linear import LinearProgram
from ..cpu.analysis import Columns
from ..cpu.analysis import _stack_columns as stack_columns

BLOCK = 16
"""Rows of a block: a tile of A D A^T is then one number for each of 256 threads."""
WIDEST = 4
"""Most blocks that a block may meet; a wider band is left to `torch_dense`."""
FIRST_RIDGE = 1e-8
"""Only a start, so a ridge well above rounding costs nothing and keeps rank-deficient rows tame."""
MOST_KEPT = 8
"""Plans that are kept with a problem: one for each device and choice of binding inequalities."""


class Lists(NamedTuple):
    """For each of `size` targets, up to `length` entries to gather, stored entry by entry."""

    take: torch.Tensor
    """(length, size) int32."""
    weight: torch.Tensor
    """(length, size) float64."""

    @property
    def length(self) -> int:
        return self.take.shape[0]

    @property
    def size(self) -> int:
        return self.take.shape[1]


@dataclass(frozen=True, eq=False)
class Band:
    """The block tridiagonal form of A D A^T, for the Triton kernels."""

    width: int
    """W, blocks that a block meets."""
    steps: int
    """H, blocks eliminated from either end."""
    chunk: int
    """Columns that a program handles at a time; the padded number of columns is a multiple."""
    columns: Lists
    """Rows that meet a column, by column: A^T v is gathered with it."""
    rows: Lists
    """Columns that meet a row, by row: A r is gathered with it."""
    pairs: Lists
    """Columns in which two rows meet, by pair of rows, with the products of their entries."""
    pair_rows: torch.Tensor
    """(2, pairs) int32: the rows of each pair."""
    opening: torch.Tensor
    """(2, tiles, 16, 16) int32: where the entries of the first window of either chain are found, 0
    for a zero, 1 + i for the diagonal of row i, then the pairs. Tiles are stored by columns."""
    entering: torch.Tensor
    """(2 H, W + 1, 16, 16) int32: the same for the block that enters after a step."""
    middle: torch.Tensor
    """(tiles, 16, 16) int32: and for the middle, all zero where chains lead to it."""
    norm: torch.Tensor
    """(M,) length of each row in band order, 1 for padding."""
    source: torch.Tensor
    """(M,) int32: which of the problem's rows, equalities first; -1 for padding."""
    first_inverse: torch.Tensor
    """(2 H + W, 16, 16) inverted pivot blocks of A A^T: the least-squares start."""
    first_below: torch.Tensor
    """(2 H W + W (W - 1) / 2, 16, 16) what the steps subtract from later blocks, by columns."""
    first_above: torch.Tensor
    """The same by rows."""
    bandwidth: int


class Dense(NamedTuple):
    """The rows [A_eq; -A_ub] of a problem as a dense matrix, for `torch_dense`."""

    matrix: torch.Tensor
    """(1 or B, m, n) rows scaled to length 1."""
    norm: torch.Tensor
    """(1 or B, m) what they were divided by."""
    start: torch.Tensor
    """(1 or B, m, m) inverse of A A^T with a ridge: the least-squares start."""

    def take(self, index: torch.Tensor) -> Dense:
        """The matrices of the chosen instances; itself where all share one."""
        return self if len(self.matrix) == 1 else Dense(*(part[index] for part in self))


@dataclass(frozen=True, eq=False)
class Plan:
    """A problem on a device."""

    n: int
    n_rows: int
    """Equalities and all inequalities, also those that never bind: the length of `multipliers`."""
    columns: Columns
    """The stacked matrix on the host."""
    device: torch.device
    source: torch.Tensor
    """(m,) int64: which of the problem's rows are kept; the others have multiplier 0."""
    band: Band | None
    """None where the band is too wide or every instance has a matrix of its own."""

    @property
    def n_equalities(self) -> int:
        return self.columns.n_equalities

    @cached_property
    def dense(self) -> Dense:
        """Built when first asked for: the kernels do without."""
        columns, n = self.columns, self.n
        m = columns.norm.shape[1]
        matrix = np.zeros((len(columns.value), m, n))
        place = np.repeat(np.arange(n), np.diff(columns.start))
        matrix[:, columns.row, place] = columns.value / columns.norm[:, columns.row]
        gram = matrix @ matrix.transpose(0, 2, 1) + FIRST_RIDGE * np.eye(m)
        parts = (matrix, columns.norm, np.linalg.inv(gram))
        return Dense(*(torch.as_tensor(part, device=self.device) for part in parts))

    def take(self, index: np.ndarray) -> Plan:
        """The plan of the chosen instances; itself where all share one matrix."""
        if len(self.columns.value) == 1:
            return self
        value, norm = self.columns.value[index], self.columns.norm[index]
        return replace(self, columns=self.columns._replace(value=value, norm=norm))


class _Kept(dict[tuple[str, bytes], Plan]):
    """The plans of one problem, sliced along with it."""

    def take(self, index: np.ndarray) -> _Kept:
        return _Kept({key: plan.take(index) for key, plan in self.items()})


def plan_of(sets: OptimalitySet, device: torch.device) -> Plan:
    """The plan of the sets' problem on `device`, built once and kept with the problem."""
    kept = sets.rows.cached("projection.triton.plans", _Kept)
    used = sets.row_used
    if (str(device), used.tobytes()) not in kept and len(kept) >= MOST_KEPT:
        used = np.ones(len(used), bool)
    key = (str(device), used.tobytes())
    if key not in kept:
        kept[key] = build_plan(sets.rows, used, device)
    return kept[key]


def build_plan(problem: LinearProgram, used: np.ndarray, device: torch.device) -> Plan:
    """What `plan_of` keeps; `used` says which inequalities bind for any decision."""
    columns = stack_columns(problem, used)
    n = problem.n_variables
    band = _band(columns, n, device) if len(columns.value) == 1 else None
    return Plan(
        n=n,
        n_rows=problem.eq_rows.shape[0] + problem.ub_rows.shape[0],
        columns=columns,
        device=device,
        source=torch.as_tensor(columns.source, device=device),
        band=band,
    )


# --- the band ------------------------------------------------------------------------------------


class Entries(NamedTuple):
    """The scaled matrix, entry by entry, rows in band order."""

    row: np.ndarray
    column: np.ndarray
    value: np.ndarray


def _band(columns: Columns, n: int, device: torch.device) -> Band | None:
    m = columns.norm.shape[1]
    value = columns.value[0] / columns.norm[0, columns.row]
    entry_column = np.repeat(np.arange(n), np.diff(columns.start))
    ones = np.ones(len(columns.row))
    touches = sparse.csr_array((ones, (columns.row, entry_column)), shape=(m, n))
    gram = sparse.csr_array(touches @ touches.T)
    place, bandwidth = _narrow_order(gram)
    W = max(-(-bandwidth // BLOCK), 1)
    if W > WIDEST or m == 0 or n == 0:
        return None
    H = max(-(-(-(-m // BLOCK) - W) // 2), 0)
    M = (2 * H + W) * BLOCK
    entries = Entries(place[columns.row], entry_column, value)
    by_row = (entries.row, entries.column, entries.value)
    by_column = (entries.column, entries.row, entries.value)
    chunk = _chunk(n)
    pairs, lists = _pairs(entries)
    at = _places(pairs, M)
    source, norm = np.full(M, -1, np.int32), np.ones(M)
    source[place], norm[place] = columns.source, columns.norm[0]
    inverse, below = _first_factor(entries, m, W, H)

    def put(array: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(np.ascontiguousarray(array), device=device)

    def padded(lists: tuple[np.ndarray, np.ndarray, np.ndarray], size: int, least: int) -> Lists:
        return Lists(*(put(part) for part in _rectangle(*lists, size, least)))

    return Band(
        width=W,
        steps=H,
        chunk=chunk,
        columns=padded(by_column, -(-n // chunk) * chunk, 2),
        rows=padded(by_row, M, 4),
        pairs=padded(lists, max(len(pairs), 1), 2),
        pair_rows=put(np.zeros((2, 1), np.int32) if len(pairs) == 0 else pairs.T.astype(np.int32)),
        opening=put(_opening(at, W, H)),
        entering=put(_entering(at, W, H)),
        middle=put(_middle(at, W, H)),
        norm=put(norm),
        source=put(source),
        first_inverse=put(inverse),
        first_below=put(below.transpose(0, 2, 1)),
        first_above=put(below),
        bandwidth=bandwidth,
    )


def _narrow_order(gram: sparse.csr_array) -> tuple[np.ndarray, int]:
    """Position of each row in the narrower of two orders, its own and reverse Cuthill-McKee."""
    m = len(gram.indptr) - 1
    own = np.arange(m)
    if m < 3:
        return own, max(m - 1, 0)
    other = np.argsort(csgraph.reverse_cuthill_mckee(gram, True))
    row = np.repeat(own, np.diff(gram.indptr))
    width = [int(np.abs(p[row] - p[gram.indices]).max(initial=0)) for p in (own, other)]
    return (own, width[0]) if width[0] <= width[1] else (other, width[1])


def _chunk(n: int) -> int:
    """Columns handled at a time: few rounds, which cost waiting, against little padding."""
    return min((256, 512, 1024), key=lambda size: -(-n // size) * (2048 + size))


def _rectangle(
    target: np.ndarray, take: np.ndarray, weight: np.ndarray, size: int, least: int
) -> tuple[np.ndarray, np.ndarray]:
    """Entries sorted by target, as (length, size) arrays padded with weight 0.

    Lengths are few, `least` or a power of two or a multiple of 16, for kernels are compiled anew
    for each.
    """
    order = np.argsort(target, kind="stable")
    target = target[order]
    rank = np.arange(len(target)) - np.searchsorted(target, target)
    length = int(rank.max(initial=0)) + 1
    length = max(1 << (length - 1).bit_length(), least) if length <= 16 else -(-length // 16) * 16
    takes, weights = np.zeros((length, size), np.int32), np.zeros((length, size))
    takes[rank, target], weights[rank, target] = take[order], weight[order]
    return takes, weights


def _pairs(
    entries: Entries,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(P, 2) pairs of different rows that meet, and lists of where: pair, column, product."""
    order = np.lexsort((entries.row, entries.column))
    row, column, value = (part[order] for part in entries)
    found: list[tuple[np.ndarray, ...]] = [(np.zeros((0, 2), np.int64), column[:0], value[:0])]
    for gap in range(1, int(np.bincount(column, minlength=1).max(initial=0))):
        first = np.flatnonzero(column[gap:] == column[:-gap])
        second = first + gap
        rows = np.stack([row[first], row[second]], axis=1)
        found.append((rows, column[first], value[first] * value[second]))
    rows, column, product = (np.concatenate(part) for part in zip(*found, strict=True))
    pairs, which = np.unique(rows, axis=0, return_inverse=True)
    return pairs, (which.ravel(), column, product)


def _places(pairs: np.ndarray, M: int) -> sparse.csr_array:
    """(M, M) where each entry of A D A^T is kept, as in `Band.tiles`."""
    own, number = np.arange(M), np.arange(len(pairs))
    row = np.r_[own, pairs[:, 0], pairs[:, 1]]
    column = np.r_[own, pairs[:, 1], pairs[:, 0]]
    place = np.r_[1 + own, 1 + M + number, 1 + M + number]
    return sparse.csr_array((place, (row, column)), shape=(M, M))


def _tile(matrix: Any, i: int, k: int) -> np.ndarray:
    """Tile of the rows of block i and the columns of block k."""
    part = matrix[i * BLOCK : (i + 1) * BLOCK, k * BLOCK : (k + 1) * BLOCK]
    return part.toarray()


def _window(at: Any, blocks: list[int], done: range) -> np.ndarray:
    """Lower tiles of a window of blocks, by columns; zero among blocks that are `done`."""
    tiles = [
        _tile(at, i, k).T * (i not in done or k not in done)
        for a, i in enumerate(blocks)
        for k in blocks[: a + 1]
    ]
    return np.array(tiles, np.int32).reshape(-1, BLOCK, BLOCK)


def _chains(W: int, H: int) -> list[tuple[list[int], range]]:
    """The blocks in either chain's order, and those of the middle for the one that must not
    count them again."""
    blocks = list(range(2 * H + W))
    return [(blocks, range(0)), (blocks[::-1], range(H, H + W))]


def _opening(at: Any, W: int, H: int) -> np.ndarray:
    if H == 0:
        return np.zeros((2, (W + 1) * (W + 2) // 2, BLOCK, BLOCK), np.int32)
    return np.array([_window(at, order[: W + 1], done) for order, done in _chains(W, H)])


def _entering(at: Any, W: int, H: int) -> np.ndarray:
    tiles = np.zeros((2, max(H, 1), W + 1, BLOCK, BLOCK), np.int32)
    for chain, (order, done) in enumerate(_chains(W, H)):
        for s in range(H - 1):  # after the last step nothing enters
            tiles[chain, s] = _window(at, order[s + 1 : s + W + 2], done)[-(W + 1) :]
    return tiles


def _middle(at: Any, W: int, H: int) -> np.ndarray:
    return _window(at, list(range(W)), range(0)) if H == 0 else _window(at, [0] * W, range(1))


def _first_factor(entries: Entries, m: int, W: int, H: int) -> tuple[np.ndarray, np.ndarray]:
    """The factor of A A^T as `factor.factorize` would leave it."""
    blocks = 2 * H + W
    n = int(entries.column.max(initial=0)) + 1
    shape = (blocks * BLOCK, n)
    A = sparse.csr_array((entries.value, (entries.row, entries.column)), shape=shape)
    ridge = sparse.diags_array(np.where(np.arange(blocks * BLOCK) < m, FIRST_RIDGE, 1.0))
    gram = sparse.csr_array(A @ A.T + ridge)
    near = [(i, k) for i in range(blocks) for k in range(blocks) if abs(i - k) <= W]
    tile = {(i, k): _tile(gram, i, k) for i, k in near}
    inverse, below = [], []
    steps = [order[s : s + W + 1] for order, _ in _chains(W, H) for s in range(H)]
    steps += [list(range(H + j, H + W)) for j in range(W)]
    for own, *later in steps:
        inverse.append(np.linalg.inv(tile[own, own]))
        share = {a: tile[a, own] @ inverse[-1] for a in later}
        below += [share[a] for a in later]
        for a in later:
            for b in later:
                tile[a, b] = tile[a, b] - share[a] @ tile[b, own].T
    # A solver without steps still loads, and ignores, the tiles of a first one.
    below += [np.zeros((BLOCK, BLOCK))] * (W if H == 0 else 0)
    return np.array(inverse), np.array(below)
