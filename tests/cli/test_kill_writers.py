"""A few of the kills that `kill_writers.py` makes by the hundred."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kill_writers.py")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked")
def test_what_killed_writers_leave_is_complete():
    tests = SCRIPT.parents[1]
    paths = [str(SCRIPT.parent), str(tests), str(tests / "library"), *sys.path]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--kills", "3"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("3 kills, nothing lost") == 3
