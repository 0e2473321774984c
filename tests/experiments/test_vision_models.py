"""Networks from pictures to costs: shapes, signs, seeds, and numbers equal to torchvision's."""

import numpy as np
import pytest
import torch
from torch import nn

import revealed as rv
from revealed_experiments.images.boards import digit_boards, reading_costs
from revealed_experiments.images.grid_paths import edge_costs
from revealed_experiments.images.terrain import terrain
from revealed_experiments.vision import (
    MODELS,
    DeviceSplit,
    ResNet18,
    VertexToEdge,
    as_contexts,
    build_model,
)
from revealed_experiments.vision.heads import FLOOR, GridPool, positive
from revealed_experiments.vision.resnet import ResNet18Start

PATHS = rv.problems.grid_shortest_path(6, 6, neighbors=8)
PAIRS = rv.problems.grid_matching(4, 4)
SPARED = ("resnet18", "truncated", "small")  # one whole ResNet is enough where time is short
CASES = {"paths": (PATHS, 48, 3), "pairs": (PAIRS, 64, 1)}


def pictures(side, channels, count=3, seed=0):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.integers(0, 256, (count, side, side, channels), np.uint8))


@pytest.fixture(autouse=True)
def one_thread():
    """Small pictures gain nothing from more, and threads that wait for a busy machine lose much."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


# --- ResNet-18 -----------------------------------------------------------------------------------


def test_resnet_has_the_parameters_of_resnet18():
    state = ResNet18().state_dict()
    assert sum(p.numel() for p in ResNet18().parameters()) == 11_689_512
    assert len(state) == 122
    shapes = {
        "conv1.weight": (64, 3, 7, 7),
        "bn1.running_mean": (64,),
        "layer1.0.conv1.weight": (64, 64, 3, 3),
        "layer2.0.downsample.0.weight": (128, 64, 1, 1),
        "layer2.0.downsample.1.num_batches_tracked": (),
        "layer4.1.bn2.bias": (512,),
        "fc.weight": (1000, 512),
    }
    assert {name: tuple(state[name].shape) for name in shapes} == shapes
    assert "layer1.0.downsample.0.weight" not in state


@pytest.mark.parametrize("training", [False, True])
def test_resnet_gives_the_numbers_of_torchvision(training):
    try:
        from torchvision.models import resnet18
    except Exception as error:  # absent, or built for another torch
        pytest.skip(f"needs torchvision: {error}")
    theirs, ours = resnet18(), ResNet18()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 3, 64, 64)
    theirs.train(training)
    ours.train(training)
    torch.testing.assert_close(ours(x), theirs(x))


def test_the_start_of_resnet_is_part_of_the_whole():
    whole, start = ResNet18().eval(), ResNet18Start().eval()
    state = {name: t for name, t in whole.state_dict().items() if name in start.state_dict()}
    start.load_state_dict(state)
    x = torch.randn(2, 3, 48, 48)
    kept = []
    whole.layer1.register_forward_hook(lambda module, args, output: kept.append(output.clone()))
    whole(x)
    torch.testing.assert_close(start(x), kept[0])
    assert kept[0].shape == (2, ResNet18Start.width, 12, 12)


def test_convolutions_start_with_the_size_that_keeps_gradients():
    torch.manual_seed(0)
    weight = ResNet18().layer2[0].conv2.weight
    assert weight.std().item() == pytest.approx((2 / (128 * 9)) ** 0.5, rel=0.02)


# --- all models ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_costs_are_positive_and_depend_on_every_parameter(name, case):
    problem, side, channels = case
    net = build_model(name, problem, channels=channels)
    costs = net(pictures(side, channels))
    assert costs.shape == (3, problem.n_variables)
    assert costs.dtype == torch.float32
    assert (costs > 0).all()
    costs.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_edges_cost_about_the_margin_at_first(name, case):
    """Far above it, costs that explain nothing would shrink to 0; an edge may be eleven cells."""
    problem, side, channels = case
    with torch.no_grad():
        costs = build_model(name, problem, channels=channels)(pictures(side, channels))
    assert 0.2 < float(costs.median()) < 4.0


@pytest.mark.parametrize("name", MODELS)
def test_a_seed_gives_the_same_network_and_disturbs_nothing(name):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, again, other = (build_model(name, PATHS, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    states = [net.state_dict() for net in (first, again, other)]
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    assert not all(torch.equal(states[0][key], states[2][key]) for key in states[0])


@pytest.mark.parametrize("name", MODELS)
def test_bytes_and_numbers_give_the_same_costs(name, case):
    problem, side, channels = case
    net = build_model(name, problem, channels=channels).eval()
    images = pictures(side, channels)
    torch.testing.assert_close(net(images), net(as_contexts(images)), rtol=0, atol=0)


@pytest.mark.parametrize("name", SPARED)
def test_layout_in_memory_changes_nothing(name):
    net, images = build_model(name, PATHS).eval(), pictures(48, 3)
    plain = net(as_contexts(images).contiguous())
    net.to(memory_format=torch.channels_last)
    torch.testing.assert_close(net(images), plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SPARED)
def test_autocast_gives_full_precision_costs_near_the_others(name):
    net, images = build_model(name, PATHS).eval(), pictures(48, 3)
    with torch.autocast("cpu", torch.bfloat16):
        half = net(images)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, net(images), rtol=0.05, atol=0.05)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # dynamo's
@pytest.mark.parametrize("name", SPARED)
def test_networks_compile_as_one_graph(name):
    net, images = build_model(name, PATHS), pictures(48, 3)
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    gradients = []
    for function in (net, compiled):
        net.zero_grad()
        function(images).square().sum().backward()
        gradients.append(next(net.parameters()).grad.clone())
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


def test_networks_work_in_double_precision():
    net = build_model("small", PATHS).double()
    assert net(pictures(48, 3)).dtype == torch.float64


def test_cell_costs_are_what_edges_are_made_of():
    net, images = build_model("small", PATHS).eval(), pictures(48, 3)
    cells = net.cell_costs(images)
    assert cells.shape == (3, 36)
    np.testing.assert_array_equal(
        net(images).numpy(force=True), cells.numpy(force=True)[:, PATHS.structure.heads]
    )


@pytest.mark.parametrize(
    "images, words",
    [
        (torch.zeros(2, 48, 48, 1, dtype=torch.uint8), r"\(B, H, W, 3\) uint8"),
        (torch.zeros(2, 48, 48, 3), r"\(B, 3, H, W\) floating"),
        (torch.zeros(48, 48, 3, dtype=torch.uint8), r"Pictures must be \(B, H, W, C\)"),
    ],
    ids=["channels", "order", "one picture"],
)
def test_other_pictures_are_refused(images, words):
    with pytest.raises(rv.ShapeError, match=words):
        build_model("small", PATHS)(images)


def test_unknown_models_are_refused():
    with pytest.raises(rv.InputError, match="one of resnet18, resnet18-cells, truncated, small"):
        build_model("resnet50", PATHS)
    with pytest.raises(rv.InputError, match="on a grid only"):
        build_model("small", rv.problems.knapsack([1.0, 2.0], 2.0))


# --- heads ---------------------------------------------------------------------------------------


def test_edges_take_the_costs_of_cells_as_the_data_do():
    rng = np.random.default_rng(0)
    weights = rng.random((5, 6, 6))
    got = VertexToEdge(PATHS)(torch.from_numpy(weights.reshape(5, -1)))
    np.testing.assert_array_equal(got.numpy(), edge_costs(PATHS, weights))
    board = rng.integers(0, 10, (5, 4, 4))
    got = VertexToEdge(PAIRS)(torch.from_numpy(board.reshape(5, -1).astype(float)))
    np.testing.assert_array_equal(got.numpy(), reading_costs(PAIRS, board))


@pytest.mark.parametrize("shares", [None, (0.5, 0.5), (0.0, 3.0)])
def test_gradients_of_edges_collect_at_cells(case, shares):
    problem = case[0]
    spread = VertexToEdge(problem, shares)
    rows, cols = spread.grid_shape
    cells = torch.rand(2, rows * cols, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(spread, (cells,))
    weight = torch.rand(2, problem.n_variables, dtype=torch.float64)
    spread(cells).backward(weight)
    a, b = spread.shares
    expected = torch.zeros(2, rows * cols, dtype=torch.float64)
    expected.index_add_(1, spread.tails, a * weight).index_add_(1, spread.heads, b * weight)
    torch.testing.assert_close(cells.grad, expected)


def test_heads_hold_nothing_to_load():
    assert VertexToEdge(PATHS).state_dict() == {}


def test_costs_stay_above_0_however_low_the_score():
    costs = positive(torch.tensor([-1e4, -50.0, 0.0, 30.0]))
    assert costs[0] == pytest.approx(FLOOR)
    assert (costs > 0).all()
    assert costs[3] == pytest.approx(30.0)


@pytest.mark.parametrize("size", [(12, 12), (13, 17), (6, 6)], ids=str)
def test_grid_pool_takes_the_largest_value_of_each_cell(size):
    x = torch.randn(2, 1, *size)
    expected = nn.functional.adaptive_max_pool2d(x, (6, 6)).flatten(1)
    torch.testing.assert_close(GridPool((6, 6))(x), expected)


# --- with data -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [terrain, digit_boards])
def test_splits_live_on_a_device_as_bytes(make):
    data = make((6, 1, 1), side=4)
    split = DeviceSplit.of(data.train, "cpu")
    assert split.images.dtype == torch.uint8
    part = split[torch.tensor([4, 1])]
    np.testing.assert_array_equal(part.decisions, data.train.decisions[[4, 1]].astype(np.float32))
    np.testing.assert_array_equal(part.images, data.train.images[[4, 1]])
    net = build_model("small", data.problem, channels=split.images.shape[3])
    assert net(part.images).shape == part.costs.shape


def test_a_network_learns_from_decisions_alone():
    """The loop of the library takes pictures as they are, and the loss falls."""
    data = terrain((24, 0, 0), side=4, seed=0, unique=True)
    sets = rv.OptimalitySet(data.problem, data.train.decisions, margin=1.0)
    net = build_model("small", data.problem)
    images = torch.from_numpy(data.train.images)
    history = rv.fit.erm(net, images, sets, max_epochs=6, batch_size=8, lr=0.01)
    losses = [row["loss"] for row in history.rows]
    assert losses[-1] < 0.7 * losses[0]
