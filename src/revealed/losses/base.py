"""What every loss shares: one signature, the checks behind it, and decisions from an oracle.

    loss = loss_fn(net(z), x_star)                  # a loss that learns from decisions alone
    loss = loss_fn(net(z), x_star, true_costs=c)    # one whose `needs_true_costs` is True

A rival is a subclass with one method, `per_sample`: the value and the gradient of each sample.

Costs on a GPU stay there. Where the oracle does too (paths), a step reads nothing back and can be
captured in a CUDA graph after an ordinary call. What only reading would show is then not refused
but seen in the result: a sample whose costs are not finite or have no best decision has a loss and
a gradient of NaN.

Letters: B samples, n cost entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from .._common.arrays import as_costs
from .._common.device import as_device_costs, is_cuda
from ..errors import InputError, ShapeError
from ..optimality.sets import OptimalitySet
from ..problems.linear import LinearProgram
from ..problems.protocol import Problem, check_problem, check_same_shape
from ..problems.solution import SolveStatus
from ..projection.triton import DeviceSets
from ._device import with_device_weights
from ._memory import as_keys
from ._reduce import check_reduction, reduce_with_gradient, with_own_weights


@dataclass(frozen=True, eq=False)
class Batch:
    """The samples of one call, checked: float64 tensors on one device, without gradients."""

    problem: LinearProgram
    """With the constraints of these samples."""
    costs: Tensor
    """(B, n) predicted."""
    decisions: Tensor
    """(B, n) observed."""
    true_costs: Tensor | None
    """(B, n), for losses that need them."""
    sets: OptimalitySet | None
    """What the decisions came as, where they came as sets."""
    device_sets: DeviceSets | None = None
    """The same where they came as sets on a device and the loss works there."""

    def decide(self, costs: Tensor) -> Tensor:
        """(B, n): decisions of minimum cost under other costs for the same samples.

        Parameters
        ----------
        costs : (B, n) or (k B, n) tensor
            (k B, n) costs are k rounds of the samples, one after the other.

        Returns
        -------
        Tensor
            Decisions, in the shape of `costs`.
        """
        return decide(self.problem, costs, len(self.costs))


class DecisionLoss(torch.nn.Module):
    """A number to train on: predicted costs (B, n) against observed decisions.

    The mean is over samples, with `weights` divided by their sum; it is 0 for an empty batch. The
    arithmetic is in float64 and the gradient comes back in the dtype of the costs.

    A loss of your own is a subclass with the class attributes below and one method,
    `per_sample(batch)`, which returns values (B,) and gradients in the costs (B, n).

    Parameters
    ----------
    problem : LinearProgram or other problem
        What the decision maker may do; its class must be one that the loss `accepts`.
    reduction : "mean", "sum" or "none"
        "none" returns one loss for each sample, (B,).
    """

    name: ClassVar[str]
    """Short, as in tables and configuration files."""
    oracle_calls: ClassVar[str]
    """How many forward problems a step solves for each sample, in words."""
    works_on_device: ClassVar[bool] = False
    """Whether `per_sample` takes batches that are on a GPU; others get a copy on the CPU."""
    accepts: ClassVar[type] = LinearProgram
    """What problems the loss is about, others are refused: LinearProgram where it reads rows,
    LinearObjective where it only asks for decisions, Problem where it only projects."""
    needs_true_costs: bool = False
    """Whether `true_costs` must be given: such a loss cannot learn from decisions alone."""

    def __init__(self, problem: LinearProgram, *, reduction: str = "mean") -> None:
        super().__init__()
        check_kind(problem, self.accepts)
        check_reduction(reduction)
        self.problem, self.reduction = problem, reduction

    def forward(self, costs: Tensor, decisions: Any, **rest: Any) -> Tensor:
        """What `evaluate` returns, kept out of a compiled graph where there is one.

        Parameters
        ----------
        costs : (B, n) tensor
            Predicted costs.
        decisions : (B, n) array or tensor, OptimalitySet or DeviceSets
            The observed decisions, or the sets of costs that explain them.
        **rest
            `true_costs`, `index` and `weights`, as in `evaluate`.

        Returns
        -------
        Tensor
            One number, or (B,) with `reduction="none"`.
        """
        # The decorator is slow enough to be worth avoiding where nothing is compiled.
        evaluate: Any = self.evaluate
        if torch.compiler.is_compiling():
            evaluate = torch.compiler.disable(evaluate)
        return evaluate(costs, decisions, **rest)

    def evaluate(
        self,
        costs: Tensor,
        decisions: Any,
        *,
        true_costs: Any = None,
        index: Any = None,
        weights: Any = None,
    ) -> Tensor:
        """The loss of predicted costs against observed decisions; calling the module does the same.

        Parameters
        ----------
        costs : (B, n) tensor
            Predicted costs.
        decisions : (B, n) array or tensor, OptimalitySet or DeviceSets
            The observed decisions, or the sets of costs that explain them.
        true_costs : (B, n) array or tensor, optional
            Read by losses that need them (`needs_true_costs`) and by no other.
        index : (B,) array or tensor of int, optional
            Which instances raw decisions belong to, where constraints differ by instance.
        weights : (B,) array or tensor, optional
            How much each sample counts: constants of at least 0. Those of the sets count too.

        Returns
        -------
        Tensor
            One number, or (B,) with `reduction="none"`.

        Raises
        ------
        InputError
            If the costs are no tensor, true costs are needed and missing, or a cost has no
            decision of minimum cost (on a GPU that sample gets NaN instead).
        """
        batch = self._batch(costs, decisions, true_costs, index)
        value, gradient = self.per_sample(batch)
        if batch.device_sets is not None:
            weights = with_device_weights(weights, batch.device_sets)
        elif batch.sets is not None:
            weights = with_own_weights(weights, batch.sets)
        return reduce_with_gradient(
            costs, value, gradient, reduction=self.reduction, weights=weights
        )

    def per_sample(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Values (B,) and gradients in the costs (B, n), float64; what a subclass has to define.

        Parameters
        ----------
        batch : Batch
            The checked samples of one call.

        Returns
        -------
        (B,) Tensor
            Values.
        (B, n) Tensor
            Gradients in the costs.
        """
        raise NotImplementedError

    def begin_epoch(self, seed: int, epoch: int) -> None:
        """Called by the training loop; from then on random losses draw from (seed, epoch).

        Parameters
        ----------
        seed : int
            That of the training.
        epoch : int
            The one that begins.
        """

    def forget(self) -> None:
        """Drop whatever was kept from earlier calls to save time in later ones."""

    def extra_repr(self) -> str:
        return f"{self.problem!r}, reduction={self.reduction!r}"

    def _batch(self, costs: Any, decisions: Any, true_costs: Any, index: Any) -> Batch:
        n = self.problem.n_variables
        refuse_non_tensor(costs)
        device = costs.device if self.works_on_device and is_cuda(costs) else torch.device("cpu")
        q = as_tensor64(costs, n, "costs", device)
        problem, x, sets = self._observed(decisions, index, len(q), device)
        truth = None
        if self.needs_true_costs:
            if true_costs is None:
                raise InputError(
                    f"{type(self).__name__} learns from true costs: give true_costs=, (B, {n}). "
                    "Where only decisions are known, use a loss that needs no more, such as "
                    "ProjectionLoss."
                )
            truth = as_tensor64(true_costs, n, "true_costs", device)
        for name, part in (("decisions", x), ("true_costs", truth)):
            if part is not None and part.shape != q.shape:
                raise ShapeError(
                    f"`{name}` must have a row for each of the {len(q)} rows of `costs`; "
                    f"got {len(part)}."
                )
        problem.check_batch(len(q), "costs")
        if isinstance(sets, DeviceSets):
            return Batch(problem, q, x, truth, None, sets)
        return Batch(problem, q, x, truth, sets)

    def _observed(
        self, decisions: Any, index: Any, size: int, device: torch.device
    ) -> tuple[LinearProgram, Tensor, OptimalitySet | DeviceSets | None]:
        """The constraints of the samples, their decisions (B, n), and the sets if there are any."""
        if isinstance(decisions, DeviceSets):
            check_same_shape(decisions.table.host.problem, self.problem)
            if self.works_on_device:
                return decisions.problem, decisions.decisions.to(device), decisions
            decisions = decisions.on_host()
        if isinstance(decisions, OptimalitySet):
            check_same_shape(decisions.problem, self.problem)
            x = np.require(decisions.decisions, requirements="W")  # as torch insists
            problem: Any = decisions.problem  # one of those that the loss accepts
            return problem, torch.from_numpy(x).to(device), decisions
        problem = own_instances(self.problem, index, size)
        x = as_tensor64(decisions, self.problem.n_variables, "decisions", device)
        return problem, x, None


def decide(problem: LinearProgram, costs: Tensor, size: int) -> Tensor:
    """Decisions (k B, n) of minimum cost, on the device of `costs`; B is `size`.

    Where a sample has none it is refused, or on a GPU, where refusing would mean waiting, NaN.
    """
    rounds = len(costs) // size if size else 1
    if problem.n_instances is not None and rounds > 1:
        problem = problem[np.tile(np.arange(size), rounds)]
    solution = problem.solve(costs)
    if not is_cuda(costs) and torch.count_nonzero(solution.status):  # OPTIMAL is 0
        row = int(torch.nonzero(torch.as_tensor(solution.status) != SolveStatus.OPTIMAL)[0])
        status = SolveStatus(int(solution.status[row]))
        raise InputError(
            f"No decision is optimal under the costs of sample {row % size}: the problem is "
            f"{status.name.lower()} there. Where negative costs have no meaning (a path through a "
            "graph with cycles), end the network with softplus, and give a loss that shifts or "
            "disturbs costs a `floor`, such as 0.01."
        )
    return solution.x


# --- checks --------------------------------------------------------------------------------------


def check_kind(problem: Any, accepts: type = LinearProgram) -> None:
    """Refuse what is not a problem, and all but those of the class that is needed."""
    if accepts is Problem:
        check_problem(problem)
    elif not isinstance(problem, accepts):
        what = "a LinearProgram" if accepts is LinearProgram else "a problem of linear costs"
        raise InputError(
            f"`problem` must be {what}; got {type(problem).__name__}. "
            "Build one with rv.LinearProgram(...) or from rv.problems. For other problems there "
            "is ProjectionLoss."
        )


def own_instances(problem: LinearProgram, index: Any, size: int) -> LinearProgram:
    """The problem with the constraints of the samples in `index`, if each has its own."""
    if problem.n_instances is None or index is None:
        return problem
    return problem[as_keys(index, size)]


def as_tensor64(values: Any, n: int, name: str, device: torch.device) -> Tensor:
    """(B, n) float64 on `device`, detached and checked.

    What is on a GPU already and stays there is checked by its shape alone.
    """
    if is_cuda(values) and values.device == device:
        return as_device_costs(values, n, name).double()
    array = as_costs(values, n, name)[0]
    return torch.from_numpy(array if array.flags.writeable else array.copy()).to(device)


def refuse_non_tensor(costs: Any) -> None:
    """Costs must come as a tensor, or there is nothing to differentiate."""
    if not isinstance(costs, Tensor):
        raise InputError(
            f"`costs` must be a torch tensor; got {type(costs).__name__}. "
            "For numpy arrays use rv.losses.projection_loss or rv.project."
        )
