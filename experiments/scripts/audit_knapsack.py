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
from revealed_experiments.bench.sweeps.runs import Run, RunConfig
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


def configs(skip: str | None = None) -> list[RunConfig]:
    """All candidates of the four methods on all five seeds, but for the method to skip."""
    part = next(each for each in PARTS if each.name == PART)
    asked = AUDIT_KNAPSACK.keys() - {name for name in AUDIT_KNAPSACK if name[0] == skip}
    methods = [m for m in part.methods if (m.label, m.optimiser) in asked]
    return list(replace(part, methods=methods).configs())


def of_seed(seed: int, asked: Sequence[RunConfig]) -> list[dict]:
    data = in_standard_form(seed)
    return [perform(config, data) for config in asked if config.seed == seed]


def candidates(runs: Sequence[Run], choice: Chosen) -> list[dict]:
    """What each step of a method came to, means over seeds: what the choice was made among."""
    mine = [r for r in runs if r["config"]["label"] == choice.label]
    mine = [r for r in mine if r["config"]["method"] == choice.config["method"] and r["final"]]
    found = []
    for step in dict.fromkeys(r["config"]["step"] for r in mine):
        final = [r["final"] for r in mine if r["config"]["step"] == step]
        told = {
            "step": step,
            "valid_decision": float(np.mean([f["valid"]["decision_loss"] for f in final])),
            "test_estimate": float(np.mean([f["test"]["estimate_loss"] for f in final])),
        }
        found.append(told)
    return found


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
    parser.add_argument(
        "--skip", metavar="METHOD", help="leave one out, say QPTL, which takes longest"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    asked = configs(args.skip)
    seeds = sorted({config.seed for config in asked})
    work = partial(of_seed, asked=asked)
    found = Parallel(n_jobs=args.jobs)(delayed(work)(seed) for seed in seeds)
    runs = [run for each in found for run in each]
    rows = [row(each) | {"candidates": candidates(runs, each)} for each in chosen(runs)]
    command = "python experiments/scripts/audit_knapsack.py"
    command += f" --skip {args.skip}" if args.skip else ""
    content = surroundings(command, {"seeds": seeds})
    write_json(args.out, content | {"benchmark": "audit_knapsack", "targets": [], "rows": rows})
    for each in rows:
        print(f"{each['method']}: {each['found']:.3f} (audit {each['audit']:.3f})")


if __name__ == "__main__":
    main()
