"""Losses of sets on a device: the same numbers as from the host, on every device there is."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch

import revealed as rv
from revealed.errors import InputError, ShapeError
from revealed.losses import (
    ProjectionLoss,
    SmoothedProjectionLoss,
    StraightThroughLoss,
    projection_loss,
)
from revealed.losses._device import distance_on_device, weigh_by_kernel
from revealed.projection.triton import DeviceSets, project_on_device
from revealed_experiments.device.interpreter import fix_interpreter

CUDA = torch.cuda.is_available()
DEVICES = ["cpu", *(["cuda"] if CUDA else [])]
needs_cuda = pytest.mark.skipif(not CUDA, reason="No GPU here.")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
TOLERANCE = {"rtol": 1e-6, "atol": 1e-7}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=["path", "knapsack"])
def case(request):
    """Sets and costs of 12 decisions, with and without binding inequalities."""
    rng = np.random.default_rng(0)
    if request.param == "path":
        problem = rv.problems.grid_shortest_path(4, 4)
        low, high = 0.5, 1.5
    else:
        problem = rv.problems.knapsack(rng.uniform(1, 6, (2, 9)), [9.0, 11.0])
        low, high = -30.0, -10.0
    decisions, costs = rng.uniform(low, high, (2, 12, problem.n_variables))
    return rv.OptimalitySet(problem, problem.solve(decisions).x), costs


def gradient_of(loss_fn, costs, *args, **rest):
    q = costs.clone().requires_grad_()
    value = loss_fn(q, *args, **rest)
    value.sum().backward()
    return value.detach(), q.grad


# --- the same numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("power", [2, 1, "huber", "welsch"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_loss_and_gradient_are_those_of_the_host(case, device, power, reduction):
    sets, costs = case
    loss_fn = ProjectionLoss(sets.problem, power=power, reduction=reduction)
    weights = np.linspace(0, 2, len(sets))
    expected = gradient_of(loss_fn, torch.tensor(costs), sets, weights=weights)
    q = torch.tensor(costs, device=device)
    given = torch.tensor(weights, device=device)
    found = gradient_of(loss_fn, q, sets.to(device), weights=given)
    for a, b in zip(found, expected, strict=True):
        assert a.device.type == device
        torch.testing.assert_close(a.cpu(), b, **TOLERANCE)
    plain = gradient_of(projection_loss, q, sets.to(device), power=power, reduction="none")
    again = gradient_of(projection_loss, torch.tensor(costs), sets, power=power, reduction="none")
    torch.testing.assert_close(plain[1].cpu(), again[1], **TOLERANCE)


@pytest.mark.parametrize("device", DEVICES)
def test_warm_starts_stay_on_the_device_and_change_no_answer(case, device):
    sets, costs = case
    loss_fn = ProjectionLoss(sets.problem)
    there, q = sets.to(device), torch.tensor(costs, device=device)
    index = torch.tensor([7, 2, 11], device=device)
    first = loss_fn(q[index], there[index], index=index)
    assert loss_fn.steps > 0
    again = loss_fn(q[index], there[index], index=index)
    assert loss_fn.steps == 0
    torch.testing.assert_close(again, first, **TOLERANCE)
    other = torch.tensor([2, 3], device=device)  # 3 was never seen: it starts afresh
    mixed = loss_fn(q[other], there[other], index=other)
    assert loss_fn.projection.solved.all()
    torch.testing.assert_close(mixed, ProjectionLoss(sets.problem)(q[other], there[other]))
    loss_fn.forget()
    loss_fn(q[index], there[index], index=index)
    assert loss_fn.steps > 0


@pytest.mark.parametrize("device", DEVICES)
def test_sample_numbers_may_be_anything(case, device):
    sets, costs = case
    loss_fn = ProjectionLoss(sets.problem)
    q, there = torch.tensor(costs[:3], device=device), sets.to(device)[:3]
    for index in (torch.tensor([-5, 10**12, 3]), np.array([40, 41, 42]), [2, 1, 0]):
        expected = ProjectionLoss(sets.problem)(q, there)
        for _ in range(2):
            torch.testing.assert_close(loss_fn(q, there, index=index), expected, **TOLERANCE)
    with pytest.raises(ShapeError, match="one sample number"):
        loss_fn(q, there, index=torch.tensor([1, 2], device=device))
    with pytest.raises(InputError, match="whole numbers"):
        loss_fn(q, there, index=torch.ones(3, device=device))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_comes_in_the_dtype_of_the_costs(case, device, dtype):
    sets, costs = case
    q = torch.tensor(costs, device=device).to(dtype)
    value, gradient = gradient_of(ProjectionLoss(sets.problem), q, sets.to(device))
    assert (value.dtype, gradient.dtype) == (torch.float32, dtype)
    host = gradient_of(ProjectionLoss(sets.problem), q.cpu(), sets)
    torch.testing.assert_close(gradient.cpu(), host[1], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_smoothing_is_the_same_on_every_device(case, device):
    sets, costs = case
    half = rv.OptimalitySet(sets.problem, sets.decisions, margin=0.5)
    loss_fn = SmoothedProjectionLoss(sets.problem, 0.5, n_samples=4)
    draws = torch.randn(4, *costs.shape, generator=torch.Generator().manual_seed(1))
    loss_fn.noise = lambda shape, device: draws.to(device)
    expected = gradient_of(loss_fn, torch.tensor(costs), half)
    found = gradient_of(loss_fn, torch.tensor(costs, device=device), half.to(device))
    for a, b in zip(found, expected, strict=True):
        assert a.device.type == device
        torch.testing.assert_close(a.cpu(), b, rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match="margin"):
        loss_fn(torch.tensor(costs, device=device), sets.to(device))
    first, again = (
        SmoothedProjectionLoss(sets.problem, seed=3)(torch.tensor(costs, device=device), given)
        for given in (half.to(device), half.to(device))
    )
    torch.testing.assert_close(first, again)


@pytest.mark.parametrize("device", DEVICES)
def test_sets_with_weights_of_their_own_count_them_on_every_device(case, device):
    sets, costs = case
    plain = rv.OptimalitySet(sets.problem, sets.decisions)
    weighed = plain.replaced(weights=np.linspace(0.1, 1, len(sets)))
    loss_fn = ProjectionLoss(sets.problem)
    for given in (None, np.arange(12.0)):
        expected = loss_fn(torch.tensor(costs), weighed, weights=given)
        found = loss_fn(torch.tensor(costs, device=device), weighed.to(device), weights=given)
        torch.testing.assert_close(found.cpu(), expected, **TOLERANCE)
    for given in (np.ones(1), torch.ones(3)):  # neither may be spread over the samples
        for decisions in (weighed, weighed.to(device)):
            with pytest.raises(ShapeError, match="weights"):
                loss_fn(torch.tensor(costs, device=device), decisions, weights=given)


@pytest.mark.parametrize("device", DEVICES)
def test_unsolved_projections_are_counted_without_a_word(case, device, monkeypatch):
    from revealed.losses import _device

    def failing(*args, **options):
        p = original(*args, **options)
        p.solved[[2, 5]] = False
        return p

    original = _device.project_on_device
    sets, costs = case
    loss_fn = ProjectionLoss(sets.problem)
    q, there = torch.tensor(costs, device=device), sets.to(device)
    loss_fn(q, there)
    assert loss_fn.unsolved == 0
    monkeypatch.setattr(_device, "project_on_device", failing)
    loss_fn(q, there)
    loss_fn(q, there)
    assert loss_fn.unsolved == 4
    assert loss_fn.size.shape == (12,)


# --- the kernel at the end of a loss -------------------------------------------------------------


@pytest.mark.skipif(not (CUDA or INTERPRETED), reason="Neither a GPU nor Triton's interpreter.")
@pytest.mark.parametrize("power", [2, 1, "huber"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_kernel_weighs_as_plain_torch_does(case, power, dtype, weighted):
    if INTERPRETED:
        fix_interpreter()
    sets, costs = case
    device = "cpu" if INTERPRETED else "cuda"
    q = torch.tensor(costs, dtype=dtype, device=device)
    q[3] = torch.tensor(rv.project(costs, sets).point[3])  # at distance 0, or a rounding of it
    index = torch.tensor([3, 7, 1, 4], device=device)
    share = torch.linspace(0, 1, 4, dtype=torch.float64, device=device) if weighted else 0.25
    for there, own in ((sets.to(device)[index], q[index]), (sets.to(device)[:4], q[:4])):
        p = project_on_device(own, there)
        p.solved[1] = False
        missed = torch.full((), 5, dtype=torch.int64, device=device)
        found = weigh_by_kernel(own, there, p, power, 0.3, share, missed)
        value, gradient = distance_on_device(own, there, p, power, 0.3)
        rows = share[:, None] if weighted else share
        torch.testing.assert_close(found[0], share * value)
        torch.testing.assert_close(found[1], (rows * gradient).to(dtype), rtol=1e-6, atol=1e-9)
        assert int(missed) == 6


@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed.")
def test_the_kernel_weighs_the_same_in_tritons_interpreter():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--noconftest", "-q", __file__, "-k", "kernel_weighs_as"],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "24 passed" in done.stdout


# --- sets ----------------------------------------------------------------------------------------


def test_decisions_that_cannot_be_written_to_are_taken_without_a_warning(case):
    sets, costs = case
    decisions = sets.decisions.copy()
    decisions.flags.writeable = False  # as of a file that is mapped into memory
    held = rv.OptimalitySet(sets.problem, decisions)
    for given in (held, held.to("cpu")):
        value = StraightThroughLoss(sets.problem)(torch.tensor(costs), given)
        assert value.isfinite()
    np.testing.assert_array_equal(held.to("cpu").decisions, decisions)


def test_sets_are_uploaded_once_and_know_their_decisions(case):
    sets, _ = case
    there = sets.to("cpu")
    assert isinstance(there, DeviceSets)
    assert sets.to("cpu") is there
    index = torch.tensor([3, 0])
    np.testing.assert_array_equal(there[index].decisions, sets.decisions[[3, 0]])
    np.testing.assert_array_equal(there[index].on_host().entry_state, sets.entry_state[[3, 0]])
    assert there[index].problem is sets.problem
    assert "2 decisions on cpu" in repr(there[index])


def test_project_takes_sets_on_a_device(case):
    sets, costs = case
    host = rv.project(costs, sets)
    index = torch.tensor([5, 1])
    found = rv.project(torch.tensor(costs)[index].float(), sets.to("cpu")[index])
    assert found.point.dtype == torch.float32
    np.testing.assert_allclose(found.point, host.point[[5, 1]], atol=1e-5)
    again = rv.project(torch.tensor(costs)[index], sets.to("cpu")[index], warm_start=found)
    assert again.solved.all()


def test_wrong_input_meets_a_sentence(case):
    sets, costs = case
    there, q = sets.to("cpu"), torch.tensor(costs)
    with pytest.raises(InputError, match="no time limit"):
        rv.project(q, there, time_limit=1.0)
    with pytest.raises(InputError, match="method='auto'"):
        rv.project(q, there, method="reference")
    with pytest.raises(InputError, match="as a tensor"):
        rv.project(costs, there)
    with pytest.raises(ShapeError, match="one row for each of the 12"):
        rv.project(q[:2], there)
    with pytest.raises(InputError, match="The loss has margin 2"):
        ProjectionLoss(sets.problem, margin=2.0)(q, there)
    other = rv.problems.grid_shortest_path(3, 3)
    with pytest.raises(ShapeError, match="another problem"):
        ProjectionLoss(other)(q, there)
    with pytest.raises(ShapeError, match="weights"):
        ProjectionLoss(sets.problem)(q, there, weights=torch.ones(3))


# --- on a GPU ------------------------------------------------------------------------------------


@needs_cuda
def test_raw_decisions_and_host_sets_are_uploaded(case):
    sets, costs = case
    q = torch.tensor(costs, device="cuda")
    loss_fn = ProjectionLoss(sets.problem)
    expected = loss_fn(torch.tensor(costs), sets)
    index = np.arange(12)
    for given in (sets, sets.decisions, torch.tensor(sets.decisions, device="cuda")):
        found = loss_fn(q, given, index=index)
        assert found.is_cuda
        torch.testing.assert_close(found.cpu(), expected, **TOLERANCE)


@needs_cuda
def test_a_step_can_be_captured_and_replayed(case):
    sets, costs = case
    there, q = sets.to("cuda"), torch.tensor(costs, device="cuda", dtype=torch.float32)
    loss_fn = ProjectionLoss(sets.problem)
    index = torch.tensor([0, 1, 2], device="cuda")
    shift = torch.zeros(q.shape[1], device="cuda", requires_grad=True)

    def step():
        shift.grad = None
        value = loss_fn(q[index] + shift, there[index], index=index)
        value.backward()
        return value

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = step()
    for chosen in ([3, 4, 5], [9, 1, 0], [3, 4, 5]):
        index.copy_(torch.tensor(chosen, device="cuda"))
        graph.replay()
        plain = q[chosen].cpu().requires_grad_()
        expected = ProjectionLoss(sets.problem)(plain, sets[chosen])
        expected.backward()
        torch.testing.assert_close(value.cpu(), expected.detach(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(shift.grad.cpu(), plain.grad.sum(0), rtol=1e-4, atol=1e-5)
    assert loss_fn.steps == 0  # the third batch was the first
    assert loss_fn.unsolved == 0
