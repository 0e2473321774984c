"""General QP solvers called directly, each in the forms that suit it best.

A rival is prepared once for a batch (what can be reused is set up then) and solves one instance
at a time; only the loop of solves is timed. The candidates of a solver are the settings worth
trying: the harness takes the fastest that is accurate enough on the case at hand, so that every
solver runs in its best form and none is made to work harder than the comparison needs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from itertools import product
from typing import Any, Protocol

import numpy as np

from .cases import Case
from .daqp_direct import DaqpDirect
from .interior_point import ClarabelDirect, PiqpCompact, PiqpDirect
from .osqp_direct import OsqpDirect


class Rival(Protocol):
    """A solver with its settings fixed."""

    name: str
    settings: dict[str, Any]

    def prepare(self, case: Case) -> None:
        """Do everything that serves the whole batch."""
        ...

    def solve(self, i: int) -> np.ndarray:
        """(n,): the solver's projection of instance i."""
        ...


def osqp_candidates(case: Case) -> list[Rival]:
    """Both forms, small and large steps, four tolerances."""
    scaling = 0 if _well_scaled(case) else 10
    choices = product((1e-7, 1e-8, 1e-9, 1e-10), ("compact", "dual"), (0.3, 3.0))
    return [OsqpDirect(form, eps, rho, scaling) for eps, form, rho in choices]


def piqp_candidates(case: Case) -> list[Rival]:
    """Four tolerances; badly scaled problems also in the form that copes with them."""
    found: list[Rival] = [PiqpDirect(eps) for eps in (1e-10, 1e-11, 1e-12, 1e-14)]
    return found if _well_scaled(case) else [*found, PiqpCompact(1e-10), PiqpCompact(1e-12)]


def clarabel_candidates(case: Case) -> list[Rival]:
    """Its default tolerance and two tighter ones."""
    return [ClarabelDirect(eps) for eps in (1e-8, 1e-10, 1e-11)]


def daqp_candidates(case: Case) -> list[Rival]:
    """With and without elimination of the equalities; none for problems out of its reach."""
    if case.n > DaqpDirect.largest_n:
        return []
    reductions = (-1, 1) if case.n < 300 else (-1,)
    tolerances = (1e-6, 1e-9) if case.n < 300 else (1e-9,)
    return [DaqpDirect(tol, reduce) for tol in tolerances for reduce in reductions]


# Name -> (packages, candidates for a case)
DIRECT: dict[str, tuple[tuple[str, ...], Callable[[Case], list[Rival]]]] = {
    "OSQP": (("osqp",), osqp_candidates),
    "PIQP": (("piqp",), piqp_candidates),
    "Clarabel": (("clarabel",), clarabel_candidates),
    "DAQP": (("daqp",), daqp_candidates),
}


def _well_scaled(case: Case) -> bool:
    sizes = np.abs(np.concatenate([case.A_eq.data, case.A_ub.data]))
    return bool(sizes.max(initial=1.0) <= 10 * sizes.min(initial=1.0))


def missing(package: str) -> bool:
    """Whether an optional package is absent."""
    return importlib.util.find_spec(package) is None
