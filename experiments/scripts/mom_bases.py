"""How much MOM with the true basis depends on which optimal basis it is given, on paper paths.

    python experiments/scripts/mom_bases.py

Nearly every path is degenerate, so several bases are optimal under the true costs, and a solver
picks one. Each choice below is a rule for the multipliers that prove a decision optimal; the basis
is completed from them: those of the projection, which `OptimalityMarginLoss` uses, those of HiGHS's
simplex method, and those of largest and least sum (lengths of shortest paths to the end, and from
the start). Candidates and the choice among them are those of `revealed bench synthetic`.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.optimize import linprog

import revealed.losses.rivals.optimality_margin as mom
from revealed.optimality.sets import EntryState, OptimalitySet
from revealed_experiments.bench.record import surroundings, write_json
from revealed_experiments.bench.sweeps.choose import chosen
from revealed_experiments.bench.sweeps.run_one import perform
from revealed_experiments.bench.synthetic.experiments import PARTS

OUT = Path("experiments/results/synthetic/mom_bases.json")
LABEL = "MOM, true basis"
Proof = Callable[[OptimalitySet, np.ndarray], np.ndarray]


def by_sum(sign: float) -> Proof:
    """The multipliers of largest (sign 1) or least (sign -1) sum among those that prove it."""

    def proof(sets: OptimalitySet, costs: np.ndarray) -> np.ndarray:
        rows = sets.rows.eq_rows.matrix(0).toarray()
        used = np.asarray(sets.entry_state) == EntryState.FREE
        y = np.empty((len(costs), len(rows)))
        for i, (cost, on) in enumerate(zip(costs, used, strict=True)):
            found = linprog(
                np.full(len(rows), -sign),
                A_ub=rows.T[~on],
                b_ub=cost[~on],
                A_eq=rows.T[on],
                b_eq=cost[on],
                bounds=[*[(None, None)] * (len(rows) - 1), (0.0, 0.0)],  # rows add up to 0
                method="highs-ds",
            )
            y[i] = found.x
        return _reduced(rows, costs, y)

    return proof


def by_simplex(sets: OptimalitySet, costs: np.ndarray) -> np.ndarray:
    """The multipliers that HiGHS's dual simplex method ends with."""
    rows = sets.rows.eq_rows.matrix(0).toarray()
    used = np.asarray(sets.entry_state) == EntryState.FREE
    y = [
        linprog(cost, A_eq=rows, b_eq=rows @ on, method="highs-ds").eqlin.marginals
        for cost, on in zip(costs, used, strict=True)
    ]
    return _reduced(rows, costs, np.array(y))


def _reduced(rows: np.ndarray, costs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(B, n + m): reduced costs of the entries, then of the logicals. Dust is 0, so that basic."""
    reduced = np.hstack([costs - y @ rows, -y])
    reduced[:, : costs.shape[1]][np.abs(reduced[:, : costs.shape[1]]) < 1e-9] = 0.0
    return reduced


CHOICES: dict[str, Proof] = {
    "projection": mom._proof,
    "simplex": by_simplex,
    "largest sum": by_sum(1.0),
    "least sum": by_sum(-1.0),
}


def rows_of(name: str) -> list[dict]:
    part = next(each for each in PARTS if each.name == "paper path")
    methods = [each for each in part.methods if each.label == LABEL]
    with mock.patch.object(mom, "_proof", CHOICES[name]):
        runs = [perform(config) for config in replace(part, methods=methods).configs()]
    found = []
    for choice in chosen(runs):
        values = choice.final("test", "estimate_loss")
        found.append(
            {
                "multipliers": name,
                "optimizer": choice.optimiser,
                "settings": choice.settings,
                "test_estimate": float(values.mean()),
                "error": float(values.std(ddof=1) / len(values) ** 0.5),
                "by_seed": values.tolist(),
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--choices", default=",".join(CHOICES))
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    rows = []
    for name in args.choices.split(","):
        rows += rows_of(name)
        for row in rows[-2:]:
            print(f"{name}, {row['optimizer']}: {row['test_estimate']:.2f}", flush=True)
    content = surroundings("python experiments/scripts/mom_bases.py", {"seeds": 5})
    write_json(args.out, content | {"benchmark": "mom_bases", "targets": [], "rows": rows})


if __name__ == "__main__":
    main()
