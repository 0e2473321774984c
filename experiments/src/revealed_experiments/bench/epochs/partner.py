"""PyEPO at work in an environment of its own: questions and answers as lines of JSON.

PyEPO's solver (ortools) and ours (highspy) cannot share a process, and a rival is timed as its
users run it: with its own versions, its own data sets and its own loop. The other end is
`experiments/pyepo/serve.py`; arrays travel as .npz files.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from revealed.errors import InputError, RevealedError
from revealed.problems.linear import LinearProgram

SERVER = Path("experiments/pyepo/serve.py")
LAST_WORDS = 600


class PartnerError(RevealedError):
    """PyEPO's process could not do what it was asked."""


class Partner:
    """A Python process with PyEPO in it; use it in a `with` statement, which ends it."""

    def __init__(self, python: str | Path, server: Path | None = None) -> None:
        server = SERVER if server is None else server
        # Not resolved: an environment's python is a link, and knows its packages by where it lies.
        python = Path(os.path.abspath(python))
        if not python.is_file():
            raise InputError(
                f"--pyepo must be the Python of PyEPO's environment; {python.name!r} was not found "
                "there. experiments/pyepo/setup makes one: .venv-pyepo/bin/python."
            )
        if not server.is_file():
            raise InputError(
                f"{server} was not found; run the command in the root of the repository."
            )
        self._folder = tempfile.TemporaryDirectory()
        self._log = open(Path(self._folder.name) / "log", "w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [str(python), str(server)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.versions: dict[str, str] = self.ask("versions")["versions"]

    def ask(self, what: str, **details: Any) -> dict[str, Any]:
        """The answer to one question; its failure is ours, with its own words."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"ask": what, **details}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise PartnerError(f"PyEPO's process ended early. Its last words: {self._last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise PartnerError(f"PyEPO could not answer {what!r}: {answer['error']}")
        return answer

    def send(self, name: str, **arrays: np.ndarray) -> str:
        """Write arrays where the process can read them; the path of the file."""
        path = Path(self._folder.name) / f"{name}.npz"
        np.savez(path, **arrays)  # type: ignore[arg-type]
        return str(path)

    def fetch(self, path: str) -> dict[str, np.ndarray]:
        """Read arrays that the process has written, and remove their file."""
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        Path(path).unlink()
        return arrays

    @property
    def folder(self) -> str:
        """Where files for the two ends lie until the partner is closed."""
        return self._folder.name

    def close(self) -> None:
        """End the process; it goes by itself when nobody asks any more."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        self._folder.cleanup()

    def __enter__(self) -> Partner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _last_words(self) -> str:
        self._log.flush()
        self._log.seek(0)
        return self._log.read()[-LAST_WORDS:].strip() or "none"


def pyepo_order(problem: LinearProgram) -> np.ndarray:
    """(n,): entry k of PyEPO's costs is entry order[k] of ours.

    On the right-down grid PyEPO goes row by row, first the edges to the right, then those down;
    problems that it builds from our arrays keep our order.
    """
    structure = problem.structure
    shape = getattr(structure, "grid_shape", None)
    if shape is None or getattr(structure, "order", None) is None:
        return np.arange(problem.n_variables)
    down = structure.heads - structure.tails > 1
    return np.lexsort((structure.tails, down, structure.tails // shape[1]))
