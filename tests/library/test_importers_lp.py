"""LP files: the model, its names and its warnings are those of the file."""

import numpy as np
import pytest

import revealed as rv
from revealed.errors import InputError
from revealed.importers import RelaxationWarning

PLAN = """\\ what to sell
Maximize
 profit: 3 apples + 2 pears - x3 + 5
Subject To
 space: apples + pears <= 4
 least: apples + 3 pears + x3 >= 1
 same: pears - x3 = 0
Bounds
 apples <= 3
 -2 <= x3 <= 2
"""


def write(tmp_path, content, name="plan.lp"):
    path = tmp_path / name
    path.write_text(content, "utf-8")
    return path


def test_an_lp_file_is_the_model_it_describes(tmp_path):
    model = rv.read_lp(write(tmp_path, PLAN + "End\n"))
    assert model.variable_names == ("apples", "pears", "x3")
    assert model.eq_names == ("same",)
    assert model.ub_names == ("space", "least")
    assert model.maximized
    assert model.constant == 5.0
    assert np.array_equal(model.cost, [-3.0, -2.0, 1.0])
    x = model.problem.solve(model.cost[None]).x[0]
    assert np.allclose(x, [3.0, 1.0, 1.0])
    assert "plan.lp" in repr(model)
    assert ".mps" not in repr(model)


def test_warnings_name_the_file_that_was_given(tmp_path):
    with pytest.warns(RelaxationWarning, match=r"In plan\.lp 1 of 3 variables"):
        model = rv.read_lp(write(tmp_path, PLAN + "Generals\n apples\nEnd\n"))
    assert model.integer.tolist() == [True, False, False]


def test_what_is_no_lp_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"broken\.lp cannot be read as an LP file"):
        rv.read_lp(write(tmp_path, "maximize this if you can <= <=\n", "broken.lp"))
    with pytest.raises(InputError, match="does not exist"):
        rv.read_lp(tmp_path / "none.lp")
