"""A run as data: one configuration in, one JSON file out, written whole or not at all.

    DIR/sweep.json         what was run: command, machine, settings, parts
    DIR/runs/<key>.json    one finished run: its configuration, status, figures by epoch
    DIR/runs.jsonl         all of them, one a line, for keeping: only chosen runs with their epochs
    DIR/earlier/           runs that the experiment no longer asks for

<key> is a readable name and a digest of the configuration, so that a run is found again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from revealed.errors import InputError

from ..record import rounded as to_digits

Run = dict[str, Any]

FINISHED, DIVERGED, FAILED = "finished", "diverged", "failed"
UNFINISHED = "unfinished"
"""Ended by a time limit, with a checkpoint to go on from; such a run gets no file."""
OURS = ("projection", "smoothed")
"""The losses that are ours, by name."""
NAMED_BY = {"data": "generator", "method": "name", "model": "kind"}
"""The entry that each of these parts of a configuration must have."""
DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that decides the figures of a run."""

    part: str
    """The part of an experiment that the run belongs to; runs are compared within it."""
    label: str
    """The method as tables call it. Runs that differ in no more than step, options and seed share
    it: they are the candidates among which validation chooses."""
    data: dict[str, Any]
    """{"generator": a function of `revealed.datasets`, and its options but the seed}"""
    method: dict[str, Any]
    """{"name": one of `revealed.losses.LOSSES`, and its options}"""
    model: dict[str, Any]
    """{"kind": "linear" or "kernel", and its options}"""
    optimiser: str
    """One of `revealed.fit.erm`, or "pocs"."""
    step: float | None
    """None leaves it to the optimiser."""
    epochs: int
    batch_size: int
    seed: int
    """Of data, start and order of samples alike."""
    needs_true_costs: bool = False
    training: dict[str, Any] = field(default_factory=dict)
    """Further settings of `revealed.fit.erm`, and "decay", see `settings`."""

    @property
    def settings(self) -> dict[str, Any]:
        """How to train, in the words of `revealed.fit.TrainSettings`.

        The fields of a configuration have other names, those of runs on disk: keys are made of
        them.
        """
        training = dict(self.training)
        if "decay" in training:
            training["schedule"] = _schedule(training.pop("decay"))
        return {
            "optimizer": self.optimiser,
            "lr": self.step,
            "max_epochs": self.epochs,
            "batch_size": self.batch_size,
            "seed": self.seed,
        } | training

    @classmethod
    def read(cls, content: Any) -> RunConfig:
        """The configuration in a JSON object, which may be a whole run with its figures."""
        if isinstance(content, dict) and isinstance(content.get("config"), dict):
            content = content["config"]
        if not isinstance(content, dict):
            raise InputError(
                f"A configuration must be a JSON object; got a {type(content).__name__}."
            )
        known = {f.name: f for f in fields(cls)}
        optional = (MISSING, MISSING)
        missing = [
            name
            for name, f in known.items()
            if name not in content and (f.default, f.default_factory) == optional
        ]
        unknown = [name for name in content if name not in known]
        if missing or unknown:
            wrong = [f"{name!r} is missing" for name in missing]
            wrong += [f"{name!r} is not known" for name in unknown]
            raise InputError(
                f"A configuration has the entries {', '.join(known)}; {', '.join(wrong)}."
            )
        for name, entry in NAMED_BY.items():
            if not isinstance(content[name], dict) or entry not in content[name]:
                raise InputError(
                    f"{name!r} in a configuration must be an object with the entry {entry!r}; "
                    f"got {content[name]!r}."
                )
        return cls(**content)

    def plain(self) -> dict[str, Any]:
        """As JSON would give it back."""
        return json.loads(json.dumps(asdict(self), allow_nan=False))

    @property
    def key(self) -> str:
        """A name for people and a digest for certainty; a file name on every system."""
        text = json.dumps(asdict(self), sort_keys=True, allow_nan=False)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        step = "" if self.step is None else f" step {self.step:g}"
        words = f"{self.part} {self.label} {self.optimiser}{step} seed {self.seed}"
        words = words.lower().replace("+", " plus")
        return f"{re.sub(r'[^a-z0-9.]+', '-', words).strip('-')}-{digest}"


def _schedule(decay: Any) -> Any:
    """The schedule behind the entry "decay": a power, or on pictures whether to fall in a line."""
    if isinstance(decay, bool):
        return "linear" if decay else "constant"
    return decay


def seed_in(key: str) -> int | None:
    """The seed that a key names."""
    found = re.search(r"-seed-(\d+)-[0-9a-f]{10}$", key)
    return int(found.group(1)) if found else None


# --- files ---------------------------------------------------------------------------------------


def run_file(folder: Path, key: str) -> Path:
    """Where the run of that key is, or will be."""
    return folder / "runs" / f"{key}.json"


def write_run(folder: Path, run: Run) -> None:
    """Write a run to its file, whole or not at all."""
    text = _line(run)
    write_whole(run_file(folder, RunConfig.read(run).key), text)


def read_runs(folder: Path) -> list[Run]:
    """Every run in a folder: those that are files, and from `runs.jsonl` those of parts of which
    there are no files."""
    single, packed = folder / "runs", folder / "runs.jsonl"
    found = []
    if single.is_dir():
        paths = sorted(path for path in single.iterdir() if path.suffix == ".json")
        found = [run for path in paths if (run := read_run(path)) is not None]
    elif not packed.is_file():
        raise InputError(
            f"{str(folder)!r} must hold finished runs, as a folder `runs` or a file `runs.jsonl`; "
            "it holds neither. `revealed bench synthetic --out DIR` makes them."
        )
    lines = packed.read_text("utf-8").splitlines() if packed.is_file() else ()
    parts = {run["config"]["part"] for run in found}
    others = [run for line in lines if (run := json.loads(line))["config"]["part"] not in parts]
    return found + others


def read_run(path: Path) -> Run | None:
    """The run in a file; None if there is no such file or it holds no run."""
    try:
        run = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, ValueError):  # an empty file is what a power cut may leave
        return None
    return run if isinstance(run, dict) and {"config", "status"} <= run.keys() else None


def set_aside(folder: Path, parts: Collection[str], wanted: Collection[str]) -> None:
    """Keep in `runs`, of these parts, only the runs whose keys are wanted.

    An experiment whose candidates have been edited must not choose among the old ones too. What is
    not wanted goes to `earlier`, and comes back from there when it is wanted again.
    """
    runs, earlier = folder / "runs", folder / "earlier"
    for path in earlier.glob("*.json"):
        if path.stem in wanted and not (runs / path.name).exists():
            runs.mkdir(exist_ok=True)
            os.replace(path, runs / path.name)
    for path in runs.glob("*.json"):
        run = read_run(path) if path.stem not in wanted else None
        if run is not None and run["config"].get("part") in parts:
            earlier.mkdir(exist_ok=True)
            os.replace(path, earlier / path.name)


def pack_runs(folder: Path, runs: Iterable[Run], keep: Collection[str]) -> Path:
    """Write `runs.jsonl`: all runs, but epochs and surroundings only of those whose key is kept."""
    lines = {}
    for run in runs:
        key = RunConfig.read(run).key
        left_out = () if key in keep else ("epochs", "surroundings")
        lines[key] = _line({name: value for name, value in run.items() if name not in left_out})
    path = folder / "runs.jsonl"
    write_whole(path, "".join(line for _, line in sorted(lines.items())))
    return path


def write_whole(path: Path, text: str) -> None:
    """Write a file so that nobody ever sees a part of it, not even after a kill or a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def _line(run: Run) -> str:
    """Strict JSON on one line."""
    return json.dumps(as_kept(run), allow_nan=False, separators=(",", ":")) + "\n"


def as_kept(run: Run) -> Run:
    """The run as its file says it: figures rounded, the configuration to the last digit."""
    return {name: value if name == "config" else rounded(value) for name, value in run.items()}


def rounded(value: Any) -> Any:
    """Figures as the file of a run keeps them."""
    return to_digits(value, DIGITS)
