# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
# ruff: noqa: RUF005  (Triton knows no stars)
"""Block banded elimination inside one Triton program, from both ends to the middle.

Rows come in blocks of 16, and a block meets the W blocks after it. A step holds the lower tiles
of the window [[S, E^T], [E, D]] of a block and its W successors in registers and sweeps the 16
pivots of S, two at a time. Sweeping all of them turns the window into

    [[-S^-1,  S^-1 E^T], [E S^-1,  D - E S^-1 E^T]]

which is all there is to know: the inverse of the pivot block, what a step subtracts from the
blocks after it, and the next window, but for the block that enters it. Solving is then a chain of
small products. Pivot columns reach the other threads over a `board`. The windows of both chains,
from the top and from the bottom, lie on top of each other: rows 0 to 15 of a tile are the first
chain's, rows 16 to 31 the second's, so that half of every warp works on either.

Letters: H steps from either end, then W blocks in the middle. Tile (a, b), b <= a, of a window is
number a (a + 1) / 2 + b. Chain steps are numbered s from the top and H + s from the bottom, the
middle ones 2 H + j. Tiles are handled with the first axis contiguous, which is the one layout that
the compiler gives to all of their loads and stores.
"""

import numpy as np
import triton
import triton.language as tl

from .memory import after, peek, peek_as, poke, poke_as

BLOCK = tl.constexpr(16)
TILE = tl.constexpr(256)
LEAST = tl.constexpr(1e-24)
"""Determinants of two pivots are lifted to this; the ridge keeps them above it but for rounding."""
LEAST_BITS = tl.constexpr(int(np.float64(1e-24).view(np.int64)))


@triton.jit
def reciprocal(x, FAST: tl.constexpr):
    """1 / x; FAST: to the last bit or two, without the slow path that division drags along."""
    if FAST:
        y = _estimate(x)
        e = 1.0 - x * y
        return y + y * (e + e * e)
    else:
        return 1.0 / x


@triton.jit
def _estimate(x):
    """1 / x to about 20 bits."""
    return tl.inline_asm_elementwise(
        "rcp.approx.ftz.f64 $0, $1;", "=d,d", [x], dtype=tl.float64, is_pure=True, pack=1
    )


@triton.jit
def _axes(CHAINS: tl.constexpr):
    """Chain, row and column of the entries of a tile."""
    i = tl.arange(0, BLOCK * CHAINS)[:, None]
    return i // BLOCK, i % BLOCK, tl.arange(0, BLOCK)[None, :]


@triton.jit
def _publish(
    T, board, c, W: tl.constexpr, CHAINS: tl.constexpr, KIND: tl.constexpr, SHARED: tl.constexpr
):
    """Write columns c and c + 1 of the windows' first block column to the board."""
    chain, i, k = _axes(CHAINS)
    mine = (k == c) | (k == c + 1)
    for a in tl.static_range(W + 1):
        at = 2 * BLOCK * (chain * (W + 1) + a) + (k - c) * BLOCK + i
        poke_as(board, at, T[a * (a + 1) // 2], mine, KIND, SHARED)


@triton.jit
def _share(determinant, KIND: tl.constexpr, FAST: tl.constexpr):
    """1 / determinant, to some 12 digits where FAST: the ridge hides the rest.

    A float64 operation takes some 40 cycles on a Hopper GPU, and every pivot waits for this.
    """
    if FAST and KIND == tl.float64:
        # Compared as integers, which takes a fraction of the time.
        sound = determinant.to(tl.int64, bitcast=True) > LEAST_BITS
        share = tl.where(sound, _estimate(determinant), 1.0 / LEAST)
        error = tl.where(sound, tl.fma(-determinant, share, 1.0), 0.0)
        return tl.fma(share, error, share)
    else:
        return 1.0 / tl.maximum(determinant, LEAST).to(KIND)


@triton.jit
def _sweep(
    T, board, c, W: tl.constexpr, CHAINS: tl.constexpr, KIND: tl.constexpr,
    FAST: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    """The windows after sweeping their pivots c and c + 1, whose columns are on the board.

    Pivots are stored less 1. With P = [a, b; b, d] the pivot and C its columns, the sweep is then
    the one formula T - (C - I) P^-1 (C - I)^T in all of T, and leaves 1 - P^-1 where P was.
    """
    chain, i, k = _axes(CHAINS)
    begin = 2 * BLOCK * (W + 1) * chain
    a = peek_as(board, begin + c, KIND, SHARED) + 1.0
    b = peek_as(board, begin + c + 1, KIND, SHARED)
    d = peek_as(board, begin + c + BLOCK + 1, KIND, SHARED) + 1.0
    share = _share(a * d - b * b, KIND, FAST)
    first, second, over0, over1 = (), (), (), ()
    for at in tl.static_range(0, 2 * BLOCK * (W + 1), 2 * BLOCK):
        left = peek_as(board, begin + at + i, KIND, SHARED)
        right = peek_as(board, begin + at + BLOCK + i, KIND, SHARED)
        first = first + (d * left - b * right,)
        second = second + (a * right - b * left,)
        over0 = over0 + (peek_as(board, begin + at + k, KIND, SHARED),)
        over1 = over1 + (peek_as(board, begin + at + BLOCK + k, KIND, SHARED),)
    swept = ()
    for e in tl.static_range(W + 1):
        for f in tl.static_range(e + 1):
            move = first[e] * over0[f] + second[e] * over1[f]
            swept = swept + (T[e * (e + 1) // 2 + f] - move * share,)
    return swept


@triton.jit
def _sweep_block(
    T, board, W: tl.constexpr, CHAINS: tl.constexpr, KIND: tl.constexpr, FAST: tl.constexpr,
    SHARED: tl.constexpr,
):  # fmt: skip
    """The windows after all pivots of their first block; the pivots come back less 1."""
    _, i, k = _axes(CHAINS)
    T = (T[0] - (i == k).to(KIND),) + T[1:]
    for c in range(0, BLOCK, 2):
        # Two boards in turn: a column is not overwritten before everyone has read it.
        here = after(board, (c & 2) * BLOCK * (W + 1) * CHAINS, SHARED)
        _publish(T, here, c, W, CHAINS, KIND, SHARED)
        tl.debug_barrier()
        T = _sweep(T, here, c, W, CHAINS, KIND, FAST, SHARED)
    return T


@triton.jit
def _fetch(values, places, apart, COUNT: tl.constexpr, CHAINS: tl.constexpr, KIND: tl.constexpr):
    """COUNT tiles of the assembled matrix; those of the second chain are `apart` from the first."""
    chain, i, k = _axes(CHAINS)
    tiles = ()
    for a in tl.static_range(COUNT):
        place = tl.load(places + chain * apart + a * TILE + k * BLOCK + i)
        tiles = tiles + (tl.load(values + place).to(KIND),)
    return tiles


@triton.jit
def _hand_over(T, inverse, below, above, apart, one, W: tl.constexpr, CHAINS: tl.constexpr):
    """Store what a swept window says: S^-1, and E S^-1 both ways round.

    `one` is 1, unknown to the compiler, which would otherwise exchange the whole tile to make
    the stores by rows contiguous. The second chain is `apart` blocks from the first.
    """
    chain, i, k = _axes(CHAINS)
    tl.store(inverse + chain * apart * TILE + k * BLOCK + i, (i == k).to(tl.float64) - T[0])
    for a in tl.static_range(1, W + 1):
        tile = T[a * (a + 1) // 2]
        at = (chain * apart * W + a - 1) * TILE
        tl.store(below + at + k * BLOCK + i, tile)
        tl.store(above + at + i * one * BLOCK + k * one, tile)


@triton.jit
def _shift(T, entering, W: tl.constexpr):
    """The next window: what is left of this one, and the tiles of the block that enters."""
    window = ()
    for a in tl.static_range(W):
        for b in tl.static_range(a + 1):
            window = window + (T[(a + 1) * (a + 2) // 2 + b + 1],)
    return window + entering


@triton.jit
def _meet(T, M, swap, W: tl.constexpr, KIND: tl.constexpr, SHARED: tl.constexpr):
    """The middle window, to which both chains have led; the second one counts backwards."""
    COUNT: tl.constexpr = W * (W + 1) // 2
    chain, i, k = _axes(2)
    yes = tl.full([1, 1], 1, tl.int1)
    for a in tl.static_range(COUNT):
        poke_as(swap, (chain * COUNT + a) * TILE + k * BLOCK + i, T[a], yes, KIND, SHARED)
    tl.debug_barrier()
    _, i, k = _axes(1)
    window = ()
    for a in tl.static_range(W):
        for b in tl.static_range(a + 1):
            own = a * (a + 1) // 2 + b
            other = COUNT + (W - 1 - b) * (W - b) // 2 + W - 1 - a
            tile = M[a * (a + 1) // 2 + b] + peek_as(swap, own * TILE + k * BLOCK + i, KIND, SHARED)
            # Seen from below, rows are columns.
            tile += peek_as(swap, other * TILE + i * BLOCK + k, KIND, SHARED)
            window = window + (tile,)
    return window


@triton.jit(noinline=True)
def factorize(factor, blocks, config: tl.constexpr):
    """Eliminate the matrix whose entries are in `factor.gram`.

    Fills `inverses`, and `below` and `above`, which hold what the steps subtract from the blocks
    after them by columns and by rows; KIND is the precision that the elimination itself is done
    in. The board has 4 (W + 1) 32 words, `swap` W (W + 1) tiles.
    """
    W: tl.constexpr = config.W
    KIND: tl.constexpr = config.KIND
    FAST: tl.constexpr = config.FAST
    SHARED: tl.constexpr = config.SHARED
    SWAPPED: tl.constexpr = config.SWAPPED
    values, inverse, below, above = factor.gram, factor.inverses, factor.below, factor.above
    board, H, one = factor.board, blocks.H, blocks.one
    COUNT: tl.constexpr = (W + 1) * (W + 2) // 2
    T = _fetch(values, blocks.opening, COUNT * TILE, COUNT, 2, KIND)
    for s in range(H):
        step = (W + 1) * TILE
        following = _fetch(values, blocks.entering + s * step, H * step, W + 1, 2, KIND)
        T = _sweep_block(T, board, W, 2, KIND, FAST, SHARED)
        at = s * W * TILE
        _hand_over(T, inverse + s * TILE, below + at, above + at, H, one, W, 2)
        T = _shift(T, following, W)
    M = _fetch(values, blocks.middle, 0, W * (W + 1) // 2, 1, KIND)
    S = _meet(T, M, factor.swap, W, KIND, SWAPPED)
    for j in tl.static_range(W):
        S = _sweep_block(S, board, W - 1 - j, 1, KIND, FAST, SHARED)
        at = (2 * H * W + j * (2 * W - 1 - j) // 2) * TILE
        _hand_over(S, inverse + (2 * H + j) * TILE, below + at, above + at, 0, one, W - 1 - j, 1)
        S = _shift(S, (), W - 1 - j)


@triton.jit
def _load_tiles(at, COUNT: tl.constexpr):
    _, i, k = _axes(1)
    tiles = ()
    for a in tl.static_range(COUNT):
        tiles = tiles + (tl.load(at + a * TILE + k * BLOCK + i),)
    return tiles


@triton.jit
def _forward(rhs, own, step, tiles, W: tl.constexpr, SHARED: tl.constexpr):
    """Take block `own` out of the W blocks that follow it in direction `step`."""
    _, i, k = _axes(1)
    value = peek(rhs, own * BLOCK + i, SHARED)
    for a in tl.static_range(W):
        at = (own + (a + 1) * step) * BLOCK + k
        total = peek(rhs, at, SHARED) - tl.sum(tiles[a] * value, axis=0, keep_dims=True)
        poke(rhs, at + i * 0, tl.broadcast_to(total, [BLOCK, BLOCK]), i == 0, SHARED)


@triton.jit
def _backward(rhs, x, own, step, inverse, tiles, W: tl.constexpr, SHARED: tl.constexpr):
    """Block `own` of x, from its own right-hand side and the W blocks found before it."""
    _, i, k = _axes(1)
    total = inverse * peek(rhs, own * BLOCK + i, SHARED)
    for a in tl.static_range(W):
        total -= tiles[a] * peek(x, (own + (a + 1) * step) * BLOCK + i, SHARED)
    yes = tl.full([1, 1], 1, tl.int1)
    poke(x, own * BLOCK + k, tl.sum(total, axis=0, keep_dims=True), yes, SHARED)


@triton.jit(noinline=True)
def solve(rhs, x, inverse, below, above, H, W: tl.constexpr, SHARED: tl.constexpr):
    """x = (A D A^T)^-1 rhs; overwrites rhs and ends with a barrier.

    Sums run along the first axis, which lies within a warp. The tiles of the next step are
    loaded before they are needed: they come from far.
    """
    _, i, k = _axes(1)
    square = k * BLOCK + i
    last = 2 * H + W - 1
    down = _load_tiles(above, W)
    up = _load_tiles(above + H * W * TILE, W)
    for s in range(H):
        following = above + tl.minimum(s + 1, H - 1) * W * TILE
        next_down = _load_tiles(following, W)
        next_up = _load_tiles(following + H * W * TILE, W)
        # Where the chains meet both write the same blocks; a number is written by one thread.
        _forward(rhs, s, 1, down, W, SHARED)
        _forward(rhs, last - s, -1, up, W, SHARED)
        down, up = next_down, next_up
        tl.debug_barrier()
    for j in tl.static_range(W - 1):
        at = above + (2 * H * W + j * (2 * W - 1 - j) // 2) * TILE
        _forward(rhs, H + j, 1, _load_tiles(at, W - 1 - j), W - 1 - j, SHARED)
        tl.debug_barrier()
    start = tl.maximum(H - 1, 0)
    low = _load_tiles(below + start * W * TILE, W)
    high = _load_tiles(below + (H + start) * W * TILE, W)
    one = tl.load(inverse + start * TILE + square)
    two = tl.load(inverse + (H + start) * TILE + square)
    for back in tl.static_range(W):
        at = below + (2 * H * W + (W - 1 - back) * (W + back) // 2) * TILE
        own = tl.load(inverse + (2 * H + W - 1 - back) * TILE + square)
        _backward(rhs, x, H + W - 1 - back, 1, own, _load_tiles(at, back), back, SHARED)
        tl.debug_barrier()
    for back in range(H):
        s = H - 1 - back
        following = tl.maximum(s - 1, 0)
        next_low = _load_tiles(below + following * W * TILE, W)
        next_high = _load_tiles(below + (H + following) * W * TILE, W)
        next_one = tl.load(inverse + following * TILE + square)
        next_two = tl.load(inverse + (H + following) * TILE + square)
        _backward(rhs, x, s, 1, one, low, W, SHARED)
        _backward(rhs, x, last - s, -1, two, high, W, SHARED)
        low, high, one, two = next_low, next_high, next_one, next_two
        tl.debug_barrier()
