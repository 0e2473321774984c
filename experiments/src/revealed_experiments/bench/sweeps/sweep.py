"""Many runs: in parallel on one machine or on a Dask cluster, and never the same one twice.

Workers only compute; the process that was started writes each run as it comes in. So a cluster
needs no shared folder, and a kill at any moment leaves finished runs and nothing else: the same
command then goes on with the rest.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from revealed.errors import InputError

from ..record import available_cores
from .progress import Progress, progress
from .run_one import perform
from .runs import FAILED, UNFINISHED, Run, RunConfig, as_kept, read_run, run_file, write_run

Work = Callable[[RunConfig], Run]
"""What performs a run; it is sent to other processes."""
Task = Callable[[int, RunConfig], Run]
"""The same in a worker, which leaves with the process of that number."""

CHECK_PARENT_S = 1.0
"""How often a worker looks whether the process that started it is still there."""
ANSWER_S, WORKERS_S = 30.0, 120.0
"""How long a scheduler may take to answer, and its first worker to come."""


def sweep(
    configs: Sequence[RunConfig],
    folder: Path | None,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    by_key: bool = False,
    work: Work | None = None,
) -> list[Run]:
    """The runs of all configurations, in their order; those found in `folder` are not repeated.

    `jobs` processes here (one for each core), or the workers of the Dask cluster whose scheduler
    has the address `scheduler`. With no folder nothing is kept. `by_key`: whether `revealed bench
    run` finds these configurations by their key, without a file. `work` is what performs a run, if
    it is not `run_one.perform`.
    """
    wanted = {config.key: config for config in configs}
    found = {key: run for key in wanted if folder and (run := read_run(run_file(folder, key)))}
    todo = [config for key, config in wanted.items() if key not in found]
    began = time.time()
    with progress(list(found.values()), todo, workers=jobs or available_cores()) as show:
        for run in _perform_all(todo, work, jobs, scheduler, show):
            key = RunConfig.read(run).key
            again = f"revealed bench run {key if by_key else f'runs/{key}.json'}"
            run.setdefault("command", again)
            if folder is not None and run["status"] != UNFINISHED:
                write_run(folder, run)
            found[key] = as_kept(run)  # what is chosen by it must not depend on when it was run
            show.add(run)
    if folder is not None:
        _tidy(folder, before=began)
    return [found[config.key] for config in configs]


def _perform_all(
    todo: list[RunConfig],
    work: Work | None,
    jobs: int | None,
    scheduler: str | None,
    show: Progress,
) -> Iterator[Run]:
    if scheduler is not None:
        return _on_cluster(todo, scheduler, show)
    jobs = min(jobs or available_cores(), len(todo))
    if jobs <= 1:
        return map(work or perform, todo)
    if work is None:
        warm_up(todo)
    task = _perform_for if work is None else partial(_perform_for, work=work)
    return _on_this_machine(todo, task, jobs)


def warm_up(configs: Iterable[RunConfig]) -> None:
    """A few samples through every kind of run, so that workers find all kernels compiled.

    Workers that find none would all compile the same ones, and two processes that save a function
    for different arguments at the same moment can mix up its cache.
    """
    tiny = {}
    for config in configs:
        data = config.data | {"sizes": [6, 2, 2]}
        small = replace(config, data=data, epochs=1, batch_size=4, seed=0)
        tiny.setdefault((config.data["generator"], config.method["name"], config.optimiser), small)
    for config in tiny.values():
        perform(config)


def _tidy(folder: Path, before: float) -> None:
    """Remove drafts that a killed sweep has left behind."""
    for draft in (folder / "runs").glob("*.tmp"):
        if draft.stat().st_mtime < before:
            draft.unlink(missing_ok=True)


# --- on this machine -----------------------------------------------------------------------------


def _on_this_machine(todo: list[RunConfig], task: Task, jobs: int) -> Iterator[Run]:
    """Runs in the order in which they end, from one pool of processes.

    A run that kills its worker (a fault in native code, no memory) takes the pool with it. Then
    those that were handed out are performed again, each in a process of its own, so that the one
    to blame is known; the rest goes on in a new pool.
    """
    import joblib

    rest = iter(todo)
    while True:
        handed_out: dict[str, RunConfig] = {}

        def tasks(handed_out: dict[str, RunConfig] = handed_out) -> Iterator[Any]:
            for config in rest:
                handed_out[config.key] = config
                yield joblib.delayed(task)(os.getpid(), config)

        with joblib.parallel_config("loky", inner_max_num_threads=1):
            pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        try:
            ended: Any = pool(tasks())
            for run in ended:
                del handed_out[RunConfig.read(run).key]
                yield run
            return
        except BrokenProcessPool:
            yield from _one_by_one(list(handed_out.values()), task)


def _one_by_one(configs: list[RunConfig], task: Task) -> Iterator[Run]:
    """In a process with one run at a time; a new one for the next after a run that kills it."""
    from joblib.externals.loky import ProcessPoolExecutor

    rest = iter(configs)
    for config in rest:
        with ProcessPoolExecutor(max_workers=1) as pool:
            while config is not None:
                try:
                    yield pool.submit(task, os.getpid(), config).result()
                except BrokenProcessPool as error:
                    yield lost(config, f"The process that performed it died. {error}")
                    break
                config = next(rest, None)


def _perform_for(parent: int, config: RunConfig, work: Work | None = None) -> Run:
    _leave_with(parent)
    return (work or perform)(config)


_watched: set[int] = set()


def _leave_with(parent: int) -> None:
    """End this worker when the process that started it is gone, rather than wait for it."""
    if parent in _watched:
        return
    _watched.add(parent)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(CHECK_PARENT_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def lost(config: RunConfig, message: str) -> Run:
    """The record of a run that gave no answer."""
    told = {"config": config.plain(), "status": FAILED, "message": message, "warnings": []}
    nothing = {"epochs": [], "epoch_seconds": None, "final": None}
    return told | nothing | {"seconds": 0.0, "processor_seconds": 0.0}


# --- on a cluster --------------------------------------------------------------------------------


def _on_cluster(todo: list[RunConfig], scheduler: str, show: Progress) -> Iterator[Run]:
    """The same on the workers of a Dask cluster; one that dies has its runs given to others."""
    from dask.distributed import Client, as_completed

    try:
        client = Client(scheduler, timeout=ANSWER_S)
    except (OSError, ValueError) as error:
        raise InputError(
            f"No Dask scheduler answers at {scheduler!r}. `dask scheduler` starts one and prints "
            "its address."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=WORKERS_S)
        except TimeoutError as error:
            raise InputError(
                f"No worker has come to the scheduler at {scheduler!r} within {WORKERS_S:g} s. "
                "Start some with `dask worker ADDRESS --nthreads 1`."
            ) from error
        show.workers = _workers(client)
        # Keys of our own, and pure=False: a cluster that has performed a run for someone else
        # must not hand out the old answer.
        futures = client.map(perform, todo, pure=False)
        config_of = {f.key: config for f, config in zip(futures, todo, strict=True)}
        for future in as_completed(futures):
            if future.status == "finished":
                yield future.result()
            else:
                yield lost(config_of[future.key], f"The cluster gave it up. {future.exception()}")
            future.release()


def _workers(client: Any) -> int:
    """How many workers there are, each of one thread."""
    threads = client.nthreads()
    if max(threads.values()) > 1:
        raise InputError(
            "Every worker must have one thread, since a run takes a whole one; got a worker with "
            f"{max(threads.values())}. Start them with `dask worker ADDRESS --nthreads 1`."
        )
    return len(threads)
