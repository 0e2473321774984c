"""Made-up runs for the report's tests: the files that a sweep leaves behind, without the sweep."""

import json
from pathlib import Path

import numpy as np

# label -> (method name, needs true costs, optimiser, where its test losses end relative to ours)
METHODS = {
    "ours, POCS": ("projection", False, "pocs", 1.0),
    "ours, ERM": ("projection", False, "armijo", 1.0),
    "ours, smoothed": ("smoothed", False, "adam", 0.97),
    "ST": ("st", False, "adam", 1.5),
    "BB": ("bb", False, "adam", 1.9),
    "QPTL": ("qptl", False, "adam", 1.7),
    "MOM": ("mom", False, "armijo", 1.2),
    "MOM, true basis": ("mom", True, "armijo", 1.2),
    "PFYL": ("pfyl", False, "adam", 1.05),
    "CaVE": ("cave", False, "adam", 1.4),
    "CaVE+": ("cave+", False, "adam", 1.1),
    "NCE": ("nce", False, "adam", 1.6),
    "SPO+": ("spo+", True, "adam", 0.98),
    "two-stage": ("two-stage", True, "adam", 1.15),
}
MEASURES = {"decision_loss": 2.0, "estimate_loss": 8.0, "relative_regret": 0.08}
SPLITS = {"train": 0.5, "valid": 1.0, "test": 1.0}
MADE_BY = "revealed bench synthetic --seeds 5"
SWEEP = {
    "experiment": "synthetic",
    "command": MADE_BY,
    "when": "2026-01-02T03:04:05+00:00",
    "hardware": {"processor": "Imaginary 9000", "cores": 2, "memory_gib": 24.0},
    "versions": {"python": "3.11.7", "revealed": "0.1.0"},
    "settings": {"quick": False},
}


def make_config(part, label, seed=0, *, step=0.1, **changes):
    """The configuration of one run; unknown labels are rivals never heard of."""
    name, needs, optimiser, _ = METHODS.get(label, (label, False, "adam", 1.3))
    config = {
        "part": part,
        "label": label,
        "data": {"generator": "paper_paths", "sizes": [100, 100, 100]},
        "method": {"name": name},
        "model": {"kind": "linear"},
        "optimiser": optimiser,
        "step": step,
        "epochs": 20,
        "batch_size": 100,
        "seed": seed,
        "needs_true_costs": needs,
        "training": {},
    }
    return {**config, **changes}


def make_run(config, *, level=None, status="finished", message=""):
    """A run whose losses fall to `level` times ours, with a little luck that the seed decides."""
    if level is None:
        level = METHODS.get(config["label"], (None, None, None, 1.3))[3]
    rng = np.random.default_rng([config["seed"], 7])
    luck = 1 + 0.1 * rng.standard_normal() + 0.01 * hash_of(config["label"])
    epochs = []
    for epoch in (0, 1, 2, 5, 10, 15, 20):
        fall = 1 + 2.5 * np.exp(-epoch / 4)
        losses = {
            split: {m: size * share * level * luck * fall for m, size in MEASURES.items()}
            for split, share in SPLITS.items()
        }
        epochs.append({"epoch": epoch, "seconds": 0.002, "loss": fall, **losses})
    key = f"{config['part']}-{config['label']}-{config['step']}-{config['seed']}"
    return {
        "config": config,
        "status": status,
        "message": message,
        "command": f"revealed bench run '{key}'",
        "epochs": epochs,
        "epoch_seconds": 0.001 * level**4,
        "seconds": 1.0,
        "final": {s: epochs[-1][s] for s in SPLITS} if status == "finished" else None,
    }


def hash_of(label):
    """A number in [-1, 1] that goes with a label, the same in every process."""
    return (sum(map(ord, label)) % 201 - 100) / 100


def write_runs(folder: Path, runs, sweep=SWEEP) -> Path:
    """Write a folder as a sweep would, and return it."""
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    for k, run in enumerate(runs):
        (folder / "runs" / f"run-{k:04d}.json").write_text(json.dumps(run), "utf-8")
    if sweep is not None:
        parts = list(dict.fromkeys((run.get("config") or {}).get("part") for run in runs))
        (folder / "sweep.json").write_text(json.dumps({**sweep, "parts": parts}), "utf-8")
    return folder


def whole_sweep(paper_seeds=5, cave_seeds=10):
    """Runs of every part that the benchmark has, with two candidates for each method."""
    runs = []
    for part, seeds in (
        ("paper path", range(paper_seeds)),
        ("paper knapsack", range(paper_seeds)),
        ("cave degree 4", range(42, 42 + cave_seeds)),
        ("cave degree 6", range(42, 42 + cave_seeds)),
    ):
        for label in METHODS:
            if part.startswith("cave") and label in ("ours, POCS", "QPTL"):
                continue
            for seed in seeds:
                runs.append(make_run(make_config(part, label, seed)))
                worse = make_config(part, label, seed, step=0.001)
                runs.append(make_run(worse, level=3.0))
    diverged = make_config("paper path", "BB", 0, step=100.0)
    runs.append(make_run(diverged, status="diverged", message="ValueError: costs of 1e301"))
    runs += margin_runs(paper_seeds) + kernel_runs(paper_seeds)
    return runs


def margin_runs(seeds):
    return [
        make_run(
            make_config(
                f"margins {problem}", f"margin {margin:g}", seed,
                method={"name": "projection", "margin": margin}, optimiser="pocs", step=None,
            ),
            level=1.0 + 0.5 * (margin < 0.1),
        )
        for problem in ("path", "knapsack")
        for margin in (10.0, 1.0, 0.1, 0.01)
        for seed in range(seeds)
    ]  # fmt: skip


def kernel_runs(seeds):
    return [
        make_run(
            make_config(
                f"kernels {problem}", f"ours, POCS, {kind}", seed,
                method={"name": "projection"}, optimiser="pocs", model={"kind": "kernel"},
            ),
            level=level,
        )
        for problem in ("path", "knapsack")
        for kind, level in (("linear", 1.0), ("polynomial kernel", 0.8), ("Gaussian kernel", 0.9))
        for seed in range(seeds)
    ]  # fmt: skip


def one_part(part="paper path", seeds=(0,), labels=("ours, ERM", "ST")):
    return [make_run(make_config(part, label, seed)) for label in labels for seed in seeds]
