"""What an importer returns: the problem, and the words in which its owner speaks of it.

Letters: B decisions, n columns, p parameters.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from .._common.arrays import as_costs, to_float64
from ..errors import InputError, ShapeError
from ..optimality.cost_form import CostForm
from ..problems.integer import IntegerProgram
from ..problems.linear import LinearProgram
from ..problems.quadratic import QuadraticProgram
from .completion import Completion

Names = tuple[Hashable, ...]


class ModelWarning(UserWarning):
    """Something in a model that can be read in two ways, or that is not carried over."""


class RelaxationWarning(ModelWarning):
    """A model with integer variables was read as its linear relaxation."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ImportedModel:
    """A model from elsewhere: its constraints as a problem, its objective, and all its names.

    Decisions in any order of columns become those that the problem takes with `decisions`; then
    `rv.InverseRegressor(model.problem, cost_map=model.form)` learns from them.
    """

    problem: LinearProgram | QuadraticProgram
    """The constraints, whole variables relaxed; a QuadraticProgram for a quadratic objective."""
    source: str
    """Where it comes from, in words."""
    variable_names: Names
    """n names: of the columns of `problem`, in their order."""
    eq_names: Names
    """Of the rows of `problem.A_eq`."""
    ub_names: Names
    """Of the rows of `problem.A_ub`; a range, which takes two rows, is named twice."""
    cost: np.ndarray | None
    """(n,) the linear part of the model's own objective, as a cost to be minimized: negated if it
    was to be maximized. None where the model has none."""
    constant: float
    """What the model adds to its objective; NaN where that is not known."""
    maximized: bool
    """Whether the model maximizes."""
    integer: np.ndarray
    """(n,) bool: variables that the model asks to be whole, which `problem` does not."""
    at_least: np.ndarray | None = None
    """(m_ub,) bool: rows of `problem.A_ub` that the source wrote as `a x >= l`, turned round; None
    where that is not known."""
    form: CostForm | None = None
    """How costs follow from what is predicted, c = S w + c0; None where they are the same."""
    parameter_names: Names = ()
    """p names of what is predicted; those of the columns unless the source has others."""
    completion: Completion | None = None
    """How columns that the source added follow from the others; None where there are none."""

    def __post_init__(self) -> None:
        if not self.parameter_names:
            object.__setattr__(self, "parameter_names", self.variable_names)

    @property
    def own_names(self) -> Names:
        """Of the columns that are the user's own variables: all but auxiliary ones."""
        if self.completion is None:
            return self.variable_names
        return tuple(self.variable_names[j] for j in self.completion.own)

    @property
    def integer_problem(self) -> IntegerProgram:
        """The problem with its whole variables whole; `problem` is its relaxation."""
        if not isinstance(self.problem, LinearProgram):
            raise InputError(
                f"{self.source} has a quadratic objective; whole variables go with linear costs."
            )
        return IntegerProgram.of(self.problem, self.integer)

    def objective(self, decisions: Any) -> np.ndarray:
        """(B,): the model's own objective of decisions (B, n), in its own sense.

        Parameters
        ----------
        decisions : (B, n) array
            As `problem` takes them.

        Returns
        -------
        (B,) array
            Values where the model maximizes; with `constant`, so NaN where that is not known.
        """
        if self.cost is None:
            raise InputError(f"There is no objective to evaluate in {self.source}.")
        X, _ = as_costs(decisions, self.problem.n_variables, "decisions")
        value = X @ self.cost
        if isinstance(self.problem, QuadraticProgram):
            value = self.problem.objective(np.tile(self.cost, (len(X), 1)), X)
        return (-value if self.maximized else value) + self.constant

    def decisions(self, values: Any) -> np.ndarray:
        """(B, n) decisions as `problem` takes them; auxiliary columns are filled in.

        Parameters
        ----------
        values : DataFrame, mapping or (B, k) array
            A data frame or a mapping from each of `own_names` to its B values, every one of them
            and nothing else; or an array in the order of `own_names`.

        Returns
        -------
        (B, n) array

        Raises
        ------
        InputError
            If a name is unknown, missing, or there twice.
        """
        own = self.own_names
        if isinstance(values, Mapping) or hasattr(values, "columns"):
            X = self._by_name(values)
        elif np.shape(values)[1:] == (self.problem.n_variables,) or self.completion is None:
            return as_costs(values, self.problem.n_variables, "decisions")[0]
        else:
            X = as_costs(values, len(own), "decisions")[0]
        return X if self.completion is None else self.completion(self.problem, X, self.source)

    def columns(self, names: Iterable[Hashable]) -> np.ndarray:
        """For each of `own_names`, its place among `names`, the same names in another order.

        Parameters
        ----------
        names : iterable of names
            All of `own_names`, in any order.

        Returns
        -------
        (k,) array of int
        """
        own = self.own_names
        known, places = set(own), {}
        for k, name in enumerate(names):
            if name in places:
                raise InputError(f"The name {name!r} is there twice, at {places[name]} and {k}.")
            if name not in known:
                near = suggestion(name, own)
                raise InputError(f"{name!r} is no variable of {self.source}.{near}")
            places[name] = k
        missing = [name for name in own if name not in places]
        if missing:
            raise InputError(
                f"Every variable of {self.source} must be named; {len(missing)} of {len(own)} are "
                f"missing, the first {missing[0]!r}."
            )
        return np.array([places[name] for name in own], dtype=np.int64)

    def _by_name(self, values: Any) -> np.ndarray:
        keys = list(getattr(values, "columns", values))
        columns = [to_float64(values[keys[k]], f"values[{keys[k]!r}]") for k in self.columns(keys)]
        shapes = {column.shape for column in columns}
        if len(shapes) > 1 or columns[0].ndim != 1:
            raise ShapeError(
                "Every variable must have one value for each decision; got columns of shapes "
                f"{', '.join(str(shape) for shape in sorted(shapes))}."
            )
        return as_costs(np.stack(columns, axis=1), len(columns), "decisions")[0]

    def __repr__(self) -> str:
        kind = "maximized" if self.maximized else "minimized"
        return f"ImportedModel({self.source}, {self.problem!r}, {kind})"


def suggestion(name: object, known: Iterable[object]) -> str:
    """A question with the known name that is nearest, or nothing where none is near."""
    near = get_close_matches(str(name), [str(other) for other in known], n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
