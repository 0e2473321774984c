"""Soft Newton steps: from far away they find what the interior point was needed for before."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch

import revealed as rv
from revealed.projection import constants
from revealed.projection.cpu import kernel
from revealed.projection.torch_dense import newton as torch_newton
from revealed.projection.torch_dense.instances import Factor, load_instances
from revealed.projection.triton import DeviceSets, launch, project_on_device


@pytest.fixture(scope="module")
def far():
    """Sets of paths on an 8x8 grid, costs, and the multipliers of very different ones."""
    problem = rv.problems.grid_shortest_path(8, 8, neighbors=8)
    rng = np.random.default_rng(0)
    behind = rng.uniform(0.5, 1.5, (16, problem.n_variables))
    sets = rv.OptimalitySet(problem, problem.solve(behind).x, margin=0.5)
    start = rv.project(rng.standard_normal(behind.shape), sets)
    assert start.solved.all()
    return sets, 20.0 * np.abs(rng.standard_normal(behind.shape)), start.multipliers


def on_cpu(sets, costs, start):
    return rv.project(costs, sets, warm_start=start, method="kernel")


def by_torch(sets, costs, start):
    return on_device(sets, costs, start, method="torch")


def on_device(sets, costs, start, **options):
    return project_on_device(
        torch.tensor(costs),
        DeviceSets.upload(sets, "cpu"),
        warm_start=torch.tensor(start),
        **options,
    )


def refuse(*args):
    raise AssertionError("The interior point was called.")


def without_soft_steps(bounds):
    assert not bounds
    return constants.OVERSHOOT, constants.STAGES[1:]


@pytest.mark.parametrize("place, way", [(kernel, on_cpu), (torch_newton, by_torch)])
def test_the_interior_point_is_not_needed_from_far_away(far, place, way, monkeypatch):
    expected = way(*far)
    monkeypatch.setattr(place, "interior", refuse)
    assert way(*far).solved.all()
    monkeypatch.setattr(place, "plan_stages", without_soft_steps)  # without soft steps it is
    with pytest.raises(AssertionError, match="was called"):
        way(*far)
    monkeypatch.undo()
    monkeypatch.setattr(place, "plan_stages", without_soft_steps)
    np.testing.assert_allclose(way(*far).point, expected.point, rtol=1e-7, atol=1e-7)


def test_a_few_steps_from_far_away_are_not_called_an_answer(far):
    """Soft steps are not judged, so that a limit among them leaves what the certificate says."""
    sets, costs, start = far
    full = rv.project(costs, sets, warm_start=start, method="kernel")
    few = rv.project(costs, sets, warm_start=start, method="kernel", max_iter=4)
    assert (few.iterations <= 4).all()
    assert not few.solved.all()
    assert (few.residual[~few.solved] > 1e-8).all()
    near = np.linalg.norm(few.point - full.point, axis=1)
    assert (near[few.solved] <= 1e-6 * np.linalg.norm(full.point, axis=1)[few.solved]).all()


# --- step for step -------------------------------------------------------------------------------

LIMITS = (5, 6)
"""Steps after which the projection below is still among the soft ones, or just beyond."""
SEED = 2
ALIKE = 1e-5
"""The matrix of a grid is singular, and the ridges that make up for it are not the same."""


def listed(found):
    return [[float(p.residual[0]), *p.point[0].tolist()] for p in found]


def one_path():
    """The set of a path, the costs behind it, and further random numbers."""
    problem, rng = rv.problems.grid_shortest_path(6, 6), np.random.default_rng(SEED)
    behind = rng.uniform(0.5, 1.5, (1, problem.n_variables))
    return rv.OptimalitySet(problem, problem.solve(behind).x, margin=0.5), behind, rng


def away():
    """Costs far away, and the multipliers of very different ones."""
    sets, behind, rng = one_path()
    start = rv.project(rng.standard_normal(behind.shape), sets).multipliers
    return sets, 20.0 * np.abs(rng.standard_normal(behind.shape)), start


def stopped(way, **options):
    """Residuals and points of one projection from far away, stopped after so many steps."""
    return listed(way(*away(), max_iter=limit, **options) for limit in LIMITS)


def cpu_kernel(sets, costs, start, **options):
    return rv.project(costs, sets, warm_start=start, method="kernel", **options)


def test_these_are_stopped_among_soft_steps(monkeypatch):
    """Else agreeing on them would say nothing about soft steps."""
    expected = stopped(cpu_kernel)
    assert all(residual > 1e-5 for residual, *_ in expected)
    monkeypatch.setattr(kernel, "SOFT_STEPS", 0)
    for (residual, *_), (other, *_) in zip(expected, stopped(cpu_kernel), strict=True):
        assert abs(residual / other - 1.0) > 0.1


def test_the_torch_version_takes_the_same_soft_steps_as_the_cpu():
    np.testing.assert_allclose(stopped(on_device, method="torch"), stopped(cpu_kernel), rtol=ALIKE)


@pytest.fixture(scope="module")
def interpreted():
    """What the kernels say of the same in Triton's interpreter."""
    if find_spec("triton") is None:
        pytest.skip("triton is not installed.")
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- soft steps in the kernels -------------------------------------------------------------------

ROUND = {
    "late": (0.2, 0.04, None),
    "midway": (1.0, 0.2, 0.04, 0.008, None),
    "overshot": (None, 1.0, 0.2, 0.04, 0.008),
}
"""How round the corners are in each step, in terms of the residuals before the first soft one."""


def late():
    """A point of a set moved a little, and the multipliers for another move nearly as large."""
    sets, behind, rng = one_path()
    point = rv.project(rng.uniform(0.0, 2.0, behind.shape), sets).point
    before, now = 1e-3 * rng.standard_normal((2, *point.shape))
    start = rv.project(point + before, sets).multipliers
    return sets, point + before + 0.5 * now, start


def midway():
    """Large costs near true ones, and the multipliers of others as near."""
    sets, behind, rng = one_path()
    before, now = 20.0 * behind * (1.0 + 0.1 * rng.standard_normal((2, *behind.shape)))
    return sets, now, rv.project(before, sets).multipliers


CASES = {"late": late, "midway": midway, "overshot": away}


def begun(name):
    """By the kernels: residuals and points after each of the first steps."""
    case, most = CASES[name](), len(ROUND[name])
    return listed(on_device(*case, method="triton", max_iter=k + 1) for k in range(most))


def begun_by_hand(name):
    """The same from the definition of a step."""
    sets, costs, start = CASES[name]()
    there, plan = DeviceSets.upload(sets, "cpu"), DeviceSets.upload(sets, "cpu").plan
    at = load_instances(
        torch.tensor(costs), *there.lines(), plan.dense, plan.source, plan.n_equalities
    )
    at.v = torch.tensor(start)[:, plan.source] * at.norm / at.unit
    size, found = None, []
    for k, share in enumerate(ROUND[name]):
        t = at.columns(at.v) - at.shift
        if share is not None and size is None:
            size = torch_newton._pieces(at, t, None)[0].pow(2).mean().sqrt()
        mu = None if share is None else share * size
        r, weight = torch_newton._pieces(at, t, mu)
        d = Factor(at, weight, torch.full_like(at.v, constants.DEVICE_RIDGE)).solve(-at.rows(r))
        at.v = at.v + torch_newton._line_search(at, 0.0 * at.v, t, d, mu).alpha[:, None] * d
        steps = torch.full((1,), k + 1)
        found.append(torch_newton._answer(torch.tensor(costs), at, there, steps, 1e-8, k + 1))
    return listed(found)


@pytest.mark.parametrize("name", ROUND)
def test_the_kernels_take_soft_steps_where_they_are_due(name, interpreted):
    expected = begun_by_hand(name)
    assert sum(residual > 1e-5 for residual, *_ in expected) >= 2  # else nothing is compared
    np.testing.assert_allclose(interpreted[name], expected, rtol=ALIKE, atol=1e-8)


def test_fewer_steps_are_taken_for_it(interpreted):
    assert interpreted["taken"]["soft first"] < interpreted["taken"]["as they come"]


def taken():
    """Steps of the slowest of a few late projections, by the kernels."""
    problem = rv.problems.grid_shortest_path(6, 6, neighbors=8)
    rng = np.random.default_rng(0)
    behind = rng.uniform(0.5, 1.5, (12, problem.n_variables))
    sets = rv.OptimalitySet(problem, problem.solve(behind).x, margin=0.5)
    point = rv.project(rng.uniform(0.0, 2.0, behind.shape), sets).point
    before, now = 1e-3 * rng.standard_normal((2, *point.shape))
    start = rv.project(point + before, sets).multipliers
    p = on_device(sets, point + before + 0.3 * now, start, method="triton")
    assert p.solved.all()
    return int(p.iterations.max())


def test_rounded_residuals_have_the_derivative_they_are_said_to_have():
    problem = rv.LinearProgram(A_eq=np.ones((1, 4)), b_eq=[1.5], lb=0.0, ub=1.0)
    sets = rv.OptimalitySet(problem, np.array([[0.0, 1.0, 0.5, 0.0]]), margin=0.0).to("cpu")
    at = load_instances(
        torch.zeros(1, 4, dtype=torch.float64),
        *sets.lines(),
        sets.plan.dense,
        sets.plan.source,
        sets.plan.n_equalities,
    )
    assert [bool(x) for x in at.lower[0]] == [True, False, False, True]
    assert [bool(x) for x in at.upper[0]] == [False, True, False, False]
    for point in (-0.7, -1e-3, 0.0, 0.2):
        t = torch.full((1, 4), point, dtype=torch.float64, requires_grad=True)
        exact, _ = torch_newton._pieces(at, t, None)
        r, weight = torch_newton._pieces(at, t, torch.tensor([[0.1]], dtype=torch.float64))
        (slope,) = torch.autograd.grad(r.sum(), t)
        torch.testing.assert_close(weight, slope)
        # The corner is missed by mu at most, on the side where the residual may be.
        assert ((r - exact).abs() <= 0.1 + 1e-12).all()
        assert (r[at.lower] >= exact[at.lower]).all()
        assert (r[at.upper] <= exact[at.upper]).all()
        torch.testing.assert_close(
            torch_newton._pieces(at, t, 0.0 * exact[:, :1] + 1e-12)[0], exact
        )


if __name__ == "__main__":  # in Triton's interpreter, which is chosen when triton is imported
    from revealed_experiments.device.interpreter import fix_interpreter

    fix_interpreter()
    answers = {"late": begun("late"), "midway": begun("midway")}
    answers["taken"] = {"soft first": taken()}
    launch.FAR = np.inf
    answers["overshot"] = begun("overshot")
    answers["taken"]["as they come"] = taken()
    print(json.dumps(answers))
