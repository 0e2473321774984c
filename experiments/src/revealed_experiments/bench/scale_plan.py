"""What distribution costs, and a plan for 10^9 decisions on 100 machines.

    python -m revealed_experiments.bench.scale_plan price FOLDER --size 1000000
    python -m revealed_experiments.bench.scale_plan plan --seconds 4.5e-6

`price` evaluates the same model on threads and on a Dask cluster of this machine, in turn, and says
how many bytes travel. `plan` lets the driver of a fit ask a cluster of fake workers, which sleep
for as long as they would compute and answer with arrays of the right size: what is left is what the
driver, the scheduler and the sums take.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from .scale_data import feature_names, problem, variable_names, write_days

DRAWS = 2
ROUNDS = 3
SAMPLES, MACHINES, CORES = 10**9, 100, 16


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
    plan = commands.add_parser("plan")
    plan.add_argument("--seconds", type=float, required=True, help="of a processor, for a sample")
    plan.add_argument("--shares", type=int, default=MACHINES * CORES)
    plan.add_argument("--speed-up", type=float, default=1.0, help="sleep less by this factor")
    args = parser.parse_args()
    measure = {"price": _price, "evaluate": _evaluate, "plan": _plan}[args.what]
    print(json.dumps(measure(args)))


# --- evaluate -------------------------------------------------------------------------------------


def _evaluate(args: argparse.Namespace) -> dict[str, Any]:
    """Read, and evaluate one model: without the fit, what each takes."""
    import revealed as rv
    from revealed.fit.evaluation import DistanceLoss
    from revealed.fit.models import LinearModel
    from revealed.fit.partitioned import Threads
    from revealed.fit.partitioned.share import peak_bytes

    files = write_days(args.folder, args.size)
    names: dict[str, Any] = {"features": feature_names(), "variables": variable_names()}
    data = rv.datasets.Partitions.from_parquet(problem(), files, files, **names)
    loss = DistanceLoss(power="huber", noise=2.0, delta=2.0, draws=DRAWS)
    cpu = time.process_time()
    objective = _loaded(data, Threads(), loss)
    read = time.process_time() - cpu
    print(f"read in {read:.0f} s, {peak_bytes() / 1e6:.0f} MB", file=sys.stderr, flush=True)
    model = LinearModel(ridge=0.01, standardize=True)
    model.prepare_from(objective._loaded.rows(), problem().n_variables)
    model.intercept[:] = 6.0
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


# --- price ----------------------------------------------------------------------------------------


def _price(args: argparse.Namespace) -> dict[str, Any]:
    import revealed as rv
    from revealed.fit.evaluation import DistanceLoss
    from revealed.fit.models import LinearModel
    from revealed.fit.partitioned import Cluster, Threads

    files = write_days(args.folder, args.size)
    names: dict[str, Any] = {"features": feature_names(), "variables": variable_names()}
    data = rv.datasets.Partitions.from_parquet(problem(), files, files, **names)
    loss = DistanceLoss(power="huber", noise=2.0, delta=2.0, draws=DRAWS)
    with tempfile.TemporaryDirectory() as folder:
        processes = _start(Path(folder), args.workers)
        try:
            where = _wait_for(Path(folder) / "scheduler.json", args.workers)
            executors: dict[str, Any] = {"threads": Threads(args.workers)}
            executors["cluster"] = Cluster(where)
            asked = {name: _loaded(data, ex, loss) for name, ex in executors.items()}
            model = LinearModel(ridge=0.01, standardize=True)
            model.prepare_from(asked["threads"]._loaded.rows(), problem().n_variables)
            model.intercept[:] = 6.0
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


def _loaded(data: Any, executor: Any, loss: Any) -> Any:
    import uuid

    from revealed.fit.partitioned.objective import Loaded, PartitionedObjective
    from revealed.fit.partitioned.share import Orders

    orders = Orders(
        data=data, margin=1.0, infeasible="refuse", decision_tol=0, center=True, budget=np.inf,
        scratch=None, token=uuid.uuid4().hex,
    )  # fmt: skip
    loaded = Loaded(executor, orders)
    return PartitionedObjective(loaded, loss, loaded.sample(), tol=1e-4)


def _bytes(objective: Any, model: Any) -> dict[str, int]:
    """What travels in one evaluation, from and to the driver."""
    from revealed.fit.partitioned.objective import bare
    from revealed.fit.partitioned.share import Question

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


class FakeShares:
    """An executor whose shares sleep on the threads of an in-process Dask cluster."""

    words, link = "fake workers", ""

    def __init__(self, client: Any, shares: int, seconds: float, n: int, d: int) -> None:
        self._client, self._seconds, self._shape = client, seconds, (n, d)
        self.workers, self.found = MACHINES, shares

    def ask(self, method: str, questions: Any) -> list[Any]:
        futures = [
            self._client.submit(_slept, q, self._seconds, self._shape, pure=False)
            for _, q in questions
        ]
        return self._client.gather(futures)


def _slept(question: Any, seconds: float, shape: tuple[int, int]) -> Any:
    from revealed.fit.partitioned.share import Answer

    time.sleep(seconds)
    taken = (np.zeros(shape), np.zeros(shape[0]), np.array(1.0))
    rest: list[Any] = [*(1.0,) * 7, *(1,) * 3, True, 0.0, 0.0, 0.0, 0]
    return Answer(taken, *rest)


def _plan(args: argparse.Namespace) -> dict[str, Any]:
    import dask
    import distributed

    from revealed.fit.evaluation import DistanceLoss
    from revealed.fit.models import LinearModel
    from revealed.fit.partitioned.share import Question

    n, d = problem().n_variables, len(feature_names())
    each = SAMPLES / args.shares * args.seconds / args.speed_up
    patient = {"distributed.comm.timeouts.connect": "300s", "distributed.comm.timeouts.tcp": "300s"}
    dask.config.set(patient)  # pyright: ignore[reportPrivateImportUsage]
    cluster = distributed.LocalCluster(
        n_workers=MACHINES,
        threads_per_worker=CORES,
        processes=False,
        dashboard_address=None,  # pyright: ignore[reportArgumentType]
        memory_limit=0,
    )
    client = distributed.Client(cluster, set_as_default=False)
    fake = FakeShares(client, args.shares, each, n, d)
    model = LinearModel()
    model.prepare(np.random.default_rng(0).standard_normal((50, d)), n)
    question = Question(model, DistanceLoss(), None, None, True, 1e-4)  # pyright: ignore
    asked = [(k, question) for k in range(args.shares)]
    fake.ask("evaluate", asked[:MACHINES])
    seconds, spent = [], []
    for _ in range(ROUNDS):
        began, cpu = time.perf_counter(), time.process_time()
        total = None
        for answer in fake.ask("evaluate", asked):
            total = answer if total is None else total.plus(answer)
        seconds.append(time.perf_counter() - began)
        spent.append(time.process_time() - cpu)
    client.close()
    cluster.close()
    reply = len(pickle.dumps(_slept(question, 0.0, (n, d))))
    return {
        "samples": SAMPLES,
        "machines": MACHINES,
        "cores": CORES,
        "shares": args.shares,
        "sleep_of_a_share": each,
        "processor_seconds_per_sample": args.seconds,
        "bytes_per_sample": 50,
        "bytes_of_a_machine": SAMPLES / MACHINES * 50,
        "seconds": seconds,
        "overhead": float(np.median(seconds)) - each,
        "processor_seconds_of_driver_and_scheduler": float(np.median(spent)),
        "bytes_back": args.shares * reply,
    }


if __name__ == "__main__":
    main()
