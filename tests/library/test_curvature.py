"""The curvature that a model adds up from Hessians of samples is that of its mean loss."""

import numpy as np
import pytest

from revealed.fit import LinearModel

B, D, N = 30, 3, 12


def parts_of(rng, model, Z, sizes):
    """Groups of samples, each curved in as many entries of its own as `sizes` says."""
    for index, size in zip(np.array_split(np.arange(len(Z)), len(sizes)), sizes, strict=True):
        entries = np.argsort(rng.random((len(index), N)), axis=1)[:, :size]
        if size == N:
            entries = np.broadcast_to(np.arange(N), (len(index), N))
        root = rng.normal(size=(len(index), size, size))
        yield Z[index], entries, root @ root.transpose(0, 2, 1)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sizes", [(3,), (N,), (2, 9, N)], ids=["few", "all", "mixed"])
def test_curvature_is_the_second_derivative_of_the_sum(sizes, intercept):
    rng = np.random.default_rng(len(sizes) + intercept)
    Z = rng.normal(size=(B, D))
    model = LinearModel(fit_intercept=intercept)
    model.prepare(Z, N)
    parts = list(parts_of(rng, model, Z, sizes))
    found = model.curvature(iter(parts))
    for _ in range(5):
        step = rng.normal(size=len(model.point))
        model.move_to(step)
        after = [model.cost(features) for features, _, _ in parts]
        model.move_to(np.zeros_like(step))
        total = 0.0
        for (features, entries, hessians), costs in zip(parts, after, strict=True):
            move = np.take_along_axis(costs - model.cost(features), entries, axis=1)
            total += np.einsum("bi,bij,bj->", move, hessians, move)
        assert step @ found @ step == pytest.approx(total, rel=1e-10)
    np.testing.assert_allclose(found, found.T, atol=1e-9)
