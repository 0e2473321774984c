"""Timing epochs of training: every method takes its turn, round after round.

A round trains each method afresh from the same start for a few epochs, so that a slow minute of
the machine falls on all of them; what counts is the median epoch of all rounds. Data, sets and
models are prepared before the clock runs, for everyone.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from revealed.errors import RevealedError

from .partner import Partner
from .tasks import Method, Task

STEP = 0.01
"""Of Adam, for everyone."""
ROUND_S = 2.0
"""A method trains fewer epochs in a round if more would take longer than this."""
WHOLE_S = 10.0
"""A method whose epoch takes longer is timed on part of the data, and its time scaled."""
SLOW_S = 20.0
"""A method that has taken this long on a task, and had two turns, is excused from the rest."""

Train = Callable[[int, int], list[float]]
"""(epochs, samples) -> seconds of each epoch."""


@dataclass(eq=False)
class Entrant:
    """A method ready to be timed on a task, and what was measured."""

    label: str
    kind: str
    """That of a `Method`, or "PyEPO"."""
    needs_true_costs: bool
    train: Train
    samples: int
    """In an epoch."""
    timed_samples: int = 0
    """In an epoch that was timed; fewer for the slowest."""
    first: list[float] = field(default_factory=list)
    """Seconds of the first epoch of each round, when nothing is warm."""
    later: list[float] = field(default_factory=list)
    """Seconds of all the others."""
    expected_s: float = 0.0
    failure: str = ""

    def warm_up(self, batch_size: int) -> None:
        """Compile and load on a little data, then guess how long an epoch will take."""
        few = min(self.samples, batch_size)
        seconds = self._try(1, few)
        if seconds and sum(seconds) < ROUND_S:  # the first is often slower than the rest
            seconds = self._try(2, few)
        if seconds:
            self.expected_s = min(seconds) * self.samples / few
            self.timed_samples = self.samples if self.expected_s <= WHOLE_S else few

    def one_round(self, epochs: int) -> None:
        """Train afresh, for fewer epochs than that if they take long."""
        if self.failure or (len(self.first) >= 2 and self.spent_s > SLOW_S):
            return
        expected = self.expected_s * self.timed_samples / self.samples
        fitting = int(ROUND_S / max(expected, 1e-9))
        seconds = self._try(min(epochs, max(1, fitting)), self.timed_samples)
        self.first += seconds[:1]
        self.later += seconds[1:]

    @property
    def spent_s(self) -> float:
        """Seconds that its epochs have taken so far."""
        return sum(self.first) + sum(self.later)

    def _try(self, epochs: int, samples: int) -> list[float]:
        """Seconds of each epoch; a method that cannot do it says why and is out of the race."""
        try:
            return self.train(epochs, samples)
        except (RevealedError, ArithmeticError) as error:
            self.failure = str(error)
            return []

    def report(self) -> dict[str, Any]:
        """The measurements as plain values; seconds are for an epoch of all the data."""
        facts = {
            "label": self.label,
            "kind": self.kind,
            "needs_true_costs": self.needs_true_costs,
            "failure": self.failure,
        }
        if not self.first:
            return facts
        scale = self.samples / self.timed_samples
        every = [scale * s for s in self.first + self.later]
        return facts | {
            "median_s": statistics.median(every),
            "best_s": min(every),
            "first_s": scale * statistics.median(self.first),
            "epochs_timed": len(every),
            "samples_timed": self.timed_samples,
        }


def take_turns(entrants: list[Entrant], batch_size: int, rounds: int, epochs: int) -> None:
    """Time every entrant for up to `epochs` epochs a round; those that fail drop out."""
    for entrant in entrants:
        entrant.warm_up(batch_size)
    for _ in range(rounds):
        for entrant in entrants:
            entrant.one_round(epochs)


# --- who takes part ------------------------------------------------------------------------------


class _Clock:
    """A monitor for `erm`, which calls it before each epoch and once after the last."""

    def __init__(self) -> None:
        self._readings: list[float] = []

    def __call__(self, model: Any) -> dict[str, Any]:
        self._readings.append(time.perf_counter())
        return {}

    def seconds(self) -> list[float]:
        return np.diff(self._readings).tolist()


def enter_method(task: Task, method: Method) -> Entrant:
    """A loss of the library in the library's own training loop."""
    from revealed.fit import LinearModel, erm

    sets = task.sets()

    def train(epochs: int, samples: int) -> list[float]:
        model, clock = LinearModel(), _Clock()
        model.coef, model.intercept = task.coef.copy(), task.intercept.copy()
        loss, part = method.loss(task), slice(samples)
        erm(
            model,
            task.contexts[part],
            sets[part],
            loss=loss,
            true_costs=task.true_costs[part] if loss.needs_true_costs else None,
            optimizer="adam",
            lr=STEP,
            max_epochs=epochs,
            batch_size=task.batch_size,
            tol=0.0,
            monitor=clock,
        )
        return clock.seconds()

    needs = bool(method.loss(task).needs_true_costs)
    return Entrant(method.label, method.kind, needs, train, len(task))


def enter_plain_loop(task: Task) -> Entrant:
    """Regression on true costs as anyone would write it: a linear layer, mean squared error."""
    import torch

    from revealed.fit.torch_model import threads_worth_it

    Z = torch.from_numpy(task.contexts).float()
    C = torch.from_numpy(task.true_costs).float()

    def train(epochs: int, samples: int) -> list[float]:
        net = torch.nn.Linear(Z.shape[1], C.shape[1])
        optimiser = torch.optim.Adam(net.parameters(), lr=STEP)
        measure, seconds = torch.nn.MSELoss(), []
        with threads_worth_it(net, task.batch_size):
            for _ in range(epochs):
                began = time.perf_counter()
                for index in torch.randperm(samples).split(task.batch_size):
                    loss = measure(net(Z[index]), C[index])
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
                seconds.append(time.perf_counter() - began)
        return seconds

    return Entrant("two-stage, plain torch loop", "regression", True, train, len(task))


def enter_partner(
    partner: Partner, task: Task, place: str, method: str, label: str, processes: int
) -> Entrant:
    """A method of PyEPO, trained by its own loop in its own process on the data at `place`."""

    def train(epochs: int, samples: int) -> list[float]:
        answer = partner.ask(
            "train",
            data=place,
            method=method,
            processes=processes,
            epochs=epochs,
            samples=samples,
            batch_size=task.batch_size,
            step=STEP,
        )
        return answer["seconds"]

    needs = method in ("spo+", "two-stage")
    plural = "es" if processes > 1 else ""
    kind = "regression" if method == "two-stage" else "PyEPO"
    name = f"PyEPO {label}, {processes} process{plural}" if processes else f"PyEPO {label}"
    return Entrant(name, kind, needs, train, len(task))
