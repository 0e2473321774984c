"""A fit on a real Dask cluster: the coefficients of one process, whatever happens to workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.fit import LBFGS
from revealed.fit.partitioned import Cluster

distributed = pytest.importorskip("distributed")

GRID = rv.problems.grid_shortest_path(3, 3, directed="right-down")
PATIENCE = 60.0
"""Seconds until a process must be there."""
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


class LocalCluster:
    """A scheduler and workers as processes of their own, on loopback."""

    def __init__(self, folder: Path) -> None:
        self._file, self._folder = folder / "scheduler.json", folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1")
        self.workers = [self.add(), self.add()]

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        whole = [sys.executable, "-m", "dask", *command, "--scheduler-file", str(self._file)]
        with open(self._folder / f"log{len(self._processes)}", "wb") as log:
            process = subprocess.Popen(whole, stdout=log, stderr=log, cwd=self._folder)
        self._processes.append(process)
        return process

    def add(self) -> subprocess.Popen[bytes]:
        """Another worker."""
        local = ("--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1")
        return self._start("worker", *local, "--local-directory", str(self._folder))

    def client(self, workers: int) -> Any:
        """A client, once so many workers are there."""
        end = time.monotonic() + PATIENCE
        while not self._file.exists() and time.monotonic() < end:
            time.sleep(0.05)
        client = distributed.Client(scheduler_file=str(self._file), set_as_default=False)
        client.wait_for_workers(workers, timeout=PATIENCE)
        return client

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[LocalCluster]:
    local = LocalCluster(tmp_path_factory.mktemp("cluster"))
    yield local
    local.close()


@pytest.fixture(scope="module")
def days(tmp_path_factory) -> rv.datasets.Partitions:
    """Samples in files, for who reads them are other processes."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((400, 2))
    X = np.asarray(GRID.solve(4.0 + Z @ rng.standard_normal((2, 12)) + rng.random((400, 12))).x)
    columns = {f"z{k}": Z[:, k] for k in range(2)} | {f"x{k}": X[:, k] for k in range(12)}
    file = tmp_path_factory.mktemp("days") / "all.parquet"
    pq.write_table(pa.table(columns), file, row_group_size=50)
    names = {"features": ["z0", "z1"], "variables": [f"x{k}" for k in range(12)]}
    return rv.datasets.Partitions.from_parquet(GRID, file, file, partitions=6, **names)


def fitted(data: Any, **run: Any) -> np.ndarray:
    est = rv.InverseRegressor(GRID, ridge=0.01, random_state=0, solver=LBFGS(tol=1e-8))
    return est.fit(data, run=rv.Run(**run)).coef_


def test_a_cluster_gives_the_coefficients_of_one_process_though_a_worker_dies(
    cluster, days, monkeypatch
):
    alone = fitted(days, executor="threads", workers=2)
    client = cluster.client(workers=2)
    address = client.scheduler.address
    np.testing.assert_array_equal(fitted(days, executor=address), alone)

    asked, ask = [], Cluster.ask

    def with_a_death(self: Cluster, *question: Any) -> list[Any]:
        asked.append(question)
        if len(asked) == 4:
            os.kill(cluster.workers[0].pid, signal.SIGKILL)
        if len(asked) == 7:
            cluster.add()
            client.wait_for_workers(2, timeout=PATIENCE)
        return ask(self, *question)

    monkeypatch.setattr(Cluster, "ask", with_a_death)
    np.testing.assert_array_equal(fitted(days, executor=client), alone)
    assert len(asked) > 7
    # Threads of a worker look at the stretches of a partition; the sums are the same.
    np.testing.assert_array_equal(fitted(days, executor=client, threads=3), alone)
    assert cluster.workers[0].wait() == -signal.SIGKILL
    client.close()


def test_a_scheduler_that_is_not_there_is_told_in_a_sentence():
    with pytest.raises(rv.InputError, match="No Dask scheduler answers at"):
        Cluster("tcp://127.0.0.1:9", timeout=0.5)
