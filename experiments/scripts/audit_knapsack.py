"""The audit's knapsack: the data sets of our general form, taken in the paper's standard form.

    python experiments/scripts/audit_knapsack.py

An outside audit recast the five data sets of `general_knapsacks` in standard form and measured the
test estimate loss of four methods. `paper_knapsacks` draws other budgets, so those figures are
reproduced here: the same items, budgets, contexts and values, with the slacks predicted, and the
candidates of `revealed bench synthetic`, chosen by the decision loss on validation data.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from revealed.datasets import DataSet, Split, general_knapsacks
from revealed.problems import standard_form_knapsack
from revealed_experiments.bench.published import AUDIT_KNAPSACK
from revealed_experiments.bench.record import surroundings, write_json
from revealed_experiments.bench.sweeps.choose import Chosen, chosen
from revealed_experiments.bench.sweeps.run_one import perform
from revealed_experiments.bench.sweeps.runs import RunConfig
from revealed_experiments.bench.synthetic.experiments import PARTS

PART = "paper knapsack"
OUT = Path("experiments/results/synthetic/audit_knapsack.json")


def in_standard_form(seed: int) -> DataSet:
    """A data set of the general form with the slacks among the variables, at cost 0."""
    general = general_knapsacks(seed=seed)
    weights = general.problem.ub_rows.matrix(0).toarray()[0]
    capacity = float(general.problem.b_ub[0])
    problem = standard_form_knapsack(weights, capacity)

    def recast(split: Split) -> Split:
        costs = np.pad(split.costs, ((0, 0), (0, len(weights) + 1)))
        return Split(split.contexts, problem.solve(costs).x, costs)

    splits = (recast(split) for split in (general.train, general.valid, general.test))
    return DataSet(f"audit's knapsack {seed}", problem, *splits)


def configs() -> list[RunConfig]:
    """All candidates of the four methods on all five seeds."""
    part = next(each for each in PARTS if each.name == PART)
    methods = [m for m in part.methods if (m.label, m.optimiser) in AUDIT_KNAPSACK]
    return list(replace(part, methods=methods).configs())


def of_seed(seed: int, asked: Sequence[RunConfig]) -> list[dict]:
    data = in_standard_form(seed)
    return [perform(config, data) for config in asked if config.seed == seed]


def row(choice: Chosen) -> dict:
    values = choice.final("test", "estimate_loss")
    return {
        "method": choice.label,
        "optimizer": choice.optimiser,
        "settings": choice.settings,
        "audit": AUDIT_KNAPSACK[choice.label, choice.optimiser],
        "found": float(values.mean()),
        "error": float(values.std(ddof=1) / len(values) ** 0.5),
        "by_seed": values.tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    asked = configs()
    seeds = sorted({config.seed for config in asked})
    work = partial(of_seed, asked=asked)
    found = Parallel(n_jobs=args.jobs)(delayed(work)(seed) for seed in seeds)
    rows = [row(choice) for choice in chosen([run for runs in found for run in runs])]
    content = surroundings("python experiments/scripts/audit_knapsack.py", {"seeds": seeds})
    write_json(args.out, content | {"benchmark": "audit_knapsack", "targets": [], "rows": rows})
    for each in rows:
        print(f"{each['method']}: {each['found']:.3f} (audit {each['audit']:.3f})")


if __name__ == "__main__":
    main()
