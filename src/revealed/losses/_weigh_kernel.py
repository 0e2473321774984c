# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""The end of a projection loss in one launch: a program turns one distance into value and gradient.

In plain torch this is a dozen launches of a few numbers each, which beside a network's own step
can be felt. The forms are those of `_distance`, the Welsch loss excepted.
"""

import triton
import triton.language as tl

from ..projection.distance import INSIDE as _INSIDE
from ..projection.triton.passes import line_of

INSIDE = tl.constexpr(_INSIDE)

NUMBERS = ["n", "indexed"]


@triton.jit(do_not_specialize=NUMBERS)
def weigh_kernel(
    cost_ptr, point_ptr, distance_ptr, solved_ptr, margin_ptr, index_ptr, share_ptr,
    value_ptr, gradient_ptr, missed_ptr, n, indexed, share: tl.float64, delta: tl.float64,
    POWER: tl.constexpr, WEIGHTED: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Sample b's value and gradient times its share; adds 1 to `missed` where it is not solved."""
    b = tl.program_id(0)
    cost = cost_ptr + b.to(tl.int64) * n
    point = point_ptr + b.to(tl.int64) * n
    distance = tl.load(distance_ptr + b)
    if WEIGHTED:
        share = tl.load(share_ptr + b)
    value, factor = 0.5 * distance * distance, distance * 0.0 + 1.0
    if POWER == "huber":
        near = tl.minimum(distance, delta)
        value = near * (distance - 0.5 * near)
        factor = near / tl.where(distance == 0.0, 1.0, distance)
    if POWER == 1:
        square = tl.zeros([C], tl.float64)
        for base in range(0, n, C):
            j = base + tl.arange(0, C)
            q = tl.load(cost + j, mask=j < n, other=0.0).to(tl.float64)
            square += q * q
        size = tl.sqrt(tl.sum(square, axis=0))
        size = tl.maximum(size, tl.load(margin_ptr + line_of(b, index_ptr, indexed)))
        outside = distance > INSIDE * size
        value = distance
        factor = tl.where(outside, 1.0 / tl.where(outside, distance, 1.0), 0.0)
    tl.store(value_ptr + b, share * value)
    for base in range(0, n, C):
        j = base + tl.arange(0, C)
        q = tl.load(cost + j, mask=j < n, other=0.0).to(tl.float64)
        move = q - tl.load(point + j, mask=j < n, other=0.0)
        tl.store(gradient_ptr + b.to(tl.int64) * n + j, share * factor * move, mask=j < n)
    if tl.load(solved_ptr + b) == 0:
        tl.atomic_add(missed_ptr, tl.full((), 1, tl.int64))
