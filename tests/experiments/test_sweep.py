"""A sweep loses nothing and repeats nothing, wherever it runs and whatever happens to it."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from run_helpers import CONFIG, figures, several

import revealed as rv
from revealed_experiments.bench.sweeps import progress, run_one, runs, sweep
from revealed_experiments.bench.sweeps.runs import RunConfig, read_run, read_runs, run_file

pytest.importorskip("rich")

# A sweep in a process of its own: the configurations in a file, the folder, and what else to say.
SWEEP = """
import json, sys
from pathlib import Path
from revealed_experiments.bench.sweeps.runs import RunConfig
from revealed_experiments.bench.sweeps.sweep import sweep
configs = [RunConfig.read(each) for each in json.loads(Path(sys.argv[1]).read_text())]
sweep(configs, Path(sys.argv[2]), **json.loads(sys.argv[3]))
"""


def start_sweep(folder, configs, **options):
    path = folder.with_suffix(".configs.json")
    path.write_text(json.dumps([config.plain() for config in configs]), "utf-8")
    command = [sys.executable, "-c", SWEEP, str(path), str(folder), json.dumps(options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process):
    out, _ = process.communicate(timeout=900)
    assert process.returncode == 0, out
    return out


def wait_for(condition):
    """Far longer than it should take, for a machine may be busy with something else."""
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


# --- many runs -----------------------------------------------------------------------------------


def test_a_sweep_keeps_every_run_and_the_order(tmp_path):
    bad = replace(CONFIG, method={"name": "nonsense"})
    wild = replace(CONFIG, optimiser="sgd", step=1e100, epochs=20)
    configs = [bad, *several(3), wild]
    found = sweep.sweep(configs, tmp_path, jobs=1)
    assert [RunConfig.read(run) for run in found] == configs
    statuses = [run["status"] for run in found]
    assert statuses == ["failed", "finished", "finished", "finished", "diverged"]
    for config, run in zip(configs, found, strict=True):
        kept = read_run(run_file(tmp_path, config.key))
        assert run == kept  # to the last digit, so that a later command finds the same
        assert kept["command"] == f"revealed bench run runs/{config.key}.json"


def test_what_is_there_is_not_repeated(tmp_path, monkeypatch):
    first = sweep.sweep(several(4), tmp_path, jobs=1)
    done = []
    monkeypatch.setattr(sweep, "perform", lambda c: done.append(c) or run_one.perform(c))
    broken = run_file(tmp_path, several(4)[2].key)
    broken.write_text("", "utf-8")
    again = sweep.sweep(several(5), tmp_path, jobs=1)
    assert done == [several(5)[2], several(5)[4]]
    assert list(map(figures, again[:4])) == list(map(figures, first))


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert sweep.sweep([CONFIG], None, jobs=1)[0]["status"] == "finished"
    assert list(tmp_path.iterdir()) == []


def test_processes_find_what_one_process_finds(tmp_path):
    configs = several(6)
    alone = sweep.sweep(configs, None, jobs=1)
    together = sweep.sweep(configs, tmp_path, jobs=2)
    assert list(map(figures, together)) == list(map(figures, alone))
    workers = {run["surroundings"]["process"] for run in together}
    assert os.getpid() not in workers


def test_a_run_that_kills_its_process_is_recorded(tmp_path, monkeypatch):
    """Say by a fault in native code: the pool breaks, and no other run is lost."""
    fatal = several(8)[3].key

    def perform_or_die(parent, config):
        import os

        from revealed_experiments.bench.sweeps.run_one import perform

        if config.key == fatal:
            os._exit(3)
        return perform(config)

    monkeypatch.setattr(sweep, "_perform_for", perform_or_die)
    found = sweep.sweep(several(8), tmp_path, jobs=2)
    assert [run["status"] for run in found] == ["finished"] * 3 + ["failed"] + ["finished"] * 4
    assert "died" in found[3]["message"]
    assert len(read_runs(tmp_path)) == 8


def test_a_worker_that_has_grown_is_replaced(tmp_path, monkeypatch):
    """Joblib sends workers home that have grown by 300 MB, say by data they keep, and warns of it:
    as an error, that would end the thread that deals out runs, and the sweep would never end."""
    pytest.importorskip("psutil")

    def perform_and_grow(parent, config):
        import os
        import sys
        import time

        from revealed_experiments.bench.sweeps.run_one import perform

        run = perform(config)
        kept = sys.__dict__.setdefault("kept", [])
        kept.append(os.urandom(2 * 10**8))
        time.sleep(0.6)  # joblib looks once a second
        return run

    monkeypatch.setattr(sweep, "_perform_for", perform_and_grow)
    found = sweep.sweep(several(8), tmp_path, jobs=2)
    assert [run["status"] for run in found] == ["finished"] * 8
    assert len({run["surroundings"]["process"] for run in found}) > 2


def children(pid):
    """Processes that a process has started, theirs included."""
    import psutil

    return psutil.Process(pid).children(recursive=True)


def is_alive(process):
    """Not even as a process that has ended and that nobody has asked about."""
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_killed_sweep_resumes_and_repeats_nothing(tmp_path):
    pytest.importorskip("psutil")
    larger = CONFIG.data | {"sizes": [100, 20, 20], "side": 5}
    configs = several(24, epochs=150, batch_size=50, data=larger)
    folder = tmp_path / "killed"
    process = start_sweep(folder, configs, jobs=2)
    kept = folder / "runs"
    wait_for(lambda: process.poll() is not None or len(list(kept.glob("*.json"))) >= 4)
    assert process.poll() is None, process.communicate()[0]
    workers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=600)  # the workers hold the pipe until they leave

    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in kept.glob("*.json")}
    assert 4 <= len(before) < len(configs)
    assert all(read_run(path) is not None for path in before)
    wait_for(lambda: not any(map(is_alive, workers)))

    out = finish(start_sweep(folder, configs, jobs=2))
    assert f"{len(before)} of {len(configs)} runs are there already" in out
    after = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in before}
    assert after == before
    assert sorted(path.name for path in kept.iterdir()) == sorted(f"{c.key}.json" for c in configs)

    whole = sweep.sweep(configs, None, jobs=1)
    resumed = [read_run(run_file(folder, config.key)) for config in configs]
    assert list(map(figures, resumed)) == list(map(figures, whole))


def test_packed_runs_read_like_single_ones(tmp_path):
    found = sweep.sweep(several(6), tmp_path, jobs=1)
    kept = RunConfig.read(found[0]).key
    runs.pack_runs(tmp_path, found, {kept})
    single = {RunConfig.read(run).key: run for run in read_runs(tmp_path)}
    for path in (tmp_path / "runs").iterdir():
        path.unlink()
    (tmp_path / "runs").rmdir()
    packed = {RunConfig.read(run).key: run for run in read_runs(tmp_path)}
    assert packed.keys() == single.keys()
    assert packed[kept] == single[kept]
    for key, run in packed.items():
        assert run["final"] == single[key]["final"]
        assert ("epochs" in run) is (key == kept)


# --- on a cluster --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A real scheduler and two workers on loopback: its address, and the workers."""
    pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("dask")
    about, started = folder / "scheduler.json", []

    def start(*words):
        # Outside the repository, where workers would leave their scratch folders.
        command = [sys.executable, "-m", "dask", *words]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(command, cwd=folder, **silent))
        return started[-1]

    start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
          "--scheduler-file", str(about))  # fmt: skip
    wait_for(about.is_file)
    address = json.loads(about.read_text("utf-8"))["address"]
    one_thread = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
    workers = [start("worker", address, *one_thread) for _ in range(2)]
    # Asked from outside: a client here would leave its threads to the tests that come after.
    ready = f"import distributed; distributed.Client({address!r}).wait_for_workers(2, 540)"
    subprocess.run([sys.executable, "-c", ready], check=True, timeout=600)
    yield address, workers
    for process in reversed(started):  # workers first; they say goodbye to the scheduler
        end(process)


def end(process):
    """End a process, by force where it does not go when asked."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def test_a_cluster_finds_what_one_process_finds(tmp_path, cluster):
    address, workers = cluster
    configs = several(12, epochs=60)
    finish(start_sweep(tmp_path / "out", configs, scheduler=address))
    found = [read_run(run_file(tmp_path / "out", config.key)) for config in configs]
    assert list(map(figures, found)) == list(map(figures, sweep.sweep(configs, None, jobs=1)))
    assert {run["surroundings"]["process"] for run in found} == {w.pid for w in workers}


def test_a_cluster_resumes_too(tmp_path, cluster):
    address, _ = cluster
    folder, configs = tmp_path / "out", several(6)
    sweep.sweep(configs[:4], folder, jobs=1)
    before = {path: path.stat().st_ino for path in (folder / "runs").iterdir()}
    out = finish(start_sweep(folder, configs, scheduler=address))
    assert "4 of 6 runs are there already" in out
    assert {path: path.stat().st_ino for path in before} == before
    assert len(read_runs(folder)) == 6


def test_workers_of_several_threads_are_refused():
    client = SimpleNamespace(nthreads=lambda: {"one": 1, "other": 2})
    with pytest.raises(rv.InputError, match="got a worker with 2"):
        sweep._workers(client)
    client.nthreads = lambda: {"one": 1, "other": 1}
    assert sweep._workers(client) == 2


def test_a_cluster_without_workers_is_named(monkeypatch):
    distributed = pytest.importorskip("distributed")

    class Alone:
        def __init__(self, address, timeout):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def wait_for_workers(self, n_workers, timeout):
            raise TimeoutError

    monkeypatch.setattr(distributed, "Client", Alone)
    with pytest.raises(rv.InputError, match="No worker has come to the scheduler at 'there'"):
        sweep.sweep([CONFIG], None, scheduler="there")


def test_a_scheduler_that_does_not_answer_is_named(tmp_path):
    pytest.importorskip("distributed")
    told = "sweep_module.ANSWER_S = 1.0\n"
    script = SWEEP.replace(
        "configs =",
        "import revealed_experiments.bench.sweeps.sweep as sweep_module\n" + told + "configs =",
        1,
    )
    (tmp_path / "configs.json").write_text(json.dumps([CONFIG.plain()]), "utf-8")
    options = json.dumps({"scheduler": "tcp://127.0.0.1:1"})
    command = [sys.executable, "-c", script, str(tmp_path / "configs.json"), str(tmp_path), options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert "InputError: No Dask scheduler answers at 'tcp://127.0.0.1:1'" in done.stderr


# --- the command and the display -----------------------------------------------------------------


def run_command(*words):
    import argparse

    parser = argparse.ArgumentParser()
    run_one.add_arguments(parser)
    return run_one.run(parser.parse_args([str(word) for word in words]))


def test_run_command(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG.plain()), "utf-8")
    assert run_command(path, "--out", tmp_path / "out") == 0
    assert "On test data" in capsys.readouterr().out
    kept = run_file(tmp_path / "out", CONFIG.key)
    assert run_command(kept) == 0  # the file of a run repeats it and compares
    assert "as recorded" in capsys.readouterr().out

    run = read_run(kept)
    run["final"]["test"]["decision_loss"] += 1
    kept.write_text(json.dumps(run), "utf-8")
    assert run_command(kept) == 1
    assert f"not as recorded: {CONFIG.key}" in capsys.readouterr().out


def test_run_command_takes_a_list_and_tells_failures(tmp_path, capsys):
    bad = replace(CONFIG, method={"name": "nonsense"})
    path = tmp_path / "configs.json"
    path.write_text(json.dumps([c.plain() for c in (CONFIG, bad)]), "utf-8")
    assert run_command(path, "--jobs", "1") == 1
    assert "failed: " in capsys.readouterr().out


def test_run_command_refuses_what_it_cannot_read(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{", "utf-8")
    with pytest.raises(rv.InputError, match="must be a JSON file"):
        run_command(path)
    with pytest.raises(rv.InputError, match="neither a file nor the key of a run"):
        run_command("nothing-like-it")


def test_time_left_goes_by_the_kind_of_what_is_left():
    slow, fast = replace(CONFIG, label="slow"), replace(CONFIG, label="fast")

    def ended(config, seconds, status="finished"):
        return {"config": config.plain(), "status": status, "seconds": seconds}

    shown = progress.Progress([ended(slow, 8.0)], [fast, fast, slow, slow], workers=2)
    assert (shown.done, shown.total, shown.running) == (1, 5, 2)
    shown.add(ended(fast, 2.0, "diverged"))
    assert shown.seconds_left() == pytest.approx((2.0 + 8.0 + 8.0) / 2)
    assert shown.words() == ["2 running", "1 diverged"]
    assert progress.Progress([], [fast], workers=1).seconds_left() is None


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_and_tells_what_went_wrong(terminal, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    bad = replace(CONFIG, method={"name": "nonsense"})
    sweep.sweep([CONFIG, bad], None, jobs=1)
    err = capsys.readouterr().err
    assert "2/2" in err if terminal else "2 of 2 runs" in err
    assert "1 failed" in err


@pytest.mark.parametrize("seconds, words", [(0, "0:00"), (65.4, "1:05"), (7384, "2:03:04")])
def test_clock(seconds, words):
    assert progress.clock(seconds) == words


def test_no_path_of_this_machine_is_written(tmp_path):
    sweep.sweep([CONFIG], tmp_path, jobs=1)
    text = run_file(tmp_path, CONFIG.key).read_text("utf-8")
    assert str(tmp_path) not in text
    assert str(Path.home()) not in text
