"""Write tests/data/pyepo_reference.json: what PyEPO's losses say on inputs that are in the file.

    .venv-pyepo/bin/python experiments/pyepo/reference.py

Costs, decisions, noise, values and gradients are in PyEPO's own convention and order: the test that
reads them translates. Everything runs in float64, so that both sides compute the same numbers.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyepo
import torch
from models import assignment, fractional_knapsack, path_5x5, versions
from pyepo import EPO
from pyepo.data.dataset import collate_tight_constraints, optDataset, optDatasetConstrs
from pyepo.data.shortestpath import genData
from torch import Tensor

SAMPLES = 8
DIGITS = 9
DRAWS = 4
EXACT_ITERATIONS = 200
"""Far more steps than Clarabel takes to converge: CaVE with an exact projection."""


@dataclass
class Problem:
    """A forward problem with two batches of inputs."""

    name: str
    model: Any
    facts: dict[str, Any]
    batches: list[tuple[np.ndarray, np.ndarray]]
    """Predicted and true costs, (B, n) each."""

    @property
    def is_binary(self) -> bool:
        return self.name != "knapsack"


def problems() -> list[Problem]:
    path = path_5x5()
    weights, capacity = np.array([3.0, 4, 5, 6, 7, 8, 5, 4]), 17.5
    knapsack = fractional_knapsack(weights, capacity)
    return [
        Problem("path", path, {"arcs": path.arcs}, [_path_batch(seed) for seed in (0, 1)]),
        Problem(
            "knapsack",
            knapsack,
            {"weights": weights, "capacity": capacity},
            [_uniform_batch(seed, len(weights)) for seed in (2, 3)],
        ),
        Problem("assignment", assignment(4), {"size": 4}, [_uniform_batch(4, 16)]),
    ]


def _path_batch(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """True costs as PyEPO draws them; predicted are those of another sample, with more noise."""
    _, true = genData(SAMPLES, 5, (5, 5), deg=4, noise_width=0.5, seed=seed)
    noise = np.random.default_rng(seed).uniform(0.3, 1.7, true.shape)
    return _rounded(np.roll(true, 1, axis=0) * noise), _rounded(true)


def _uniform_batch(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return _rounded(rng.uniform(0.5, 3, (SAMPLES, n))), _rounded(rng.uniform(0.5, 3, (SAMPLES, n)))


# --- the losses ----------------------------------------------------------------------------------


@dataclass
class Inputs:
    """What a loss may ask for besides predicted costs: (B, n), (B, n), (B, 1), (B, k, n)."""

    model: Any
    dataset: optDataset
    costs: Tensor
    decisions: Tensor
    objectives: Tensor
    binding: Tensor | None


def spo_plus(given: Inputs, predicted: Tensor) -> Tensor:
    loss = pyepo.func.SPOPlus(given.model, reduction="none")
    return loss(predicted, given.costs, given.decisions, given.objectives)


def of_decision(given: Inputs, decision: Tensor) -> Tensor:
    """1/2 |x - x*|^2 of decisions that a layer has returned."""
    return 0.5 * (decision - given.decisions).square().sum(1)


def of_regret(given: Inputs, decision: Tensor) -> Tensor:
    """<c*, x - x*> for costs, its negative for values."""
    sign = 1.0 if given.model.modelSense == EPO.MINIMIZE else -1.0
    return sign * (given.costs * (decision - given.decisions)).sum(1)


Judge = Callable[[Inputs, Tensor], Tensor]


def layer(make: Callable[[Inputs], Any], judge: Judge) -> Callable[[Inputs, Tensor], Tensor]:
    """A layer that returns decisions, judged."""
    return lambda given, predicted: judge(given, make(given)(predicted))


def perturbed(seed: int, baseline: bool) -> Callable[[Inputs], Any]:
    return lambda given: pyepo.func.perturbedOpt(
        given.model, n_samples=DRAWS, sigma=0.7, seed=seed, variance_reduction=baseline
    )


def fenchel_young(seed: int) -> Callable[[Inputs, Tensor], Tensor]:
    def loss(given: Inputs, predicted: Tensor) -> Tensor:
        loss = pyepo.func.perturbedFenchelYoung(
            given.model, n_samples=DRAWS, sigma=0.7, seed=seed, reduction="none"
        )
        return loss(predicted, given.decisions)

    return loss


def contrastive(given: Inputs, predicted: Tensor) -> Tensor:
    loss = pyepo.func.noiseContrastiveEstimation(
        given.model, solve_ratio=1.0, dataset=given.dataset, reduction="none"
    )
    loss.solpool = loss.solpool.to(predicted)
    return loss(predicted, given.decisions)


def cave(**options: Any) -> Callable[[Inputs, Tensor], Tensor]:
    def loss(given: Inputs, predicted: Tensor) -> Tensor:
        module = pyepo.func.coneAlignedCosine(given.model, reduction="none", **options)
        return module(predicted, given.binding)

    return loss


def blackbox(given: Inputs) -> Any:
    return pyepo.func.blackboxOpt(given.model, lambd=2.5)


def identity(given: Inputs) -> Any:
    return pyepo.func.negativeIdentity(given.model)


SEEDS = (135, 7)
LOSSES: dict[str, Callable[[Inputs, Tensor], Tensor]] = {
    "SPOPlus": spo_plus,
    "blackboxOpt, decision": layer(blackbox, of_decision),
    "blackboxOpt, regret": layer(blackbox, of_regret),
    "negativeIdentity, decision": layer(identity, of_decision),
    "negativeIdentity, regret": layer(identity, of_regret),
    "noiseContrastiveEstimation": contrastive,
}
SAMPLED: dict[str, Callable[[int], Callable[[Inputs, Tensor], Tensor]]] = {
    "perturbedFenchelYoung": fenchel_young,
    "perturbedOpt, decision": lambda seed: layer(perturbed(seed, False), of_decision),
    "perturbedOpt, regret": lambda seed: layer(perturbed(seed, False), of_regret),
    "perturbedOpt with baseline, decision": lambda seed: layer(perturbed(seed, True), of_decision),
}
BINARY: dict[str, Callable[[Inputs, Tensor], Tensor]] = {
    "coneAlignedCosine, exact": cave(max_iter=EXACT_ITERATIONS),
    "coneAlignedCosine, 3 steps": cave(max_iter=3),
    "coneAlignedCosine, heuristic": cave(solve_ratio=0.0, inner_ratio=0.2),
}


# --- evaluation ----------------------------------------------------------------------------------


def evaluate(problem: Problem) -> list[dict[str, Any]]:
    """One entry for each batch: its inputs, its noise by seed, and what every loss says."""
    return [_evaluate_batch(problem, *batch) for batch in problem.batches]


def _evaluate_batch(problem: Problem, predicted: np.ndarray, true: np.ndarray) -> dict[str, Any]:
    given = _inputs(problem, predicted, true)
    entry: dict[str, Any] = {
        "predicted": predicted,
        "true": true,
        "decisions": given.decisions.numpy(),
        "noise": {},
        "losses": {},
    }
    losses = LOSSES | (BINARY if problem.is_binary else {})
    for name, loss in losses.items():
        entry["losses"][name] = _value_and_gradient(given, loss, predicted)
    for seed in SEEDS:
        for name, make in SAMPLED.items():
            with _recorded_noise() as drawn:
                found = _value_and_gradient(given, make(seed), predicted)
            (noise,) = drawn
            known = entry["noise"].setdefault(str(seed), noise)
            assert np.array_equal(known, noise), "one seed, one noise"
            entry["losses"][f"{name}, seed {seed}"] = found
    return entry


def _inputs(problem: Problem, predicted: np.ndarray, true: np.ndarray) -> Inputs:
    features = np.zeros((len(true), 1))
    kind = optDatasetConstrs if problem.is_binary else optDataset
    dataset = kind(problem.model, features, true)
    # The data set keeps single precision; solve again for all digits of the decisions.
    solved = [_solve(problem.model, costs) for costs in true]
    decisions = torch.tensor(np.array([x for x, _ in solved]))
    objectives = torch.tensor([[value] for _, value in solved], dtype=torch.float64)
    binding = None
    if problem.is_binary:
        batch = collate_tight_constraints([dataset[i] for i in range(len(dataset))])
        binding = batch[4].double()
    return Inputs(problem.model, dataset, torch.tensor(true), decisions, objectives, binding)


def _solve(model: Any, costs: np.ndarray) -> tuple[np.ndarray, float]:
    model.setObj(costs)
    x, value = model.solve()
    return np.asarray(x, dtype=float), float(value)


def _value_and_gradient(
    given: Inputs, loss: Callable[[Inputs, Tensor], Tensor], predicted: np.ndarray
) -> dict[str, Any]:
    """Values (B,), and gradients (B, n): rows of a batch do not see each other."""
    costs = torch.tensor(predicted, requires_grad=True)
    value = loss(given, costs)
    value.sum().backward()
    assert costs.grad is not None
    return {"value": value.detach().numpy(), "gradient": costs.grad.numpy()}


@contextmanager
def _recorded_noise() -> Iterator[list[np.ndarray]]:
    """The normal draws that PyEPO makes inside, (B, draws, n) each."""
    drawn: list[np.ndarray] = []
    original = torch.randn

    def recording(*args: Any, **options: Any) -> Tensor:
        result = torch.round(original(*args, **options), decimals=DIGITS)
        drawn.append(result.numpy().copy())
        return result

    torch.randn = recording
    try:
        yield drawn
    finally:
        torch.randn = original


def generated() -> list[dict[str, Any]]:
    """A few samples of PyEPO's own generator."""
    found = []
    for seed in (42, 43):
        for degree in (4, 6):
            x, c = genData(3, 5, (5, 5), deg=degree, noise_width=0.5, seed=seed)
            found.append({"seed": seed, "degree": degree, "contexts": x, "costs": c})
    return found


# --- on disk -------------------------------------------------------------------------------------


def _rounded(array: np.ndarray) -> np.ndarray:
    return np.round(np.asarray(array, dtype=float), DIGITS)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return (_rounded(value) + 0.0).tolist()  # + 0.0: no minus in front of a 0
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _as_json(content: Any) -> str:
    """Strict JSON with whole numbers as such, which makes most gradients short."""

    def short(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: short(item) for key, item in value.items()}
        if isinstance(value, list):
            return [short(item) for item in value]
        if isinstance(value, float) and value == int(value):
            return int(value)
        return value

    return json.dumps(short(content), separators=(",", ":"), allow_nan=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).resolve().parents[2]
    parser.add_argument("--out", type=Path, default=here / "tests/data/pyepo_reference.json")
    args = parser.parse_args()
    content = {
        "written by": "experiments/pyepo/reference.py",
        "versions": versions(),
        "options": {"lam": 2.5, "sigma": 0.7, "n_samples": DRAWS, "inner_ratio": 0.2},
        "problems": {p.name: p.facts | {"batches": evaluate(p)} for p in problems()},
        "generated": generated(),
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(_as_json(_plain(content)) + "\n", "utf-8")
    print(f"{args.out.name}: {args.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
