"""Data sets that are read part by part: more samples than memory holds, or on other machines.

A `Partitions` knows where samples are and how to read a run of them; it holds none. It cuts them
into partitions, which are what a fit hands to threads, processes or the workers of a cluster. How
it cuts follows from the data alone, so that sums over partitions are the same on every executor.
Letters: B samples, n variables, d features.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arrays import to_float64
from .._common.checks import check_whole
from ..errors import InputError, ShapeError
from ..problems.protocol import check_problem
from .parquet import Columns, open_files
from .pieces import Encoder, Piece, Samples, Source

MOST = 64
"""Partitions, about, unless more are asked for: what a driver adds up does not grow with the
samples."""
NUMBERS = 160_000
"""Numbers of decisions below which a partition is not worth a task of its own."""
ROWS = 131_072
"""Rows of one file read as one piece."""
AT_ONCE = 1_000_000
"""Numbers of decisions in memory while they are read."""


class Partitions:
    """Samples in folders of Parquet files, or in arrays, to be fitted part by part.

        data = rv.datasets.Partitions.from_parquet(
            problem, contexts="days/*.parquet", decisions="routes/*.parquet", features=["rain"]
        )
        est = rv.InverseRegressor(problem).fit(data, run=rv.Run(memory="2GB"))

    Build one with `from_parquet` or `from_arrays`.

    Attributes
    ----------
    feature_names, variable_names : tuples of str, or None for arrays
    partitions : list of tuples of Piece
    """

    def __init__(
        self,
        problem: Any,
        sources: Sequence[Source],
        n_features: int,
        *,
        partitions: int | None = None,
        bad: str = "refuse",
        feature_names: Sequence[str] | None = None,
        variable_names: Sequence[str] | None = None,
        entry_features: Any = None,
        skipped: Sequence[str] = (),
    ) -> None:
        check_problem(problem)
        if bad not in ("refuse", "skip"):
            raise InputError(f"`bad` must be 'refuse' or 'skip'; got {bad!r}.")
        if partitions is not None:
            check_whole(partitions, "partitions", 1)
        self.problem, self.sources, self.n_features = problem, tuple(sources), n_features
        self.bad, self.skipped = bad, tuple(skipped)
        self.feature_names = None if feature_names is None else tuple(feature_names)
        self.variable_names = None if variable_names is None else tuple(variable_names)
        self.entry_features = _checked_entries(problem, entry_features)
        self.n_samples = sum(source.rows for source in self.sources)
        if not self.n_samples:
            raise InputError("There is nothing to learn from: the data hold no row.")
        self.partitions = _cut(self.sources, problem.n_variables, partitions)

    @classmethod
    def from_parquet(
        cls,
        problem: Any,
        contexts: Any,
        decisions: Any = None,
        *,
        features: Sequence[str] | Encoder | None = None,
        variables: Sequence[str] | None = None,
        weights: str | None = None,
        ids: str | None = None,
        long: tuple[str, str, str] | None = None,
        limits: Mapping[str, Sequence[str]] | None = None,
        constraints: Callable[[Any, dict[str, np.ndarray]], Any] | None = None,
        constraint_columns: Sequence[str] = (),
        ends: tuple[str, str] | None = None,
        entry_features: Any = None,
        partitions: int | None = None,
        bad: str = "refuse",
    ) -> Partitions:
        """Data in Parquet files.

        Parameters
        ----------
        problem : problem
            What the decision maker may do.
        contexts, decisions : paths, globs, folders, or lists of these
            The k-th file of decisions belongs to the k-th file of contexts, in the order of their
            names; both may be the same files. Without decisions the data can only be predicted on.
        features : sequence of str, Encoder or None
            Columns of contexts, numbers; None for all columns of numbers that nothing else names;
            or what makes features of other columns.
        variables : sequence of str or None
            Columns of decisions, in the order of the problem's variables, or with `long` the names
            of the variables; None for all columns of a file of decisions, or with `long` for
            numbers of variables.
        weights, ids : str or None
            Columns of contexts: what each sample counts, and its name.
        long : (str, str, str) or None
            For decisions of a line for each entry that is not 0: the columns of the sample's name
            (`ids` in the contexts), the variable and the value. Files sorted by sample are read
            fastest.
        limits : dict of str to sequences of str, or None
            Right-hand sides and bounds that differ from row to row: for "b_eq", "b_ub", "lb" or
            "ub" the columns of contexts that hold them.
        constraints : function or None
            Makes the problem of a run of samples from the shared one and the columns
            `constraint_columns` of their contexts, such as one with other ends of paths. Processes
            and clusters must be able to import it.
        ends : (str, str) or None
            For paths: the columns of contexts with the first and the last node of each.
        entry_features : (n, p) array or None
            Features of the entries of a decision, the same for every sample, for model="shared".
        partitions : int or None
            How many to cut the data into, about; None for 64, fewer for few samples. More are for
            more than 64 cores.
        bad : "refuse" or "skip"
            What to do with files and row groups that cannot be read.
        """
        encoder = features if callable(features) else None
        columns = Columns(
            features=None if features is None or callable(features) else tuple(features),
            encoder=encoder,
            variables=None if variables is None else tuple(variables),
            weights=weights,
            ids=ids,
            long=long,
            limits={k: tuple(v) for k, v in (limits or {}).items()},
            constraints=constraints,
            constraint_columns=tuple(constraint_columns),
            ends=ends,
        )
        sources, columns, skipped = open_files(problem, contexts, decisions, columns, bad)
        assert columns.features is not None, "files have been looked at"
        return cls(
            problem,
            sources,
            len(columns.features),
            partitions=partitions,
            bad=bad,
            feature_names=columns.features,
            variable_names=columns.variables,
            entry_features=entry_features,
            skipped=skipped,
        )

    @classmethod
    def from_arrays(
        cls,
        problem: Any,
        Z: Any,
        X: Any = None,
        *,
        sample_weight: Any = None,
        entry_features: Any = None,
        partitions: int | None = None,
    ) -> Partitions:
        """Data in arrays.

        Parameters
        ----------
        problem : problem
            What the decision maker may do.
        Z : (B, d) array
            Contexts.
        X : (B, n) array, optional
            Decisions; without them the data can only be predicted on.
        sample_weight : (B,) array, optional
            What each sample counts.
        entry_features, partitions
            As for `from_parquet`.

        Returns
        -------
        Partitions
        """
        source = _Arrays.of(problem, Z, X, sample_weight)
        d = source.Z.shape[1]
        return cls(problem, [source], d, partitions=partitions, entry_features=entry_features)

    def __len__(self) -> int:
        """Rows, those that turn out unreadable among them."""
        return self.n_samples

    def __repr__(self) -> str:
        return (
            f"Partitions({self.n_samples:,} samples in {len(self.sources)} sources, "
            f"{len(self.partitions)} partitions)"
        )

    def read(self, piece: Piece) -> Iterator[Samples]:
        """The samples of a piece, some at a time.

        Parameters
        ----------
        piece : Piece
            One of those in `partitions`.

        Yields
        ------
        Samples
        """
        size = int(np.clip(AT_ONCE // self.problem.n_variables, 64, 16_384))
        source = self.sources[piece.source]
        yield from source.read(self.problem, piece.start, piece.stop, size)

    def split(self, share: float) -> tuple[Partitions, Partitions | None]:
        """These data without a share of their pieces, and that share, spread evenly: what is read
        together stays together.

        Parameters
        ----------
        share : float
            Of the pieces, between 0 and 1.

        Returns
        -------
        Partitions
            Without the share.
        Partitions or None
            The share; None where there are too few pieces to leave one out.
        """
        pieces = [piece for partition in self.partitions for piece in partition]
        number = np.arange(len(pieces))
        out = np.floor((number + 1) * share) > np.floor(number * share)
        if not 0 < out.sum() < len(pieces):
            return self, None
        halves = []
        for chosen in (~out, out):
            own = iter(chosen)
            partitions = [[p for p in part if next(own)] for part in self.partitions]
            halves.append(self._with([tuple(part) for part in partitions if part]))
        return halves[0], halves[1]

    def _with(self, partitions: list[tuple[Piece, ...]]) -> Partitions:
        result = copy.copy(self)
        result.partitions = tuple(partitions)
        result.n_samples = sum(p.stop - p.start for part in partitions for p in part)
        return result

    def first(self, size: int) -> Samples:
        """Up to `size` samples, of as many pieces as it takes.

        Parameters
        ----------
        size : int
            The most samples to return.

        Returns
        -------
        Samples
        """
        found, held = [], 0
        for some in (s for part in self.partitions for piece in part for s in self.read(piece)):
            found.append(some)
            held += len(some.Z)
            if held >= size:
                break
        Z = np.concatenate([some.Z for some in found])[:size]
        X = None
        if found[0].X is not None:
            X = np.concatenate([some.X for some in found if some.X is not None])[:size]
        names = [one for some in found for one in some.ids or ()][:size]
        return Samples(Z, X, None, names or None, self.problem, found[0].where)

    def only(self, k: int) -> Partitions:
        """These data with partition k alone, to be sent to who reads it.

        Parameters
        ----------
        k : int
            Its place in `partitions`.

        Returns
        -------
        Partitions
        """
        result = copy.copy(self)
        numbers = sorted({piece.source for piece in self.partitions[k]})
        pieces = [p._replace(source=numbers.index(p.source)) for p in self.partitions[k]]
        cuts = [
            self.sources[j].narrowed([p for p in pieces if p.source == i])
            for i, j in enumerate(numbers)
        ]
        result.sources = tuple(source for source, _ in cuts)
        result.partitions = (tuple(piece for _, own in cuts for piece in own),)
        if self.problem.n_instances is not None:  # their own came with the samples
            first, last = pieces[0].start, pieces[-1].stop
            result.problem = self.problem[first:last]
        return result

    @property
    def partition_sizes(self) -> dict[int, int]:
        """Rows of each partition, by its number."""
        sizes = (sum(p.stop - p.start for p in pieces) for pieces in self.partitions)
        return dict(enumerate(sizes))

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What tells these data from others, without reading all of them."""
        import hashlib

        told = "\n".join(source.fingerprint for source in self.sources)
        digest = hashlib.sha256(told.encode()).hexdigest()[:16]
        cuts = hashlib.sha256(repr(self.partitions).encode()).hexdigest()[:16]
        return {"samples": self.n_samples, "partitions": cuts, "sources": digest}


def _checked_entries(problem: Any, features: Any) -> np.ndarray | None:
    if features is None:
        return None
    array = to_float64(features, "entry_features")
    if array.ndim != 2 or len(array) != problem.n_variables or not np.isfinite(array).all():
        raise ShapeError(
            f"`entry_features` must be finite and ({problem.n_variables}, p), a row for each entry "
            f"of a decision; got shape {array.shape}."
        )
    return np.ascontiguousarray(array)


def _cut(
    sources: Sequence[Source], n: int, partitions: int | None
) -> tuple[tuple[Piece, ...], ...]:
    """The pieces of each partition: runs of about the same number of rows, in order."""
    total = sum(source.rows for source in sources)
    least = max(1, min(4096, NUMBERS // n))
    count = partitions or min(MOST, -(-total // least))
    target = -(-total // min(count, total))
    cut: list[list[Piece]] = [[]]
    filled = 0
    for k, source in enumerate(sources):
        stops = [*source.cuts()[1:], source.rows]
        start = 0
        for stop in stops:
            while start < stop:
                # A whole row group rather than a part of it, if that makes no partition too long.
                room = target - filled
                size = min(stop - start, ROWS)
                if size > room and (filled == 0 or room > target // 4):
                    size = min(size, room)
                elif size > room:
                    cut.append([])
                    filled = 0
                    continue
                cut[-1].append(Piece(k, start, start + size))
                start, filled = start + size, filled + size
                if filled >= target:
                    cut.append([])
                    filled = 0
    return tuple(tuple(pieces) for pieces in cut if pieces)


@dataclass(frozen=True, eq=False)
class _Arrays:
    """Samples in memory."""

    Z: np.ndarray
    X: np.ndarray | None
    weights: np.ndarray | None

    @classmethod
    def of(cls, problem: Any, Z: Any, X: Any, weights: Any) -> _Arrays:
        check_problem(problem)
        Z = np.asarray(Z) if getattr(Z, "dtype", None) == np.float32 else to_float64(Z, "Z")
        if Z.ndim != 2 or 0 in Z.shape:
            raise ShapeError(f"`Z` must be (B, d), a row for each sample; got shape {Z.shape}.")
        for name, part, width in (("X", X, problem.n_variables), ("sample_weight", weights, None)):
            expected = (len(Z),) if width is None else (len(Z), width)
            if part is not None and np.shape(part) != expected:
                raise ShapeError(f"`{name}` must be {expected}; got shape {np.shape(part)}.")
        if problem.n_instances not in (None, len(Z)):
            raise ShapeError(
                f"`problem` holds {problem.n_instances} instances, `Z` {len(Z)} samples."
            )
        X = None if X is None else np.asarray(X)
        weights = None if weights is None else to_float64(weights, "sample_weight")
        return cls(np.ascontiguousarray(Z), X, weights)

    @property
    def rows(self) -> int:
        return len(self.Z)

    @property
    def fingerprint(self) -> str:
        import hashlib

        total = hashlib.sha256()
        for part in (self.Z, self.X, self.weights):
            if part is not None:
                total.update(f"{part.dtype} {part.shape}".encode())
                total.update(np.ascontiguousarray(part).data)
        return total.hexdigest()

    def cuts(self) -> list[int]:
        return [0]

    def narrowed(self, pieces: list[Piece]) -> tuple[Source, list[Piece]]:
        first, last = pieces[0].start, pieces[-1].stop
        X = None if self.X is None else self.X[first:last]
        weights = None if self.weights is None else self.weights[first:last]
        shifted = [p._replace(start=p.start - first, stop=p.stop - first) for p in pieces]
        return _Arrays(self.Z[first:last], X, weights), shifted

    def read(self, problem: Any, start: int, stop: int, size: int) -> Iterator[Samples]:
        for first in range(start, stop, size):
            some = slice(first, min(first + size, stop))
            own = problem if problem.n_instances is None else problem[some]
            X = None if self.X is None else np.asarray(self.X[some], dtype=np.float64)
            weights = None if self.weights is None else self.weights[some]
            where = f"samples {some.start} to {some.stop - 1}"
            yield Samples(self.Z[some], X, weights, None, own, where)
