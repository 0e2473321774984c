"""`revealed bench scale` and what is beside it, on a few decisions: that they measure, not what."""

import json
import subprocess
import sys
from argparse import Namespace

import numpy as np
import pytest

from revealed.cli import main
from revealed_experiments.bench import scale_kills, scale_plan


def test_a_size_is_fitted_measured_and_joins_what_is_there(tmp_path):
    out = tmp_path / "scale.json"
    earlier = {"samples": 300, "seconds": 1.0, "evaluations": 3, "peak_mib": 400.0}
    earlier |= {"relative_gap": 1e-5, "converged": True}
    earlier |= {"run": {"evaluation_processor_seconds": 0.1}}
    out.write_text(json.dumps({"lines": [earlier]}))
    assert main(["bench", "scale", "--out", str(out), "--sizes", "200"]) == 0
    report = json.loads(out.read_text())
    line, kept = report["lines"]
    assert (line["samples"], kept) == (200, earlier)
    assert line["converged"]
    assert line["relative_gap"] <= report["tol"]
    assert line["difference"] < 1e-3
    assert 0 < line["peak_mib"] < report["budget_mib"]
    assert line["run"]["evaluation_processor_seconds"] > 0


class FakeFit:
    """A process that ends before it is killed, or never by itself."""

    returncode = 0
    tried = 0

    def __init__(self, command, quick, **_):
        self.command, self.quick = command, quick
        type(self).tried += 1

    def wait(self, timeout=None):
        if timeout is not None and not self.quick:
            raise subprocess.TimeoutExpired(self.command, timeout)
        np.save(self.command[self.command.index("--coefficients") + 1], np.ones((2, 3)))

    def kill(self):
        self.quick = True


@pytest.mark.parametrize("quick", [False, True])
def test_kills_end_however_the_dice_fall(tmp_path, monkeypatch, quick):
    monkeypatch.setattr(scale_kills.subprocess, "Popen", lambda c, **_: FakeFit(c, quick))
    monkeypatch.setattr(scale_kills.subprocess, "run", lambda c, **_: FakeFit(c, True).wait())
    told = scale_kills._killed(Namespace(folder=tmp_path, size=100, kills=12, seed=0))
    assert told["kills"] == (0 if quick else 12)
    assert len(told["fits"]) == (12 if quick else 3)
    assert told["kills_with_other_threads"] == (0 if quick else 5)
    assert told["same_bits"]


def told_by(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["scale_plan", *map(str, words)])
    scale_plan.main()
    return json.loads(capsys.readouterr().out)


def test_threads_on_one_share_are_compared(tmp_path, monkeypatch, capsys):
    out = tmp_path / "threads.json"
    words = ["threads", tmp_path, "--size", 300, "--rounds", 2, "--threads", 3, "--out", out]
    told = told_by(monkeypatch, capsys, *words)
    assert told["same_bits"]
    assert 0 < told["share_in_kernels"] < 1
    assert {name: len(found) for name, found in told["lines"].items()} == {"1": 2, "3": 2}
    assert all(share is None or 0 <= share < 1 for share in told["waiting"].values())
    assert json.loads(out.read_text())["samples"] == 300


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_plan_has_a_line_for_each_number_of_shares(monkeypatch, capsys):
    pytest.importorskip("distributed")
    words = ["plan", "--shares", 8, 4, "--workers", 2, "--seconds", 1e-8]
    told = told_by(monkeypatch, capsys, *words)
    assert [(line["shares"], line["threads"]) for line in told["lines"]] == [(8, 200), (4, 400)]
    for line in told["lines"]:
        assert line["sleep_of_a_share"] * line["shares"] * line["threads"] == pytest.approx(10.0)
        assert len(line["seconds"]) == scale_plan.ROUNDS
        assert line["bytes_back"] > 0
