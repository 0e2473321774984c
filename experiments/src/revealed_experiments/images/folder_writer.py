"""Data folders that appear whole or not at all.

Everything is written beside the folder under another name, with checksums, and moved into place in
the end. What stood there before is replaced only on request, and only by a complete folder.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from revealed.errors import InputError

from .checksums import write_sums


class FolderWriter:
    """`with FolderWriter(parent, name) as folder: folder.save(...); folder.finish()`.

    Leaving the block without `finish`, by an error say, leaves nothing behind.
    """

    def __init__(
        self, parent: str | os.PathLike[str], name: str, *, overwrite: bool = False
    ) -> None:
        self.target = Path(parent) / name
        if self.target.exists() and not overwrite:
            raise InputError(
                f"{str(self.target)!r} is there already and is left as it is. Choose another "
                "folder, or `overwrite=True` to replace it."
            )
        self._work = self.target.with_name(f".{name}.{os.getpid()}.new")

    def __enter__(self) -> FolderWriter:
        shutil.rmtree(self._work, ignore_errors=True)  # of a process of that number, long dead
        self._work.mkdir(parents=True)
        return self

    def __exit__(self, *failure: object) -> None:
        shutil.rmtree(self._work, ignore_errors=True)

    def save(self, name: str, array: np.ndarray, parts: int = 1) -> None:
        """Write `name`.npy, or so many files `name`_part0.npy, ... of nearly equal length."""
        if parts == 1:
            np.save(self._work / f"{name}.npy", array, allow_pickle=False)
            return
        for number, part in enumerate(np.array_split(array, parts)):
            np.save(self._work / f"{name}_part{number}.npy", part, allow_pickle=False)

    def describe(self, name: str, facts: dict[str, Any]) -> None:
        """Write a small JSON file."""
        (self._work / name).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")

    def finish(self) -> Path:
        """Add the checksums and put the folder in place."""
        names = [path.name for path in self._work.iterdir()]
        write_sums(self._work, names)
        for path in self._work.iterdir():
            _to_disk(path)
        old = self._work.with_suffix(".old")
        if self.target.exists():
            os.replace(self.target, old)
        try:
            os.replace(self._work, self.target)
        except OSError:
            if old.exists():
                os.replace(old, self.target)
            raise
        shutil.rmtree(old, ignore_errors=True)
        return self.target


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
