"""What every projection onto one problem's sets shares: stacked columns, an elimination order, a
factor's pattern.

Letters: m rows (equalities first, then inequalities with their sign turned), n columns, nnz
entries of the stacked matrix, h pairs of entries within a column, L the lower Cholesky factor of
A D A^T. Its pattern is that of A A^T whatever the 0/1 diagonal D, so one analysis serves a whole
data set.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from ...optimality.sets import OptimalitySet
from ...problems.linear import LinearProgram
from .dependent import SHARE, Basis, find_basis, worth_a_look
from .exact import MOST_ENTRIES, MOST_ROWS
from .factor import factorize
from .simd import token
from .spread import HARMLESS, residues_of, spread_of
from .symbolic import alike, gram, left_lists, pair_slots, symbolic_cholesky

MOST_KEPT = 4
"""Analyses with inequalities left out that are kept with a problem."""
START_RIDGE = 1e-8


class Columns(NamedTuple):
    """The stacked matrix [A_eq; -A_ub] by columns, in the caller's own units.

    Inequalities that bind for no decision of the data set are left out, and so may be equalities
    that depend on others: their multipliers are 0.
    """

    start: np.ndarray
    """(n + 1,) where each column's entries begin."""
    row: np.ndarray
    """(nnz,) row of each entry, increasing within a column."""
    value: np.ndarray
    """(1 or B, nnz) values, one line for all instances or one for each."""
    norm: np.ndarray
    """(1 or B, m) Euclidean length of each row; 1 for a row of zeros."""
    source: np.ndarray
    """(m,) which of the problem's rows each is, equalities counted first."""
    n_equalities: int
    """Rows below this number are equalities; the others are inequalities."""


class Pattern(NamedTuple):
    """Sparsity of the factor L, with the rows renumbered in elimination order."""

    place: np.ndarray
    """(m,) elimination position of each row of the problem."""
    entry_row: np.ndarray
    """(nnz,) elimination position of each entry's row, in the order of `Columns`."""
    entry_value: np.ndarray
    """(1 or B, nnz) values of `Columns` with every row scaled to length 1."""
    pair_slot: np.ndarray
    """(h,) slot in L that each pair of entries of a column adds to; pairs (a, b), b <= a, column
    by column."""
    start: np.ndarray
    """(m + 1,) where each column of L begins; its first entry is the diagonal."""
    row: np.ndarray
    """(nnz of L,) row of each entry."""
    left_start: np.ndarray
    """(m + 1,) where the list of earlier columns that touch column j begins."""
    left_slot: np.ndarray
    """For each of those, the slot of its entry in row j."""
    left_end: np.ndarray
    """For each of those, the end of its column."""
    left_alike: np.ndarray
    """For each of those, whether it and the next three have the same rows from row j on."""


class Whole(NamedTuple):
    """Where equalities are left out: all of them, for the certificate, and what replaces them."""

    columns: Columns
    pattern: Pattern
    """Without a factor, for none is made of all rows."""
    basis: Basis


class Analysis(NamedTuple):
    """Everything the kernels need to know about a problem before they see a cost."""

    columns: Columns
    pattern: Pattern
    first: np.ndarray
    """(nnz of L,) factor of A A^T for rows of length 1: the least-squares start of every
    instance."""
    operations: int
    """Multiply-adds of one factorization, and of one pass over the columns: what a step costs."""
    whole: Whole | None
    """None where all equalities are kept."""
    spread: np.ndarray
    """(1 or B,) by how much the error of a point may exceed its residual; see `spread`."""
    residue: np.ndarray
    """(1 or B, nnz) entries modulo a prime, for `verify`; empty where they are not needed, and for
    problems that are too large for exact arithmetic."""

    def take(self, index: np.ndarray) -> "Analysis":
        """The analysis for the chosen instances; itself where all share one matrix."""
        if len(self.columns.value) == 1:
            return self
        columns = self.columns._replace(
            value=self.columns.value[index], norm=self.columns.norm[index]
        )
        pattern = self.pattern._replace(entry_value=self.pattern.entry_value[index])
        spread, residue = self.spread[index], self.residue[index]
        return self._replace(columns=columns, pattern=pattern, spread=spread, residue=residue)


class _Kept(dict[bytes, Analysis]):
    """The analyses of one problem, by the inequalities they keep; sliced along with the problem."""

    def take(self, index: np.ndarray) -> "_Kept":
        return _Kept({used: analysis.take(index) for used, analysis in self.items()})


def analyze(sets: OptimalitySet) -> Analysis:
    """The analysis of the sets' problem, computed once and kept with it (and with its slices)."""
    kept = sets.rows.cached("projection.analyses", _Kept)
    used = sets.row_used
    # Sets built anew for every batch would each want an analysis: past a few, one serves them all.
    if used.tobytes() not in kept and len(kept) >= MOST_KEPT:
        used = np.ones(len(used), bool)
    key = used.tobytes()
    if key not in kept:
        kept[key] = _analyze(sets.rows, used)
    return kept[key]


def _analyze(problem: LinearProgram, used: np.ndarray) -> Analysis:
    columns = _stack_columns(problem, used)

    def basis() -> Basis | None:
        return problem.cached("projection.basis", lambda: find_basis(columns))

    look = worth_a_look(columns)
    found = basis() if look and columns.n_equalities > problem.n_variables else None
    if found is None:
        analysis = _analyze_columns(columns)
        found = basis() if look and _looks_dependent(analysis) else None
        if found is None:
            return analysis
    kept = _analyze_columns(_stack_columns(problem, used, found.kept))
    return kept._replace(whole=Whole(columns, _without_factor(columns), found))


def _analyze_columns(columns: Columns) -> Analysis:
    n_rows, n = columns.norm.shape[1], len(columns.start) - 1
    ones = np.ones(len(columns.row))
    touches = sparse.csc_array((ones, columns.row, columns.start), shape=(n_rows, n))
    gram = sparse.csc_array(touches @ touches.T)
    pattern = _factor_pattern(columns, gram, _elimination_places(gram))
    count = np.diff(pattern.start)
    operations = int((count * (count + 1) // 2).sum()) + 3 * len(pattern.pair_slot)
    spread = spread_of(columns)
    asked = spread.max(initial=1.0) > HARMLESS and n_rows <= MOST_ROWS and n <= MOST_ENTRIES
    residue = residues_of(columns) if asked else np.zeros((len(spread), 0), np.int64)
    first = _first_factor(columns, pattern)
    return Analysis(columns, pattern, first, operations, None, spread, residue)


def _looks_dependent(analysis: Analysis) -> bool:
    """Whether little more than the ridge is left of many pivots of A A^T."""
    columns, pattern = analysis.columns, analysis.pattern
    reciprocal = analysis.first[pattern.start[pattern.place[: columns.n_equalities]]]
    return (reciprocal**2 > 1e-3 / START_RIDGE).sum() > (1.0 - SHARE) * columns.n_equalities


def _without_factor(columns: Columns) -> Pattern:
    none = np.zeros(0, np.int64)
    return Pattern(
        place=np.arange(columns.norm.shape[1]),
        entry_row=columns.row,
        entry_value=np.ascontiguousarray(columns.value / columns.norm[:, columns.row]),
        pair_slot=none.astype(np.int32),
        start=none,
        row=none.astype(np.int32),
        left_start=none,
        left_slot=none,
        left_end=none,
        left_alike=none.astype(bool),
    )


def _first_factor(columns: Columns, pattern: Pattern) -> np.ndarray:
    L = np.zeros(len(pattern.row))
    if len(pattern.entry_value):
        gram(columns.start, pattern.entry_value[0], pattern.pair_slot, L)
    # Only a start, so a ridge well above rounding costs nothing and keeps rank-deficient rows tame.
    L[pattern.start[:-1]] += START_RIDGE
    factorize(pattern, L, np.zeros(len(pattern.start) - 1), 1e-12, token(1))
    return L


def _stack_columns(
    problem: LinearProgram, used: np.ndarray, equalities: np.ndarray | None = None
) -> Columns:
    """The inequalities `used` and all equalities, or those given."""
    eq, ub = problem.eq_rows, problem.ub_rows
    equalities = np.ones(eq.shape[0], bool) if equalities is None else equalities
    source = np.concatenate([equalities, used]).nonzero()[0]
    row = np.repeat(
        np.arange(eq.shape[0] + ub.shape[0]), np.r_[np.diff(eq.indptr), np.diff(ub.indptr)]
    )
    column = np.r_[eq.indices, ub.indices]
    kept = np.isin(row, source).nonzero()[0]
    row, column = np.searchsorted(source, row[kept]), column[kept]
    lines = max(len(eq.data), len(ub.data))
    parts = [np.broadcast_to(part, (lines, part.shape[1])) for part in (eq.data, -ub.data)]
    values = np.hstack(parts)[:, kept]
    order = np.lexsort((row, column))
    return Columns(
        start=np.searchsorted(column[order], np.arange(problem.n_variables + 1)).astype(np.int64),
        row=row[order].astype(np.int64),
        value=np.ascontiguousarray(values[:, order]),
        norm=_row_lengths(values, row, len(source)),
        source=source.astype(np.int64),
        n_equalities=int(equalities.sum()),
    )


def _row_lengths(values: np.ndarray, row: np.ndarray, m: int) -> np.ndarray:
    lengths = np.zeros((len(values), m))
    for line, value in zip(lengths, values, strict=True):
        largest = np.zeros(m)
        np.maximum.at(largest, row, np.abs(value))
        largest[largest == 0] = 1.0  # scaled first, so that entries of 1e200 do not overflow
        line[:] = np.sqrt(np.bincount(row, (value / largest[row]) ** 2, minlength=m)) * largest
    lengths[lengths == 0] = 1.0
    return lengths


def _elimination_places(gram: sparse.csc_array) -> np.ndarray:
    """Position of each row in an order that keeps the factor sparse."""
    m = len(gram.indptr) - 1
    natural = np.arange(m, dtype=np.int64)
    if m < 3 or gram.nnz == m * m:  # no order keeps a full matrix sparse
        return natural
    orders = [natural, _minimum_degree(gram)]
    orders.append(np.argsort(csgraph.reverse_cuthill_mckee(sparse.csr_array(gram), True)))
    work = [_operations(gram, place) for place in orders]
    return np.ascontiguousarray(orders[int(np.argmin(work))], dtype=np.int64)


def _minimum_degree(gram: sparse.csc_array) -> np.ndarray:
    # SuperLU's multiple minimum degree is the one such order scipy ships. A dominant diagonal
    # keeps its numeric factorization, which we throw away, from pivoting.
    m = len(gram.indptr) - 1
    dominant = sparse.csc_array(gram + sparse.diags_array(np.full(m, float(gram.max()) * m + 1.0)))
    factor = splu(
        sparse.csc_matrix(dominant),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.asarray(factor.perm_c, dtype=np.int64)


def _operations(gram: sparse.csc_array, place: np.ndarray) -> int:
    count = np.diff(_factor_columns(gram, place)[0]) - 1
    return int((count * (count + 1) // 2).sum())


def _factor_columns(gram: sparse.csc_array, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    below = _lower_rows(gram, place)
    return symbolic_cholesky(below.indptr.astype(np.int64), below.indices.astype(np.int64))


def _lower_rows(gram: sparse.csc_array, place: np.ndarray) -> sparse.csr_array:
    coo = sparse.coo_array(gram)
    row, column = place[coo.row], place[coo.col]
    below = row > column
    m = len(place)
    return sparse.csr_array((np.ones(int(below.sum())), (row[below], column[below])), shape=(m, m))


def _factor_pattern(columns: Columns, gram: sparse.csc_array, place: np.ndarray) -> Pattern:
    start, row = _factor_columns(gram, place)
    left_start, left_slot, left_end = left_lists(start, row)
    entry_row = np.ascontiguousarray(place[columns.row])
    pair_slot = pair_slots(columns.start, entry_row, start, row)
    return Pattern(
        place=place,
        entry_row=entry_row,
        entry_value=np.ascontiguousarray(columns.value / columns.norm[:, columns.row]),
        pair_slot=pair_slot,
        start=start,
        row=row.astype(np.int32),
        left_start=left_start,
        left_slot=left_slot,
        left_end=left_end,
        left_alike=alike(left_start, left_slot, left_end, row),
    )
