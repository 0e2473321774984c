# ruff: noqa: E402 (the number of threads must be set before numpy comes)
"""Kill writers at random moments and look at what is left: nothing that was written may be lost.

    PYTHONPATH=src:tests:tests/library python tests/cli/kill_writers.py --kills 200

"save" replaces a model again and again, "checkpoint" trains with a checkpoint after each epoch, and
"fit" is the command `revealed fit`, over a model that is there. Each says what it has written.
After each SIGKILL the folder must hold that, or the next one, complete.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

for _name in ("OMP", "MKL", "OPENBLAS", "NUMBA"):  # a process without other threads may be forked
    os.environ[f"{_name}_NUM_THREADS"] = "1"

import numpy as np
import torch
from test_erm import routes
from test_store import made

from revealed.cli import main as revealed_main
from revealed.cli.commands.options import positive, whole
from revealed.cli.plans import from_catalogue
from revealed.cli.store import load_model, save_model
from revealed.cli.tables import write_table
from revealed.fit import LinearModel, checkpoint, erm

EPOCHS = 10**6
SETTINGS = {"optimizer": "adam", "batch_size": 8, "checkpoint_every": 1, "tol": 0.0}


def killed(write: Callable[[Callable[[int], None]], None], delay: float) -> tuple[int, bool]:
    """Let a process write and kill it after so many seconds; the last number that it said it had
    written (-1: none), and whether it had ended before."""
    reads, writes = os.pipe()
    writer = os.fork()
    if not writer:
        code = 1
        try:
            os.close(reads)
            write(lambda number: os.write(writes, b"%d\n" % number) and None)
            code = 0
        finally:
            os._exit(code)
    os.close(writes)
    time.sleep(delay)
    os.kill(writer, signal.SIGKILL)
    status = os.waitpid(writer, 0)[1]
    with open(reads) as pipe:
        said = pipe.read().split()
    assert status in (0, signal.SIGKILL), f"the writer failed by itself: {status}"
    return int(said[-1]) if said else -1, status == 0


# --- what is written ------------------------------------------------------------------------------


def kill_saving(folder: Path, kills: int, rng: random.Random) -> str:
    """Model k has an intercept that is larger by k."""
    model, last, finished = made(), 0, 0
    save_model(model, folder)

    def version() -> int:
        return round(float((load_model(folder).intercept - model.intercept).mean()))

    def write(say: Callable[[int], None]) -> None:
        for k in range(last + 1, last + 10**6):
            save_model(dataclasses.replace(model, intercept=model.intercept + k), folder)
            say(k)

    for _ in range(kills):
        said = killed(write, rng.uniform(0.0, 0.05))[0]
        finished += said >= 0
        there = version()
        assert there in (max(said, last), max(said, last) + 1), (there, said, last)
        last = there
    return f"{last} models written, {finished} of {kills} writers had finished at least one"


def kill_training(folder: Path, kills: int, rng: random.Random) -> str:
    """A run that is killed goes on, and comes to the same weights as one that is not."""
    (Z, sets), last = routes(), 0
    # Compile first, so that no writer is killed while it waits for the kernel.
    erm(LinearModel(), Z, sets, max_epochs=1, **SETTINGS)

    def write(say: Callable[[int], None]) -> None:
        whole = checkpoint.save

        def save(place, state) -> None:
            whole(place, state)
            say(state.facts["epoch"])

        checkpoint.save = save
        erm(LinearModel(), Z, sets, max_epochs=EPOCHS, checkpoint=folder, **SETTINGS)

    for _ in range(kills):
        said = killed(write, rng.uniform(0.0, 0.2))[0]
        index = checkpoint._read(folder) if (folder / checkpoint.INDEX).exists() else None
        there = 0 if index is None else index.facts["epoch"]
        assert there in (max(said, last), max(said, last) + 1), (there, said, last)
        last = there
    ends = []
    for place in (folder, folder.with_name("straight")):
        model = LinearModel()
        erm(model, Z, sets, max_epochs=last + 1, checkpoint=place, **SETTINGS)
        ends.append(model.coef)
    assert (ends[0] == ends[1]).all()
    return f"{last} epochs, and the weights of a run that was never killed"


def kill_fitting(folder: Path, kills: int, rng: random.Random) -> str:
    """Fit k has the margin 1 + k / 1024."""
    tables = [folder.with_name(f"{name}.csv") for name in ("contexts", "decisions")]
    _write_tables(*tables)
    command = ["fit", "--problem", "grid_shortest_path(3, 3)", "--ridge", "0.01", "--noise", "0"]
    command += ["--model", "linear", "--out", str(folder)]
    command += ["--contexts", str(tables[0]), "--decisions", str(tables[1]), "--margin"]

    def fitted(k: int) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert revealed_main([*command, str(1 + k / 1024)]) in (0, 1)

    def write(say: Callable[[int], None]) -> None:
        fitted(last + 1)
        say(last + 1)

    last = 0
    for _ in range(2):  # the first loads compiled code
        began = time.perf_counter()
        fitted(0)
    usual, finished, replaced = time.perf_counter() - began, 0, 0
    for _ in range(kills):
        # Half of them about the end, where the model is written.
        share = rng.uniform(0.0, 1.2) if rng.random() < 0.5 else rng.uniform(0.8, 1.1)
        began = time.perf_counter()
        said, ended = killed(write, share * usual)
        there = round(1024 * (load_model(folder).margin - 1))
        assert there in ({said} if said >= 0 else {last, last + 1}), (there, said, last)
        finished, replaced, last = finished + ended, replaced + (there > last), there
        usual = 0.9 * usual + 0.1 * (time.perf_counter() - began if ended else usual)
    return f"{finished} of {kills} had ended before, {replaced} had replaced the model"


def _write_tables(contexts: Path, decisions: Path) -> None:
    plan, rng = from_catalogue("grid_shortest_path(3, 3)"), np.random.default_rng(0)
    Z, n = rng.standard_normal((30, 2)), plan.problem.n_variables
    days = ("day", [f"d{k}" for k in range(30)])
    costs = 4.0 + 0.5 * np.clip(Z @ rng.standard_normal((2, n)), -4, 4)
    write_table(contexts, ["load", "rain"], Z, key=days)
    write_table(decisions, list(plan.variables), np.asarray(plan.problem.solve(costs).x), key=days)


KINDS = {"save": kill_saving, "checkpoint": kill_training, "fit": kill_fitting}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=positive, default=200)
    parser.add_argument("--seed", type=whole, default=0)
    parser.add_argument("--kind", choices=KINDS, action="append")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for kind in args.kind or KINDS:
        with tempfile.TemporaryDirectory() as place:
            found = KINDS[kind](Path(place) / "folder", args.kills, random.Random(args.seed))
        print(f"{kind}: {args.kills} kills, nothing lost; {found}.", flush=True)


if __name__ == "__main__":
    main()
