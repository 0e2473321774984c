"""What is predicted where it is not every cost entry by itself: c = S w + c0, with limits on both.

    CostForm.known(values)         some entries known, the others predicted
    CostForm.tied(groups)          entries of a group have one cost
    CostForm.vertices(problem)     an edge costs what the vertex it enters weighs
    CostForm.features(Phi)         c = Phi w: coefficients shared by all entries
    CostForm.identity(n, lower=0)  every entry predicted, none below 0

Letters: B instances, n cost entries, p parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._common.affine import AffineMap
from .._common.arrays import as_choice, as_costs, count_of, is_torch, loaded_torch, to_float64
from .._common.records import Record
from .._common.rows import Rows, frozen
from ..errors import InputError, ShapeError
from ..problems.linear import LinearProgram
from ..problems.protocol import Problem
from ..problems.structures import PathStructure

_ENDS = {"head": (0.0, 1.0), "tail": (1.0, 0.0), "both": (0.5, 0.5)}


class CostForm(Record):
    """c = S w + c0, with `lower <= w <= upper` and `cost_lower <= c <= cost_upper`.

    The limits are part of what explains a decision: `OptimalitySet(problem, X, form=form)`.

    Parameters
    ----------
    matrix : (n, p) or (B, n, p) array or sparse matrix, or sequence of B matrices
        S, shared or one for each instance.
    offset : float, (n,) or (B, n) array
        c0.
    lower, upper : float, (p,) or (B, p) array, optional
        Limits of the parameters; none unless given.
    cost_lower, cost_upper : float, (n,) or (B, n) array, optional
        Limits of the costs; none unless given.

    Raises
    ------
    ShapeError
        If shapes do not agree.
    InputError
        If a lower limit exceeds an upper one, or a value has no meaning.
    """

    map: AffineMap
    lower: np.ndarray
    """(p,) or (B, p), -inf where there is no limit; `upper` likewise."""
    upper: np.ndarray
    cost_lower: np.ndarray
    """(n,) or (B, n), -inf where there is no limit; `cost_upper` likewise."""
    cost_upper: np.ndarray
    n_instances: int | None
    """B where anything differs by instance, else None."""

    def __init__(
        self,
        matrix: Any,
        offset: Any = 0.0,
        *,
        lower: Any = None,
        upper: Any = None,
        cost_lower: Any = None,
        cost_upper: Any = None,
    ) -> None:
        rows = Rows.build(matrix, "matrix")
        n, p = rows.shape
        if not n * p:
            raise ShapeError(f"`matrix` must have rows and columns; got shape {rows.shape}.")
        self._set(
            map=AffineMap(rows, _spread(offset, n, "offset", finite=True)),
            lower=_spread(-np.inf if lower is None else lower, p, "lower"),
            upper=_spread(np.inf if upper is None else upper, p, "upper"),
            cost_lower=_spread(-np.inf if cost_lower is None else cost_lower, n, "cost_lower"),
            cost_upper=_spread(np.inf if cost_upper is None else cost_upper, n, "cost_upper"),
        )
        _refuse_crossed(self.lower, self.upper, "lower", "upper")
        _refuse_crossed(self.cost_lower, self.cost_upper, "cost_lower", "cost_upper")
        self._set(n_instances=_count(self))

    # --- the usual forms ---------------------------------------------------------------------

    @classmethod
    def identity(cls, n: int, **limits: Any) -> CostForm:
        """c = w: every entry is predicted; for limits alone, such as `lower=0`.

        Parameters
        ----------
        n : int
            Entries of a cost.
        **limits
            `lower`, `upper`, `cost_lower` and `cost_upper`, as of `CostForm`.

        Returns
        -------
        CostForm
        """
        return cls(sparse.eye_array(int(n)), **limits)

    @classmethod
    def known(cls, values: Any, **limits: Any) -> CostForm:
        """Some entries known, the others predicted.

        Parameters
        ----------
        values : (n,) or (B, n) array
            NaN where the entry is to be predicted: the same entries in every instance.
        **limits
            `lower`, `upper`, `cost_lower` and `cost_upper`, as of `CostForm`.

        Returns
        -------
        CostForm
            Its parameters are the entries to be predicted, in their order.
        """
        array = to_float64(values, "values")
        missing = np.isnan(np.atleast_2d(array))
        if array.ndim not in (1, 2) or (missing != missing[:1]).any():
            raise ShapeError(
                "`values` must be (n,) or (B, n) with NaN in the same entries of every instance; "
                f"got shape {array.shape}."
            )
        free = np.flatnonzero(missing[0])
        if not free.size:
            raise InputError("`values` must have NaN where an entry is to be predicted; got none.")
        choose = sparse.csc_array(sparse.eye_array(array.shape[-1]))[:, free]
        return cls(choose, np.where(np.isnan(array), 0.0, array), **limits)

    @classmethod
    def tied(cls, groups: Any, **limits: Any) -> CostForm:
        """Entries with the same label have one cost.

        Parameters
        ----------
        groups : (n,) array
            A label for each entry.
        **limits
            `lower`, `upper`, `cost_lower` and `cost_upper`, as of `CostForm`.

        Returns
        -------
        CostForm
            Its parameters are by sorted label.
        """
        labels, place = np.unique(np.asarray(groups), return_inverse=True)
        if np.ndim(groups) != 1:
            raise ShapeError(f"`groups` must be (n,), a label each; got {np.shape(groups)}.")
        n = len(place)
        rows = (np.ones(n), (np.arange(n), place))
        return cls(sparse.csr_array(rows, shape=(n, len(labels))), **limits)

    @classmethod
    def vertices(
        cls, graph: Any, *, n_nodes: int | None = None, at: str = "head", **limits: Any
    ) -> CostForm:
        """An edge costs what the vertex it enters weighs.

        Costs that are sums over the vertices of a path leave the first one out with "head".

        Parameters
        ----------
        graph : LinearProgram or (E, 2) int array
            A path problem, or edges (tail, head).
        n_nodes : int, optional
            For more vertices than the edges mention.
        at : "head", "tail" or "both"
            The vertex that counts: the one entered, the one left, or the mean of the two.
        **limits
            `lower`, `upper`, `cost_lower` and `cost_upper`, as of `CostForm`.

        Returns
        -------
        CostForm
            Its parameters are the weights of the vertices.
        """
        if at not in _ENDS:
            raise InputError(f"`at` must be one of {', '.join(_ENDS)}; got {at!r}.")
        tails, heads, count = _edges(graph)
        p = max(count, int(n_nodes or 0))
        edge = np.arange(len(tails))
        share = np.repeat(_ENDS[at], len(tails))
        entries = (share, (np.concatenate([edge, edge]), np.concatenate([tails, heads])))
        return cls(sparse.csr_array(entries, shape=(len(tails), p)), **limits)

    @classmethod
    def features(cls, phi: Any, offset: Any = 0.0, **limits: Any) -> CostForm:
        """c = phi w: features of each entry, with shared coefficients w.

        Parameters
        ----------
        phi : (n, p) or (B, n, p) array or sparse matrix
        offset : float, (n,) or (B, n) array
            Added to the costs.
        **limits
            `lower`, `upper`, `cost_lower` and `cost_upper`, as of `CostForm`.

        Returns
        -------
        CostForm
        """
        return cls(phi, offset, **limits)

    # --- use ---------------------------------------------------------------------------------

    @property
    def n_costs(self) -> int:
        return self.map.rows.shape[0]

    @property
    def n_parameters(self) -> int:
        return self.map.n_parameters

    @property
    def is_limited(self) -> bool:
        """Whether any limit is finite."""
        return any(finite.any() for finite in self.is_finite)

    @property
    def bounds(self) -> tuple[np.ndarray, ...]:
        """`lower`, `upper`, `cost_lower` and `cost_upper`."""
        return tuple(getattr(self, name) for name in _LIMITS)

    @property
    def is_finite(self) -> tuple[np.ndarray, ...]:
        """For each of `bounds` and each entry, whether it is finite in any instance."""
        parts = (np.isfinite(np.atleast_2d(part)) for part in self.bounds)
        return tuple(np.asarray(part.any(axis=0)) for part in parts)

    def costs(self, parameters: Any) -> Any:
        """The costs of parameters; torch in, torch out, with a gradient.

        Parameters
        ----------
        parameters : (B, p) array or tensor

        Returns
        -------
        (B, n) array or tensor
        """
        if is_torch(parameters):
            return self._torch_costs(parameters)
        w, _ = as_costs(parameters, self.n_parameters, "parameters")
        self.check_batch(len(w))
        return self.map(w)

    def within(self, parameters: Any) -> np.ndarray:
        """The nearest parameters between `lower` and `upper`: no farther from any that explain a
        decision, for these lie there too.

        Parameters
        ----------
        parameters : (B, p) array

        Returns
        -------
        (B, p) array
        """
        w, _ = as_costs(parameters, self.n_parameters, "parameters")
        self.check_batch(len(w))
        return np.clip(w, self.lower, self.upper)

    def check_batch(self, size: int) -> None:
        """Refuse a batch of the wrong length; a shared form takes any."""
        if self.n_instances not in (None, size):
            raise ShapeError(
                f"This form differs by instance and holds {self.n_instances}; got {size}. "
                "Choose instances with `form[index]`."
            )

    def __getitem__(self, index: Any) -> CostForm:
        """The form of the chosen instances: an integer, slice, mask or integer array."""
        if self.n_instances is None:
            return self
        chosen = as_choice(index, self.n_instances)
        own = {name: getattr(self, name) for name in _LIMITS}
        return self.replaced(
            map=self.map.take(chosen),
            n_instances=count_of(chosen),
            **{name: part[chosen] for name, part in own.items() if part.ndim == 2},
        )

    __iter__ = None  # a shared form would otherwise be an endless sequence of itself

    def __repr__(self) -> str:
        count = "" if self.n_instances is None else f", {self.n_instances} instances"
        limits = ", limited" if self.is_limited else ""
        return f"CostForm({self.n_parameters} parameters -> {self.n_costs} costs{count}{limits})"

    def _torch_costs(self, w: Any) -> Any:
        torch = loaded_torch()
        if w.ndim != 2 or w.shape[1] != self.n_parameters:
            raise ShapeError(
                f"`parameters` must have shape (B, {self.n_parameters}); got {tuple(w.shape)}."
            )
        self.check_batch(len(w))
        rows = self.map.rows
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        entry, owner, data, offset = (
            torch.tensor(part, device=w.device)
            for part in (rows.indices, owner, rows.data, self.map.offset)
        )
        terms = w[:, entry] * data.to(w.dtype)
        zero = torch.zeros(len(w), rows.shape[0], dtype=w.dtype, device=w.device)
        return zero.index_add(1, owner, terms) + offset.to(w.dtype)


_LIMITS = ("lower", "upper", "cost_lower", "cost_upper")


def _edges(graph: Any) -> tuple[np.ndarray, np.ndarray, int]:
    if isinstance(graph, LinearProgram):
        structure = graph.structure
        if isinstance(structure, PathStructure):
            return structure.tails, structure.heads, structure.n_nodes
    array = None if isinstance(graph, Problem) else np.asarray(graph)
    if array is None or array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise InputError(
            "`graph` must be a problem built from edges, such as rv.problems.grid_shortest_path, "
            f"or an (E, 2) array of node numbers; got {type(graph).__name__}."
        )
    return array[:, 0], array[:, 1], int(array.max()) + 1


def _spread(value: Any, size: int, name: str, *, finite: bool = False) -> np.ndarray:
    """A read-only (size,) or (B, size) copy; a number serves every entry."""
    array = to_float64(value, name)
    if array.ndim > 2 or (array.ndim and array.shape[-1] != size):
        raise ShapeError(
            f"`{name}` must be a number, ({size},) or (B, {size}); got shape {array.shape}."
        )
    bad = np.argwhere(~np.isfinite(array) if finite else np.isnan(array))
    if bad.size:
        where = ", ".join(str(i) for i in bad[0])
        expected = "finite" if finite else "a number or infinite"
        raise InputError(f"`{name}` must be {expected} everywhere; got NaN or inf at ({where}).")
    return frozen(np.array(np.broadcast_to(array, array.shape if array.ndim else (size,))))


def _refuse_crossed(low: np.ndarray, high: np.ndarray, low_name: str, high_name: str) -> None:
    if (low > high).any():
        raise InputError(f"`{low_name}` must not exceed `{high_name}`; it does in some entry.")


def _count(form: CostForm) -> int | None:
    counts = {len(part) for part in form.bounds if part.ndim == 2}
    counts |= {len(form.map.offset)} if form.map.offset.ndim == 2 else set()
    counts |= {len(form.map.rows.data)} if form.map.rows.per_instance else set()
    if len(counts) > 1:
        raise ShapeError(
            f"Parts that differ by instance must agree on their number; got {sorted(counts)}."
        )
    return next(iter(counts), None)
