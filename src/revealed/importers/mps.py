"""MPS files, plain or gzipped, free or fixed, as models.

    model = rv.read_mps("afiro.mps.gz")
    model.problem, model.cost, model.variable_names

The parser is our own: it needs no solver, keeps the names, and refuses what it does not know in
words that name the file, the line, and what was expected there.
"""

from __future__ import annotations

import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

from ..errors import InputError
from .imported import ImportedModel, ModelWarning
from .mps_content import MpsContent
from .mps_layout import Fixed, Free
from .mps_parser import MpsError, MpsParser
from .raw import assemble
from .text_lines import numbered_lines


def read_mps(path: Any, *, max_bytes: int | None = None) -> ImportedModel:
    """The model in an .mps or .mps.gz file.

    Where a line can be read in two ways it is read as most solvers do: the first N row is the
    objective; a number for it among the right-hand sides is minus the constant; an integer variable
    without bounds is 0 or 1; a negative upper bound without a lower one makes the lower one
    -infinity (with a warning); limits of 1e20 and more are none. Only the first set of right-hand
    sides, ranges and bounds is used (if there are more, with a warning). Integer variables are
    relaxed, with a warning. A quadratic objective (QUADOBJ, QMATRIX) makes `problem` a
    QuadraticProgram; conic, SOS and indicator sections are refused.

    Parameters
    ----------
    path : path
        A file in free or fixed MPS format, plain or gzipped.
    max_bytes : int, optional
        The most text that the file may hold once unpacked: 1 GiB unless given, and of a gzipped
        file of some size no more than 50 times that.

    Returns
    -------
    ImportedModel

    Raises
    ------
    InputError
        If the file cannot be read; the message names the line and what was expected there.
    """
    path = Path(path)
    content, notes = _parse(path, max_bytes)
    for note in notes:
        warnings.warn(f"{path.name}{note}", ModelWarning, stacklevel=2)
    return assemble(content.raw(path.name))


def _parse(path: Path, max_bytes: int | None) -> tuple[MpsContent, list[str]]:
    """The file as free lines, and failing that as fixed ones; names with blanks need the latter.

    If neither can be read, the one that came further is the one that was meant.
    """
    faults: list[MpsError] = []
    for layout in (Free(), Fixed()):
        parser = MpsParser(layout)
        try:
            with closing(numbered_lines(path, max_bytes)) as lines:
                return parser.read(lines), parser.notes
        except MpsError as fault:
            faults.append(fault)
    raise InputError(f"{path.name}{max(faults, key=lambda fault: fault.line)}")
