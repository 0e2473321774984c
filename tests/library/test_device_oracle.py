"""Oracles, losses and metrics for costs on a GPU.

The same inputs go through plain torch (any machine), Triton's interpreter (where triton is
installed) and CUDA (where there is a GPU). On a machine without pytest:
`python -m revealed_experiments.device.oracles --large`, and for times
`python experiments/scripts/gpu_oracles.py`.

`as_if_on_a_gpu` takes tensors of the CPU for such of a GPU, so that what is done with those runs
everywhere.
"""

import gc
import os
import subprocess
import sys
import weakref
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from rivals import ALL
from scipy.optimize import linear_sum_assignment

import revealed as rv
from helpers import catalogue
from revealed import metrics
from revealed._common.arrays import is_torch
from revealed.errors import InputError, ShapeError
from revealed.losses._random import NormalStream
from revealed.losses.rivals.basis import bases_of
from revealed.losses.rivals.device_basis import bases_on_device
from revealed.oracles.batch import _block_size
from revealed.oracles.gpu import solve_paths_on_device
from revealed.oracles.matching import solve_matchings
from revealed.problems.solution import SolveStatus
from revealed_experiments.device.oracles import cases, examine

CUDA = torch.cuda.is_available()
WAYS = [("cpu", "torch"), *([("cuda", "auto"), ("cuda", "torch")] if CUDA else [])]
CASES = list(cases())
CPU = torch.device("cpu")
needs_cuda = pytest.mark.skipif(not CUDA, reason="No GPU here.")
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed.")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def as_if_on_a_gpu(monkeypatch):
    for module in ("oracles.batch", "losses.base", "metrics.batch", "metrics.formulas"):
        monkeypatch.setattr(f"revealed.{module}.is_cuda", is_torch)


@pytest.fixture(scope="module")
def grid():
    """A 4x4 grid with its true costs, their decisions and other costs, B = 7."""
    problem = rv.problems.grid_shortest_path(4, 4, neighbors=8)
    rng = np.random.default_rng(0)
    true = rng.integers(1, 5, (7, problem.n_variables)).astype(float)
    return problem, true, problem.solve(true).x, rng.uniform(0.1, 2.0, true.shape)


# --- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_paths_agree_with_the_cpu_ties_included(case, way):
    row = examine(case, *way)
    assert row.agrees, row


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_paths_agree_in_single_precision(way):
    for case in CASES:
        if case.name.endswith("real"):
            row = examine(case, *way, dtype=torch.float32)
            assert row.agrees, row


@needs_triton
def test_the_kernel_agrees_in_tritons_interpreter():
    command = [sys.executable, "-m", "revealed_experiments.device.oracles", "--device", "cpu"]
    for only in ("circles", "grid 3x4 right-down, whole", "grid 3x4 8 neighbors, whole"):
        done = subprocess.run(
            [*command, "--method", "triton", "--only", only],
            env={**os.environ, "TRITON_INTERPRET": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_costs_that_are_not_finite_fail_alone(grid, way, wrong):
    problem, _, _, costs = grid
    device, method = way
    broken = torch.as_tensor(costs, device=device).clone()
    broken[2, 5] = wrong
    got = solve_paths_on_device(problem, broken, method=method)
    expected = [SolveStatus.OPTIMAL] * len(costs)
    expected[2] = SolveStatus.FAILED
    assert got.status.tolist() == expected
    assert bool(got.x[2].isnan().all() & got.objective[2].isnan())
    others = np.arange(len(costs)) != 2
    np.testing.assert_array_equal(got.x.cpu()[others], problem.solve(costs[others]).x)


def test_a_batch_equals_its_instances_one_by_one(grid):
    problem, true, decisions, _ = grid
    for b in range(len(true)):
        alone = solve_paths_on_device(problem, torch.from_numpy(true[b : b + 1]), method="torch")
        np.testing.assert_array_equal(alone.x[0], decisions[b])
    assert solve_paths_on_device(problem, torch.zeros(0, problem.n_variables)).x.shape == (
        0,
        problem.n_variables,
    )


def test_the_shape_is_refused_with_a_sentence(grid):
    problem, true, _, _ = grid
    with pytest.raises(ShapeError, match=r"For one instance use `costs\[None\]`"):
        solve_paths_on_device(problem, torch.from_numpy(true[0]))
    with pytest.raises(InputError, match="`method` must be one of auto, triton, torch"):
        solve_paths_on_device(problem, torch.from_numpy(true), method="fast")
    with pytest.raises(InputError, match="must hold real numbers"):
        solve_paths_on_device(problem, torch.from_numpy(true + 1j))
    own = rv.problems.shortest_path([(0, 1)], source=[0, 0], target=1)
    with pytest.raises(ShapeError, match="must have 2 rows; got 3"):
        solve_paths_on_device(own, torch.ones(3, 1))


@pytest.mark.usefixtures("as_if_on_a_gpu")
def test_solve_takes_the_device_oracle_for_paths_alone(grid):
    problem, true, decisions, _ = grid
    true = torch.from_numpy(true).clone()
    true[0, 0] = np.nan  # only the device does not look
    answer = problem.solve(true)
    assert answer.status.tolist() == [SolveStatus.FAILED] + [SolveStatus.OPTIMAL] * 6
    np.testing.assert_array_equal(answer.x[1:], decisions[1:])
    with pytest.raises(InputError, match="must be finite"):
        problem.solve(true, time_limit=60.0)
    board = rv.problems.grid_matching(2, 2)
    with pytest.raises(InputError, match="must be finite"):
        board.solve(torch.full((1, 4), np.nan))


@needs_cuda
def test_a_captured_graph_solves_what_is_put_in_its_place(grid):
    problem, true, decisions, costs = grid
    place = torch.as_tensor(costs, device="cuda")
    problem.solve(place)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answer = problem.solve(place)
    place.copy_(torch.as_tensor(true))
    graph.replay()
    np.testing.assert_array_equal(answer.x.cpu(), decisions)


# --- matchings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["real", "whole", "equal"])
@pytest.mark.parametrize(
    "problem",
    [rv.problems.grid_matching(4, 6), rv.problems.assignment(5, 5), rv.problems.assignment(3, 7)],
    ids=repr,
)
def test_matchings_are_scipys_ties_included(problem, kind):
    graph = problem.structure
    shape = (20, problem.n_variables)
    rng = np.random.default_rng(1)
    costs = {
        "real": rng.standard_normal(shape),
        "whole": rng.integers(-1, 3, shape).astype(float),
        "equal": np.ones(shape),
    }[kind]
    X, status = solve_matchings(problem, costs)
    assert (status == SolveStatus.OPTIMAL).all()
    for x, cost in zip(X, costs, strict=True):
        price = np.full((graph.n_left, graph.n_right), np.inf)
        price[graph.left, graph.right] = cost
        chosen = np.zeros_like(price)
        chosen[linear_sum_assignment(price)] = 1.0
        np.testing.assert_array_equal(x, chosen[graph.left, graph.right])


def test_every_thread_gets_a_block():
    assert _block_size(np.empty((100, 264)), 4) == 25
    assert _block_size(np.empty((100, 264)), 64) == 15  # fewer are not worth a thread
    assert _block_size(np.empty((10_000, 264)), 2) == 248  # more would read the clock too seldom


# --- losses --------------------------------------------------------------------------------------


def value_and_gradient(loss, costs, decisions, true):
    costs = costs.clone().requires_grad_()
    value = loss(costs, decisions, true_costs=true)
    value.sum().backward()
    return value.detach().cpu(), costs.grad.cpu()


def assert_same(got, expected):
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("as_if_on_a_gpu")
@pytest.mark.parametrize("rival", ALL, ids=lambda rival: rival.label)
def test_losses_take_sets_on_a_device(rival, grid):
    problem, true, x, costs = grid
    if rival.kind.__name__ in ("BlackboxLoss", "SPOPlusLoss", "PerturbedLoss", "FenchelYoungLoss"):
        rival_options = {"floor": 0.0}
    else:
        rival_options = {}
    noise = np.random.default_rng(2).standard_normal((4, *costs.shape))
    sets = rv.OptimalitySet(problem, x)
    chosen = torch.tensor([3, 0, 3, 6])

    def ask(decisions):
        loss = rival(problem, noise=noise[:, chosen], reduction="none", **rival_options)
        there = torch.from_numpy(costs)[chosen]
        return value_and_gradient(loss, there, decisions, torch.from_numpy(true)[chosen])

    expected = ask(sets[chosen.numpy()])
    assert_same(ask(sets.to("cpu")[chosen]), expected)
    assert_same(ask(torch.from_numpy(x)[chosen]), expected)


@pytest.mark.usefixtures("as_if_on_a_gpu")
def test_what_cannot_be_refused_without_waiting_shows_as_nan(grid):
    problem, _, x, costs = grid
    costs = torch.from_numpy(costs).clone()
    costs[1] = -1.0
    value = rv.losses.StraightThroughLoss(problem, reduction="none")(costs, torch.from_numpy(x))
    assert value.isnan().tolist() == [b == 1 for b in range(len(x))]


@pytest.mark.parametrize("case", catalogue(), ids=lambda case: case.name)
def test_bases_found_on_a_device_are_the_cpus(case):
    sets = rv.OptimalitySet(case.problem, case.problem.solve(case.costs).x)
    there = sets.to("cpu")
    index = torch.tensor([len(sets) - 1, 0, 0])
    for own, other in (
        (bases_on_device(there), bases_of(sets, None, CPU)),
        (bases_on_device(there[index]), bases_of(sets[index.numpy()], None, CPU)),
    ):
        assert torch.equal(own.columns, other.columns)
        assert torch.equal(own.side, other.side)
        torch.testing.assert_close(own.inverse, other.inverse, rtol=1e-9, atol=1e-9)


def test_bases_on_a_device_outlive_forgetting(grid):
    problem, _, x, costs = grid
    loss, there = rv.losses.OptimalityMarginLoss(problem), rv.OptimalitySet(problem, x).to("cpu")
    first = loss(torch.from_numpy(costs), there)
    kept = bases_on_device(there).columns
    loss.forget()
    assert loss(torch.from_numpy(costs), there) == first
    assert bases_on_device(there).columns is kept


def test_a_loss_does_not_hold_on_to_sets_that_nobody_needs_any_more(grid):
    problem, _, x, costs = grid
    loss = rv.losses.OptimalityMarginLoss(problem)
    sets = rv.OptimalitySet(problem, x)
    loss(torch.from_numpy(costs), sets.to("cpu"))
    table = weakref.ref(sets.to("cpu").table)
    assert table() is not None
    del sets
    gc.collect()
    assert table() is None


@needs_cuda
@pytest.mark.parametrize("rival", ALL, ids=lambda rival: rival.label)
def test_losses_on_cuda_are_the_cpus(rival, grid):
    problem, true, x, costs = grid
    noise = np.random.default_rng(2).standard_normal((4, *costs.shape))
    sets = rv.OptimalitySet(problem, x)
    floor = {"floor": 0.0} if "floor" in rival(problem).extra_repr() else {}

    def ask(device, decisions):
        loss = rival(problem, noise=noise, reduction="none", **floor)
        here, truth = (torch.as_tensor(array, device=device) for array in (costs, true))
        return value_and_gradient(loss, here, decisions, truth)

    assert_same(ask("cuda", sets.to("cuda")), ask("cpu", sets))


# --- random numbers of a device ------------------------------------------------------------------


def test_a_stream_goes_on_and_starts_again():
    stream = NormalStream(7, CPU)
    whole = stream.draw((10,))
    stream.restart(7)
    parts = torch.cat([stream.draw((2, 2)).flatten(), stream.draw((6,))])
    assert torch.equal(parts, whole)
    assert not torch.equal(stream.draw((10,)), whole)
    assert not torch.equal(NormalStream(8, CPU).draw((10,)), whole)
    high = NormalStream((1 << 64) - 1, CPU).draw((3,))
    assert bool(high.isfinite().all())


def test_a_stream_is_standard_normal():
    x = NormalStream(12345, CPU).draw((200, 1000))
    for power, moment in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)):
        assert abs(float((x**power).mean()) - moment) < 0.05
    lagged = (x[:, 1:] * x[:, :-1]).mean(), (x[1:] * x[:-1]).mean()
    assert all(abs(float(value)) < 0.01 for value in lagged)
    below = (x < -1.0).double().mean()
    assert abs(float(below) - 0.158655) < 0.005


def test_an_epoch_begins_with_its_own_draws(grid):
    loss = rv.losses.FenchelYoungLoss(grid[0], seed=4)
    first = loss.stream(CPU).draw((5,))
    loss.begin_epoch(1, 2)
    second = loss.stream(CPU).draw((5,))
    loss.begin_epoch(1, 3)
    assert not torch.equal(loss.stream(CPU).draw((5,)), second)
    loss.begin_epoch(1, 2)
    assert torch.equal(loss.stream(CPU).draw((5,)), second)
    assert not torch.equal(first, second)
    again = rv.losses.FenchelYoungLoss(grid[0], seed=4)
    again.begin_epoch(1, 2)  # before the stream is there
    assert torch.equal(again.stream(CPU).draw((5,)), second)


@needs_cuda
def test_a_replay_draws_what_an_ordinary_call_draws(grid):
    problem, _, x, costs = grid
    loss = rv.losses.FenchelYoungLoss(problem, floor=0.0)
    sets = rv.OptimalitySet(problem, x).to("cuda")
    place = torch.as_tensor(costs, device="cuda")

    def calls(work):
        loss.begin_epoch(0, 1)
        return [work().item() for _ in range(3)]

    ordinary = calls(lambda: loss(place, sets))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = loss(place, sets)
    assert calls(lambda: (graph.replay(), value)[1]) == ordinary
    assert len(set(ordinary)) == 3


# --- metrics -------------------------------------------------------------------------------------

BY_DECISION = ["decision_loss", "exact", "suboptimality_loss", "normalized_suboptimality_loss"]
BY_TRUTH = ["estimate_loss", "relative_regret", "optimal"]
DEVICES = ["cpu", *(["cuda"] if CUDA else [])]


@pytest.mark.usefixtures("as_if_on_a_gpu")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [*BY_DECISION, *BY_TRUTH])
def test_metrics_of_tensors_on_a_device(name, device, grid):
    problem, true, x, costs = grid
    measure = getattr(metrics, name)
    needs = name in BY_TRUTH
    expected = measure(problem, costs=costs, decisions=x, **({"true_costs": true} if needs else {}))
    c, t, there = (torch.as_tensor(array, device=device) for array in (costs, true, x))
    truth = {"true_costs": t} if needs else {}
    sets = rv.OptimalitySet(problem, x)
    for decisions in (there, x, sets, sets.to(device), *([None] if needs else [])):
        got = measure(problem, costs=c, decisions=decisions, **truth)
        if name != "relative_regret":
            assert got.device.type == device
            got = got.cpu()
        np.testing.assert_allclose(got, expected, rtol=1e-9)
    single = measure(problem, costs=c.float(), decisions=there, **truth)
    assert name == "relative_regret" or single.dtype == torch.float32


@pytest.mark.usefixtures("as_if_on_a_gpu")
def test_metrics_on_a_device_refuse_what_has_no_decision(grid):
    problem, true, x, costs = grid
    broken = torch.from_numpy(costs).clone()
    broken[4] = -1.0
    with pytest.raises(InputError, match=r"predicted cost of instance 4 .*UNBOUNDED; 1 of 7"):
        metrics.decision_loss(problem, costs=broken, decisions=x)
    with pytest.raises(InputError, match="decisions are not optimal"):
        metrics.relative_regret(
            problem,
            costs=torch.from_numpy(costs),
            decisions=x,
            true_costs=torch.from_numpy(true.max() + 1.0 - true),
        )
    with pytest.raises(ShapeError, match="`true_costs` must have one row for each of the 7"):
        metrics.optimal(problem, costs=torch.from_numpy(costs), true_costs=true[:3])
