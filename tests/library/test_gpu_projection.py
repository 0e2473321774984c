"""The projection on the device: the same inputs through plain torch (any machine), Triton's
interpreter (where triton is installed) and CUDA (where there is a GPU), against the CPU kernel and
the slow reference. Without pytest: `python -m revealed_experiments.device.projection --large`.
"""

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

import revealed as rv
from helpers import nearly_repeated_rows, per_instance_matrices
from revealed.errors import InputError, ShapeError
from revealed.projection.result import ProjectionStatus
from revealed.projection.triton import DeviceSets, Launch, project_on_device
from revealed.projection.triton.plan import plan_of
from revealed_experiments.device.projection import (
    Case,
    examine,
    large_cases,
    netlib_cases,
    save_cases,
    saved_cases,
    small_cases,
)

CUDA = torch.cuda.is_available()
WAYS = [("cpu", "torch"), *([("cuda", "auto"), ("cuda", "torch")] if CUDA else [])]
"""Devices and methods that run here."""
SMALL = list(small_cases())
BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data" / "netlib"
FOLDER = Path(os.environ.get("REVEALED_NETLIB", BESIDE))
NETLIB = ["adlittle", "recipe", "sc50b", "scagr7", "share2b", "sc205", "lotfi", "vtpbase", "scsd1"]
NETLIB += ["beaconfd", "scorpion", "israel"]
needs_cuda = pytest.mark.skipif(not CUDA, reason="No GPU here.")
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed.")


@pytest.fixture(autouse=True)
def one_thread():
    """Small batched products are slower on many threads than on one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def name_of(value):
    return getattr(value, "name", None) or "-".join(value)


def assert_agrees(rows):
    for row in rows:
        assert row.agrees, row


@pytest.fixture(scope="module")
def path_case():
    """Sets and costs of a 4x4 grid, B = 6."""
    problem = rv.problems.grid_shortest_path(4, 4)
    rng = np.random.default_rng(0)
    decisions = problem.solve(rng.uniform(0.5, 1.5, (6, problem.n_variables))).x
    return rv.OptimalitySet(problem, decisions), rng.standard_normal(decisions.shape)


# --- same answers --------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=name_of)
@pytest.mark.parametrize("case", SMALL, ids=name_of)
def test_agrees_with_the_cpu_and_the_reference_cold_almost_right_and_warm(case, way):
    assert_agrees(examine(case, *way))


@needs_cuda
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("case", list(large_cases()) if CUDA else [], ids=name_of)
def test_agrees_on_grids_up_to_30_and_boards_up_to_12(case, precision):
    assert_agrees(examine(case, "cuda", "auto", precision))


def test_the_torch_version_agrees_on_a_grid_and_a_board():
    for case in large_cases(batch=2):
        if case.name in ("grid 8x8, 8 neighbors", "matching 6x6"):
            assert_agrees(examine(case, "cpu", "torch"))


@pytest.mark.parametrize("way", WAYS, ids=name_of)
@pytest.mark.parametrize("name", NETLIB)
def test_agrees_on_netlib(name, way):
    if not (FOLDER / f"{name}.mps.gz").is_file():
        pytest.skip("Name a folder of NETLIB .mps.gz files in REVEALED_NETLIB to run this.")
    (case,) = netlib_cases(FOLDER, [name], batch=2)
    assert_agrees(examine(case, *way))


@needs_triton
def test_the_kernels_agree_in_tritons_interpreter():
    command = [sys.executable, "-m", "revealed_experiments.device.projection", "--device", "cpu"]
    done = subprocess.run(
        [*command, "--method", "triton", "--only", "assignment 3 of 5"],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("way", WAYS, ids=name_of)
def test_every_instance_may_have_a_matrix_of_its_own(way):
    device, method = way
    problem = rv.LinearProgram(**per_instance_matrices())
    rng = np.random.default_rng(1)
    decisions = problem.solve(rng.standard_normal((5, problem.n_variables))).x
    sets = rv.OptimalitySet(problem, decisions, margin=0.2)
    costs = rng.standard_normal(decisions.shape)
    chosen = torch.tensor([4, 0, 2], device=device)
    got = project_on_device(
        torch.as_tensor(costs[[4, 0, 2]], device=device),
        DeviceSets.upload(sets, device)[chosen],
        method=method,
    )
    assert got.solved.all()
    np.testing.assert_allclose(got.point.cpu(), rv.project(costs, sets).point[[4, 0, 2]], atol=1e-7)


# --- sets, starts, results -----------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=name_of)
def test_sets_are_chosen_by_an_index_on_the_device(path_case, way):
    sets, costs = path_case
    device, method = way
    q = torch.as_tensor(costs, device=device)
    uploaded = DeviceSets.upload(sets, device)
    everyone = project_on_device(q, uploaded, method=method)
    index = torch.tensor([5, 1, 1, 3], device=device)
    some = project_on_device(q[index], uploaded[index], method=method)
    again = project_on_device(q[index][1:3], uploaded[index][1:3], method=method)
    torch.testing.assert_close(some.point, everyone.point[index])
    torch.testing.assert_close(again.point, everyone.point[index][1:3])
    assert len(uploaded[index]) == 4


STATES = ("entry_state", "row_active")


@pytest.mark.parametrize("way", WAYS, ids=name_of)
def test_arrays_may_come_in_any_order_in_memory(path_case, way):
    """Kernels read line after line: states by columns would be those of other decisions."""
    sets, costs = path_case
    device, method = way
    by_columns = {name: np.asfortranarray(getattr(sets, name)) for name in STATES}
    active = sets.conditions.active._replace(**by_columns)
    turned = sets.replaced(_kind=replace(sets.kind, active=active))
    uploaded = DeviceSets.upload(turned, device)
    assert uploaded.table.states.is_contiguous()
    assert uploaded.table.active.is_contiguous()
    q = torch.as_tensor(costs, device=device)
    first = project_on_device(q, uploaded, method=method)
    expected = rv.project(costs, sets)
    np.testing.assert_allclose(first.point.cpu(), expected.point, atol=1e-7)
    every_other = torch.tensor([4, 9, 1, 9, 3, 9], device=device)[::2]
    places = torch.tensor([0, 9, 1, 9, 2, 9], device=device)[::2]
    some = project_on_device(
        q[every_other],
        uploaded[every_other],
        method=method,
        warm_start=first.multipliers[every_other],
        places=places,
    )
    assert uploaded[every_other].index.is_contiguous()
    assert (some.iterations == 0).all()
    np.testing.assert_allclose(some.point.cpu(), expected.point[[4, 1, 3]], atol=1e-7)


@pytest.mark.parametrize("way", WAYS, ids=name_of)
def test_starts_are_found_by_place_and_a_line_that_is_not_finite_is_none(path_case, way):
    sets, costs = path_case
    device, method = way
    q, uploaded = torch.as_tensor(costs, device=device), DeviceSets.upload(sets, device)
    first = project_on_device(q, uploaded, method=method)
    table = torch.full((9, first.multipliers.shape[1]), torch.nan, device=device).double()
    places = torch.tensor([8, 0, 3, 1, 5, 2], device=device)
    table[places[:4]] = first.multipliers[:4]
    again = project_on_device(q, uploaded, method=method, warm_start=table, places=places)
    assert (again.iterations[:4] == 0).all()
    assert (again.iterations[4:] > 0).all()
    torch.testing.assert_close(again.point, first.point, rtol=1e-7, atol=1e-7)
    with pytest.raises(ShapeError, match="places"):
        project_on_device(q, uploaded, method=method, warm_start=table, places=places[:2])


@pytest.mark.parametrize("way", WAYS, ids=name_of)
def test_a_warm_start_that_is_the_answer_takes_no_step(path_case, way):
    sets, costs = path_case
    device, method = way
    q, uploaded = torch.as_tensor(costs, device=device), DeviceSets.upload(sets, device)
    first = project_on_device(q, uploaded, method=method)
    second = project_on_device(q, uploaded, method=method, warm_start=first)
    assert (second.iterations == 0).all()
    torch.testing.assert_close(second.point, first.point)
    third = project_on_device(q, uploaded, method=method, warm_start=first.multipliers.float())
    assert third.solved.all()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_move_that_is_all_rounding_proves_itself(seed):
    cost, sets = nearly_repeated_rows(seed)
    p = project_on_device(torch.tensor(cost), DeviceSets.upload(sets, "cpu"), method="torch")
    assert p.solved.all()
    assert p.distance[0] <= 1e-10 * np.linalg.norm(cost)


@needs_cuda
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_rows_that_nearly_repeat_each_other_end_within_reach_and_say_how(seed):
    """The kernels' ridge is larger than what tells such rows apart: they need not be solved."""
    cost, sets = nearly_repeated_rows(seed)
    p = project_on_device(torch.tensor(cost, device="cuda"), DeviceSets.upload(sets, "cuda"))
    assert p.point.isfinite().all()
    assert p.distance[0] <= 1e3 * np.linalg.norm(cost)
    assert (p.residual <= 1e-8).equal(p.solved)
    assert (p.status == ProjectionStatus.SOLVED).equal(p.solved)


@pytest.mark.parametrize("way", WAYS, ids=name_of)
def test_results_can_be_written_over(path_case, way):
    sets, costs = path_case
    device, method = way
    q, uploaded = torch.as_tensor(costs, device=device), DeviceSets.upload(sets, device)
    out = project_on_device(q, uploaded, method=method)
    kept = project_on_device(2 * q, uploaded, method=method)
    got = project_on_device(2 * q, uploaded, method=method, out=out)
    assert got.point.data_ptr() == out.point.data_ptr()
    torch.testing.assert_close(got.point, kept.point)


@pytest.mark.parametrize("way", WAYS, ids=name_of)
def test_what_is_not_solved_says_so(path_case, way):
    sets, costs = path_case
    device, method = way
    q, uploaded = torch.tensor(costs, device=device), DeviceSets.upload(sets, device)
    hurried = project_on_device(q, uploaded, method=method, max_iter=1, tol=1e-12)
    assert (hurried.status[~hurried.solved] == ProjectionStatus.MAX_ITER).all()
    assert not hurried.solved.all()
    q[2, 3] = torch.nan
    broken = project_on_device(q, uploaded, method=method, max_iter=30)
    assert not broken.solved[2]
    assert broken.status[2] != ProjectionStatus.SOLVED
    assert broken.solved[[0, 1, 3, 4, 5]].all()


@pytest.mark.parametrize("way", WAYS, ids=name_of)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_projections_scale_with_costs_and_margin(path_case, way, scale):
    sets, costs = path_case
    device, method = way
    scaled = rv.OptimalitySet(sets.problem, sets.decisions, margin=scale)
    q = torch.as_tensor(costs, device=device)
    plain = project_on_device(q, DeviceSets.upload(sets, device), method=method)
    other = project_on_device(scale * q, DeviceSets.upload(scaled, device), method=method)
    assert other.solved.all()
    torch.testing.assert_close(other.point / scale, plain.point, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("way", WAYS, ids=name_of)
def test_an_empty_batch_gives_empty_results(path_case, way):
    sets, costs = path_case
    device, method = way
    none = torch.zeros(0, dtype=torch.int64, device=device)
    q = torch.as_tensor(costs, device=device)[none]
    got = project_on_device(q, DeviceSets.upload(sets, device)[none], method=method)
    assert got.point.shape == (0, costs.shape[1])
    assert len(got.status) == 0


def test_cases_can_be_taken_to_a_machine_that_cannot_solve_them(path_case, tmp_path):
    sets, costs = path_case
    plain = rv.OptimalitySet(sets.problem, sets.decisions, margin=0.0, tol=1e-6)
    save_cases([Case("some", plain, costs)], tmp_path / "cases.npz")
    (case,) = saved_cases(tmp_path / "cases.npz")
    np.testing.assert_array_equal(case.sets.entry_state, plain.entry_state)
    assert_agrees(examine(case, "cpu", "torch"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_shorter_floats_are_computed_in_float64(path_case, dtype):
    sets, costs = path_case
    q = torch.as_tensor(costs).to(dtype)
    got = project_on_device(q, DeviceSets.upload(sets, "cpu"))
    assert got.point.dtype == torch.float64
    np.testing.assert_allclose(got.point, rv.project(q.double().numpy(), sets).point, atol=1e-7)


# --- refusals ------------------------------------------------------------------------------------


def test_wrong_input_meets_a_sentence(path_case):
    sets, costs = path_case
    uploaded, q = DeviceSets.upload(sets, "cpu"), torch.as_tensor(costs)
    with pytest.raises(ShapeError, match="one row for each decision"):
        project_on_device(q[:3], uploaded)
    with pytest.raises(InputError, match="floating dtype"):
        project_on_device(q.long(), uploaded)
    with pytest.raises(ShapeError, match="warm_start"):
        project_on_device(q, uploaded, warm_start=torch.zeros(2, 2))
    with pytest.raises(InputError, match="method"):
        project_on_device(q, uploaded, method="magic")
    with pytest.raises(InputError, match="precision"):
        project_on_device(q, uploaded, precision="float16")
    with pytest.raises(InputError, match="slice or a one-dimensional integer tensor"):
        _ = uploaded[[0, 1]]
    with pytest.raises(InputError, match=r"\(2,\) torch.float64"):
        _ = uploaded[torch.tensor([0.0, 1.5]).double()]
    for place in (-1, 6):
        with pytest.raises(InputError, match=f"from 0 to 5; got {place}"):
            _ = uploaded[torch.tensor([0, place])]
    answer = project_on_device(q, uploaded)
    with pytest.raises(ShapeError, match=r"`out` must be an answer for 2 costs"):
        project_on_device(q[:2], uploaded[:2], out=answer)
    with pytest.raises(ShapeError, match=r"its `point` a tensor \(6, \d+\) torch.float64"):
        project_on_device(q, uploaded, out=replace(answer, point=answer.point.float()))


# --- the plan ------------------------------------------------------------------------------------


def test_the_lists_are_the_matrix_and_the_tiles_its_gram():
    """Gathering with the lists is multiplying with A; the window tiles are A A^T, each once."""
    problem = rv.problems.grid_shortest_path(7, 9, neighbors=8)
    decisions = problem.solve(np.ones((1, problem.n_variables))).x
    sets = rv.OptimalitySet(problem, decisions)
    band = plan_of(sets, torch.device("cpu")).band
    assert band is not None
    assert (band.bandwidth, band.width) == (10, 1)  # a row of the board and a step aside
    A = problem.A_eq.toarray()
    A = A / np.linalg.norm(A, axis=1, keepdims=True)
    row = band.source.numpy()
    inside = np.flatnonzero(row >= 0)
    ordered = np.zeros((len(row), A.shape[1]))
    ordered[inside] = A[row[inside]]
    v, r = np.random.default_rng(0).standard_normal((2, 700))
    v, r = v[: len(row)], r[: A.shape[1]]
    along = (band.columns.weight.numpy() * v[band.columns.take.numpy()]).sum(0)
    np.testing.assert_allclose(along[: A.shape[1]], ordered.T @ v, atol=1e-12)
    across = (band.rows.weight.numpy() * r[band.rows.take.numpy()]).sum(0)
    np.testing.assert_allclose(across, ordered @ r, atol=1e-12)
    gram = ordered @ ordered.T
    products = band.pairs.weight.numpy().sum(0)
    entries = np.r_[0.0, np.diag(gram), products]
    first, second = band.pair_rows.numpy()
    np.testing.assert_allclose(products, gram[first, second], atol=1e-12)
    start = entries[band.opening.numpy()[0, 0]].T
    np.testing.assert_allclose(start, gram[:16, :16], atol=1e-12)
    seen = np.zeros((len(row), len(row)))
    blocks = len(row) // 16
    for order, opening, entering in zip(
        (list(range(blocks)), list(range(blocks))[::-1]),
        band.opening.numpy(),
        band.entering.numpy(),
        strict=True,
    ):
        add_window(seen, entries, opening, order[:2])
        for s in range(band.steps - 1):
            add_row(seen, entries, entering[s], order[s + 1 : s + 3])
    np.testing.assert_allclose(seen, np.tril(gram), atol=1e-12)


def add_window(seen, entries, tiles, blocks):
    """Put the lower tiles of a window of two blocks where they belong."""
    add_row(seen, entries, tiles[:1], blocks[:1])
    add_row(seen, entries, tiles[1:], blocks)


def add_row(seen, entries, tiles, blocks):
    own = blocks[-1]
    for tile, other in zip(tiles, blocks, strict=True):
        values = entries[tile].T
        if other > own:
            values, at, along = values.T, other, own
        else:
            at, along = own, other
        if at == along:
            values = np.tril(values)
        seen[16 * at : 16 * at + 16, 16 * along : 16 * along + 16] += values


# --- graphs --------------------------------------------------------------------------------------


@needs_cuda
def test_a_call_can_be_captured_and_replayed(path_case):
    sets, costs = path_case
    q = torch.as_tensor(costs, device="cuda")
    index = torch.tensor([0, 1, 2], device="cuda")
    uploaded = DeviceSets.upload(sets, "cuda")[index]
    static, start = q[:3].clone(), torch.zeros(3, sets.problem.b_eq.shape[-1], device="cuda")
    project_on_device(static, uploaded, warm_start=start)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = project_on_device(static, uploaded, warm_start=start)
    for chosen in ([3, 4, 5], [5, 0, 1]):
        chosen = torch.tensor(chosen, device="cuda")
        static.copy_(q[chosen])
        index.copy_(chosen)
        graph.replay()
        plain = project_on_device(q[chosen], DeviceSets.upload(sets, "cuda")[chosen])
        assert captured.solved.all()
        torch.testing.assert_close(captured.point, plain.point, rtol=1e-7, atol=1e-7)


@needs_cuda
def test_the_layout_of_the_launch_changes_nothing(path_case):
    sets, costs = path_case
    q, uploaded = torch.as_tensor(costs, device="cuda"), DeviceSets.upload(sets, "cuda")
    plain = project_on_device(q, uploaded)
    for launch in (Launch(warps=4), Launch(chunk=256, rows=128, per_processor=1)):
        other = project_on_device(q, uploaded, launch=launch)
        torch.testing.assert_close(other.point, plain.point, rtol=1e-7, atol=1e-7)
