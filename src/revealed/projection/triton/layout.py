# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""What a program works with, in a few named tuples, and where its scratch lies.

Device functions take these tuples. The kernels that are launched take their parts one by one and
always by name (see `launch`): in Triton 3.6 a tuple in a launch forgets `do_not_specialize`, and
its floats become float32.

Letters: n columns (N padded), m rows (M padded), P pairs of rows that meet, W and H as in `factor`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from inspect import Parameter, signature
from typing import Any, NamedTuple

import triton
import triton.language as tl

from .memory import address, after, declare


def entry(function):
    """Compile a kernel that is launched, making nothing of alignment and sizes: tiles then keep one
    layout from load to store, one number to a thread, and need no exchange through shared memory
    inside the loops."""
    parameters = signature(function).parameters.values()
    names = [p.name for p in parameters if p.annotation is Parameter.empty]
    return triton.jit(do_not_specialize=names)(function)


@dataclass(frozen=True)
class Config:
    """What is known when a kernel is compiled: one constexpr argument for a dozen."""

    C: int
    """Columns handled at a time."""
    G: int
    """Rows handled at a time."""
    UC: int
    """Entries of a column that are gathered in one go."""
    UR: int
    """Of a row."""
    UP: int = 2
    """Of a pair of rows."""
    GP: int = 1024
    """Pairs handled at a time."""
    W: int = 1
    """Blocks that a block meets."""
    KIND: Any = tl.float64
    """The precision of the elimination."""
    BOUNDS: bool = False
    """Whether rows have bounds."""
    FAST: bool = False
    """Whether there is inline assembly; the interpreter divides."""
    SHARED: bool = False
    """Whether vectors over the rows lie in shared memory."""
    NEAR: bool = False
    """Whether the residuals do."""
    WORDS: int = 0
    """Numbers of shared memory that a program declares."""

    @property
    def SOFT(self) -> bool:
        """Whether there are soft steps."""
        return not self.BOUNDS

    @property
    def SWAPPED(self) -> bool:
        """Whether the middle tiles of an elimination are few enough for shared memory."""
        return self.SHARED and self.W <= 2

    @property
    def PTX(self) -> str:
        """What declares the shared memory."""
        return declare(self.WORDS) if self.SHARED else ""

    def of_passes(self) -> Config:
        """The same for a kernel that eliminates nothing and uses no shared memory: one that
        serves all problems of similar size."""
        return Config(self.C, self.G, self.UC, self.UR)

    def __repr__(self) -> str:
        # Triton makes this part of the names of functions, which may hold letters and digits only.
        parts = (getattr(self, field.name) for field in fields(self))
        return "_".join(str(int(x) if isinstance(x, bool) else x) for x in parts)


class Gather(NamedTuple):
    """For each of `size` targets, up to `length` entries to gather and their factors; see
    `plan.Lists`."""

    take: tl.tensor
    weight: tl.tensor
    size: tl.tensor
    length: tl.tensor


class Blocks(NamedTuple):
    """Where the elimination finds the entries of its tiles; see `plan.Band`."""

    opening: tl.tensor
    entering: tl.tensor
    middle: tl.tensor
    H: tl.tensor
    one: tl.tensor
    """1, unknown to the compiler; see `factor`."""


class Problem(NamedTuple):
    """The rows and columns that all instances share."""

    columns: Gather
    """A^T v is gathered with it."""
    rows: Gather
    """A r is gathered with it."""
    pairs: Gather
    """The entries of A D A^T off the diagonal are gathered with it."""
    pair_rows: tl.tensor
    """(2, P) the rows of each pair."""
    blocks: Blocks


class Origin(NamedTuple):
    """Where rows come from: the first `n_eq` of the problem's are equalities."""

    source: tl.tensor
    """(M) which of the problem's rows; -1 for padding."""
    norm: tl.tensor
    """(M) its length."""
    n_eq: tl.tensor


class Instance(NamedTuple):
    """One projection; `inverse` brings its costs into kernel units."""

    cost: tl.tensor
    states: tl.tensor
    n: tl.tensor
    inverse: tl.tensor
    margin: tl.tensor
    """In kernel units."""
    size: tl.tensor
    """Length of the cost, or the margin if that is larger."""


class Entries(NamedTuple):
    """Scratch of N numbers each."""

    t: tl.tensor
    """Offsets A^T v - shift."""
    r: tl.tensor
    """Residuals, or what else A is multiplied with; in shared memory where NEAR."""
    dt: tl.tensor
    """A^T d."""
    w: tl.tensor
    """The diagonal D where it is not 0 or 1."""
    z: tl.tensor
    """Interior point: the residual of an entry at a bound"""
    inside: tl.tensor
    """and its distance from it."""


class Rows(NamedTuple):
    """Scratch of M numbers each; v, rhs, d and scale in shared memory where SHARED."""

    v: tl.tensor
    """Multipliers."""
    rhs: tl.tensor
    d: tl.tensor
    """The step of v."""
    scale: tl.tensor
    """Of rows and columns of A D A^T, where there are bounds."""
    zeta: tl.tensor
    """Multipliers of the bounds, in terms of -PENALTY."""
    least: tl.tensor
    """The smallest multiplier that a bounded row may have."""
    kind: tl.tensor
    """int32: EQUALITY, BOUNDED or ABSENT."""
    y: tl.tensor
    """Interior point: what a bounded multiplier has above its least,"""
    force: tl.tensor
    """the multiplier of that bound,"""
    dy: tl.tensor
    """and the steps of both."""
    dforce: tl.tensor


class Factor(NamedTuple):
    """Scratch of A D A^T and its elimination; see `factor.factorize`."""

    gram: tl.tensor
    """The zero, the diagonal, then the pairs."""
    inverses: tl.tensor
    below: tl.tensor
    above: tl.tensor
    board: tl.tensor
    swap: tl.tensor


@triton.jit
def lay_out(scratch, problem, config: tl.constexpr):
    """The scratch of one program: `scratch_size` numbers from `scratch` on, and the shared
    memory.  Both kernels lie in it alike; the first try leaves holes."""
    W: tl.constexpr = config.W
    SHARED: tl.constexpr = config.SHARED
    PTX: tl.constexpr = config.PTX
    N, M, H = problem.columns.size, problem.rows.size, problem.blocks.H
    v = address(scratch, PTX, SHARED)
    rhs = after(v, M, SHARED)
    d = after(rhs, M, SHARED)
    scale = after(d, M, SHARED)
    board = after(scale, M if config.BOUNDS else 0, SHARED)
    swap = scratch + 4 * M + 128 * (W + 1)
    t = swap + 256 * W * (W + 1)
    if config.SWAPPED:
        swap = after(board, 128 * (W + 1), SHARED)
    r = t + N
    if config.NEAR:
        r = board  # residuals are done with when an elimination begins
    zeta = t + 6 * N
    dforce = zeta + 5 * M
    values = dforce + 2 * M
    inverses = values + 1 + M + problem.pairs.size
    below = inverses + (2 * H + W) * 256
    above = below + (2 * H * W + W * (W - 1) // 2 + W) * 256
    tl.store(values, tl.full((), 0.0, tl.float64))  # the zero that empty places of tiles point to
    entries = Entries(t, r, t + 2 * N, t + 3 * N, t + 4 * N, t + 5 * N)
    kind = (dforce + M).to(tl.pointer_type(tl.int32))
    rows = Rows(
        v, rhs, d, scale, zeta, zeta + M, kind, zeta + 2 * M, zeta + 3 * M, zeta + 4 * M, dforce
    )
    return entries, rows, Factor(values, inverses, below, above, board, swap)


def scratch_size(band) -> int:
    """Numbers of scratch that `lay_out` gives to one program.

    Parameters
    ----------
    band : plan.Band
    """
    W, H, N, M = band.width, band.steps, band.columns.size, band.rows.size
    vectors = 128 * (W + 1) + 4 * M + 6 * N + 7 * M + 1 + M + band.pairs.size
    tiles = W * (W + 1) + (2 * H + W) + 2 * (2 * H * W + W * (W - 1) // 2 + W)
    return -(-(vectors + 256 * tiles) // 16) * 16
