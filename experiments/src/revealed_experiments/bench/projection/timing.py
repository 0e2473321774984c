"""Timing at equal accuracy: choose each solver's settings, then time all of them in turn.

One loop over the batch is one measurement. The solvers take turns, round after round, so that a
slow minute of the machine falls on all of them. The median round is what is compared (ours is
timed more often, which would flatter its best), and the best is kept beside it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .cases import Case
from .certificate import SHORT, residual
from .rivals import PiqpDirect, Rival, missing

ACCURATE = 1e-7
"""Accuracy asked of everyone; settings that reach it are preferred by speed alone."""
USABLE = 1e-5
"""A solver less accurate than this on any instance is not called the best of anything."""

SLOW_S = 2.0
"""A solver that has taken this long on a case is timed twice and then excused."""

TUNING_S = 5.0
"""Once its candidates have taken this long, the rest of them are not tried."""
WARM_UP_S = 0.05
"""Loops before each measurement that are not timed, for everyone whose loop is shorter."""
ROUND_S = 0.05
"""A measurement takes at least this long."""
TRIAL_S = 1.0
"""A candidate is tried on as many instances as it finishes in this time."""


@dataclass(eq=False)
class Entrant:
    """A solver ready to be timed on a case, and what was measured."""

    name: str
    run: Callable[[], np.ndarray]
    """One loop: (n_timed, n) points."""
    n_timed: int
    setup_s: float
    settings: dict[str, Any]
    rounds_us: list[float] = field(default_factory=list)
    """Microseconds for each projection, one number for each round."""
    loop_s: float = 0.0
    """Seconds of the last loop."""
    accuracy: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def spent_s(self) -> float:
        """Seconds that its loops have taken so far."""
        return 1e-6 * self.n_timed * sum(self.rounds_us)

    def report(self) -> dict[str, Any]:
        """The measurements as plain values."""
        return {
            "best_us": min(self.rounds_us),
            "median_us": statistics.median(self.rounds_us),
            "accuracy": float(self.accuracy.max(initial=0.0)),
            "n_failed": int((self.accuracy > USABLE).sum()),
            "n_timed": self.n_timed,
            "setup_ms": 1e3 * self.setup_s,
            "settings": self.settings,
        }


def best_known(case: Case) -> np.ndarray:
    """(B, n): for each instance the better of two tight solutions, judged by a third party.

    Ours and PIQP's, each at the tightest tolerance that makes sense, compared by the residual of
    `certificate`, which neither of them computes.
    """
    from revealed import project

    result = project(case.costs, case.sets, method="kernel", tol=1e-12)
    points, m_eq = np.array(result.point), case.m_eq
    if missing("piqp"):
        return points
    piqp = PiqpDirect(1e-14)
    piqp.prepare(case)
    for i in range(len(case)):
        w, other = np.asarray(result.multipliers)[i], piqp.solve(i)
        ours = residual(case, i, points[i], w[:m_eq], w[m_eq:])
        if residual(case, i, other, *piqp.multipliers()) < ours:
            points[i] = other
    return points


def accuracy(points: np.ndarray, best: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """(B,): distance to the best known point over the length of the move (at least 0.1% of |q|)."""
    move = np.linalg.norm(best - costs, axis=1)
    denominator = np.maximum(move, SHORT * np.linalg.norm(costs, axis=1))
    error = np.linalg.norm(points - best, axis=1) / np.where(denominator > 0, denominator, 1.0)
    return np.where(np.isfinite(error), error, np.inf)


def enter_ours(case: Case, threads: int | None) -> Entrant:
    """Our projection of the whole batch in one call; None leaves the threads to the library."""
    from revealed import project

    began = time.perf_counter()
    start = None
    if case.previous is not None:
        start = project(case.previous, case.sets, threads=threads)

    def run() -> np.ndarray:
        return project(case.costs, case.sets, warm_start=start, threads=threads).point

    run()  # compiles, and analyses the pattern
    setup = time.perf_counter() - began
    result = project(case.costs, case.sets, warm_start=start, threads=threads)
    settings = {
        "threads": threads or "all",
        "n_solved": int(np.sum(result.solved)),
        "median_steps": float(np.median(result.iterations)),
    }
    return Entrant("revealed", run, len(case), setup, settings)


def enter_rival(candidates: Iterable[Rival], case: Case, best: np.ndarray, budget_s: float):
    """The fastest candidate that is accurate enough, else the most accurate; None without any.

    Candidates are tried on a few instances. The winner is timed on as many instances as fit in
    `budget_s` seconds, at least three (one if an instance takes over a second).
    """
    trial = case.head(10 if case.n < 1_100 else 3)
    tried: list[tuple[float, float, Rival]] = []
    fastest = np.inf
    began = time.perf_counter()
    for rival in candidates:
        if tried and time.perf_counter() - began > TUNING_S:
            break
        tried.append((*_try(rival, trial, best, give_up_s=3 * fastest), rival))
        if tried[-1][1] <= ACCURATE:
            fastest = min(fastest, tried[-1][0])
    if not tried:
        return None
    accurate = [entry for entry in tried if entry[1] <= ACCURATE]
    seconds, _, chosen = min(accurate or tried, key=lambda e: e[0] if accurate else e[1])
    least = min(3 if seconds < 1 else 1, len(case))
    count = int(np.clip(budget_s / max(seconds, 1e-9), least, len(case)))
    timed = case.head(count)
    began = time.perf_counter()
    chosen.prepare(timed)
    setup = time.perf_counter() - began
    n = range(count)
    return Entrant(
        chosen.name, lambda: np.array([chosen.solve(i) for i in n]), count, setup, chosen.settings
    )


def take_turns(entrants: list[Entrant], case: Case, best: np.ndarray, rounds: int) -> None:
    """Time every entrant once a round, `rounds` times, and note its accuracy."""
    for entrant in dict.fromkeys(entrants):  # ours comes more than once
        count = entrant.n_timed
        entrant.accuracy = accuracy(entrant.run(), best[:count], case.costs[:count])
    for _ in range(rounds):
        for entrant in entrants:
            if len(entrant.rounds_us) < 2 or entrant.spent_s < SLOW_S:
                entrant.rounds_us.append(one_round(entrant))


def one_round(entrant: Entrant) -> float:
    """Microseconds a projection, from as many loops as make a time that the clock can resolve.

    Not timed before that: enough loops for the system to spread the threads over the cores.
    """
    if entrant.loop_s < WARM_UP_S:
        _loop_for(entrant, WARM_UP_S)
    return _loop_for(entrant, ROUND_S)


def _loop_for(entrant: Entrant, least_s: float) -> float:
    loops, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < least_s or loops == 0:
        entrant.run()
        loops += 1
    entrant.loop_s = spent / loops
    return 1e6 * spent / (loops * entrant.n_timed)


def _try(rival: Rival, case: Case, best: np.ndarray, give_up_s: float) -> tuple[float, float]:
    """Seconds for one instance and worst accuracy; infinite if the first takes over `give_up_s`."""
    rival.prepare(case)
    began = time.perf_counter()
    points = [rival.solve(0)]
    first = time.perf_counter() - began
    if first > give_up_s:
        return np.inf, np.inf
    began = time.perf_counter()
    if first < TRIAL_S:
        points = [rival.solve(0)]  # the first is often slower than the rest
    while len(points) < len(case) and time.perf_counter() - began < TRIAL_S - first:
        points.append(rival.solve(len(points)))
    count = len(points)
    seconds = (time.perf_counter() - began) / count if first < TRIAL_S else first
    return seconds, float(accuracy(np.array(points), best[:count], case.costs[:count]).max())
