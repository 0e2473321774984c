"""The folder of `revealed bench vision`: what was asked for, beside what was asked before."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from revealed.errors import InputError

from ..record import surroundings
from ..sweeps.runs import RunConfig, read_runs, set_aside, write_whole
from ..sweeps.runs import rounded as as_plain
from ..synthetic.experiments import Part
from .parts import OPTIMISERS, PARTS, QUICK_PARTS, SWITCHES, Choosing
from .run import Where


def enter(
    folder: Path,
    args: argparse.Namespace,
    parts: Sequence[Part],
    choosing: Choosing,
    where: Where,
) -> dict[str, Any]:
    """Take the folder for this sweep, beside parts that were run before; the facts of both."""
    try:
        before = json.loads((folder / "sweep.json").read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        before = {}
    known = before.get("settings", {})
    if known.get("quick", args.quick) != args.quick:
        kind = "a quick sweep" if known["quick"] else "a full sweep"
        raise InputError(
            f"{str(folder)!r} holds {kind}, and this one is not. Give another folder with --out."
        )
    settings = {
        "quick": args.quick,
        "seeds": known.get("seeds", {}) | {p.name: list(p.seeds) for p in parts},
        "epochs": known.get("epochs", {}) | {p.name: p.epochs for p in parts},
        "sizes": known.get("sizes", {}) | {p.name: p.data["sizes"] for p in parts},
        "models": known.get("models", {}) | {p.name: p.model["kind"] for p in parts},
        "steps": known.get("steps", {})
        | {p.name: "chosen" if args.steps == "auto" else "given" for p in parts},
        "views": known.get("views", {}) | {p.name: args.views for p in parts},
        "shift": known.get("shift", {}) | {p.name: args.shift for p in parts},
        "averaged": known.get("averaged", {}) | {p.name: args.average for p in parts},
        "choosing": _in_words(choosing),
        "device": where.device,
        "jobs": _by_part(known.get("jobs")) | {p.name: where.jobs for p in parts},
    }
    commands = _commands(before) | {p.name: _command(args) for p in parts}
    order = [part.name for part in (*PARTS, *QUICK_PARTS)]
    names = [name for name in order if name in settings["seeds"]]
    together = "\n".join(dict.fromkeys(commands[name] for name in names))
    content = {"experiment": "vision", **surroundings(together, settings)}
    content |= {"parts": names, "commands": commands}
    content |= {name: before.get(name, {}) for name in ("tried", "finals")}
    content["targets"] = _targets_but_of(before, parts)
    write_facts(folder, content)
    return content


def _by_part(known: Any) -> dict[str, Any]:
    """What an earlier sweep said of its parts, if it said so one by one."""
    return known if isinstance(known, dict) else {}


def _commands(before: dict[str, Any]) -> dict[str, str]:
    """By part, what an earlier sweep was called with."""
    whole = dict.fromkeys(before.get("parts", ()), before.get("command", ""))
    return whole | before.get("commands", {})


def _targets_but_of(before: dict[str, Any], parts: Sequence[Part]) -> list[dict[str, Any]]:
    asked = tuple(f"{part.name}: " for part in parts)
    return [each for each in before.get("targets", ()) if not each["name"].startswith(asked)]


def _in_words(choosing: Choosing) -> dict[str, Any]:
    return {
        "optimisers": list(OPTIMISERS),
        "steps": list(choosing.steps),
        "sizes": list(choosing.sizes),
        "epochs": choosing.epochs,
        "finalists": choosing.finalists,
        "within": choosing.within,
        "seeds": list(choosing.seeds),
        "by": "validation decision loss at the end",
    }


def write_facts(folder: Path, content: dict[str, Any]) -> None:
    """Write `sweep.json`."""
    text = json.dumps(as_plain(content), indent=1, allow_nan=False)
    write_whole(folder / "sweep.json", text + "\n")


def _command(args: argparse.Namespace) -> str:
    """The command as typed, without what depends on the machine."""
    words = ["revealed bench vision"]
    for name in ("quick", "published", "ties", "average", *SWITCHES):
        words += [f"--{name}"] if getattr(args, name) else []
    for name in ("only", "methods", "seeds", "epochs", "model", "views", "shift"):
        value = getattr(args, name)
        words += [f"--{name} {value!r}" if isinstance(value, str) else f"--{name} {value}"] * (
            value is not None
        )
    words += ["--warcraft DIR"] if args.warcraft else []
    return " ".join([*words, "--digits mnist"] if args.digits else words)


def set_others_aside(folder: Path, configs: Sequence[RunConfig]) -> None:
    """Runs of the same part, method and seed that were done otherwise."""
    if not (folder / "runs").is_dir():
        return
    asked = {(c.part, c.label, c.seed) for c in configs}
    there = [RunConfig.read(each) for each in read_runs(folder)]
    others = {c.key for c in there if (c.part, c.label, c.seed) not in asked}
    set_aside(folder, {c.part for c in configs}, others | {c.key for c in configs})
