"""Shared by the projection tests: cases, tolerances, and second opinions of our own.

The second opinions are written from the definition in DESIGN and share no code with the library.
Letters: B instances, n entries, m rows; r = point - cost is the move.
"""

import tempfile
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from scipy import sparse
from scipy.linalg import qr

import revealed as rv
from revealed import EntryState
from revealed.projection.cpu.reference import reference_projection

MARGINS = (0.0, 0.01, 1.0, 10.0)
SCALES = (1e-6, 1.0, 1e6)
PREDICTIONS = ("random", "large", "inside", "almost")
AGREEMENT = 1e-7
"""Two answers agree if they differ by at most this share of `yardstick`."""
SHORT = 1e-3
EPS = np.finfo(float).eps
DIRECT_SOLVERS = [name for name in ("clarabel", "piqp") if find_spec(name)]


def yardstick(point, cost, margin):
    """What a difference between answers is measured against: the length of the move.

    A move shorter than 1e-3 of the numbers it is computed from (the cost, the margin) is measured
    as if it were that long. Agreement then means ten digits of the cost: six above rounding, so it
    still says something, and no method can promise more of a difference of nearly equal numbers.
    """
    size = max(np.linalg.norm(cost), margin)
    return max(np.linalg.norm(point - cost), SHORT * size) or 1.0


def disagreement(point, other, cost, margin):
    """How far `point` is from the trusted `other`, in yardsticks."""
    return np.linalg.norm(point - other) / yardstick(other, cost, margin)


def assert_agrees(point, trusted, cost, margin, what, allowed=AGREEMENT):
    off = disagreement(point, trusted, cost, margin)
    assert off <= allowed, f"{what}: {off:.1e} yardsticks away"


# --- problems ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A small forward problem of K instances and costs (K, n) that have a finite optimum."""

    name: str
    problem: rv.LinearProgram
    costs: np.ndarray


def catalogue(K=3):
    """Every problem of the catalogue, small enough for the slow reference."""
    rng = np.random.default_rng(7)
    problems = rv.problems
    edges = np.array([(a, b) for a in range(9) for b in range(9) if a != b])
    edges = edges[rng.permutation(len(edges))[:40]]
    ring = np.stack([np.arange(9), (np.arange(9) + 1) % 9], axis=1)  # so that every pair has a path
    edges = np.unique(np.vstack([edges, ring]), axis=0)
    ends = np.array([0, 3, 5, 8])[:K], np.array([7, 1, 2, 4])[:K]
    weights = rng.integers(3, 9, 10)
    two = rng.integers(1, 6, (2, 8))
    built = {
        "grid 4 neighbors": (problems.grid_shortest_path(4, 4), 1),
        "grid 8 neighbors": (problems.grid_shortest_path(3, 4, neighbors=8), 1),
        "grid right-down": (problems.grid_shortest_path(5, 5, directed="right-down"), 1),
        "graph": (problems.shortest_path(edges, source=ends[0], target=ends[1]), 1),
        "knapsack": (problems.knapsack(weights, 20.0), -1),
        "two knapsacks": (problems.knapsack(two, np.array([[9.0, 11], [7, 8], [12, 9]])[:K]), -1),
        "matching": (problems.grid_matching(4, 4), 1),
        "assignment": (problems.assignment(4, 4), 1),
        "assignment 3 of 5": (problems.assignment(3, 5), 1),
    }
    return [
        Case(name, problem, sign * rng.uniform(0.5, 1.5, (K, problem.n_variables)))
        for name, (problem, sign) in built.items()
    ]


def tiny_path():
    """Two ways from 0 to 2, direct or over 1: entries (0->1, 1->2, 0->2), one row for each node."""
    A = [[1.0, 0.0, 1.0], [-1.0, 1.0, 0.0], [0.0, -1.0, -1.0]]
    return rv.LinearProgram(A_eq=A, b_eq=[1.0, 0.0, -1.0])


def per_instance_matrices(B=5, n=7, seed=0):
    """(B, 2, n) equalities and B sparse (3, n) inequalities, all different and all feasible."""
    rng = np.random.default_rng(seed)
    A_eq = rng.integers(-2, 3, (B, 2, n)).astype(float)
    A_ub = rng.integers(-2, 3, (B, 3, n)).astype(float)
    x = rng.integers(0, 3, (B, n)).astype(float)
    return {
        "A_eq": A_eq,
        "b_eq": np.einsum("bmn,bn->bm", A_eq, x),
        "A_ub": [sparse.csr_array(part) for part in A_ub],
        "b_ub": np.einsum("bmn,bn->bm", A_ub, x) + rng.integers(0, 2, (B, 3)),
        "lb": 0.0,
        "ub": 4.0 + rng.integers(0, 2, (B, n)),
    }


def nearly_repeated_rows(seed):
    """A cost (1, 20) in the set of a decision, up to rounding: rows that nearly repeat each other
    ask for multipliers of 1e5 there."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(6, 20))
    A[1], A[3] = (A[i] + 1e-5 * rng.normal(size=20) for i in (0, 2))
    x = np.maximum(rng.normal(size=20), 0.0)
    cost = A.T @ np.array([1e5, -1e5, -2e5, 2e5, 1.0, 1.0]) + 2.0 * (x == 0)
    return cost[None], rv.OptimalitySet(rv.LinearProgram(A_eq=A, b_eq=A @ x), x[None])


# --- the definition, in plain numpy --------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """One set, as dense arrays: rows, which of them bind, and the states of the entries."""

    A_eq: np.ndarray
    A_ub: np.ndarray
    active: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    free: np.ndarray
    fixed: np.ndarray
    margin: float


def parts_of(sets, b):
    problem, state = sets.problem, sets.entry_state[b]
    A_eq, A_ub = (A[b] if isinstance(A, tuple) else A for A in (problem.A_eq, problem.A_ub))
    masks = (state == s for s in (EntryState.AT_LOWER, EntryState.AT_UPPER, EntryState.FREE))
    fixed = state == EntryState.FIXED
    active = np.asarray(sets.row_active[b])
    return Parts(A_eq.toarray(), A_ub.toarray(), active, *masks, fixed, float(sets.margins[b]))


def inside_costs(sets, rng, size=1.0):
    """(B, n): a random cost of each set, built from the definition without any solver."""
    costs = np.empty((len(sets), sets.problem.n_variables))
    size = np.broadcast_to(size, len(sets))
    for b in range(len(sets)):
        p = parts_of(sets, b)
        v, mu = rng.standard_normal(len(p.A_eq)), rng.random(len(p.A_ub))
        s = rng.random(costs.shape[1]) * size[b] + p.margin
        s = np.where(p.lower, s, np.where(p.upper, -s, np.where(p.fixed, s - p.margin, 0.0)))
        costs[b] = p.A_eq.T @ v * size[b] - p.A_ub.T @ (p.active * (mu * size[b] + p.margin)) + s
    return costs


def predictions(kind, sets, rng, size=1.0):
    """(B, n) costs to project: `random`, `large`, `inside` the sets, `almost` inside."""
    shape = len(sets), sets.problem.n_variables
    if kind in ("random", "large"):
        factor = 1e3 if kind == "large" else 1.0
        return factor * np.broadcast_to(size, shape[0])[:, None] * rng.standard_normal(shape)
    inside = inside_costs(sets, rng, size)
    if kind == "inside":
        return inside
    noise = rng.standard_normal(shape)
    lengths = np.linalg.norm(inside, axis=1) / np.linalg.norm(noise, axis=1)
    return inside + 1e-3 * lengths[:, None] * noise


def explained_move(p, cost, v, mu):
    """(n,): the shortest move from `cost` to a cost that (v, mu) explain."""
    reduced = cost - (p.A_eq.T @ v - p.A_ub.T @ mu)
    low = np.where(p.lower, p.margin, np.where(p.free, 0.0, -np.inf))
    high = np.where(p.upper, -p.margin, np.where(p.free, 0.0, np.inf))
    return np.clip(reduced, low, high) - reduced


def definition_residual(sets, b, cost, point, multipliers):
    """0 at the projection, relative otherwise: the certificate as its docstring tells it, in numpy.

    Multipliers that are not admissible, or do not explain the point, give inf.
    """
    p = parts_of(sets, b)
    v, mu = np.split(np.asarray(multipliers, float), [len(p.A_eq)])
    size = max(np.linalg.norm(cost), p.margin) or 1.0
    move = explained_move(p, cost, v, mu)
    if (mu[~p.active] != 0).any() or (mu[p.active] < p.margin * (1 - 1e-12)).any():
        return np.inf
    if np.linalg.norm(point - cost - move) > 64 * EPS * np.linalg.norm(_terms(p, cost, v, mu)):
        return np.inf
    return _residual_of_move(p, move, v, mu, max(np.linalg.norm(move), SHORT * size))


def _residual_of_move(p, move, v, mu, denominator):
    length_eq, length_ub = _lengths(p.A_eq), _lengths(p.A_ub)
    lean_eq = p.A_eq @ move / length_eq
    lean_ub = (-p.A_ub @ move / length_ub)[p.active]  # must be >= 0, and 0 where mu > margin
    excess = ((mu - p.margin) * length_ub)[p.active]
    off = np.minimum(np.maximum(lean_ub, 0.0), excess) + np.maximum(-lean_ub, 0.0)
    row_gradient = max(np.abs(lean_eq).max(initial=0.0), off.max(initial=0.0)) / denominator
    gap = abs((v * length_eq) @ lean_eq + excess @ lean_ub) / denominator**2
    return min(max(row_gradient, gap), np.linalg.norm(move) / denominator)


def rounding(sets, b, cost, multipliers):
    """What rounding alone may add to `definition_residual`, in whatever order it is summed.

    Multipliers of dependent rows may be large and cancel: their terms are then known to an epsilon
    of themselves, not of the cost.
    """
    p = parts_of(sets, b)
    v, mu = np.split(np.abs(multipliers), [len(p.A_eq)])
    move = explained_move(p, cost, *np.split(np.asarray(multipliers), [len(v)]))
    denominator = max(np.linalg.norm(move), SHORT * max(np.linalg.norm(cost), p.margin)) or 1.0
    share = 8 * EPS * np.linalg.norm(_terms(p, cost, v, mu)) / denominator
    return share * max(1.0, (v @ _lengths(p.A_eq) + mu @ _lengths(p.A_ub)) / denominator)


def _terms(p, cost, v, mu):
    """(n,): the size of the numbers that add up to each entry's reduced cost."""
    return np.abs(p.A_eq).T @ np.abs(v) + np.abs(p.A_ub).T @ np.abs(mu) + np.abs(cost) + p.margin


def _lengths(A):
    lengths = np.linalg.norm(A, axis=1)
    return np.where(lengths > 0, lengths, 1.0)


# --- direct solves -----------------------------------------------------------------------------


def direct_projection(sets, b, cost, solver):
    """(n,): the projection by a general QP solver, its active set then solved to the last digit.

    The move r solves min 1/2 |r|^2 + <q, r> with E r = 0, G r >= 0: rows of G for the entries at a
    bound and the active rows, of E for the equalities and the fixed entries, q the cost less the
    margin. Only the parts of q and G that are orthogonal to E matter, so those alone are given to
    the solver, with length 1: its tolerances then mean the same for all costs, margins and units.
    """
    p = parts_of(sets, b)
    unit = np.eye(len(cost))
    G = np.vstack([unit[p.lower], -unit[p.upper], -p.A_ub[p.active]])
    E = _basis(np.vstack([p.A_eq, unit[p.fixed]]))
    q = cost - p.margin * G.sum(axis=0)
    q = q - E.T @ (E @ q)
    across = G - (G @ E.T) @ E
    felt = np.linalg.norm(across, axis=1) > 1e-11 * _lengths(G)
    G = across[felt] / _lengths(across[felt])[:, None]
    scale = np.linalg.norm(q) or 1.0
    move, partner = {"clarabel": _by_clarabel, "piqp": _by_piqp}[solver](G, E, q / scale)
    return cost + scale * _polished(G, E, q / scale, move, partner)


def every_trusted_point(sets, b, cost):
    """The projection by the slow reference and by every installed QP solver, by name."""
    points = {"reference": reference_projection(sets, cost, b)[0]}
    return points | {name: direct_projection(sets, b, cost, name) for name in DIRECT_SOLVERS}


def _basis(rows):
    """Orthonormal rows of the same span."""
    if len(rows) == 0:
        return rows
    rows = rows / _lengths(rows)[:, None]
    Q, R, _ = qr(rows.T, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    return Q[:, : (size > 1e-11 * max(size.max(initial=0.0), 1e-300)).sum()].T


def _by_clarabel(G, E, q):
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    answer = clarabel.DefaultSolver(
        sparse.eye(len(q), format="csc"),
        q,
        sparse.csc_matrix(np.vstack([E, -G])),
        np.zeros(len(E) + len(G)),
        [clarabel.ZeroConeT(len(E)), clarabel.NonnegativeConeT(len(G))],
        settings,
    ).solve()
    return np.asarray(answer.x), np.asarray(answer.z)[len(E) :]


def _by_piqp(G, E, q):
    import piqp

    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-12
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-12
    rows = {"A": sparse.csc_matrix(E), "b": np.zeros(len(E))} if len(E) else {}
    if len(G):
        rows |= {"G": sparse.csc_matrix(G), "h_l": np.zeros(len(G))}
    solver.setup(sparse.eye(len(q), format="csc"), q, **rows)
    solver.solve()
    return solver.result.x, solver.result.z_l if len(G) else np.zeros(0)


def _polished(G, E, q, move, partner):
    """-q projected onto the face of {r : E r = 0, G r >= 0} that an interior point has found.

    A constraint is tight if its value is below its multiplier; where both are nothing it matters
    not. Kept only if it stays in the cone and near what it polishes.
    """
    tight = _basis(np.vstack([E, G[G @ move <= partner]]))
    exact = tight.T @ (tight @ q) - q
    near = np.linalg.norm(exact - move) <= 1e-4
    return exact if near and (G @ exact >= -1e-12).all() else move


# --- arrays of an unusual kind -------------------------------------------------------------------


class Subclass(np.ndarray):
    pass


def with_entry(array, value, at=(2, 5)):
    changed = array.copy()
    changed[at] = value
    return changed


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


def memory_mapped(array):
    with tempfile.TemporaryFile() as file:  # the map outlives it
        mapped = np.memmap(file, dtype=array.dtype, shape=array.shape)
    mapped[:] = array
    return mapped


def every_other(array):
    """The same numbers, with NaN between them in memory."""
    wide = np.full((len(array) * 2, array.shape[1] * 3), np.nan)
    wide[::2, ::3] = array
    return wide[::2, ::3]
