"""Markov decision processes as linear programs over occupancy measures.

    minimize <c, mu>   subject to   mu >= 0   and, for every state t,
    sum_a mu(t, a) = start(t) + discount sum_{s,a} P(t | s, a) mu(s, a)

Entry s * A + a of mu is the expected discounted number of times that action a is taken in state s,
so with c = -reward the cost of mu is minus the expected discounted return of its policy. Every
policy has one such mu, every such mu a policy, and vertices are deterministic policies.

Letters: B worlds, S states, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..._common.arrays import to_float64
from ..._common.checks import positive_int
from ...errors import InputError, ShapeError
from ..linear import LinearProgram

MOVES = ((0, 0), (-1, 0), (0, 1), (1, 0), (0, -1))
"""Steps (down, right) of a grid world's actions: stay, up, right, down, left."""
BELOW = 1e-6
"""How far below 0, relative to the largest, a solver's rounding may take an occupancy."""


def markov_decision_process(transitions: Any, discount: float, start: Any = None) -> LinearProgram:
    """The best way to behave, as the occupancy measure of smallest cost; cost = minus reward.

    A decision says what is done in the states that it visits: to learn from behavior everywhere,
    let `start` be positive everywhere. A reward of states alone has costs
    `np.repeat(-reward, A, axis=1)`.

    Parameters
    ----------
    transitions : (S, A, S) or (B, S, A, S) array, or (S A, S) sparse matrix
        P(next | state, action). Four dimensions make one world for each instance. A sparse matrix
        has the actions of a state in consecutive rows.
    discount : float
        At least 0 and below 1.
    start : (S,) or (B, S) array, optional
        The distribution of the first state, uniform unless given.

    Returns
    -------
    LinearProgram
        Decisions are (S A,): entry s * A + a is the expected discounted number of times that
        action a is taken in state s.
    """
    gamma = _discount(discount)
    if sparse.issparse(transitions):
        P = sparse.csr_array(transitions)
        rows, S = transitions.shape
        A = rows // max(S, 1)
        _check_rows(P.sum(axis=1), P.data, rows == S * A and A > 0, (rows, S))
        stays = sparse.kron(sparse.eye_array(S), np.ones((1, A)))
        return LinearProgram(A_eq=stays - gamma * P.T, b_eq=_start(start, S))
    P = _dense_transitions(transitions)
    S, A = P.shape[-3:-1]
    stays = np.repeat(np.eye(S), A, axis=1)
    arrives = np.swapaxes(P.reshape(*P.shape[:-3], S * A, S), -1, -2)
    return LinearProgram(A_eq=stays - gamma * arrives, b_eq=_start(start, S))


def occupancy_of(policy: Any, transitions: Any, discount: float, start: Any = None) -> np.ndarray:
    """(B, S A): the occupancy measures of policies, feasible for `markov_decision_process`.

    The return of a policy under rewards (B, S A) is `(rewards * occupancy).sum(axis=1)`.

    Parameters
    ----------
    policy : (B, S, A) array, or (B, S) int array
        The probability of each action in each state, or one action for each state.
    transitions : (S, A, S) or (B, S, A, S) array
        P(next | state, action).
    discount : float
        At least 0 and below 1.
    start : (S,) or (B, S) array, optional
        The distribution of the first state, uniform unless given.

    Returns
    -------
    (B, S A) array
    """
    gamma, P = _discount(discount), _dense_transitions(transitions)
    S, A = P.shape[-3:-1]
    chance = _action_chances(policy, S, A)
    if P.ndim == 4 and len(P) != len(chance):
        raise ShapeError(
            f"`policy` must have one entry for each of the {len(P)} worlds; got {len(chance)}."
        )
    moves = np.einsum("bsa,...sat->bst" if P.ndim == 3 else "bsa,bsat->bst", chance, P)
    first = np.atleast_2d(_start(start, S))
    if len(first) not in (1, len(chance)):
        raise ShapeError(
            f"`start` must be one distribution or one for each of the {len(chance)} policies; got "
            f"{len(first)}."
        )
    first = np.broadcast_to(first, (len(chance), S))[..., None]
    visits = np.linalg.solve(np.eye(S) - gamma * np.swapaxes(moves, 1, 2), first)
    return (visits * chance).reshape(len(chance), S * A)


def policy_of(occupancy: Any, n_actions: int) -> np.ndarray:
    """(B, S, A): the probability of each action in each state of occupancy measures.

    Parameters
    ----------
    occupancy : (B, S A) array
        Decisions of `markov_decision_process`.
    n_actions : int
        A.

    Returns
    -------
    (B, S, A) array
        Uniform in states that are never visited: behavior there is not revealed.
    """
    n_actions = positive_int(n_actions, "n_actions")
    mu = to_float64(occupancy, "occupancy")
    if mu.ndim != 2 or mu.shape[1] % n_actions:
        raise ShapeError(
            f"`occupancy` must be (B, S * {n_actions}), one entry for each state and action; "
            f"got shape {mu.shape}."
        )
    bad = np.argwhere(~(np.isfinite(mu) & (mu >= -BELOW * mu.max(initial=1.0))))
    if bad.size:
        b, k = bad[0]
        raise InputError(f"`occupancy` must not be negative; got {mu[b, k]} in row {b}, entry {k}.")
    mu = np.maximum(mu, 0.0).reshape(len(mu), -1, n_actions)
    visits = mu.sum(axis=2, keepdims=True)
    seen = visits > 1e-12 * visits.max(initial=1.0)
    return np.where(seen, mu / np.where(seen, visits, 1.0), 1.0 / n_actions)


def sampled_behavior(
    problem: LinearProgram, trajectories: Sequence[Sequence[Any]], n_actions: int, discount: float
) -> tuple[LinearProgram, np.ndarray]:
    """What trajectories reveal of a policy, as decisions to learn from.

    Counts of a few trajectories are no occupancy measure: chance breaks the balance of arrivals and
    departures. The nearest measure that keeps it takes several actions in nearly every state, and
    so claims that they are equally good. Here the balance is what was counted: the same rows and
    costs, with the right-hand sides that the counts have. In a state that was visited the most
    frequent action must be a best one; a state that was not visited reveals nothing, and may be
    worth anything up to its best action.

    Parameters
    ----------
    problem : LinearProgram
        Of `markov_decision_process`, of B worlds or one that all groups of trajectories share.
    trajectories : sequence of B sequences of (T, 2) int arrays
        For each world its trajectories: state and action of each step, of any lengths.
    n_actions : int
        A.
    discount : float
        As that of the problem; weighs early steps more.

    Returns
    -------
    problem : LinearProgram
        Of these B samples, for `OptimalitySet` or as the problem of an estimator; predict with the
        original one: `predict(Z, problem=...)`.
    decisions : (B, S A) array
        Mean discounted visits, all under the most frequent action of their state.
    """
    A, gamma, size = positive_int(n_actions, "n_actions"), _discount(discount), problem.n_variables
    if problem.n_instances not in (None, len(trajectories)):
        raise ShapeError(
            f"`trajectories` must have one group for each of the {problem.n_instances} worlds; got "
            f"{len(trajectories)}."
        )
    decisions = np.zeros((len(trajectories), size))
    for b, group in enumerate(trajectories):
        counts = np.zeros((size // A, A))
        for k, steps in enumerate(group):
            s, a = _steps(steps, size // A, A, f"`trajectories[{b}][{k}]`")
            np.add.at(counts, (s, a), gamma ** np.arange(len(s)) / len(group))
        seen = np.flatnonzero(counts.any(axis=1))
        usual = np.zeros_like(counts)
        usual[seen, counts[seen].argmax(axis=1)] = counts[seen].sum(axis=1)
        decisions[b] = usual.ravel()
    return LinearProgram(problem.A_eq, problem.eq_rows.times(decisions)), decisions


def _steps(steps: Any, S: int, A: int, name: str) -> np.ndarray:
    """(2, T) states and actions of one trajectory."""
    array = np.asarray(steps)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ShapeError(
            f"{name} must be a (T, 2) array of whole numbers, state and action of each step; got "
            f"shape {array.shape} of {array.dtype}."
        )
    if array.size and not ((array >= 0) & (array < [S, A])).all():
        bad = int(np.flatnonzero(((array < 0) | (array >= [S, A])).any(axis=1))[0])
        raise InputError(
            f"{name} must have states 0 to {S - 1} and actions 0 to {A - 1}; got "
            f"{array[bad].tolist()} in step {bad}."
        )
    return array.T


def grid_world(blocked: Any, slip: float = 0.0) -> np.ndarray:
    """(S, 5, S) transitions of a walker on a grid with obstacles.

    State r * cols + c is cell (r, c); the actions are stay, up, right, down, left (`MOVES`). A
    move into an obstacle or off the grid stays.

    Parameters
    ----------
    blocked : (rows, cols) or (B, rows, cols) bool array
        Which cells are obstacles.
    slip : float
        The probability that a move slips to one of the two sides, half for each.

    Returns
    -------
    (S, 5, S) or (B, S, 5, S) array
        For `markov_decision_process`.
    """
    walls = np.asarray(blocked, dtype=bool)
    if walls.ndim == 3:
        return np.stack([grid_world(one, slip) for one in walls])
    number = isinstance(slip, int | float | np.number)
    if walls.ndim != 2 or walls.size == 0 or not (number and 0 <= slip <= 1):
        raise InputError(
            "`blocked` must be (rows, cols) or (B, rows, cols) and `slip` a probability; "
            f"got shape {walls.shape} and {slip!r}."
        )
    arrive = np.stack([_landing(walls, move) for move in MOVES])  # (5, S)
    S, cells = walls.size, np.arange(walls.size)
    P = np.zeros((S, 5, S))
    P[cells, 0, cells] = 1.0
    for a in range(1, 5):
        sides = (a % 4 + 1, (a - 2) % 4 + 1)
        for way, chance in ((a, 1.0 - slip), (sides[0], slip / 2), (sides[1], slip / 2)):
            P[cells, a, arrive[way]] += chance  # a cell leads to one cell only, so none is lost
    return P


def _landing(walls: np.ndarray, move: tuple[int, int]) -> np.ndarray:
    """(S,) the cell in which a step from each cell ends."""
    rows, cols = walls.shape
    row, col = np.divmod(np.arange(rows * cols), cols)
    to_row, to_col = row + move[0], col + move[1]
    inside = (to_row >= 0) & (to_row < rows) & (to_col >= 0) & (to_col < cols)
    to = np.where(inside, to_row * cols + to_col, 0)
    # No move enters or leaves an obstacle.
    free = inside & ~walls.ravel()[to] & ~walls.ravel()
    return np.where(free, to, row * cols + col)


def _discount(discount: float) -> float:
    if not (isinstance(discount, int | float | np.number) and 0 <= discount < 1):
        raise InputError(f"`discount` must be at least 0 and below 1; got {discount!r}.")
    return float(discount)


def _dense_transitions(transitions: Any) -> np.ndarray:
    P = to_float64(transitions, "transitions")
    fits = P.ndim in (3, 4) and P.shape[-1] == P.shape[-3] and P.size > 0
    _check_rows(P.sum(axis=-1), P, fits, P.shape)
    return P


def _check_rows(sums: np.ndarray, values: np.ndarray, fits: bool, shape: tuple[int, ...]) -> None:
    if not fits:
        raise ShapeError(
            "`transitions` must be (S, A, S), (B, S, A, S), or a sparse (S A, S) matrix; "
            f"got shape {shape}."
        )
    if (values < 0).any() or not np.allclose(sums, 1.0, atol=1e-9):
        bad = tuple(np.argwhere(~np.isclose(sums, 1.0, atol=1e-9))[:1].ravel().tolist())
        where = f"; those of {bad} sum to {sums[bad]:.6g}" if bad else ", and some are negative"
        raise InputError(
            f"`transitions` must hold probabilities that sum to 1 over the next state{where}."
        )


def _start(start: Any, n_states: int) -> np.ndarray:
    if start is None:
        return np.full(n_states, 1.0 / n_states)
    first = to_float64(start, "start")
    if first.ndim not in (1, 2) or first.shape[-1] != n_states:
        raise ShapeError(f"`start` must be ({n_states},) or (B, {n_states}); got {first.shape}.")
    if not ((first >= 0).all() and np.allclose(first.sum(axis=-1), 1.0, atol=1e-9)):
        raise InputError("`start` must hold probabilities that sum to 1 over the states.")
    return first


def _action_chances(policy: Any, S: int, A: int) -> np.ndarray:
    """(B, S, A) from that or from actions (B, S)."""
    given = np.asarray(policy)
    if given.ndim == 2 and given.dtype.kind in "iu":
        least, most = given.min(initial=0), given.max(initial=0)
        if given.shape[1] != S or least < 0 or most >= A:
            raise InputError(
                f"`policy` must hold actions 0 to {A - 1} for {S} states; got shape {given.shape} "
                f"with actions {least} to {most}."
            )
        return np.eye(A)[given]
    chance = to_float64(policy, "policy")
    if chance.ndim != 3 or chance.shape[1:] != (S, A):
        raise ShapeError(
            f"`policy` must be (B, {S}, {A}) chances or (B, {S}) whole numbers; got {chance.shape}."
        )
    if (chance < 0).any() or not np.allclose(chance.sum(axis=2), 1.0, atol=1e-9):
        raise InputError("`policy` must hold probabilities that sum to 1 over the actions.")
    return chance
