"""The kernels compile for a GPU, which takes triton and no GPU: its interpreter lets pass what its
compiler does not, such as a name that means a pointer first and a number later.
"""

from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import revealed as rv
from revealed.losses._device import weigh_by_kernel
from revealed.projection.triton import DeviceSets, launch, project_on_device

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed.")

TYPES = {
    torch.float64: "*fp64",
    torch.float32: "*fp32",
    torch.int64: "*i64",
    torch.int32: "*i32",
    torch.int8: "*i8",
    torch.uint8: "*u8",
}


class Compiled:
    """Stands for a kernel: compiles it for what it is launched with, and computes nothing."""

    def __init__(self, kernel):
        self.kernel, self.launches = kernel, 0

    def __getitem__(self, grid):
        return self.compile

    def compile(self, *args, num_warps=4, num_stages=1, **named):
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        given = dict(zip(self.kernel.arg_names, args, strict=False)) | named
        signature, constants = {}, {}
        for k, parameter in enumerate(self.kernel.params):
            value = given[parameter.name]
            if parameter.is_constexpr:
                signature[parameter.name] = "constexpr"
                constants[(k,)] = value
            elif isinstance(value, torch.Tensor):
                signature[parameter.name] = TYPES[value.dtype]
            else:
                signature[parameter.name] = "fp64" if isinstance(value, float) else "i32"
        source = ASTSource(self.kernel, signature, constants, {})
        options = {"num_warps": num_warps, "num_stages": num_stages}
        made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
        assert made.asm["cubin"]
        self.launches += 1


def case(name):
    """Sets and costs: a narrow band of equalities, a wider one, and rows with bounds."""
    rng = np.random.default_rng(0)
    if name == "knapsack":
        problem = rv.problems.knapsack(rng.uniform(1, 6, (2, 9)), [9.0, 11.0])
        costs = -rng.uniform(1, 5, (3, 9))
    else:
        side = {"narrow": 4, "wide": 18}[name]
        problem = rv.problems.grid_shortest_path(side, side, neighbors=8)
        costs = rng.uniform(1, 2, (3, problem.n_variables))
    return rv.OptimalitySet(problem, problem.solve(costs).x), torch.tensor(costs)


@pytest.mark.parametrize("start", ["cold", "warm"])
@pytest.mark.parametrize("name", ["narrow", "wide", "knapsack"])
def test_projections_compile(name, start, monkeypatch):
    sets, costs = case(name)
    kernels, language = launch._kernels()
    made = SimpleNamespace(**{key: Compiled(kernel) for key, kernel in vars(kernels).items()})
    monkeypatch.setattr(launch, "_kernels", lambda: (made, language))
    config = launch._config
    monkeypatch.setattr(
        launch,
        "_config",
        lambda how, band, *, bounds, on_device: config(how, band, bounds=bounds, on_device=True),
    )
    there = DeviceSets.upload(sets, "cpu")
    rows = None if start == "cold" else torch.zeros(len(costs), there.plan.n_rows).double()
    project_on_device(costs.float(), there, warm_start=rows, method="triton")
    assert [made.first.launches, made.certify.launches, made.fallback.launches] == [1, 2, 1]


@pytest.mark.parametrize("power", [1, 2, "huber"])
def test_the_end_of_a_loss_compiles(power, monkeypatch):
    from revealed.losses import _weigh_kernel

    sets, costs = case("narrow")
    made = Compiled(_weigh_kernel.weigh_kernel)
    monkeypatch.setattr(_weigh_kernel, "weigh_kernel", made)
    there = sets.to("cpu")
    p = project_on_device(costs, there)
    missed = torch.zeros((), dtype=torch.int64)
    for share in (0.5, torch.ones(3, dtype=torch.float64)):
        weigh_by_kernel(costs.float(), there, p, power, 0.3, share, missed)
    assert made.launches == 2


def test_paths_compile(monkeypatch):
    from revealed.oracles.gpu import kernel, paths

    sets, costs = case("narrow")
    made = Compiled(kernel.paths_kernel)
    monkeypatch.setattr(kernel, "paths_kernel", made)
    paths.solve_paths_on_device(sets.problem, costs, method="triton")
    assert made.launches == 1
