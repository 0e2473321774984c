"""Pairs of costs and limits: the nearest point of a union of convex pieces, one for each guess of
which unknown limits are active.

    min over A of   dist^2(q, C_A) + sum_{k in A} w_k^2 (g_k - r_k)^2
                                   + sum_{k not in A} w_k^2 max(r_k - g_k, 0)^2

C_A is a set of plain costs, r_k where the decision stands. With few unknown limits every A is
tried. With more, branch and bound: a limit that is not decided yet may have any multiplier from 0
up and costs what it costs outside A, so its bound is one projection onto plain costs too: asking
for multipliers from the margin up where 0 is enough is a shift, since

    C with mu_k >= 0  =  (C with mu_k >= margin) + margin a_k.

All samples advance together. Letters: B samples, K unknown limits, N nodes of one round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

import numpy as np

from .._common.arrays import as_costs
from ..optimality.active_set import EntryState
from ..optimality.limit_sets import UnknownLimitSet
from ..optimality.protocol import ProjectionOptions
from ..oracles.calls import deadline_after, seconds_until
from .project import check_options, projected
from .result import Projection, ProjectionStatus, as_given

METHODS = ("auto", "enumerate", "branch")
ENUMERATED = 4
"""Unknown limits up to which all guesses are tried."""
PART = 16_384
"""Costs that are projected together."""
NO, YES, OPEN = 0, 1, 2
"""A limit in a node: not active, active, not decided."""


def project_pieces(costs: Any, sets: UnknownLimitSet, options: ProjectionOptions) -> Projection:
    """`project` for pairs of costs and limits, rows (q, g) of length n + K.

    `method` is "enumerate", "branch" or "auto". An instance is `solved` where the bound has come
    within `tol` of the distance; where `max_iter` rounds or `time_limit` stop it before,
    `lower_bound` holds and `point` is the nearest found.
    """
    pairs, restore = as_costs(costs, sets.n_parameters, "costs")
    check_options(len(pairs), len(sets), replace(options, warm_start=None), METHODS)
    few = options.method == "auto" and len(sets.unknown) <= ENUMERATED
    search = _Search(pairs, sets, options)
    if few or options.method == "enumerate":
        search.enumerate()
    else:
        search.branch()
    return as_given(search.result(), restore)


class _Search:
    """The best guess of each sample so far, and what is proved."""

    def __init__(
        self, pairs: np.ndarray, sets: UnknownLimitSet, options: ProjectionOptions
    ) -> None:
        self.q, self.g = sets.split(pairs)
        self.sets, self.options = sets, options
        B = len(pairs)
        self.point, self.best = pairs.copy(), np.full(B, np.inf)
        """Pairs, and their squared distance."""
        self.bound = np.zeros(B)
        """Squared."""
        self.loose = np.full(B, np.inf)
        """What was proved of guesses that were not solved to the end, squared."""
        self.steps, self.late = np.zeros(B, np.int64), np.zeros(B, bool)
        rows = sets.problem.eq_rows.shape[0] + sets.problem.ub_rows.shape[0]
        self.multipliers = np.zeros((B, rows))
        sense, weights = sets.unknown.sense, sets.weights_of_limits
        missing = sense * (sets.values - self.g)
        self.if_active = (weights * missing) ** 2
        self.if_not = (weights * np.maximum(missing, 0.0)) ** 2
        self.normals = sets.unknown.normals(sets.problem)
        self.deadline = deadline_after(options.time_limit)

    def enumerate(self) -> None:
        """Try every guess."""
        B, K = self.if_active.shape
        least = np.full(B, np.inf)
        for guess in _guesses(K):
            nodes = np.tile(guess, (B, 1)).astype(np.int8)
            _, bound = self.look(np.arange(B), nodes)
            least = np.minimum(least, bound)
        self.bound = least

    def branch(self) -> None:
        """Best first, a node of every open sample in each round."""
        B, K = self.if_active.shape
        heaps: list[list[Any]] = [[] for _ in range(B)]
        everyone = np.arange(B)
        likely = np.where(self.if_active == self.if_not, YES, NO).astype(np.int8)
        for guess in (likely, np.full((B, K), NO, np.int8), np.full((B, K), YES, np.int8)):
            self.look(everyone, guess)  # for a point, should the search be stopped
        owner, nodes = everyone, np.full((B, K), OPEN, np.int8)
        for count in range(self.options.max_iter + 1):
            branch_on, bound = self.look(owner, nodes)
            for i, b in enumerate(owner):
                if bound[i] >= self.best[b]:
                    continue
                if branch_on[i] >= 0:
                    heappush(heaps[b], (bound[i], count, i, nodes[i], branch_on[i]))
                else:  # nothing to branch on, but its projection proved less than it found
                    self.loose[b] = min(self.loose[b], bound[i])
            self._read_bounds(heaps)
            left = seconds_until(self.deadline)
            open_ = [b for b in range(B) if heaps[b] and self._is_open(b)]
            if not open_ or count == self.options.max_iter or (left is not None and left <= 0):
                self.late[open_] = True
                break
            owner, nodes = _children(heaps, open_)

    def look(self, owner: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Project onto nodes (N, K) of samples `owner`, and take over what is a pair of the union.

        Returns which limit to branch on (N,), -1 where there is nothing to decide any more, and
        squared bounds (N,).
        """
        branch_on, bound = np.empty(len(owner), np.int64), np.empty(len(owner))
        for start in range(0, len(owner), PART):
            part = slice(start, start + PART)
            branch_on[part], bound[part] = self._look(owner[part], nodes[part])
        return branch_on, bound

    def _look(self, owner: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sets, undecided = self.sets[owner], nodes == OPEN
        normals = self.normals if self.normals.ndim == 2 else self.normals[owner]
        shift = _times(undecided * sets.margins[:, None], normals)
        q = np.ascontiguousarray(self.q[owner] - shift)
        plain = ProjectionOptions(tol=self.options.tol, threads=self.options.threads)
        pieces = sets.pieces(nodes != NO)
        near = projected(q, pieces, plain)
        self.steps[owner] += 1
        more = _beyond_margin(near, sets, pieces.entry_state)
        extra = self.if_active[owner] - self.if_not[owner]
        # A multiplier of 0 is that of a limit that is not active; one from the margin up that of an
        # active one, and as near where the limit has to be moved to the decision anyway.
        slight = self.options.tol * np.maximum(sets.margins, np.abs(self.q[owner]).max(axis=1))
        none = more <= slight[:, None]
        full = (more >= sets.margins[:, None]) & (extra <= 0)
        vague = undecided & ~(none | full)
        active = (nodes == YES) | (undecided & full & ~none)
        whole = ~vague.any(axis=1)
        costs = near.point + shift
        self._take(owner[whole], active[whole], costs[whole], near.multipliers[whole])
        branch_on = np.where(whole, -1, np.where(vague, 1.0 + extra, -1.0).argmax(axis=1))
        limits = np.where(nodes == YES, self.if_active[owner], self.if_not[owner]).sum(axis=1)
        return branch_on, np.asarray(near.lower_bound) ** 2 + limits

    def _take(
        self, owner: np.ndarray, active: np.ndarray, costs: np.ndarray, multipliers: np.ndarray
    ) -> None:
        """Keep pairs of the union that are nearer than what their samples had."""
        values, g = self.sets.values[owner], self.g[owner]
        above = self.sets.unknown.sense > 0
        beyond = np.where(above, np.maximum(g, values), np.minimum(g, values))
        limits = np.where(active, values, beyond)
        cost = np.where(active, self.if_active[owner], self.if_not[owner]).sum(axis=1)
        found = ((costs - self.q[owner]) ** 2).sum(axis=1) + cost
        for i in np.flatnonzero(found < self.best[owner]):  # a sample may come twice in a round
            b = owner[i]
            if found[i] < self.best[b]:
                self.best[b] = found[i]
                self.point[b] = np.append(costs[i], limits[i])
                self.multipliers[b] = multipliers[i]

    def _read_bounds(self, heaps: Any) -> None:
        for b, heap in enumerate(heaps):
            self.bound[b] = min(self.best[b], self.loose[b], heap[0][0] if heap else np.inf)

    def _is_open(self, b: int) -> bool:
        reach = self.options.tol * max(float(np.linalg.norm(self.q[b])), self.sets.margins[b])
        return bool(np.sqrt(self.best[b]) - np.sqrt(self.bound[b]) > reach)

    def result(self) -> Projection:
        """What is reached, and what is proved of it."""
        distance, bound = np.sqrt(self.best), np.sqrt(np.minimum(self.bound, self.best))
        size = np.maximum(np.linalg.norm(self.q, axis=1), self.sets.margins)
        gap = distance - bound
        residual = np.divide(gap, size, out=gap.copy(), where=size > 0)
        solved = residual <= self.options.tol
        status = np.where(self.late, ProjectionStatus.MAX_ITER, ProjectionStatus.INACCURATE)
        over = seconds_until(self.deadline)
        if over is not None and over <= 0:
            status[self.late] = ProjectionStatus.TIME_LIMIT
        return Projection(
            point=self.point,
            distance=distance,
            residual=residual,
            solved=solved,
            status=np.where(solved, ProjectionStatus.SOLVED, status).astype(np.int8),
            iterations=self.steps,
            multipliers=self.multipliers,
            bound=bound,
        )


def _children(heaps: Any, open_: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Both choices for the first node of each open sample."""
    owner: list[int] = []
    nodes: list[np.ndarray] = []
    for b in open_:
        _, _, _, node, k = heappop(heaps[b])
        for choice in (NO, YES):
            child = node.copy()
            child[k] = choice
            owner.append(b)
            nodes.append(child)
    return np.array(owner), np.array(nodes)


def _beyond_margin(near: Projection, sets: UnknownLimitSet, state: np.ndarray) -> np.ndarray:
    """(N, K): by how much the multiplier of each unknown limit is above the margin; NaN for a bound
    with another one at the same value, which share theirs in a way that is not told."""
    rows, unknown = sets.problem, sets.unknown
    m_eq, mu = rows.eq_rows.shape[0], np.asarray(near.multipliers)
    reduced = np.array(near.point)
    for group, part, sign in (
        (rows.eq_rows, mu[:, :m_eq], -1.0),
        (rows.ub_rows, mu[:, m_eq:], 1.0),
    ):
        if group.shape[0]:
            reduced += sign * group.transposed_times(part)
    reduced[state == EntryState.FIXED] = np.nan
    bounds = reduced[:, unknown.lower], -reduced[:, unknown.upper]
    own = np.hstack([mu[:, m_eq + unknown.rows], *bounds])
    return np.maximum(own - sets.margins[:, None], 0.0)


def _times(factors: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """(N, n): sums of normals (K, n) or (N, K, n) times factors (N, K)."""
    if normals.ndim == 2:
        return factors @ normals
    return np.einsum("nk,nkj->nj", factors, normals)


def _guesses(K: int) -> Iterator[np.ndarray]:
    for code in range(2**K):
        yield (code >> np.arange(K)) & 1
