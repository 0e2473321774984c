"""Gurobi models, real ones where gurobipy is installed, else objects with the same attributes."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import revealed as rv
from revealed.errors import InputError
from revealed.importers import RelaxationWarning

# maximize 3 x + 2 y - 2 z + 5 with x + y <= 4, x - z >= -1, y + z = 3, 0 <= x <= 3, y free, z >= 0
ROWS = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, -1.0], [0.0, 1.0, 1.0]])


class FakeModel:
    """What `from_gurobi` reads of a gurobipy.Model."""

    ModelName, ModelSense, ObjCon, NumObj = "plan", -1, 5.0, 1
    NumQConstrs = NumSOS = NumGenConstrs = NumPWLObjVars = NumQNZs = 0
    attributes = {  # noqa: RUF012
        "VarName": ["x", "y", "z"],
        "LB": [0.0, -1e100, 0.0],
        "UB": [3.0, 1e100, 1e100],
        "Obj": [3.0, 2.0, -2.0],
        "VType": ["C", "C", "C"],
        "ConstrName": ["cap", "low", "sum"],
        "Sense": ["<", ">", "="],
        "RHS": [4.0, -1.0, 3.0],
    }

    def __init__(self, **changes):
        self.__dict__.update(changes)

    def update(self):
        pass

    def getVars(self):
        return [SimpleNamespace(index=j) for j in range(3)]

    def getConstrs(self):
        return [SimpleNamespace(index=i) for i in range(3)]

    def getA(self):
        return sparse.csr_matrix(ROWS)

    def getAttr(self, name, items):
        return [self.attributes[name][item.index] for item in items]

    def getQ(self):
        return self.quadratic


def real_model():
    gurobipy = pytest.importorskip("gurobipy")
    model = gurobipy.Model("plan")
    model.Params.OutputFlag = 0
    x = model.addVar(ub=3, name="x", obj=3)
    y = model.addVar(lb=-gurobipy.GRB.INFINITY, name="y", obj=2)
    z = model.addVar(name="z", obj=-2)
    model.addConstr(x + y <= 4, name="cap")
    model.addConstr(x - z >= -1, name="low")
    model.addConstr(y + z == 3, name="sum")
    model.ModelSense, model.ObjCon = -1, 5.0
    return model


@pytest.mark.parametrize("build", [FakeModel, real_model], ids=["stand-in", "gurobipy"])
def test_rows_bounds_objective_and_names(build):
    model = rv.from_gurobi(build())
    assert model.variable_names == ("x", "y", "z")
    assert (model.eq_names, model.ub_names) == (("sum",), ("cap", "low"))
    np.testing.assert_array_equal(model.problem.A_eq.toarray(), ROWS[2:])
    np.testing.assert_array_equal(model.problem.A_ub.toarray(), [ROWS[0], -ROWS[1]])
    np.testing.assert_array_equal(model.problem.b_ub, [4.0, 1.0])
    np.testing.assert_array_equal(model.problem.lb, [0, -np.inf, 0])
    np.testing.assert_array_equal(model.problem.ub, [3, np.inf, np.inf])
    assert model.maximized
    np.testing.assert_array_equal(model.cost, [-3, -2, 2])
    answer = model.problem.solve(model.cost[None])
    np.testing.assert_allclose(answer.x, [[1.0, 3.0, 0.0]])
    np.testing.assert_allclose(model.objective(answer.x), [3 + 6 + 5])


def test_the_optimum_is_gurobis():
    solver = real_model()
    solver.optimize()
    model = rv.from_gurobi(solver)
    answer = model.problem.solve(model.cost[None])
    np.testing.assert_allclose(answer.x[0], solver.getAttr("X", solver.getVars()), atol=1e-8)
    assert model.objective(answer.x)[0] == pytest.approx(solver.ObjVal)


def test_a_quadratic_objective():
    half = sparse.coo_matrix(([-1.0, -1.0, -2.0], ([0, 0, 1], [0, 1, 1])), shape=(3, 3))
    model = rv.from_gurobi(FakeModel(NumQNZs=3, quadratic=half))  # - x^2 - x y - 2 y^2
    np.testing.assert_array_equal(model.problem.Q, [[2, 1, 0], [1, 4, 0], [0, 0, 0]])
    expected = 3 * 1 + 2 * 2 - 2 + 5 - (1 + 2 + 8)
    np.testing.assert_allclose(model.objective([[1.0, 2.0, 1.0]]), [expected])


def test_integers_are_relaxed_with_a_warning():
    kinds = FakeModel.attributes | {"VType": ["B", "C", "N"]}
    with pytest.warns(RelaxationWarning, match="the Gurobi model 'plan' 2 of 3"):
        model = rv.from_gurobi(FakeModel(attributes=kinds))
    assert model.integer.tolist() == [True, False, True]


def test_whole_decisions_are_the_best_of_all_that_can_be_listed():
    ends = FakeModel.attributes | {"VType": ["I", "I", "I"], "RHS": [3.5, -1.0, 3.0]}
    with pytest.warns(RelaxationWarning):
        model = rv.from_gurobi(FakeModel(attributes=ends))
    every = [np.array([x, 3.0 - z, z]) for x in range(4) for z in range(20)]  # y + z = 3
    allowed = [p for p in every if p[0] + p[1] <= 3.5 and p[0] - p[2] >= -1]
    best = max(np.array([3.0, 2.0, -2.0]) @ p for p in allowed)
    answer = model.integer_problem.solve(model.cost[None])
    assert answer.optimal.all()
    np.testing.assert_allclose(model.objective(answer.x), [best + 5.0])


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"NumQConstrs": 1}, "quadratic constraints"),
        ({"NumSOS": 1, "NumGenConstrs": 2}, "SOS constraints and general constraints"),
        ({"NumObj": 2}, "several objectives"),
    ],
)
def test_what_is_not_linear_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        rv.from_gurobi(FakeModel(**changes))


def test_what_is_no_model_is_refused():
    with pytest.raises(InputError, match=r"gurobipy\.Model; got str"):
        rv.from_gurobi("model.lp")
