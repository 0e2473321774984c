"""Sets and indices travel through a DataLoader with their contexts."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Subset, random_split

import revealed as rv
from revealed.errors import InputError, ShapeError
from revealed.losses import DecisionDataset, ProjectionLoss

PROBLEM = rv.problems.grid_shortest_path(3, 3, directed="right-down")


def data(size=20):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((size, 2))
    X = PROBLEM.solve(1 + rng.random((size, PROBLEM.n_variables))).x
    return Z, X, DecisionDataset(Z, rv.OptimalitySet(PROBLEM, X))


def belongs(batch, Z, X):
    i = batch.index.numpy()
    same = np.allclose(batch.contexts.numpy(), Z[i]) and np.array_equal(batch.sets.decisions, X[i])
    return same and batch.contexts.dtype == torch.float32


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"drop_last": True}])
def test_batches_keep_samples_together(options):
    Z, X, samples = data()
    batches = list(samples.loader(batch_size=6, **options))
    assert all(belongs(batch, Z, X) for batch in batches)
    seen = torch.cat([batch.index for batch in batches])
    assert len(seen.unique()) == len(seen) == (18 if "drop_last" in options else 20)


def test_parts_and_plain_loaders_give_the_samples_of_the_whole():
    Z, X, samples = data()
    parts = [Subset(samples, [3, 1, 7]), *random_split(samples, [15, 5])]
    for part in parts:
        loader = DataLoader(part, batch_size=4, collate_fn=samples.collate)
        assert all(belongs(batch, Z, X) for batch in loader)
    first = next(iter(DataLoader(parts[0], batch_size=4, collate_fn=samples.collate)))
    assert first.index.tolist() == [3, 1, 7]


def test_workers_of_other_processes_give_the_same_batches():
    Z, X, samples = data(8)
    loader = samples.loader(batch_size=4, num_workers=1, multiprocessing_context="spawn")
    assert [belongs(batch, Z, X) for batch in loader] == [True, True]


def test_single_samples_are_batches_of_one():
    Z, X, samples = data()
    for index, expected in ((4, [4]), (-1, [19]), (slice(2, 5), [2, 3, 4])):
        assert samples[index].index.tolist() == expected
        assert belongs(samples[index], Z, X)


def test_training_with_it_is_training_by_hand():
    def train(batches):
        torch.manual_seed(0)
        net, loss_fn = torch.nn.Linear(2, PROBLEM.n_variables), ProjectionLoss(PROBLEM)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for z, sets, index in batches:
            loss = loss_fn(net(z), sets, index=index)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return net.weight.detach()

    Z, _, samples = data()
    contexts = torch.as_tensor(Z, dtype=torch.float32)
    by_hand = [(contexts[i], samples.sets[i], i) for i in torch.arange(20).split(5)]
    assert torch.equal(train(samples.loader(batch_size=5)), train(by_hand))


def test_what_does_not_belong_together_is_refused():
    Z, X, samples = data()
    with pytest.raises(ShapeError, match="There are 20 sets"):
        DecisionDataset(Z[:-1], samples.sets)
    with pytest.raises(InputError, match="must be the cost sets"):
        DecisionDataset(Z, X)
