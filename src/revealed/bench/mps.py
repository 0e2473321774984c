"""NETLIB files to forward problems: an .mps or .mps.gz becomes a LinearProgram and its cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from ..errors import InputError
from ..problem import LinearProgram


def problem_name(path: Path) -> str:
    """`25fv47` for `25fv47.mps.gz`."""
    return path.name.removesuffix(".gz").removesuffix(".mps")


def read_netlib(path: str | Path) -> tuple[LinearProgram, np.ndarray]:
    """The problem in general form and its cost (n,), to be minimised.

    A row `l <= a x <= u` becomes an equality where l = u, `a x <= u` where u is finite and
    `-a x <= -l` where l is finite: a range gives two inequalities. A row without either bound
    constrains nothing and is left out. A problem to be maximised has its cost negated.
    """
    import highspy

    path = Path(path)
    if not path.is_file():
        raise InputError(f"An MPS file was expected at {path}; there is none.")
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    if model.readModel(str(path)) == highspy.HighsStatus.kError:
        raise InputError(f"{path.name} could not be read as an MPS file by HiGHS.")
    lp = model.getLp()
    if lp.num_col_ == 0:
        raise InputError(f"{path.name} has no columns; a problem needs at least one variable.")
    cost = np.array(lp.col_cost_, dtype=np.float64)
    maximised = lp.sense_ == highspy.ObjSense.kMaximize
    lower, upper = np.array(lp.row_lower_), np.array(lp.row_upper_)
    return _general_form(_matrix(lp), lower, upper, lp), -cost if maximised else cost


def _matrix(lp) -> sparse.csr_array:
    import highspy

    stored = lp.a_matrix_
    parts = (np.array(stored.value_), np.array(stored.index_), np.array(stored.start_))
    shape = (lp.num_row_, lp.num_col_)
    by_column = stored.format_ == highspy.MatrixFormat.kColwise
    layout = sparse.csc_array if by_column else sparse.csr_array
    return sparse.csr_array(layout(parts, shape=shape))


def _general_form(A: sparse.csr_array, lower: np.ndarray, upper: np.ndarray, lp) -> LinearProgram:
    equal = lower == upper
    above = ~equal & np.isfinite(upper)
    below = ~equal & np.isfinite(lower)
    return LinearProgram(
        A_eq=A[equal],
        b_eq=upper[equal],
        A_ub=sparse.vstack([A[above], -A[below]], format="csr"),
        b_ub=np.concatenate([upper[above], -lower[below]]),
        lb=np.array(lp.col_lower_),
        ub=np.array(lp.col_upper_),
    )
