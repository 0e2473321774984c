"""From multipliers to a point that carries its own proof, whichever solver found the multipliers.

Any admissible multipliers v give a point q + r(v) inside the set: r moves each entry just as far
as its state demands. That point is the nearest one exactly if A r = 0 (on bounded rows: A r >= 0,
and 0 where v exceeds its bound). The residual of an instance is the larger of two numbers, both
relative and both zero at the answer:

- the largest cosine between r and a row it should be orthogonal to;
- the duality gap sum_i (v_i - least_i) (A r)_i over |r|^2, the excess of the squared distance
  that is still possible.

When the move is short (|r| < 1e-3 |q|), 1e-3 |q| takes the place of |r|: nearer than that,
rounding of q itself speaks. And no point of the set at distance |r| is farther than |r| from the
nearest, so |r| over 1e-3 |q| is a residual too where it is smaller: a move that is all rounding,
multiplied by large multipliers, may look like a gap, but has nothing to gain.
"""

from typing import NamedTuple

import numpy as np

from ..._common.compiled import kernel
from ..constants import SHORT
from .group import choose_lanes, limits, load_group, matrix_of, new_group, offset_of, zeros
from .simd import larger_of, load, muladd, select, smaller_of, splat, square_root, store


class Answer(NamedTuple):
    """Where the certified answers go, one line for each instance."""

    point: np.ndarray
    """(B, n)"""
    distance: np.ndarray
    """(B,)"""
    residual: np.ndarray
    """(B,)"""


@kernel
def certify(columns, pattern, job, ids, multipliers, answer, w):
    """Fill the `answer` of the instances `ids` from their multipliers."""
    width = len(w)
    n, m = len(columns.start) - 1, columns.norm.shape[1]
    group = new_group(n, m, width)
    r, g = zeros(n, width), zeros(m, width)
    lane_ids = np.empty(width, np.int64)
    for begin in range(0, len(ids), width):
        choose_lanes(ids, begin, lane_ids)
        load_group(columns, pattern, job, lane_ids, multipliers, group, w)
        matrix = matrix_of(columns, pattern, lane_ids[0])
        certify_group(matrix, job, lane_ids, group, r, g, answer, w)


@kernel
def certify_group(matrix, job, lane_ids, group, r, g, answer, w):
    """Fill the `answer` of a group from the multipliers in its lanes; r (n) and g (m) are
    overwritten."""
    width = len(w)
    length, worst = np.empty(width), np.empty(width)
    _residual(matrix, group, r, g, length, worst, w)
    for lane in range(width):
        b = lane_ids[lane]
        if b >= 0:
            answer.distance[b] = length[lane] * group.scale[lane]
            answer.residual[b] = worst[lane]
            for j in range(len(matrix.start) - 1):
                answer.point[b, j] = job.cost[b, j] + r[j * width + lane] * group.scale[lane]


@kernel
def _residual(matrix, group, r, g, length, worst, w):
    """Moves in r, gradient in g; the length of the moves and the residual of each lane."""
    zero = splat(0.0, w)
    m = matrix.n_rows
    for i in range(m):
        store(g, i, zero)
    square = zero
    for j in range(len(matrix.start) - 1):
        t = offset_of(matrix, group, j, w)
        low, high = limits(group, j, w)
        move = smaller_of(larger_of(t, low), high)
        store(r, j, move)
        square = muladd(move, move, square)
        for e in range(matrix.start[j], matrix.start[j + 1]):
            i = matrix.row[e]
            store(g, i, muladd(splat(matrix.value[e], w), move, load(g, i, w)))
    store(length, 0, square_root(square))
    denominator = larger_of(square_root(square), splat(SHORT, w) * load(group.size, 0, w))
    denominator = select(denominator, denominator, splat(1.0, w))
    row_gradient, gap, below = zero, zero, zero
    known = (
        denominator - denominator
    )  # NaN where the move is too long to measure or a multiplier is no number
    for i in range(m):
        there = splat(1.0, w) - load(group.absent, i, w)
        gi = load(g, i, w) * there
        excess = load(group.v, i, w) - load(group.least, i, w)
        gap = muladd(excess, gi, gap)
        allowed = smaller_of(larger_of(gi, zero), larger_of(excess, zero))
        short = larger_of(zero - excess, zero)
        wrong = larger_of(zero - gi, zero) + short
        off = select(load(group.bounded, i, w), allowed + wrong, gi)
        row_gradient = larger_of(larger_of(off, zero - off), row_gradient)
        below = larger_of(select(load(group.bounded, i, w), short, zero), below)
        known = known + (excess - excess)
    gap = larger_of(gap, zero - gap)
    missed = larger_of(row_gradient / denominator, gap / (denominator * denominator))
    # A short move is no proof where multipliers below their bounds would leave the point outside.
    missed = smaller_of(missed, square_root(square) / denominator)
    store(worst, 0, larger_of(missed, below / denominator) + known)
