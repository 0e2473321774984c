"""The sections of an MPS file, line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np

from .imported import suggestion
from .mps_content import BOUND_KINDS, MpsContent
from .mps_layout import Layout, Malformed

SENSES = {"MIN": False, "MINIMIZE": False, "MINIMISE": False}
SENSES |= {"MAX": True, "MAXIMIZE": True, "MAXIMISE": True}
ROW_KINDS = ("N", "L", "G", "E")
BEYOND = (
    "QCMATRIX", "CSECTION", "SOS", "SOS1", "SOS2", "SETS", "INDICATORS", "GENCONS", "PWLOBJ",
    "LAZYCONS", "USERCUTS",
)  # fmt: skip
"""Sections that say more than linear rows and a quadratic objective can."""
INFINITE = 1e20
"""What solvers write for a limit that is none, as all of them understand it."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([ed][+-]?\d+)?|[+-]?inf(inity)?", re.ASCII | re.I)


class MpsError(Exception):
    """What is wrong with a file, and on which line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f", line {line}: {message}")
        self.line = line


class MpsParser:
    """Reads one file into its content."""

    def __init__(self, layout: Layout) -> None:
        self.notes: list[str] = []
        """Warnings, each to stand after the name of the file."""
        self._layout = layout
        self._line = 0
        self._content = MpsContent()
        self._in_integers = False
        self._sets: dict[str, str] = {}
        self._sections: dict[str, Callable[[str], None]] = {
            "OBJSENSE": self._read_sense,
            "OBJNAME": self._read_objective_name,
            "ROWS": self._read_row,
            "COLUMNS": self._read_column,
            "RHS": lambda line: self._read_row_numbers("RHS", self._content.rhs, line),
            "RANGES": lambda line: self._read_row_numbers("RANGES", self._content.ranges, line),
            "BOUNDS": self._read_bound,
            # The two halves of a symmetric matrix: one of them, or both.
            "QUADOBJ": lambda line: self._read_quadratic(line, mirror=True),
            "QMATRIX": lambda line: self._read_quadratic(line, mirror=False),
        }

    def read(self, lines: Iterable[tuple[int, str]]) -> MpsContent:
        """Every line up to ENDATA."""
        section = ""
        for self._line, line in lines:
            if not line.strip() or line.startswith("*"):
                continue
            if line[0].isspace():
                self._read_data(section, line)
            elif (section := self._read_header(line)) == "ENDATA":
                return self._finished()
        raise MpsError(self._line, "the file ends here without ENDATA; it may have been cut short.")

    def _read_header(self, line: str) -> str:
        word, *rest = line.split()
        section = word.upper()
        if section in ("OBJSENSE", "OBJNAME") and rest:
            self._sections[section](" ".join(rest))
        elif section not in self._sections and section not in ("NAME", "ENDATA"):
            raise self._fault(
                f"a section ({', '.join(self._sections)} or ENDATA), or a line that begins with a "
                f"blank{_beyond(section)}",
                line,
            )
        elif rest and section in self._sections:
            raise self._fault(f"{section} on a line of its own", line)
        return section

    def _read_data(self, section: str, line: str) -> None:
        if section not in self._sections:
            raise self._fault("the name of a section first, such as ROWS", line)
        try:
            self._sections[section](line)
        except Malformed as fault:
            raise self._fault(str(fault), line) from None

    # --- sections --------------------------------------------------------------------------------

    def _read_sense(self, line: str) -> None:
        word = line.strip().upper()
        if word not in SENSES:
            raise self._fault("MIN or MAX", line)
        self._content.maximized = SENSES[word]

    def _read_objective_name(self, line: str) -> None:
        self._content.objective = line.strip()

    def _read_row(self, line: str) -> None:
        kind, name = self._layout.row(line)
        if kind not in ROW_KINDS:
            raise self._fault("a kind of row: N, L, G or E", line)
        if name in self._content.row_kind:
            raise self._fault("a new name for each row", f"{name!r} again")
        self._content.row_kind[name] = kind

    def _read_column(self, line: str) -> None:
        words = line.split()
        if len(words) >= 3 and words[1].upper() == "'MARKER'":
            self._read_marker(words[-1])
            return
        name, pairs = self._layout.entries(line, labeled=False)
        column = self._content.columns.setdefault(name, {})
        if self._in_integers:
            self._content.integer.add(name)
        for row, value in pairs:
            self._check_row(row)
            if row in column:
                again = f"row {row!r} of column {name!r} again"
                raise self._fault("one number for each row of a column", again)
            column[row] = self._number(value, finite=True)

    def _read_marker(self, word: str) -> None:
        kind = word.strip("'").upper()
        if kind not in ("INTORG", "INTEND"):
            raise self._fault("a marker 'INTORG' or 'INTEND'", word)
        self._in_integers = kind == "INTORG"

    def _read_row_numbers(self, section: str, numbers: dict[str, float], line: str) -> None:
        label, pairs = self._layout.entries(line, labeled=True)
        for row, value in pairs:
            self._check_row(row)
            if section == "RANGES" and self._content.row_kind[row] == "N":
                raise self._fault("a range of an L, G or E row", f"the N row {row!r}")
            number = self._number(value, finite=section == "RANGES")
            if not self._in_use(section, label):
                continue
            if row in numbers:
                raise self._fault(f"one number for each row in {section}", f"{row!r} again")
            numbers[row] = number

    def _read_bound(self, line: str) -> None:
        kind, label, column, value = self._layout.bound(line, self._content.columns)
        if kind not in BOUND_KINDS:
            raise self._fault(f"a kind of bound: {', '.join(BOUND_KINDS)}", line)
        self._check_column(column)
        number = None if value is None else self._number(value, finite=False)
        if not self._in_use("BOUNDS", label):
            return
        side = self._content.bound(kind, column, number)
        if side:
            raise self._fault(f"one {side} bound for each column", f"another for {column!r}")

    def _read_quadratic(self, line: str, *, mirror: bool) -> None:
        first, pairs = self._layout.entries(line, labeled=False)
        for second, value in pairs:
            self._check_column(first)
            self._check_column(second)
            number = self._number(value, finite=True)
            for key in {(first, second), (second, first)} if mirror else {(first, second)}:
                if key in self._content.quadratic:
                    raise self._fault("each entry of Q once", f"{first!r}, {second!r} again")
                self._content.quadratic[key] = number

    def _in_use(self, section: str, label: str) -> bool:
        """Whether a line belongs to the first set of its section, the one that counts."""
        first = self._sets.setdefault(section, label)
        if label != first and (key := f"{section} {label}") not in self._sets:
            self._sets[key] = label
            self.notes.append(
                f", line {self._line}: the set {label!r} in {section} is left out; {first!r} comes "
                "first and is the one in use."
            )
        return label == first

    # --- words -----------------------------------------------------------------------------------

    def _check_row(self, name: str) -> None:
        if name not in self._content.row_kind:
            near = suggestion(name, self._content.row_kind)
            raise self._fault("a row of ROWS", f"{name!r}", near)

    def _check_column(self, name: str) -> None:
        if name not in self._content.columns:
            near = suggestion(name, self._content.columns)
            raise self._fault("a column of COLUMNS", f"{name!r}", near)

    def _number(self, word: str, *, finite: bool) -> float:
        if not _NUMBER.fullmatch(word):
            raise self._fault("a number", f"{word!r}")
        # Fortran writes exponents with a D.
        number = float(re.sub("[dD]", "e", word) if "inf" not in word.lower() else word)
        if finite and not np.isfinite(number):
            raise self._fault("a finite number", f"{word!r}")
        return number if finite or abs(number) < INFINITE else float(np.copysign(np.inf, number))

    def _fault(self, expected: str, got: str, more: str = "") -> MpsError:
        shown = " ".join(got.split())[:120] or "nothing"
        return MpsError(self._line, f"expected {expected}; got {shown}.{more}")

    # --- the whole -------------------------------------------------------------------------------

    def _finished(self) -> MpsContent:
        content = self._content
        if not content.columns:
            raise self._fault("at least one column before the end", "none")
        free = [name for name, kind in content.row_kind.items() if kind == "N"]
        if content.objective is None:
            content.objective = free[0] if free else None
        elif content.objective not in free:
            named = f"{content.objective!r} in OBJNAME"
            raise self._fault(
                "the objective to be an N row", named, suggestion(content.objective, free)
            )
        moved = content.without_lower()
        if moved:
            self.notes.append(
                f": {len(moved)} columns (the first {moved[0]!r}) have a negative upper bound and "
                "no lower one; their lower bound is read as -infinity."
            )
        return content


def _beyond(section: str) -> str:
    if section not in BEYOND:
        return ""
    return " (this one goes beyond linear rows and a quadratic objective, and cannot be read)"
