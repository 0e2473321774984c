"""Feasible decisions found so far, and which of them are held against which observed decision.

Decisions with the same constraints share what is feasible: a tour found for one sample is an
alternative for all. Each distinct decision then keeps the few that have cut off costs of its own,
its cuts. Both are kept with the problem, so they serve every epoch, every slice, and sets built
anew from the same decisions. Letters: B decisions, n variables, N feasible decisions.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from ..problems.integer import IntegerProgram

RECENT = 2048
"""Shared decisions that are tried before an oracle is asked: those found last."""


class Points:
    """Distinct feasible decisions of one set of constraints, in the order in which they came."""

    def __init__(self, n: int) -> None:
        self._rows = np.empty((16, n))
        self._place: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._place)

    @property
    def rows(self) -> np.ndarray:
        """(N, n)"""
        return self._rows[: len(self)]

    def add(self, x: np.ndarray) -> int:
        """Where x (n,) is, or has now been put."""
        key = x.tobytes()
        place = self._place.get(key)
        if place is None:
            place = len(self._place)
            if place == len(self._rows):
                self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
            self._rows[place] = x
            self._place[key] = place
        return place


class Cuts:
    """Places of points that are held against one observed decision, in the order they came."""

    def __init__(self) -> None:
        self._places = np.empty(8, np.int64)
        self._number: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._number)

    @property
    def places(self) -> np.ndarray:
        """(K,)"""
        return self._places[: len(self)]

    def add(self, place: int) -> int:
        """The number of a cut, which is a new one if `place` is not among them."""
        number = self._number.setdefault(place, len(self._number))
        if number == len(self._places):
            self._places = np.concatenate([self._places, np.empty_like(self._places)])
        self._places[number] = place
        return number


class Alternatives:
    """What is known to be feasible, and the cuts of every observed decision, by their numbers."""

    def __init__(self) -> None:
        self.points: list[Points] = []
        """Of each group: decisions of one group have the same constraints."""
        self.cuts: list[Cuts] = []
        """Of each observed decision: its cuts, among the points of its group."""
        self.group_of: list[int] = []
        """Of each observed decision."""
        self.n_cuts = 0
        """Of all observed decisions."""
        self.confirmed: set[int] = set()
        """Decisions that a caller's own oracle has returned for costs under which nothing else is
        as cheap."""
        self._last = np.empty((0, 0), np.int64)
        self._groups: dict[bytes, int] = {}
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._lock = threading.Lock()

    def enter(self, problem: IntegerProgram, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(B,) numbers and (B,) groups of observed decisions X (B, n), which are feasible."""
        number, group = np.empty(len(X), np.int64), np.empty(len(X), np.int64)
        keys = _sides(problem, len(X))
        with self._lock:
            for b, x in enumerate(X):
                group[b] = self._group(keys[b], X.shape[1])
                self.points[group[b]].add(x)
                key = (int(group[b]), x.tobytes())
                number[b] = self._numbers.setdefault(key, len(self.cuts))
                if number[b] == len(self.cuts):
                    self.cuts.append(Cuts())
                    self.group_of.append(int(group[b]))
        return number, group

    def _group(self, key: bytes, n: int) -> int:
        found = self._groups.setdefault(key, len(self.points))
        if found == len(self.points):
            self.points.append(Points(n))
        return found

    def add(self, group: int, x: np.ndarray) -> int:
        """Keep a feasible decision; its place among the points of its group."""
        with self._lock:
            return self.points[group].add(x)

    def cut(self, numbers: Sequence[int], places: Sequence[int]) -> list[int]:
        """Hold points against observed decisions, pair by pair; where each is among the cuts of its
        decision."""
        with self._lock:
            found = []
            for number, place in zip(numbers, places, strict=True):
                cuts = self.cuts[number]
                before = len(cuts)
                found.append(cuts.add(place))
                self.n_cuts += len(cuts) - before
            return found

    def last(self, number: np.ndarray, width: int) -> np.ndarray:
        """(B, width) the cuts that held the last projection of each decision, -1 for none: where
        the next one may begin."""
        with self._lock:
            if len(self._last) < len(self.cuts):
                grown = np.full((2 * len(self.cuts), width), -1, np.int64)
                grown[: len(self._last)] = self._last.reshape(len(self._last), width)
                self._last = grown
            return self._last[number]

    def keep_last(self, number: np.ndarray, used: np.ndarray) -> None:
        """Remember these cuts (B, width) for the next time."""
        with self._lock:
            self._last[number] = used

    def forget(self) -> None:
        """Drop where projections may begin, not what is known."""
        with self._lock:
            self._last = np.empty((0, 0), np.int64)

    def state(self) -> dict[str, np.ndarray]:
        """Points by group and cuts by decision, for `take_in`."""
        with self._lock:
            sizes = [len(points) for points in self.points]
            counts = [len(cuts) for cuts in self.cuts]
            return {
                "points": np.concatenate([points.rows for points in self.points]),
                "points_of_group": np.array(sizes, np.int64),
                "cuts": np.concatenate([cuts.places for cuts in self.cuts]),
                "cuts_of_decision": np.array(counts, np.int64),
            }

    def take_in(self, state: dict[str, np.ndarray], decisions: np.ndarray) -> None:
        """Add what another run had found about the same `decisions`, by their numbers; all were
        entered in the same order."""
        ends = np.cumsum(state["points_of_group"])
        begins = ends - state["points_of_group"]
        cuts = np.split(state["cuts"], np.cumsum(state["cuts_of_decision"])[:-1])
        places: dict[int, list[int]] = {}
        for own in decisions.tolist():
            g = self.group_of[own]
            if g not in places:
                rows = state["points"][begins[g] : ends[g]]
                places[g] = [self.add(g, np.ascontiguousarray(x)) for x in rows]
            self.cut([own] * len(cuts[own]), [places[g][cut] for cut in cuts[own]])


def alternatives_of(problem: IntegerProgram) -> Alternatives:
    """Those kept with the problem; new ones where matrices or structures differ by instance, for
    then nothing is shared."""
    rows, structure = problem.relaxation, problem.structure
    own = rows.eq_rows.per_instance or rows.ub_rows.per_instance
    if own or (structure is not None and structure.n_instances is not None):
        return Alternatives()
    return problem.cached("alternatives", Alternatives)


def _sides(problem: IntegerProgram, size: int) -> list[bytes]:
    """A key of the constraints of each instance: equal where they are the same."""
    rows, structure = problem.relaxation, problem.structure
    own = rows.eq_rows.per_instance or rows.ub_rows.per_instance
    if own or (structure is not None and structure.n_instances is not None):
        return [b.to_bytes(8, "little") for b in range(size)]
    sides = [part for part in (rows.b_eq, rows.b_ub, rows.lb, rows.ub) if part.ndim == 2]
    if not sides:
        return [b""] * size
    return [row.tobytes() for row in np.hstack(sides)]
