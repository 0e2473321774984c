"""Checkpoints on disk: safetensors for the tensors, JSON for the rest, complete or not there.

The JSON file names the tensor file that belongs to it and is put in place last, in one move. A
process killed at any moment leaves either the old pair or the new one.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from ..errors import InputError, MissingDependencyError
from ..mixed import Sets
from .least_squares import chunks

INDEX = "checkpoint.json"


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stood: its tensors, and the facts that JSON can hold."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors called `name.*`, without that prefix."""
        prefix = f"{name}."
        found = self.tensors.items()
        return {key[len(prefix) :]: value for key, value in found if key.startswith(prefix)}


def save(folder: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Replace the checkpoint in `folder`, which is made if need be."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    name = f"epoch_{checkpoint.facts['epoch']:06d}.safetensors"
    whole = {key: value.detach().cpu().contiguous() for key, value in checkpoint.tensors.items()}
    _replace(place / name, _safetensors().save(whole))
    index = json.dumps(checkpoint.facts | {"tensors": name}, allow_nan=False, indent=1)
    _replace(place / INDEX, index.encode())
    for old in place.glob("epoch_*.safetensors"):
        if old.name != name:
            old.unlink(missing_ok=True)


def load(folder: str | os.PathLike[str], belongs_to: dict[str, Any]) -> Checkpoint | None:
    """The checkpoint in `folder`, or None; refused if it is of another run than `belongs_to`."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError(f"`checkpoint` must be a folder; {os.fspath(folder)!r} is a file.")
    if not (place / INDEX).exists():
        return None
    found = _read(place)
    run = found.facts["run"]
    differing = sorted(key for key in belongs_to if run.get(key) != belongs_to[key])
    if differing:
        listing = ", ".join(f"{k} ({run.get(k)}, now {belongs_to[k]})" for k in differing)
        raise InputError(
            f"The checkpoint in {os.fspath(folder)!r} is of another run; these differ: {listing}. "
            "Choose another folder, or remove this one to start afresh."
        )
    return found


def _read(place: Path) -> Checkpoint:
    safetensors = _safetensors()
    from safetensors import SafetensorError

    try:
        facts = json.loads((place / INDEX).read_text("utf-8"))
        tensors = safetensors.load((place / facts["tensors"]).read_bytes())
        return Checkpoint(tensors, facts | {name: facts[name] for name in ("run", "rows")})
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise InputError(
            f"The checkpoint in {os.fspath(place)!r} cannot be read ({error!r}). Choose another "
            "folder, or remove this one to start afresh."
        ) from error


def fingerprint(sets: Sets, *beside: Any) -> str:
    """A checksum of decisions, margins and weights, and of whatever else goes with each sample."""
    total = zlib.crc32(sets.weights.tobytes(), zlib.crc32(sets.margins.tobytes()))
    for part in chunks(len(sets)):
        for whole in (sets.decisions, *(one for one in beside if one is not None)):
            piece = whole[part]
            array = piece.numpy(force=True) if isinstance(piece, Tensor) else piece
            total = zlib.crc32(array.tobytes(), total)
    return f"{len(sets)} samples, {total:08x}"


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that it appears whole or not at all."""
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _safetensors() -> Any:
    try:
        from safetensors import torch as safetensors
    except ImportError as error:
        raise MissingDependencyError(
            "Checkpoints are written with safetensors, which is not installed: "
            "`pip install safetensors`."
        ) from error
    return safetensors
