"""Turn decisions of any form (arrays, an OptimalitySet, true costs) into an OptimalitySet."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._common.arrays import is_torch, to_float64
from ..errors import InputError, ShapeError
from ..optimality.cost_form import CostForm
from ..optimality.mixed import MixedSets
from ..optimality.protocol import CostSet as Sets
from ..optimality.sets import OptimalitySet
from ..problems.linear import LinearProgram
from ..problems.protocol import Problem
from ..problems.solution import SolveStatus
from .contexts import Common, Ragged, check_length


def as_sets(
    problem: Problem,
    X: Any,
    true_costs: Any,
    *,
    margin: Any,
    size: int,
    form: CostForm | None = None,
) -> Sets:
    """The sets of `size` decisions, given by exactly one of `X` and `true_costs`.

    An OptimalitySet keeps its own constraints, margin and form, as do sets of several problems.
    """
    if (X is None) == (true_costs is None):
        # The first words are those that scikit-learn's tools look for.
        got = "got None" if X is None else "got two"
        raise InputError(
            f"Expected array-like (array or non-string sequence), {got}: give decisions "
            "fit(Z, X), or true costs fit(Z, true_costs=C)."
        )
    if X is None:
        X = _optimal_decisions(problem, true_costs)
    X = joined(X)
    if isinstance(X, MixedSets):
        check_length(size, len(X))
        return X
    if not isinstance(X, OptimalitySet):
        X = numbers(X)
        check_length(size, len(X) if X.ndim else 1)
        X = OptimalitySet(problem, X, margin, form=form)
    if X.problem.n_parameters != problem.n_parameters:
        raise ShapeError(
            f"The sets have {X.problem.n_parameters} cost entries; the problem has "
            f"{problem.n_parameters}."
        )
    if form is not None and X.n_parameters != form.n_parameters:
        raise ShapeError(
            f"The sets are of {X.n_parameters} parameters, `form` of {form.n_parameters}. Build "
            "the sets with the same form, or leave it to them."
        )
    check_length(size, len(X))
    return X


def joined(parts: Any) -> Any:
    """One OptimalitySet of a list of them, as which scikit-learn's cross-validation hands a part
    of one over; anything else as it is."""
    if not (isinstance(parts, list) and parts and isinstance(parts[0], OptimalitySet)):
        return parts
    first = parts[0]
    if any(part.problem is not first.problem or part.form is not first.form for part in parts):
        raise InputError(
            "Sets whose constraints differ by instance cannot be joined again once they are cut "
            "into single ones, as scikit-learn's cross-validation does. Loop over the folds and "
            "use `sets[index]`."
        )
    decisions = np.vstack([part.decisions for part in parts])
    margins = np.concatenate([part.margins for part in parts])
    whole = OptimalitySet(
        first.problem, decisions, margins, tol=first.tol, form=first.form, soft=first.soft
    )
    names = ("weights", "repaired")
    kept = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return whole.replaced(**kept)


def checked_sample_weight(weights: Any, size: int) -> np.ndarray | None:
    """(B,) weights of at least 0, not all of them 0; None stays what it is."""
    if weights is None:
        return None
    array = to_float64(weights, "sample_weight")
    if array.shape != (size,):
        raise ShapeError(
            f"`sample_weight` must have one number for each of the {size} samples; "
            f"got shape {array.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise InputError(
            f"`sample_weight` must be finite and at least 0; got {array[bad[0]]} at sample "
            f"{bad[0]}."
        )
    if not array.any():
        raise InputError("`sample_weight` must not be zero for every sample: none would count.")
    return array


def weighed(sets: Sets, weights: np.ndarray) -> Sets:
    """The sets with samples that count by `weights` (B,) besides what they count already.

    Only their proportions matter; POCS wants none above 1.
    """
    if isinstance(sets, MixedSets):
        raise InputError(
            "`sample_weight` is for samples of one problem; sets of several count by the weights "
            "of their parts."
        )
    if not isinstance(sets, OptimalitySet):
        raise InputError(
            "`sample_weight` is for sets built by OptimalitySet; give these sets weights of their "
            "own."
        )
    return sets.replaced(weights=sets.weights * (weights / weights.max()))


def counting(Z: Any, sets: Sets) -> tuple[Any, Sets, np.ndarray | None]:
    """Contexts and sets of the samples that count, and which those are (None: all).

    A weight of 0 is as if the sample were not there: its context must not enter averages, scales or
    the order of batches either.
    """
    weights = np.asarray(sets.weights)
    if weights.all():
        return Z, sets, None
    there = np.flatnonzero(weights)
    if not there.size:
        raise InputError("The weights of the sets are zero for every sample: none would count.")
    if isinstance(Z, Common):
        return Common(Z.rows, len(there)), sets[there], there
    if isinstance(Z, list | tuple):
        return [Z[k] for k in there], sets[there], there
    if not isinstance(Z, np.ndarray | Ragged) and not is_torch(Z):  # a table of pandas, say
        Z = to_float64(Z, "Z")
    return Z[there], sets[there], there


def in_units(sets: Sets, scale: Any) -> OptimalitySet:
    """The sets of costs divided by `scale` (n,), entry by entry.

    Costs in units of their own are costs of decisions in inverse units: the same alternatives, and
    margins that count in those units too.
    """
    if not isinstance(sets, OptimalitySet) or not isinstance(sets.problem, LinearProgram):
        raise InputError("`scale` is for decisions of one LinearProgram.")
    unit, plain = to_float64(scale, "scale"), sets.problem
    if unit.shape != (plain.n_variables,) or not (np.isfinite(unit) & (unit > 0)).all():
        raise InputError(
            f"`scale` must hold a finite number above 0 for each of the {plain.n_variables} cost "
            f"entries; got shape {unit.shape}."
        )
    if plain.eq_rows.per_instance or plain.ub_rows.per_instance:
        raise InputError("`scale` is for problems whose matrices are the same in every instance.")
    inverse = sparse.diags_array(1.0 / unit)
    problem = LinearProgram(
        A_eq=plain.A_eq @ inverse if plain.eq_rows.shape[0] else None,
        b_eq=plain.b_eq if plain.eq_rows.shape[0] else None,
        A_ub=plain.A_ub @ inverse if plain.ub_rows.shape[0] else None,
        b_ub=plain.b_ub if plain.ub_rows.shape[0] else None,
        lb=plain.lb * unit,
        ub=plain.ub * unit,
    )
    result = OptimalitySet(problem, sets.decisions * unit, sets.margins, tol=sets.tol)
    return result.replaced(weights=sets.weights)


def numbers(X: Any) -> np.ndarray:
    """Decisions as float64; objects that are numbers (columns of mixed kinds in pandas) too."""
    if not is_torch(X) and np.asarray(X).dtype == object:
        try:
            X = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"`decisions` must hold numbers: {error}.") from error
    return to_float64(X, "decisions")


def _optimal_decisions(problem: Any, true_costs: Any) -> np.ndarray:
    answer = problem.solve(to_float64(true_costs, "true_costs"))
    bad = np.flatnonzero(answer.status != SolveStatus.OPTIMAL)
    if bad.size:
        raise InputError(
            f"Sample {bad[0]} of `true_costs` has no decision to learn from ({bad.size} of "
            f"{len(answer)} have none). {SolveStatus(int(answer.status[bad[0]])).sentence}"
        )
    return answer.x
