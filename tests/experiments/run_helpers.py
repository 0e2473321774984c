"""What the tests of runs and sweeps share: a tiny configuration, and how to compare runs."""

from dataclasses import replace

from revealed_experiments.bench.sweeps import runs
from revealed_experiments.bench.sweeps.runs import RunConfig

CONFIG = RunConfig(
    part="tiny",
    label="ours",
    data={"generator": "paper_paths", "sizes": [12, 5, 6], "side": 3},
    method={"name": "projection", "margin": 0.5},
    model={"kind": "linear", "fit_intercept": False, "start": "random"},
    optimiser="adam",
    step=0.1,
    epochs=3,
    batch_size=5,
    seed=0,
)


def figures(run):
    """All that a run found: everything but times and processes."""
    epochs = [{k: v for k, v in row.items() if k != "seconds"} for row in run["epochs"]]
    kept = {name: run[name] for name in ("config", "status", "message", "final")}
    return runs.rounded(kept | {"epochs": epochs})


def several(count, **changes):
    """Configurations of three methods, seed after seed."""
    methods = (
        {"method": {"name": "projection"}, "label": "ours"},
        {"method": {"name": "st"}, "label": "ST"},
        {"method": {"name": "spo+"}, "label": "SPO+", "needs_true_costs": True},
    )
    return [
        replace(CONFIG, seed=k // len(methods), **methods[k % len(methods)], **changes)
        for k in range(count)
    ]
