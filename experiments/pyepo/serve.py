"""PyEPO at work for `revealed bench`: one question in a line of JSON, one answer in another.

Runs in PyEPO's own environment; the other end is `revealed_experiments.bench.epochs.partner`.
Training is as in PyEPO's own examples: its data sets, a loader that shuffles, a linear layer, Adam.

Letters: B samples, d context features, n cost entries.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyepo
import torch
from models import linear_program, path_5x5, versions
from pyepo.data.dataset import optDataLoader, optDataset, optDatasetConstrs
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset

EXACT_ITERATIONS = 200
"""Far more steps than Clarabel takes to converge: CaVE with an exact projection."""
HYBRID_RATIO = 0.3
"""How often CaVE's hybrid projects, as in its authors' experiments."""

Batch = list[Tensor]
"""Contexts, costs, decisions, objectives and, for CaVE, the binding constraints."""
Loss = Callable[[Tensor, Batch], Tensor]


@dataclass
class Data:
    """What a file holds, and PyEPO's model and data sets made from it when first asked for."""

    arrays: dict[str, np.ndarray]
    modules: dict[Any, Loss] = field(default_factory=dict)

    @cached_property
    def model(self) -> Any:
        if str(self.arrays["kind"]) == "path 5x5":
            return path_5x5()
        parts = {key: self.arrays[key] for key in ("A_eq", "b_eq", "A_ub", "b_ub", "lb", "ub")}
        # PyEPO's own paths have this bound too; without it costs below 0 on a cycle have no answer.
        parts["ub"] = np.minimum(parts["ub"], 1.0)
        return linear_program(**parts)

    @cached_property
    def plain(self) -> optDataset:
        return optDataset(self.model, self.arrays["contexts"], self.arrays["costs"])

    @cached_property
    def with_constraints(self) -> optDatasetConstrs:
        return optDatasetConstrs(self.model, self.arrays["contexts"], self.arrays["costs"])

    def dataset(self, method: str) -> optDataset:
        return self.with_constraints if method.startswith("cave") else self.plain


def make_loss(method: str, data: Data, processes: int, options: dict[str, Any]) -> Loss:
    """A function of predicted costs and a batch, for one of PyEPO's methods."""
    model, func = data.model, pyepo.func
    if method == "two-stage":
        mean_square = nn.MSELoss()
        return lambda costs, batch: mean_square(costs, batch[1])
    if method == "spo+":
        spo = func.SPOPlus(model, processes=processes)
        return lambda costs, batch: spo(costs, *batch[1:4])
    if method == "pfyl":
        young = func.perturbedFenchelYoung(model, processes=processes, **options)
        return lambda costs, batch: young(costs, batch[2])
    if method == "nce":
        contrast = func.noiseContrastiveEstimation(
            model, processes=processes, dataset=data.plain, **options
        )
        return lambda costs, batch: contrast(costs, batch[2])
    if method in CAVES:
        cone = func.coneAlignedCosine(model, processes=processes, **CAVES[method])
        return lambda costs, batch: cone(costs, batch[4])
    layer = LAYERS[method](model, processes=processes, **options)
    return lambda costs, batch: 0.5 * (layer(costs) - batch[2]).square().sum(1).mean()


CAVES: dict[str, dict[str, Any]] = {
    "cave": {"max_iter": EXACT_ITERATIONS},
    "cave+": {},
    "cave hybrid": {"solve_ratio": HYBRID_RATIO},
}
LAYERS: dict[str, Any] = {
    "st": pyepo.func.negativeIdentity,
    "bb": pyepo.func.blackboxOpt,
    "dpo": pyepo.func.perturbedOpt,
}


# --- training ------------------------------------------------------------------------------------


def one_epoch(
    net: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable[Batch], loss: Loss
) -> None:
    for batch in batches:
        value = loss(net(batch[0]), batch)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()


def linear_layer(arrays: dict[str, np.ndarray]) -> nn.Linear:
    """As torch draws it, or from weights in the file."""
    net = nn.Linear(arrays["contexts"].shape[1], arrays["costs"].shape[1])
    if "coef" in arrays:
        with torch.no_grad():
            net.weight.copy_(torch.from_numpy(arrays["coef"]))
            net.bias.copy_(torch.from_numpy(arrays["intercept"]))
    return net


def train(question: dict[str, Any]) -> dict[str, Any]:
    """Seconds of each epoch; data sets, processes and a first step are made ready before."""
    data = load(question["data"])
    method, processes = question["method"], question["processes"] or 1
    dataset, key = data.dataset(method), (method, processes)
    collate = getattr(dataset, "collate_fn", None)
    samples = question["samples"]
    part = dataset if samples == len(dataset) else Subset(dataset, range(samples))
    loader = DataLoader(part, question["batch_size"], shuffle=True, collate_fn=collate)
    if key not in data.modules:
        options = {"n_samples": 1} if method == "pfyl" else {}
        data.modules[key] = make_loss(method, data, processes, options)
    loss, net = data.modules[key], linear_layer(data.arrays)
    optimizer = torch.optim.Adam(net.parameters(), lr=question["step"])
    batch = next(iter(loader))
    loss(net(batch[0]), batch)  # where there are processes, they have begun when this returns
    seconds = []
    for _ in range(question["epochs"]):
        began = time.perf_counter()
        one_epoch(net, optimizer, loader, loss)
        seconds.append(time.perf_counter() - began)
    return {"seconds": seconds}


def fit(question: dict[str, Any]) -> dict[str, Any]:
    """Train on batches in the order that the file gives; predicted costs of the test contexts.

    In double precision, like the other end: in single, what rounding leaves of gradients that
    cancel is enough for Adam to make a step of it, and the two part ways.
    """
    data, method = load(question["data"]), question["method"]
    loss = make_loss(method, data, 1, question["options"])
    dataset, net = data.dataset(method), linear_layer(data.arrays).double()
    optimizer = torch.optim.Adam(net.parameters(), lr=question["step"])
    size = question["batch_size"]
    for order in data.arrays["orders"][: question["epochs"]]:
        parts = [order[k : k + size].tolist() for k in range(0, len(order), size)]
        loader = optDataLoader(dataset, batch_sampler=parts)
        batches = ([tensor.double() for tensor in batch] for batch in loader)
        one_epoch(net, optimizer, batches, loss)
    with torch.no_grad():
        costs = net(torch.from_numpy(data.arrays["test_contexts"]))
    np.savez(question["answer"], costs=costs.numpy())
    return {"file": question["answer"]}


def generate(question: dict[str, Any]) -> dict[str, Any]:
    """A data set of PyEPO's own generator, with its edges in PyEPO's order."""
    contexts, costs = pyepo.data.shortestpath.genData(
        question["samples"],
        5,
        (5, 5),
        deg=question["degree"],
        noise_width=0.5,
        seed=question["seed"],
    )
    arcs = np.array(path_5x5().arcs)
    np.savez(question["answer"], contexts=contexts, costs=costs.astype(float), arcs=arcs)
    return {"file": question["answer"]}


# --- conversation --------------------------------------------------------------------------------

_known: dict[str, Data] = {}


def load(path: str) -> Data:
    """A file is read once, and makes room for the next."""
    if path not in _known:
        _known.clear()
        with np.load(path, allow_pickle=False) as file:
            _known[path] = Data({key: file[key] for key in file.files})
    return _known[path]


ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "versions": lambda question: {"versions": versions()},
    "train": train,
    "fit": fit,
    "generate": generate,
}


def main() -> None:
    replies = sys.stdout
    sys.stdout = sys.stderr  # whatever else is printed must not get between the answers
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the faster choice for products as small as these
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = ANSWERS[question["ask"]](question)
        except Exception as error:  # told to the other end, which decides
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=replies, flush=True)


if __name__ == "__main__":
    main()
