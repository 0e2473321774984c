"""Made-up runs on pictures for the report's tests: the files of the experiment, without it."""

import base64
import io
import json

import numpy as np
from PIL import Image
from report_runs import SWEEP, make_config, write_runs

from revealed_experiments.images import digit_boards, terrain
from revealed_experiments.images.boards import reading_costs
from revealed_experiments.images.grid_paths import edge_costs
from revealed_experiments.report.elements import slug

# label -> (method, sees true costs, where its losses end relative to ours, seconds an epoch)
METHODS = {
    "Ours": ({"name": "projection", "power": 2, "margin": 1.0}, False, 1.0, 3.1),
    "Ours, robust": ({"name": "projection", "power": 1, "margin": 1.0}, False, 1.1, 3.2),
    "ST": ({"name": "st"}, False, 2.6, 4.4),
    "MOM": ({"name": "mom"}, False, 4.2, 4.1),
    "BB": ({"name": "bb"}, False, 6.0, 8.2),
    "SPO+": ({"name": "spo+"}, True, 1.3, 4.6),
    "PFYL": ({"name": "pfyl"}, False, 1.5, 12.0),
    "two-stage": ({"name": "two-stage"}, True, 1.4, 3.0),
}
PARTS = ("terrain 12x12", "terrain 18x18", "matching 12x12")
# Of ours on test data, when training ends.
ENDS = {"decision_loss": 3.0, "estimate_loss": 0.4, "relative_regret": 0.011}
MADE_BY = "revealed bench vision --out out/vision"


def vision_config(part, label, seed, *, sizes=(10_000, 1_000, 1_000), **changes):
    """The configuration of one run."""
    method, needs, *_ = METHODS.get(label, ({"name": label}, False))
    kind = "digit_boards" if part.startswith("matching") else "terrain"
    config = make_config(part, label, seed, method=method, needs_true_costs=needs, epochs=50)
    data = {"generator": kind, "side": side_of(part), "sizes": list(sizes)}
    return {**config, "data": data, "model": {"kind": "resnet18"}, "step": 0.001, **changes}


def vision_run(config, *, level=None, epochs=50):
    """A run whose losses fall to `level` times those of ours."""
    level = METHODS[config["label"]][2] if level is None else level
    seconds = METHODS[config["label"]][3] * (side_of(config["part"]) / 12) ** 2
    rng = np.random.default_rng([config["seed"], len(config["label"])])
    luck = 1 + 0.06 * rng.standard_normal()
    rows = []
    for epoch in range(epochs + 1):
        fall = 1 + 7 / level * np.exp(-epoch / (4 + level)) + 0.03 * rng.standard_normal()
        rows.append({"epoch": epoch, "seconds": seconds, "loss": fall} | _splits(level, luck, fall))
    final = {**{split: rows[-1][split] for split in ("train", "test")}, "valid": rows[-1]["test"]}
    return {
        "config": config,
        "status": "finished",
        "message": "",
        "command": f"revealed bench run '{config['part']}-{config['label']}-{config['seed']}'",
        "epochs": rows,
        "epoch_seconds": seconds * (1 + 0.02 * rng.standard_normal()),
        "seconds": seconds * epochs,
        "final": final,
    }


def _splits(level, luck, fall):
    test = {name: end * level * luck * fall for name, end in ENDS.items()}
    share = float(np.exp(-0.15 * level * luck * fall))
    test |= {"optimal": share, "exact": 0.9 * share}
    train = {name: 0.6 * value for name, value in test.items()} | {"optimal": share**0.5}
    return {"test": test, "train": train | {"exact": 0.9 * share**0.5}}


def side_of(part):
    return int(part.rpartition("x")[2])


def vision_sweep(seeds=5, parts=PARTS, labels=tuple(METHODS), **options):
    return [
        vision_run(vision_config(part, label, seed, **options))
        for part in parts
        for label in labels
        for seed in range(seeds)
    ]


def write_vision(folder, runs, *, albums=True, samples=4, quick=False):
    """Write runs, and an album for each of their tasks."""
    choosing = {"sizes": [2000, 500, 500], "epochs": 10, "finalists": 2, "seeds": [0, 1, 2]}
    trials = [["adam", 0.01, "diverged"], ["adam", 0.001, 4.25], ["adagrad", 0.01, 5.5]]
    names = dict.fromkeys((run["config"]["part"], run["config"]["label"]) for run in runs)
    tried, finals = ({part: {} for part, _ in names} for _ in range(2))
    for part, label in names:
        tried[part][label] = trials
        finals[part][label] = [["adam", 0.001, 2.5], ["adagrad", 0.01, 2.75]]
    sweep = {**SWEEP, "experiment": "vision", "command": MADE_BY, "tried": tried}
    sweep["finals"] = finals
    write_runs(folder, runs, sweep | {"settings": {"quick": quick, "choosing": choosing}})
    for part in dict.fromkeys(run["config"]["part"] for run in runs) if albums else ():
        labels = dict.fromkeys(r["config"]["label"] for r in runs if r["config"]["part"] == part)
        write_album(folder, make_album(part, list(labels), samples))
    return folder


def write_album(folder, album):
    place = folder / "gallery"
    place.mkdir(exist_ok=True)
    path = place / f"{slug(album['part'])}.json"
    path.write_text(json.dumps(album), "utf-8")
    return path


def make_album(part, labels, samples=4):
    """Samples of the data itself; methods decide under true costs that are more or less noisy."""
    side, matching = side_of(part), part.startswith("matching")
    data = (digit_boards if matching else terrain)((1, 0, samples), side=side, seed=5)
    rng = np.random.default_rng(0)
    told = []
    for k in range(samples):
        split = data.test[k : k + 1]
        methods = []
        for label in labels:
            noise = 0.05 * METHODS[label][2]
            cells = split.cells * np.exp(noise * rng.standard_normal(split.cells.shape))
            costs = (reading_costs if matching else edge_costs)(data.problem, cells)
            decision = np.asarray(data.problem.solve(costs).x)[0]
            methods.append(
                {
                    "label": label,
                    "cells": np.round(cells[0], 3).tolist(),
                    "predicted": as_cells(data.problem, decision, side, matching),
                }
            )
        told.append(
            {
                "image": png(split.images[0]),
                "true_cells": split.cells[0].tolist(),
                "observed": as_cells(data.problem, split.decisions[0], side, matching),
                "methods": methods,
            }
        )
    return {"part": part, "grid": [side, side], "samples": told}


def as_cells(problem, decision, side, matching):
    """The cells of a path in order, or pairs of cells."""
    graph = problem.structure
    chosen = np.flatnonzero(decision > 0.5)
    ends = zip(graph.tails[chosen].tolist(), graph.heads[chosen].tolist(), strict=True)
    if matching:
        return [[list(divmod(one, side)), list(divmod(other, side))] for one, other in ends]
    step, at = dict(ends), 0
    path = [[0, 0]]
    while at in step:
        at = step[at]
        path.append(list(divmod(at, side)))
    return path


def png(image):
    """A picture as the trainer writes it."""
    buffer = io.BytesIO()
    Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()
