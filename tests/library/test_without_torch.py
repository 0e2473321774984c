"""`pip install revealed` brings no torch: what learns without it does, what needs it says so.

Each test runs in a fresh interpreter in which torch cannot be imported.
"""

import os
import subprocess
import sys

import pytest

WITHOUT = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Blocker())
"""
DATA = """
import numpy as np
import revealed as rv

rng = np.random.default_rng(0)
problem = rv.problems.grid_shortest_path(3, 3, directed="right-down")
Z = rng.standard_normal((40, 3))
X = problem.solve(np.maximum(1 + Z @ rng.random((3, problem.n_variables)), 0.1)).x
"""
LEARN = """
import tempfile

for name in ("linear", "quadratic", "kernel"):
    model = rv.InverseRegressor(problem, model=name).fit(Z, X)
    with tempfile.TemporaryDirectory() as folder:
        again = rv.load(model.save(folder))
    assert np.array_equal(again.predict(Z), model.predict(Z)), name
features = Z[:, None, :] * rng.random(problem.n_variables)[:, None]  # (B, n, p)
rv.InverseRegressor(problem, model="shared").fit(features, X).predict(features)
rv.InverseRegressorCV(problem, cv=2).fit(Z, X).score(Z, X)
assert rv.metrics.accuracy(problem, costs=model.predict_cost(Z), decisions=X) is not None
assert "torch" not in sys.modules
print("learned")
"""
REFUSED = {
    "revealed.losses": "import revealed.losses",
    "ProjectionLoss": "import revealed as rv; rv.ProjectionLoss",
    "revealed.fit.erm": "from revealed.fit import erm",
    "revealed.fit.TorchModel": "import revealed.fit as f; f.TorchModel",
    "solver='adam'": DATA + "rv.InverseRegressor(problem, solver='adam').fit(Z, X)",
}


def run_python(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", WITHOUT + program]
    settings = {"capture_output": True, "text": True, "timeout": 300}
    return subprocess.run(command, env=os.environ | variables, **settings)


def test_named_models_learn_without_torch():
    done = run_python(DATA + LEARN)
    assert done.stdout == "learned\n", done.stderr


def test_commands_run_without_torch(tmp_path):
    program = f"""
from revealed.cli import main

folder = {str(tmp_path)!r}
tables = ["--contexts", folder + "/contexts.csv", "--decisions", folder + "/decisions.csv"]
assert main(["tour", "--out", folder]) == 0
assert main(["doctor", "--problem", folder + "/plan.mps", *tables]) == 0
assert main(["fit", "--problem", folder + "/plan.mps", *tables, "--ridge", "0.01", "--model",
             "linear", "--out", folder + "/model"]) == 0
assert main(["predict", folder + "/model", "--contexts", folder + "/next_days.csv", "--out",
             folder + "/next.csv"]) == 0
assert "torch" not in sys.modules
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr
    assert "Written     14 decisions" in done.stdout


@pytest.mark.parametrize("what", REFUSED)
def test_what_needs_torch_says_so(what):
    done = run_python(REFUSED[what])
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert "'torch', which is not installed: `pip install 'revealed[torch]'`" in last
    assert what.partition(".")[0] in last or "`revealed.losses`" in last


def test_a_module_of_something_else_is_still_refused_by_name():
    done = run_python(DATA + "rv.InverseRegressor(problem, model=len).fit(Z, X)")
    assert "`model` must be one of linear" in done.stderr
