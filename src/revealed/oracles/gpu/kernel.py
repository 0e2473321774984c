# type: ignore  (a kernel is Triton's language, not Python's, to a type checker)
"""Shortest paths for a batch in one launch: a program solves instance after instance.

Min-plus relaxation in rounds until nothing changes, the canonical edge into every node, and the
walk back from the target. Everything a round reads and writes is scratch of the program, small
enough to stay in the caches. All loops are bounded, by the number of nodes.

Letters: B instances, N nodes, E edges, D slots of a node, C nodes or edges looked at together, U
slots looked at together.
"""

import triton
import triton.language as tl

OPTIMAL = tl.constexpr(0)
INFEASIBLE = tl.constexpr(1)
UNBOUNDED = tl.constexpr(2)
FAILED = tl.constexpr(4)
FAR = tl.constexpr(1 << 30)
SLACK = tl.constexpr(1e-11)
INF = tl.constexpr(float("inf"))


@triton.jit
def power_of_two(exponent):
    """2^exponent for |exponent| < 1023, from its bits."""
    return ((exponent.to(tl.int64) + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def survey(costs, E, C: tl.constexpr):
    """The largest |cost|, whether one is negative and whether one is not finite."""
    largest = tl.zeros([C], tl.float64)
    negative = tl.zeros([C], tl.int32)
    broken = tl.zeros([C], tl.int32)
    for base in range(0, E, C):
        e = base + tl.arange(0, C)
        cost = tl.load(costs + e, mask=e < E, other=0.0).to(tl.float64)
        fine = tl.abs(cost) < INF
        largest = tl.maximum(largest, tl.where(fine, tl.abs(cost), 0.0))
        negative = tl.maximum(negative, (cost < 0.0).to(tl.int32))
        broken = tl.maximum(broken, tl.where(fine, 0, 1))
    return tl.max(largest, axis=0), tl.max(negative, axis=0), tl.max(broken, axis=0)


@triton.jit
def lay_out(costs, cost, edge_ptr, first, second, broken, N, D, C: tl.constexpr, U: tl.constexpr):
    """Scaled costs by slot into `cost`, inf where a slot has no edge."""
    for base in range(0, N, C):
        v = base + tl.arange(0, C)
        inside = v < N
        for group in range(0, D, U):
            for k in tl.static_range(U):
                at = (group + k) * N + v
                edge = tl.load(edge_ptr + at, mask=inside, other=-1)
                there = edge >= 0
                value = tl.load(costs + edge, mask=there, other=0.0).to(tl.float64)
                value = tl.where(broken > 0, 0.0, value * first * second)
                tl.store(cost + at, tl.where(there, value, INF), mask=inside)
    tl.debug_barrier()


@triton.jit
def begin(distance, source, rest, N, C: tl.constexpr):
    """Distance 0 at the source and `rest` elsewhere."""
    for base in range(0, N, C):
        v = base + tl.arange(0, C)
        tl.store(distance + v, tl.where(v == source, 0.0, rest), mask=v < N)
    tl.debug_barrier()


@triton.jit
def relax(distance, cost, tail_ptr, slack, N, D, C: tl.constexpr, U: tl.constexpr):
    """Rounds over all edges until none improves a distance; two copies of them in turn.

    Returns which copy is the last, and whether it could still be improved.
    """
    now = 0
    going = 1
    rounds = 0
    while (going > 0) & (rounds < N):
        here = distance + now * N
        there = distance + (1 - now) * N
        changed = tl.zeros([C], tl.int32)
        for base in range(0, N, C):
            v = base + tl.arange(0, C)
            inside = v < N
            before = tl.load(here + v, mask=inside, other=0.0)
            best = before
            for group in range(0, D, U):
                for k in tl.static_range(U):
                    at = (group + k) * N + v
                    tail = tl.load(tail_ptr + at, mask=inside, other=0)
                    step = tl.load(cost + at, mask=inside, other=INF)
                    best = tl.minimum(best, tl.load(here + tail) + step)
            better = best < before - slack
            tl.store(there + v, tl.where(better, best, before), mask=inside)
            changed = tl.maximum(changed, better.to(tl.int32))
        going = tl.max(changed, axis=0)
        rounds += 1
        now = 1 - now
        tl.debug_barrier()
    return now, going


@triton.jit
def first_levels(
    distance, cost, level, tail_ptr, source, negative, N, D, C: tl.constexpr, U: tl.constexpr
):
    """Level 0 where a step onward leads, FAR elsewhere; returns whether FAR is anywhere reached."""
    open_ones = tl.zeros([C], tl.int32)
    for base in range(0, N, C):
        v = base + tl.arange(0, C)
        inside = v < N
        mine = tl.load(distance + v, mask=inside, other=INF)
        onward = tl.zeros([C], tl.int32)
        for group in range(0, D, U):
            for k in tl.static_range(U):
                at = (group + k) * N + v
                theirs = tl.load(distance + tl.load(tail_ptr + at, mask=inside, other=0))
                step = tl.load(cost + at, mask=inside, other=INF)
                tight = (theirs + step <= mine) & (theirs < mine)
                onward = tl.maximum(onward, tight.to(tl.int32))
        onward = tl.where(negative > 0, 0, onward)
        onward = tl.where(v == source, 1, onward)
        tl.store(level + v, tl.where(onward > 0, 0, FAR), mask=inside)
        left_open = inside & (mine < INF) & (onward == 0)
        open_ones = tl.maximum(open_ones, left_open.to(tl.int32))
    tl.debug_barrier()
    return tl.max(open_ones, axis=0)


@triton.jit
def settle_levels(distance, cost, level, tail_ptr, going, N, D, C: tl.constexpr, U: tl.constexpr):
    """Rounds over costless steps until every node that can be reached has its level.

    Levels rise by one a round, so a node's first is its last and one copy of them is enough.
    """
    rounds = 0
    while (going > 0) & (rounds < N):
        changed = tl.zeros([C], tl.int32)
        for base in range(0, N, C):
            v = base + tl.arange(0, C)
            inside = v < N
            mine = tl.load(distance + v, mask=inside, other=INF)
            before = tl.load(level + v, mask=inside, other=0)
            reached = tl.zeros([C], tl.int32)
            for group in range(0, D, U):
                for k in tl.static_range(U):
                    at = (group + k) * N + v
                    tail = tl.load(tail_ptr + at, mask=inside, other=0)
                    step = tl.load(cost + at, mask=inside, other=INF)
                    tight = (tl.load(distance + tail) + step <= mine) & (mine < INF)
                    arrives = tight & (tl.load(level + tail) == rounds)
                    reached = tl.maximum(reached, arrives.to(tl.int32))
            fresh = (before == FAR) & (reached > 0) & inside
            tl.store(level + v, tl.zeros([C], tl.int32) + rounds + 1, mask=fresh)
            changed = tl.maximum(changed, fresh.to(tl.int32))
        going = tl.max(changed, axis=0)
        rounds += 1
        tl.debug_barrier()


@triton.jit
def choose(
    distance, cost, level, via, parent, tail_ptr, edge_ptr, negative, N, D,
    C: tl.constexpr, U: tl.constexpr, CYCLIC: tl.constexpr,
):  # fmt: skip
    """The edge by which each node is entered and its tail; -1 where there is none."""
    for base in range(0, N, C):
        v = base + tl.arange(0, C)
        inside = v < N
        mine = tl.load(distance + v, mask=inside, other=INF)
        best_edge = tl.full([C], -1, tl.int32)
        best_tail = tl.full([C], -1, tl.int32)
        best_near = tl.full([C], INF, tl.float64)
        best_level = tl.full([C], FAR, tl.int32)
        for group in range(0, D, U):
            for k in tl.static_range(U):
                at = (group + k) * N + v
                tail = tl.load(tail_ptr + at, mask=inside, other=0)
                edge = tl.load(edge_ptr + at, mask=inside, other=-1)
                theirs = tl.load(distance + tail)
                step = tl.load(cost + at, mask=inside, other=INF)
                take = (theirs + step <= mine) & (mine < INF)
                if CYCLIC:
                    near = tl.where(negative > 0, 0.0, theirs)
                    behind = tl.load(level + tail)
                    first = (near < best_near) | ((near == best_near) & (behind < best_level))
                    take = take & first
                    best_near = tl.where(take, near, best_near)
                    best_level = tl.where(take, behind, best_level)
                else:
                    take = take & (best_edge < 0)
                best_edge = tl.where(take, edge, best_edge)
                best_tail = tl.where(take, tail, best_tail)
        tl.store(via + v, best_edge, mask=inside)
        tl.store(parent + v, best_tail, mask=inside)
    tl.debug_barrier()


@triton.jit
def walk(costs, x, via, parent, source, target, status, N, first, second):
    """Put 1 on each edge of the path; returns its scaled cost and where the walk ended."""
    total = first * 0.0
    node = target
    steps = 0
    while (node != source) & (node >= 0) & (steps < N) & (status == OPTIMAL):
        edge = tl.load(via + node)
        if edge >= 0:
            tl.store(x + edge, 1.0)
            total += tl.load(costs + edge).to(tl.float64) * first * second
        node = tl.load(parent + node)
        steps += 1
    return total, node


@triton.jit
def fill(x, value, E, C: tl.constexpr):
    """The same value everywhere."""
    for base in range(0, E, C):
        e = base + tl.arange(0, C)
        tl.store(x + e, tl.zeros([C], tl.float64) + value, mask=e < E)
    tl.debug_barrier()


@triton.jit(do_not_specialize=["B", "E", "N", "D", "per_instance", "words_stride", "links_stride"])
def paths_kernel(
    costs_ptr, x_ptr, objective_ptr, status_ptr, source_ptr, target_ptr, tail_ptr, edge_ptr,
    words_ptr, links_ptr, words_stride, links_stride, B, E, N, D, per_instance,
    C: tl.constexpr, U: tl.constexpr, CYCLIC: tl.constexpr,
):  # fmt: skip
    """Decisions, their costs and statuses of all instances, as `plain.solve_by_torch`."""
    pid = tl.program_id(0)
    distance = words_ptr + pid.to(tl.int64) * words_stride
    cost = distance + 2 * N
    level = links_ptr + pid.to(tl.int64) * links_stride
    via = level + N
    parent = via + N
    for b in range(pid, B, tl.num_programs(0)):
        tl.debug_barrier()  # the last instance has been read to its end
        costs = costs_ptr + E.to(tl.int64) * b
        x = x_ptr + E.to(tl.int64) * b
        source = tl.load(source_ptr + b * per_instance)
        target = tl.load(target_ptr + b * per_instance)
        largest, negative, broken = survey(costs, E, C)
        exponent = ((largest.to(tl.int64, bitcast=True) >> 52) & 0x7FF) - 1022
        half = (-exponent) >> 1
        first, second = power_of_two(half), power_of_two(-exponent - half)
        lay_out(costs, cost, edge_ptr, first, second, broken, N, D, C, U)
        status = tl.where(broken > 0, FAILED, OPTIMAL)
        circles = 0
        slack = first * 0.0
        if CYCLIC:
            if (negative > 0) & (broken == 0):
                slack += SLACK
                begin(distance, source, 0.0, N, C)
                _, circles = relax(distance, cost, tail_ptr, slack, N, D, C, U)
        begin(distance, source, INF, N, C)
        now, going = relax(distance, cost, tail_ptr, slack, N, D, C, U)
        last = distance + now * N
        circles = tl.maximum(circles, going)
        if CYCLIC:
            going = first_levels(last, cost, level, tail_ptr, source, negative, N, D, C, U)
            settle_levels(last, cost, level, tail_ptr, going, N, D, C, U)
        choose(last, cost, level, via, parent, tail_ptr, edge_ptr, negative, N, D, C, U, CYCLIC)
        status = tl.where((circles > 0) & (status == OPTIMAL), UNBOUNDED, status)
        status = tl.where((tl.load(last + target) == INF) & (broken == 0), INFEASIBLE, status)
        fill(x, tl.where(status == OPTIMAL, 0.0, float("nan")), E, C)
        total, end = walk(costs, x, via, parent, source, target, status, N, first, second)
        lost = (status == OPTIMAL) & (end != source)
        status = tl.where(lost, FAILED, status)
        if lost:
            tl.debug_barrier()
            fill(x, float("nan"), E, C)
        value = total * power_of_two(-half) * power_of_two(exponent + half)
        tl.store(objective_ptr + b, tl.where(status == OPTIMAL, value, float("nan")))
        tl.store(status_ptr + b, status.to(tl.int8))
