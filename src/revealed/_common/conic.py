"""The one door to Clarabel: minimize 1/2 x^T P x + q x  subject to  A x + s = b, s in a product of
cones.

A cone is a pair (kind, size): "zero", "nonnegative" and "second-order" of so many rows, or
"semidefinite" of that order, whose rows are the upper triangle by columns with sqrt(2) off the
diagonal.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..errors import MissingDependencyError

Cone = tuple[str, int]
_KINDS = {
    "zero": "ZeroConeT",
    "nonnegative": "NonnegativeConeT",
    "second-order": "SecondOrderConeT",
    "semidefinite": "PSDTriangleConeT",
}
# Interior points stall where rounding takes over, and where that is differs from one setting to the
# next: of 18 semidefinite projections tried, the best of these ended at 2e-11 or below in 16 and at
# 6e-9 in the worst, single ones of them at up to 5e-8.
_REFINED = {
    "iterative_refinement_reltol": 1e-16,
    "iterative_refinement_abstol": 1e-16,
    "iterative_refinement_max_iter": 50,
    "iterative_refinement_stop_ratio": 1.1,
}
ATTEMPTS: tuple[dict[str, Any], ...] = (
    _REFINED,
    {},
    _REFINED | {"equilibrate_enable": False},
    _REFINED | {"max_step_fraction": 0.999},
)
PLAIN = 1
"""The attempt with Clarabel's own settings."""
_here = threading.local()  # `stop`: the event that ends the solves of this thread
_INFEASIBLE = ("PrimalInfeasible", "AlmostPrimalInfeasible")
_UNBOUNDED = ("DualInfeasible", "AlmostDualInfeasible")


class ConicAnswer(NamedTuple):
    """What Clarabel found; the caller judges it."""

    x: np.ndarray
    z: np.ndarray
    """Multipliers of the rows, in the dual cone; where infeasible, a proof of it."""
    infeasible: bool
    unbounded: bool
    late: bool
    """Whether the time was up."""
    iterations: int


def has_clarabel() -> bool:
    """Whether there is a conic solver to turn to: Clarabel that can be imported, not only found."""
    try:
        import_module("clarabel")
    except ImportError:
        return False
    return True


def load_clarabel(what: str) -> Any:
    """The module, or a sentence that says what needs it."""
    try:
        return import_module("clarabel")
    except ImportError as error:
        raise MissingDependencyError(
            f"{what} needs the package clarabel: pip install 'revealed[solvers]'."
        ) from error


def rows_of(cone: Cone) -> int:
    """How many rows a cone takes."""
    kind, size = cone
    return size * (size + 1) // 2 if kind == "semidefinite" else size


def solve_conic(
    P: Any,
    q: np.ndarray,
    A: Any,
    b: np.ndarray,
    cones: Sequence[Cone],
    *,
    what: str,
    tol: float = 1e-13,
    seconds: float = np.inf,
    attempt: int = 0,
) -> ConicAnswer:
    """Solve one program as exactly as Clarabel can with the settings of this attempt."""
    clarabel = load_clarabel(what)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.max_iter = 200
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas", "tol_ktratio"):
        setattr(settings, name, tol)
    for name, value in ATTEMPTS[attempt].items():
        setattr(settings, name, value)
    if np.isfinite(seconds):
        settings.time_limit = max(seconds, 1e-3)
    kinds = [getattr(clarabel, _KINDS[kind])(size) for kind, size in cones if size]
    upper = sparse.csc_matrix(sparse.triu(P))
    solver = clarabel.DefaultSolver(upper, q, sparse.csc_matrix(A), b, kinds, settings)
    answer = _interruptible(solver)
    status = str(answer.status)
    return ConicAnswer(
        np.asarray(answer.x),
        np.asarray(answer.z),
        status in _INFEASIBLE,
        status in _UNBOUNDED,
        status == "MaxTime",
        int(answer.iterations),
    )


def _interruptible(solver: Any) -> Any:
    """Solve, and end at the next iteration on Ctrl+C in the main thread; in other threads
    `in_threads` says when to stop."""
    stop: threading.Event = getattr(_here, "stop", None) or threading.Event()
    solver.set_termination_callback(lambda _: stop.is_set())
    with _interrupt_sets(stop):
        answer = None if stop.is_set() else solver.solve()
    if stop.is_set():
        raise KeyboardInterrupt
    return answer


@contextmanager
def _interrupt_sets(stop: threading.Event) -> Iterator[None]:
    """Let Ctrl+C set `stop` instead of raising: an exception raised inside the callback, even
    before its first line, is printed and lost in compiled code. Handlers of the caller's own, and
    threads that Python calls no handler in, are left alone."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def solve_best(
    P: Any,
    q: np.ndarray,
    A: Any,
    b: np.ndarray,
    cones: Sequence[Cone],
    *,
    what: str,
    judge: Callable[[ConicAnswer], tuple[ConicAnswer, float]],
    goal: float,
    seconds: float = np.inf,
) -> tuple[ConicAnswer, float]:
    """One attempt after the other until the residual is at most `goal`; the best of them.

    `judge` gives the residual of an answer, and may better the answer. The residual of one that is
    infeasible, unbounded or not a number is inf.
    """
    best: tuple[ConicAnswer, float] | None = None
    for attempt in range(len(ATTEMPTS)):
        found = solve_conic(P, q, A, b, cones, what=what, seconds=seconds, attempt=attempt)
        usable = not (found.infeasible or found.unbounded) and bool(np.isfinite(found.x).all())
        found, residual = judge(found) if usable else (found, np.inf)
        if best is None or residual < best[1]:
            best = found, residual
        if residual <= goal or found.late or found.infeasible or found.unbounded:
            break
    assert best is not None
    return best


def conditions_left(
    P: Any, q: np.ndarray, A: Any, b: np.ndarray, cones: Sequence[Cone], answer: ConicAnswer
) -> tuple[float, float, float]:
    """What is left of the first-order conditions, all 0 at the exact answer: conditions unmet,
    gradient left over, products of slacks and multipliers, each put in its cone first."""
    slack = b - A @ answer.x
    inside = onto_cones(slack, cones)
    z = onto_cones(answer.z, cones, dual=True)
    left = P @ answer.x + q + A.T @ z
    return (
        float(np.abs(slack - inside).max(initial=0.0)),
        float(np.abs(left).max(initial=0.0)),
        abs(float(inside @ z)),
    )


def in_threads(work: Callable[[int], None], size: int, threads: int) -> None:
    """Call `work` on 0..size-1; Clarabel lets other threads run while it solves."""
    if min(threads, size) <= 1:
        for b in range(size):
            work(b)
        return
    stop = threading.Event()

    def run(b: int) -> None:
        _here.stop = stop
        if not stop.is_set():
            work(b)

    with ThreadPoolExecutor(min(threads, size)) as pool:
        try:
            list(pool.map(run, range(size)))
        except BaseException:
            stop.set()
            raise


# --- cones ---------------------------------------------------------------------------------------


def svec(matrices: np.ndarray) -> np.ndarray:
    """(..., k (k+1)/2) from symmetric (..., k, k): the upper triangle by columns, sqrt(2) off the
    diagonal, so that lengths and inner products stay what they are."""
    row, column, factor = triangle(matrices.shape[-1])
    return matrices[..., row, column] * factor


def smat(vectors: np.ndarray) -> np.ndarray:
    """The symmetric (..., k, k) of which `vectors` is the `svec`."""
    k = order_of(vectors.shape[-1])
    row, column, factor = triangle(k)
    result = np.zeros((*vectors.shape[:-1], k, k))
    result[..., row, column] = vectors / factor
    result[..., column, row] = vectors / factor
    return result


def triangle(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and factors of the entries of `svec`."""
    column, row = np.tril_indices(k)
    return row, column, np.where(row == column, 1.0, np.sqrt(2.0))


def order_of(length: int) -> int:
    """k with k (k + 1) / 2 = length."""
    return int((np.sqrt(8 * length + 1) - 1) / 2)


def onto_cones(s: np.ndarray, cones: Sequence[Cone], *, dual: bool = False) -> np.ndarray:
    """The nearest point of the product of cones, or of its dual (which is anything for "zero")."""
    parts, start = [], 0
    for cone in cones:
        stop = start + rows_of(cone)
        parts.append(_onto(s[start:stop], cone, dual))
        start = stop
    return np.concatenate(parts) if parts else s


def _onto(s: np.ndarray, cone: Cone, dual: bool) -> np.ndarray:
    kind = cone[0]
    if kind == "zero":
        return s if dual else np.zeros_like(s)
    if kind == "nonnegative" or not len(s):
        return np.maximum(s, 0.0)
    if kind == "second-order":
        return _onto_second_order(s)
    values, vectors = np.linalg.eigh(smat(s))
    return svec((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _onto_second_order(s: np.ndarray) -> np.ndarray:
    t, u = s[0], s[1:]
    length = float(np.linalg.norm(u))
    if length <= t:
        return s
    if length <= -t:
        return np.zeros_like(s)
    return 0.5 * (1.0 + t / length) * np.concatenate([[length], u])
