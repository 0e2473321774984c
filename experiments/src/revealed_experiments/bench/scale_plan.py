"""What distribution costs, and a plan for 10^9 decisions on 100 machines.

    python -m revealed_experiments.bench.scale_plan price FOLDER --size 1000000
    python -m revealed_experiments.bench.scale_plan threads FOLDER --size 200000
    python -m revealed_experiments.bench.scale_plan plan

`price` evaluates the same model on threads and on a Dask cluster of this machine, in turn, and says
how many bytes travel. `threads` evaluates one share with one thread and with several. `plan` lets
the driver of a fit ask a cluster of fake workers, which sleep for as long as they would compute and
answer with arrays of the right size: what is left is what the driver, the scheduler and the sums
take.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from threading import Lock, get_native_id
from typing import Any

import numpy as np

from .record import surroundings, write_json
from .scale_data import feature_names, problem, variable_names, write_days

DRAWS = 2
ROUNDS = 3
SAMPLES, MACHINES, CORES = 10**9, 100, 16
BYTES = 50
"""Of a sample in memory, see `scale.json`."""
RESULTS = Path(__file__).resolve().parents[3] / "results"


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    price = commands.add_parser("price")
    price.add_argument("folder", type=Path)
    price.add_argument("--size", type=int, default=1_000_000)
    price.add_argument("--workers", type=int, default=2)
    each = commands.add_parser("evaluate")
    each.add_argument("folder", type=Path)
    each.add_argument("--size", type=int, default=1_000_000)
    each.add_argument("--rounds", type=int, default=1)
    inside = commands.add_parser("threads")
    inside.add_argument("folder", type=Path)
    inside.add_argument("--size", type=int, default=200_000)
    inside.add_argument("--threads", type=int, default=2)
    inside.add_argument("--rounds", type=int, default=10)
    plan = commands.add_parser("plan")
    plan.add_argument("--seconds", type=float, help="of a processor, for a sample (scale.json's)")
    plan.add_argument(
        "--shares", type=int, nargs="+", default=[MACHINES * CORES, 4 * MACHINES, MACHINES],
        help="of all data: one or several for each machine, whose threads look at one together",
    )  # fmt: skip
    plan.add_argument("--workers", type=int, default=10, help="Dask's, which share all threads")
    for command in (price, each, inside, plan):
        command.add_argument("--out", type=Path, metavar="FILE", help="JSON file for the figures")
    args = parser.parse_args()
    measure = {"price": _price, "evaluate": _evaluate, "threads": _threads, "plan": _plan}
    about = surroundings(f"python -m revealed_experiments.bench.scale_plan {args.what}", {})
    told = measure[args.what](args)
    print(json.dumps(told))
    if args.out:
        write_json(args.out, {"surroundings": about} | told)


# --- evaluate -------------------------------------------------------------------------------------


def _evaluate(args: argparse.Namespace) -> dict[str, Any]:
    """Read, and evaluate one model: without the fit, what each takes."""
    from revealed.fit.partitioned import Threads
    from revealed.fit.partitioned.memory import peak_bytes

    cpu = time.process_time()
    objective = _loaded(_data(args), Threads())
    read = time.process_time() - cpu
    print(f"read in {read:.0f} s, {peak_bytes() / 1e6:.0f} MB", file=sys.stderr, flush=True)
    model = _model(objective)
    seconds = []
    for _ in range(args.rounds):
        before = objective.processor
        objective(model, None)
        model.taken()
        seconds.append(objective.processor - before)
    return {
        "samples": args.size,
        "read_processor_seconds": read,
        "evaluation_processor_seconds": seconds,
        "peak_bytes": peak_bytes(),
        "bytes_in_memory": sum(one.in_memory for one in objective._loaded.found),
    }


def _threads(args: argparse.Namespace) -> dict[str, Any]:
    """Evaluate one model on a single share with one thread and with several, in turn."""
    from revealed.fit.partitioned import Threads

    data = _data(args, partitions=1)
    asked = {k: _loaded(data, Threads(1, k)) for k in (1, args.threads)}
    model = _model(asked[1])
    lines: dict[int, list[dict[str, float]]] = {k: [] for k in asked}
    sums: dict[int, Any] = {}
    for _ in range(args.rounds):
        for k, objective in asked.items():
            with _watched() as spent:
                began = time.perf_counter()
                objective(model, None)
                spent["clock"] = time.perf_counter() - began
            lines[k].append(spent)
            sums[k] = model.taken()[0]
    return {
        "samples": args.size,
        "threads": args.threads,
        "share_in_kernels": _share_in_kernels(asked[1], model),
        "waiting": {str(k): _waiting(found) for k, found in lines.items()},
        "same_bits": bool((sums[1] == sums[args.threads]).all()),
        "lines": {str(k): found for k, found in lines.items()},
    }


@contextmanager
def _watched() -> Iterator[dict[str, float]]:
    """Seconds of all threads that look at stretches: in all, on a processor, and in line for one.
    What is left they waited for each other; a busy machine adds nothing to it."""
    from revealed.fit.partitioned import share

    spent: dict[str, float] = {"all": 0.0, "running": 0.0, "in_line": 0.0}
    lock, in_order = Lock(), share.in_order

    def watched(work: Any, items: Any, threads: int) -> Any:
        def timed(item: Any) -> Any:
            began, before = time.perf_counter(), _scheduled()
            result = work(item)
            parts = time.perf_counter() - began, *np.subtract(_scheduled(), before).tolist()
            with lock:
                for name, seconds in zip(("all", "running", "in_line"), parts, strict=True):
                    spent[name] += seconds
            return result

        return in_order(timed, items, threads)

    share.in_order = watched
    try:
        yield spent
    finally:
        share.in_order = in_order


def _scheduled() -> tuple[float, float]:
    """Seconds that this thread has run, and stood in line for a processor (NaN where the system
    does not say)."""
    try:
        told = Path(f"/proc/self/task/{get_native_id()}/schedstat").read_text("ascii").split()
        return int(told[0]) / 1e9, int(told[1]) / 1e9
    except OSError:
        return time.thread_time(), float("nan")


def _waiting(lines: list[dict[str, float]]) -> float:
    """The share of their time that threads waited for each other, that in line not counted."""
    total = {name: sum(line[name] for line in lines) for name in ("all", "running", "in_line")}
    mine = total["all"] - total["in_line"]
    return max(mine - total["running"], 0.0) / mine


def _share_in_kernels(objective: Any, model: Any) -> float:
    """The share of an evaluation's processor time that runs without the interpreter's lock for
    sure. Of the rest, a part does: numpy lets the lock go in long loops."""
    from revealed.projection import plain

    kernel, spent = plain.run_kernel, [0.0]

    def timed(*args: Any, **options: Any) -> Any:
        began = time.thread_time()
        try:
            return kernel(*args, **options)
        finally:
            spent[0] += time.thread_time() - began

    plain.run_kernel, before = timed, objective.processor
    try:
        objective(model, None)
    finally:
        plain.run_kernel = kernel
    model.taken()
    return spent[0] / (objective.processor - before)


def _data(args: argparse.Namespace, **options: Any) -> Any:
    import revealed as rv

    files = write_days(args.folder, args.size)
    names: dict[str, Any] = {"features": feature_names(), "variables": variable_names()}
    return rv.datasets.Partitions.from_parquet(problem(), files, files, **names, **options)


def _model(objective: Any) -> Any:
    """One whose costs are near what a fit begins with."""
    from revealed.fit.models import LinearModel

    model = LinearModel(ridge=0.01, standardize=True)
    model.prepare_from(objective._loaded.rows(), problem().n_variables)
    model.intercept[:] = 6.0
    return model


# --- price ----------------------------------------------------------------------------------------


def _price(args: argparse.Namespace) -> dict[str, Any]:
    from revealed.fit.partitioned import Cluster, Threads

    data = _data(args)
    with tempfile.TemporaryDirectory() as folder:
        processes = _start(Path(folder), args.workers)
        try:
            where = _wait_for(Path(folder) / "scheduler.json", args.workers)
            executors: dict[str, Any] = {"threads": Threads(args.workers)}
            executors["cluster"] = Cluster(where)
            asked = {name: _loaded(data, executor) for name, executor in executors.items()}
            model = _model(asked["threads"])
            lines = {name: [] for name in asked}
            sums = {}
            for _ in range(ROUNDS):
                for name, objective in asked.items():
                    began = time.perf_counter()
                    objective(model, None)
                    lines[name].append(time.perf_counter() - began)
                    sums[name] = model.taken()[0]
            for executor in executors.values():
                executor.close()
        finally:
            for process in processes:
                process.kill()
                process.wait()
    median = {name: float(np.median(seconds)) for name, seconds in lines.items()}
    return {
        "samples": args.size,
        "workers": args.workers,
        "seconds": lines,
        "ratio": median["cluster"] / median["threads"],
        "processor_seconds": {n: o.processor / o.evaluations for n, o in asked.items()},
        "same_bits": bool((sums["threads"] == sums["cluster"]).all()),
        "partitions": len(data.partitions),
        "bytes_per_evaluation": _bytes(asked["cluster"], model),
    }


def _loaded(data: Any, executor: Any) -> Any:
    import uuid

    from revealed.fit.evaluation import DistanceLoss
    from revealed.fit.partitioned.messages import Orders
    from revealed.fit.partitioned.objective import Loaded, PartitionedObjective

    loss = DistanceLoss(power="huber", noise=2.0, delta=2.0, draws=DRAWS)

    orders = Orders(
        data=data, margin=1.0, infeasible="refuse", decision_tol=0, center=True, budget=np.inf,
        scratch=None, token=uuid.uuid4().hex,
    )  # fmt: skip
    loaded = Loaded(executor, orders)
    return PartitionedObjective(loaded, loss, loaded.sample(), tol=1e-4)


def _bytes(objective: Any, model: Any) -> dict[str, int]:
    """What travels in one evaluation, from and to the driver."""
    from revealed.fit.partitioned.messages import Question
    from revealed.fit.partitioned.share import bare

    loaded = objective._loaded
    question = Question(bare(model), objective.loss, loaded.whole, loaded.places[0], True, 1e-4)
    reply = pickle.dumps((model.taken(), *[0.0] * 14))
    parts = len(loaded.found)
    return {"out": parts * len(pickle.dumps(question)), "back": parts * len(reply)}


def _start(folder: Path, workers: int) -> list[Any]:
    """A scheduler and workers as processes of their own."""
    file = ["--scheduler-file", str(folder / "scheduler.json"), "--host", "127.0.0.1"]
    dask = [sys.executable, "-m", "dask"]
    common: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [
        subprocess.Popen([*dask, "scheduler", "--port", "0", "--no-dashboard", *file], **common)
    ]
    one = ["worker", "--no-nanny", "--nthreads", "1", "--no-dashboard", *file]
    one += ["--local-directory", str(folder)]
    return started + [subprocess.Popen([*dask, *one], **common) for _ in range(workers)]


def _wait_for(file: Path, workers: int) -> Any:
    import distributed

    while not file.exists():
        time.sleep(0.1)
    client = distributed.Client(scheduler_file=str(file), set_as_default=False)
    client.wait_for_workers(workers, timeout=120)
    return client


# --- plan -----------------------------------------------------------------------------------------


def _plan(args: argparse.Namespace) -> dict[str, Any]:
    """How long an evaluation takes with each number of shares."""
    if args.seconds is None:
        largest = json.loads((RESULTS / "scale.json").read_text("utf-8"))["lines"][-1]
        args.seconds = largest["run"]["evaluation_processor_seconds"] / largest["samples"]
    import dask
    import distributed

    patient = {"distributed.comm.timeouts.connect": "300s", "distributed.comm.timeouts.tcp": "300s"}
    dask.config.set(patient)  # pyright: ignore[reportPrivateImportUsage]
    cluster = distributed.LocalCluster(
        n_workers=args.workers,
        threads_per_worker=max(args.shares) // args.workers,
        processes=False,
        dashboard_address=None,  # pyright: ignore[reportArgumentType]
        memory_limit=0,
    )
    client = distributed.Client(cluster, set_as_default=False)
    lines = [_plan_of(client, shares, args.seconds) for shares in args.shares]
    client.close()
    cluster.close()
    return {
        "samples": SAMPLES,
        "machines": MACHINES,
        "cores": CORES,
        "processor_seconds_per_sample": args.seconds,
        "bytes_per_sample": BYTES,
        "bytes_of_a_machine": SAMPLES / MACHINES * BYTES,
        "lines": lines,
    }


def _plan_of(client: Any, shares: int, seconds: float) -> dict[str, Any]:
    """Evaluations whose shares sleep: threads of a machine's cores that look at one together are
    taken to be as much faster as they are more."""
    from revealed.fit.evaluation import DistanceLoss
    from revealed.fit.models import LinearModel
    from revealed.fit.partitioned.messages import Answer, Question

    n, d = problem().n_variables, len(feature_names())
    threads = MACHINES * CORES // shares
    each = SAMPLES / shares * seconds / threads
    model = LinearModel()
    model.prepare(np.random.default_rng(0).standard_normal((50, d)), n)
    question = Question(model, DistanceLoss(), None, None, True, 1e-4)  # pyright: ignore

    def asked(count: int, sleep: float) -> list[Any]:
        job = (_slept, question, sleep, (n, d))
        return client.gather([client.submit(*job, pure=False) for _ in range(count)])

    asked(min(shares, MACHINES), 0.0)
    times, spent = [], []
    for _ in range(ROUNDS):
        began, cpu = time.perf_counter(), time.process_time()
        reduce(Answer.plus, asked(shares, each))
        times.append(time.perf_counter() - began)
        spent.append(time.process_time() - cpu)
    return {
        "shares": shares,
        "threads": threads,
        "sleep_of_a_share": each,
        "seconds": times,
        "overhead": float(np.median(times)) - each,
        "processor_seconds_of_driver_and_scheduler": float(np.median(spent)),
        "bytes_back": shares * len(pickle.dumps(_slept(question, 0.0, (n, d)))),
    }


def _slept(question: Any, seconds: float, shape: tuple[int, int]) -> Any:
    from revealed.fit.partitioned.messages import Answer

    time.sleep(seconds)
    taken = (np.zeros(shape), np.zeros(shape[0]), np.array(1.0))
    rest: list[Any] = [*(1.0,) * 7, *(1,) * 3, True, 0.0, 0.0, 0.0, 0]
    return Answer(taken, *rest)


if __name__ == "__main__":
    main()
