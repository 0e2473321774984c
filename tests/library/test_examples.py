"""Every example runs as it stands, headless, and leaves a picture; each is short."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("plot_*.py"))
LIMIT = 80


@pytest.fixture
def run_example(monkeypatch, tmp_path, capsys):
    """Runs a script in this process, without a screen; its picture, what it printed, its names."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.setenv("REVEALED_PICTURES", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["example"])
    monkeypatch.syspath_prepend(EXAMPLES)

    def run(script):
        names = runpy.run_path(str(script))
        (picture,) = tmp_path.glob("*.png")
        return picture, capsys.readouterr().out, names

    yield run
    matplotlib.pyplot.close("all")


def test_there_is_one_for_each_problem():
    assert [script.stem.removeprefix("plot_") for script in SCRIPTS] == [
        "energy_scheduling",
        "inverse_reinforcement",
        "portfolio",
        "rational_choice",
        "route_choice",
        "several_processes",
        "shortest_path",
        "tours",
        "unknown_limits",
    ]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_examples_are_short_and_open_with_a_title(script):
    lines = script.read_text("utf-8").splitlines()
    assert len(lines) < LIMIT
    assert lines[0] == '"""'
    assert re.fullmatch("=+", lines[2])
    assert len(lines[1]) == len(lines[2])


def test_schedules_tell_what_market_prices_do_not(run_example):
    picture, _, names = run_example(EXAMPLES / "plot_energy_scheduling.py")
    assert picture.stat().st_size > 20_000
    extra = names["extra"]
    assert extra["from schedules alone"] < 0.25 * extra["regression on market prices"]
    assert extra["from schedules alone"] < 0.25 * extra["average market day"]
    assert extra["from schedules alone"] < 2.5 * extra["regression on true costs"]


def test_the_learned_reward_earns_what_the_expert_earns(run_example):
    picture, told, names = run_example(EXAMPLES / "plot_inverse_reinforcement.py")
    assert picture.stat().st_size > 20_000
    found = names["found"]
    assert list(found) == [1, 5, 20, 80, "exact"]
    assert "exact walks: 100.00% of the expert's return" in told
    # Of one walk in each of four worlds many rewards explain all that was watched; the worst of 40
    # new worlds then has 65% here. On the walks of other seeds see experiments/scripts/walks.py.
    assert found[1].mean() >= 0.9
    assert all(found[count].mean() >= 0.995 for count in (5, 20, 80))
    assert all(found[count].min() >= 0.98 for count in (5, 20, 80, "exact"))


def test_portfolios_of_later_weeks_are_foreseen(run_example):
    picture, _, names = run_example(EXAMPLES / "plot_portfolio.py")
    assert picture.stat().st_size > 20_000
    future = names["future"]
    assert np.abs(names["planned"] - names["mixes"][future]).max() < 1e-4
    assert np.abs(names["replanned"] - names["eager_mixes"][future]).max() < 0.05


def test_demand_at_prices_never_seen_is_foreseen(run_example):
    picture, _, names = run_example(EXAMPLES / "plot_rational_choice.py")
    assert picture.stat().st_size > 20_000
    truth, ours, line = (names["demand"][name][-1] for name in ("truth", "ours", "regression"))
    assert np.abs(ours - truth).mean() < 0.2 * np.abs(line - truth).mean()


def test_what_drivers_mind_is_learned_in_meters(run_example):
    picture, told, names = run_example(EXAMPLES / "plot_route_choice.py")
    assert picture.stat().st_size > 20_000
    np.testing.assert_allclose(names["model"].coef_, names["TASTE"], rtol=0.4)
    assert names["model"].coef_[0] == 1.0
    assert "traffic lights" in told


def test_hikers_dislikes_are_learned_and_routes_planned(run_example):
    picture, _, names = run_example(EXAMPLES / "plot_shortest_path.py")
    assert picture.stat().st_size > 20_000
    np.testing.assert_allclose(names["learned"], names["DISLIKE"], rtol=0.15)
    learned, shortest = names["extra"]
    assert learned < 0.01 < shortest


WORKER = """
import os, runpy, sys
import numpy as np
names = runpy.run_path(sys.argv[1])
weights = [weight.detach().numpy() for weight in names["net"].parameters()]
np.savez(f"{sys.argv[2]}/{names['rank']}_of_{names['world']}.npz", *weights)
sys.stdout.flush()
os._exit(0)
"""
"""The end is abrupt because a worker once aborted while it shut down, in some hundred runs. The
likely reason, pytorch/pytorch#179291: `DistributedDataParallel` keeps Gloo's threads for good, and
one that lets go of a tensor while the interpreter ends brings the process down."""


def test_two_processes_make_the_network_that_one_makes(run_example, tmp_path):
    script = EXAMPLES / "plot_several_processes.py"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    picture, told, names = run_example(script)
    torch.set_num_threads(threads)
    assert picture.stat().st_size > 20_000
    assert told.startswith("1 process(es): loss")
    assert names["losses"][-1] < 0.3 * names["losses"][0]
    assert names["misses"][-1] < names["misses"][0]

    worker = tmp_path / "worker.py"
    worker.write_text(WORKER, "utf-8")
    torchrun = "-m torch.distributed.run --nproc-per-node 2 --rdzv-backend c10d".split()
    words = [sys.executable, *torchrun, "--rdzv-endpoint=localhost:0", worker, script, tmp_path]
    here = {"GLOO_SOCKET_IFNAME": "lo", "MPLBACKEND": "agg", "PYTHONPATH": str(EXAMPLES)}
    found = subprocess.run(
        words,
        env={**os.environ, **here, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.returncode == 0, found.stderr
    assert "2 process(es)" in found.stdout
    alone = [weight.detach().numpy() for weight in names["net"].parameters()]
    for rank in range(2):
        with np.load(tmp_path / f"{rank}_of_2.npz") as together:
            for one, two in zip(alone, together.values(), strict=True):
                # 96 steps, each of projections that are right to 1e-8.
                np.testing.assert_allclose(two, one, rtol=0, atol=1e-8)


def test_the_van_is_learned_from_mornings_alone(run_example):
    picture, told, names = run_example(EXAMPLES / "plot_unknown_limits.py")
    assert picture.stat().st_size > 20_000
    assert "rain takes 2.50 crates, a market day 9.00" in told
    assert names["met"]["learned"] > names["met"]["largest load"] + 0.2
