"""Sets with curved cones whose nearest point is known by construction.

    C = { A^T v + sum_i N_i^T l_i + s :  l_i - margin unit_i in K_i,  s_j >= margin where x_j = 0 }

is what explains x = 0 under A x = 0, x_j >= 0 and cones with their apex there. First comes the move
r, then rows and cones that it fits: A r = 0, N_i r = z_i in K_i, r_j >= 0. Then multipliers with
l_i - margin unit_i in K_i and at right angles to z_i. Their point p is the nearest to q = p - r.
Rows and cones leave a direction d inside all of them, so that Slater's condition holds; as a
second decision it shows this to the library. No solver is asked for the truth.
"""

from dataclasses import dataclass

import numpy as np

import revealed as rv
from revealed import ProjectionStatus
from revealed._common.conic import svec
from revealed.problems.cones import SecondOrderCone, SemidefiniteCone

WRONG = 1e-6
"""A claim is false if the point is farther than this from the truth, in moves."""
SHORT = 1e-3
KINDS = ("second-order", "semidefinite", "both", "curvature")
TWISTS = ("none", "flat", "units", "alike", "near")
"""Nothing; multipliers and slacks near the apex or the boundary; cones in units of 1e+-3; rows of a
cone that nearly repeat each other; a move of 1e-4 beside parameters of 1."""


@dataclass(frozen=True)
class Case:
    sets: rv.OptimalitySet
    q: np.ndarray
    truth: np.ndarray
    """The nearest point (p,)."""
    kind: str
    twist: str


def is_false(case, status, point):
    """What is wrong with a claim, in words; "" where nothing is."""
    if status == ProjectionStatus.EMPTY:
        return "called empty"
    if status != ProjectionStatus.SOLVED:
        return ""
    move = np.linalg.norm(case.truth - case.q)
    size = max(move, SHORT * np.linalg.norm(case.q))
    error = np.linalg.norm(point - case.truth) / size
    return "" if error <= WRONG else f"called solved, {error:.1e} moves off"


def hostile_cone(seed):
    """The case of this seed."""
    rng = np.random.default_rng(seed)
    kind, twist = KINDS[seed % len(KINDS)], TWISTS[seed // len(KINDS) % len(TWISTS)]
    return (_curvature if kind == "curvature" else _apex)(rng, kind, twist)


# --- cones with their apex at the decision -------------------------------------------------------


def _apex(rng, kind, twist):
    n, margin = int(rng.integers(3, 7)), float(rng.choice([0.0, 0.1, 1.0]))
    r = rng.normal(size=n) * (1e-4 if twist == "near" else 1.0)
    bounded = rng.random(n) < 0.3
    r = np.where(bounded, np.abs(r), r)
    stay = bounded & (rng.random(n) < 0.5)
    if stay.all():
        stay[0] = False
    r = np.where(stay, 0.0, r)
    r[~stay & (np.abs(r) < 1e-2 * np.abs(r).max())] = 0.1 * np.abs(r).max()
    d = rng.normal(size=n)
    d = np.where(bounded, np.abs(d) + 0.1, d)
    inner = _across(d[None], r)[0]  # what makes a row 1 at d, and leaves it at r
    inner = inner / (inner @ d)
    cones, p = [], np.zeros(n)
    kinds = {"both": ["second-order", "semidefinite"]}.get(kind, [kind] * int(rng.integers(1, 3)))
    for own in kinds:
        cone, pull = (_second_order if own == "second-order" else _semidefinite)(
            rng, r, d, inner, margin, twist
        )
        cones.append(cone)
        p += pull
    p += np.where(bounded, margin + np.where(r == 0, _size(rng, twist), 0.0), 0.0)
    A = _across(rng.normal(size=(int(rng.integers(0, 2)), n)), r)
    A = A - np.outer(A @ d, inner)
    p += A.T @ rng.normal(size=len(A))
    problem = rv.ConvexProgram(
        _linear, n, n, cones=cones, A_eq=A if len(A) else None, b_eq=np.zeros(len(A)) if len(A)
        else None, lb=np.where(bounded, 0.0, -np.inf),
    )  # fmt: skip
    sets = rv.OptimalitySet(problem, np.stack([np.zeros(n), d]), margin)[[0]]
    return Case(sets, p - r, p, kind, twist)


def _linear(x, w):
    return (w * x).sum()


def _second_order(rng, r, d, inner, margin, twist):
    """|A x| <= c x with z = (c r, A r) in the cone, and what its multiplier adds to p."""
    n, k = len(r), int(rng.integers(2, 5))
    A, c = rng.normal(size=(k, n)), rng.normal(size=n)
    if twist == "alike":
        A[1:] = A[0] + 1e-3 * A[1:]
    if twist == "units":
        unit = 10.0 ** rng.integers(-3, 4)
        A, c = A * unit, c * unit
    u = A @ r
    length = np.linalg.norm(u)
    state = rng.choice(["boundary", "inside", "apex"], p=[0.6, 0.2, 0.2])
    if state == "apex":  # nothing pulls on it
        A, c, length = _across(A, r), _across(c[None], r)[0], 0.0
        share = rng.normal(size=k)
        own = np.concatenate([[np.linalg.norm(share) * (1 + _size(rng, twist))], share])
    else:
        more = 0.0 if state == "boundary" else _size(rng, twist) * length
        c = c + (length + more - c @ r) / (r @ r) * r
        own = np.zeros(k + 1)
        if state == "boundary":
            own = _size(rng, twist) * np.concatenate([[1.0], -u / length])
    length = np.linalg.norm(A @ d)
    c = c + ((1.0 + rng.random()) * length - c @ d) * inner
    own = own + margin * np.eye(k + 1)[0]
    return SecondOrderCone(A, 0.0, c, 0.0), np.vstack([c, A]).T @ own


def _semidefinite(rng, r, d, inner, margin, twist):
    """sum_j x_j F_j positive semidefinite, with Z = sum_j r_j F_j of low rank."""
    n, k = len(r), int(rng.integers(2, 4))
    F = rng.normal(size=(n, k, k))
    F = F + np.swapaxes(F, 1, 2)
    if twist == "alike":
        F[1:] = F[0] + 1e-3 * F[1:]
    if twist == "units":
        F *= 10.0 ** rng.integers(-3, 4)
    V = np.linalg.qr(rng.normal(size=(k, k)))[0]
    rank = int(rng.integers(0, k + 1))
    inside = np.array([_size(rng, twist) if j < rank else 0.0 for j in range(k)])
    outside = np.array([_size(rng, twist) if j >= rank else 0.0 for j in range(k)])
    size = np.abs(np.einsum("j,jkl->kl", r, F)).max()
    Z = size * (V * inside) @ V.T
    missing = Z - np.einsum("j,jkl->kl", r, F)
    F = F + np.einsum("j,kl->jkl", r / (r @ r), missing)
    least = np.linalg.eigvalsh(np.einsum("j,jkl->kl", d, F))
    more = rng.random() * np.abs(least).max() - least[0]
    F = F + np.einsum("j,kl->jkl", inner, more * np.eye(k))
    F = 0.5 * (F + np.swapaxes(F, 1, 2))
    L = (V * outside) @ V.T + margin * np.eye(k)
    return SemidefiniteCone(F), np.einsum("jkl,kl->j", F, L)


def _size(rng, twist):
    """A size of order 1; or small, so that it is nearly unclear what binds."""
    return float(10.0 ** rng.uniform(-6, 0)) if twist == "flat" else float(rng.uniform(0.2, 2.0))


def _across(rows, r):
    """The rows without what lies along r."""
    return rows - np.outer(rows @ r, r) / (r @ r)


# --- costs and a positive semidefinite curvature, together ---------------------------------------


def _curvature(rng, kind, twist):
    """(c, Q): c + Q x = A^T v + s, Q positive semidefinite; the move is (y, (y x^T)_sym + Z)."""
    n, margin = int(rng.integers(2, 5)), float(rng.choice([0.0, 0.1]))
    unit = 10.0 ** rng.integers(-2, 3) if twist == "units" else 1.0
    x = rng.random(n) * unit
    x[rng.random(n) < 0.3] = 0.0
    A = rng.normal(size=(1, n))
    y = rng.normal(size=n) * (1e-4 if twist == "near" else 1.0)
    y = np.where(x == 0, np.abs(y), y)
    A = _across(A, y)
    problem = rv.QuadraticProgram(1.0, None, "min", A_eq=A, b_eq=A @ x, semidefinite=True)
    sets = rv.OptimalitySet(problem, x[None], margin)
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    rank = int(rng.integers(0, n + 1))
    Q = (V * [_size(rng, twist) if j < rank else 0.0 for j in range(n)]) @ V.T
    Z = (V * [_size(rng, twist) if j >= rank else 0.0 for j in range(n)]) @ V.T
    scale = np.linalg.norm(y)
    c = A.T @ rng.normal(size=1) + np.where(x == 0, margin, 0.0) - Q @ x
    p = np.concatenate([c, svec(Q)])
    move = np.concatenate([y, svec(0.5 * (np.outer(y, x) + np.outer(x, y)) + scale * Z)])
    return Case(sets, p - move, p, kind, twist)
