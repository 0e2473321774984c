"""A folder of finished runs: what can be read is read, what cannot is named and left out.

The folder is what `revealed bench` leaves behind: `sweep.json`, which says what was asked for, and
`runs/*.json`, one whole file for each run, or all of them as lines of `runs.jsonl`; with pictures
also `gallery/*.json`, samples to be looked at. Fields that are not known are kept but not used, so
that runs of a newer version can still be shown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from revealed.errors import InputError

from .numbers import number
from .vision.albums import Album, read_albums

FINISHED = "finished"


@dataclass(frozen=True)
class Run:
    """One run as its file has it; `name` says which file."""

    name: str
    raw: dict[str, Any]

    @property
    def config(self) -> dict[str, Any]:
        return self.raw["config"]

    @property
    def part(self) -> str:
        return self.config["part"]

    @property
    def label(self) -> str:
        return self.config["label"]

    @property
    def method(self) -> dict[str, Any]:
        return _object(self.config.get("method"))

    @property
    def model(self) -> dict[str, Any]:
        return _object(self.config.get("model"))

    @property
    def optimiser(self) -> str:
        return self.config["optimiser"]

    @property
    def seed(self) -> int:
        return self.config["seed"]

    @property
    def status(self) -> str:
        return self.raw["status"]

    @property
    def finished(self) -> bool:
        return self.status == FINISHED

    @property
    def message(self) -> str:
        return str(self.raw.get("message") or "")

    @property
    def command(self) -> str:
        return str(self.raw.get("command") or "")

    @property
    def seconds(self) -> float:
        """Of the whole run."""
        return number(self.raw.get("seconds"))

    @property
    def epoch_seconds(self) -> float:
        """Training seconds of a typical epoch."""
        return number(self.raw.get("epoch_seconds"))

    def final(self, split: str, measure: str) -> float:
        """A measure at the end of training; NaN if it was not taken."""
        return number(_object(_object(self.raw.get("final")).get(split)).get(measure))

    @cached_property
    def epochs(self) -> list[dict[str, Any]]:
        """The epochs that were evaluated, in order."""
        rows = self.raw.get("epochs")
        rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        return sorted(rows, key=lambda row: number(row.get("epoch")))

    def at(self, row: dict[str, Any], split: str, measure: str) -> float:
        """A measure in one of `epochs`."""
        return number(_object(row.get(split)).get(measure))


@dataclass(frozen=True)
class Folder:
    """All that a folder holds, and what had to be left out, in words."""

    path: Path
    sweep: dict[str, Any]
    runs: list[Run]
    notices: list[str] = field(default_factory=list)
    albums: list[Album] = field(default_factory=list)


def read_folder(path: Path) -> Folder:
    """Read what `revealed bench` wrote; refuse a folder that no benchmark can have written."""
    if not path.is_dir():
        raise InputError(
            f"`revealed bench report` needs the folder of a benchmark; {str(path)!r} is not a "
            "folder. "
            "Run `revealed bench synthetic` first, or give the folder it wrote to."
        )
    if not any((path / name).exists() for name in ("sweep.json", "runs", "runs.jsonl")):
        raise InputError(
            f"The folder of a benchmark holds `sweep.json` and `runs`; {str(path)!r} has neither. "
            "Give the folder that `revealed bench synthetic` wrote to."
        )
    notices: list[str] = []
    sweep = {}
    for name, content in _texts(path, ["sweep.json"], notices):
        sweep = _object_in(content, name, notices)
    if not (path / "sweep.json").exists():
        notices.append("sweep.json is missing: what was asked for, and where, is not known.")
    runs = []
    for name, content in _run_texts(path, notices):
        raw = _object_in(content, name, notices)
        if raw and (complaint := _complaint(raw)):
            notices.append(f"{name} was left out: {complaint}.")
        elif raw:
            runs.append(Run(name, _completed(raw)))
    return Folder(path, sweep, runs, notices, read_albums(path, notices))


def _run_texts(path: Path, notices: list[str]) -> Iterator[tuple[str, str]]:
    """The text of every run: a file each, or a line each of `runs.jsonl` where it stands alone."""
    if (path / "runs").is_dir():
        files = sorted(file.name for file in (path / "runs").glob("*.json"))
        yield from _texts(path, [f"runs/{name}" for name in files], notices)
        return
    for name, content in _texts(path, ["runs.jsonl"], notices):
        for k, line in enumerate(content.splitlines(), start=1):
            if line.strip():
                yield f"{name}, line {k}", line


def _texts(path: Path, names: list[str], notices: list[str]) -> Iterator[tuple[str, str]]:
    """Name and text of those files that are there and can be read."""
    for name in names:
        if not (path / name).exists():
            continue
        try:
            yield name, (path / name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            notices.append(f"{name} was left out: {reason}.")


def _object_in(content: str, name: str, notices: list[str]) -> dict[str, Any]:
    """The object that a text holds, or an empty one and a notice."""
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError):
        notices.append(f"{name} was left out: it is not whole JSON. Delete it and run again.")
        return {}
    if not isinstance(raw, dict) or not raw:
        notices.append(f"{name} was left out: it must hold one object of fields.")
        return {}
    return raw


def _complaint(raw: dict[str, Any]) -> str:
    """What keeps a file from being a run that can be compared; nothing if nothing does."""
    config = raw.get("config")
    if not isinstance(config, dict):
        return "it has no `config`"
    absent = [name for name in ("part", "label", "optimiser") if not _is_text(config.get(name))]
    absent += [] if _is_text(_object(config.get("method")).get("name")) else ["method"]
    absent += [] if isinstance(config.get("seed"), int) else ["seed"]
    if absent:
        return f"its `config` names no {', no '.join(absent)}"
    if not isinstance(config.get("step"), int | float | None):
        return "its `step` is not a number"
    if not _is_text(raw.get("status")):
        return "it has no `status`"
    run = Run("", raw)
    judged = [run.final(split, "decision_loss") for split in ("train", "valid")]
    if run.finished and not all(map(math.isfinite, judged)):
        return "it says that it finished, but has no `final` decision loss"
    return ""


def _completed(raw: dict[str, Any]) -> dict[str, Any]:
    """With what an older or newer version may leave out."""
    return {**raw, "config": {"step": None, "needs_true_costs": False, **raw["config"]}}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
