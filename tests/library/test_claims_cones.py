"""Projections onto sets with curved cones: `solved` means that the point is right.
`python experiments/scripts/claims_cones.py` runs thousands."""

import sys

import numpy as np
import pytest
from hostile_cones import hostile_cone, is_false

import revealed as rv
from revealed import ProjectionStatus
from revealed._common.conic import onto_cones, rows_of
from revealed._common.curved_polish import slope_onto_cones


def false_claims(seeds):
    """The false claims, and the share of sets that are not solved."""
    wrong, missed = [], 0
    for seed in seeds:
        case = hostile_cone(seed)
        p = rv.project(case.q[None], case.sets, threads=1)
        said = is_false(case, p.status[0], p.point[0])
        wrong += [(seed, said)] if said else []
        missed += p.status[0] != ProjectionStatus.SOLVED
    return wrong, missed / len(seeds)


def test_hostile_cones_meet_no_false_claim(record_property):
    wrong, share = false_claims(range(300))
    record_property("not solved", f"{share:.1%}")
    assert not wrong
    assert share <= 0.05


def test_residuals_alone_would_claim_what_is_false(monkeypatch):
    module = sys.modules["revealed.projection.parametric.conic"]
    monkeypatch.setattr(module, "_largest_of_both", lambda *_: 0.0)
    monkeypatch.setattr(module, "polished_curved", lambda *_: None)
    assert false_claims(range(0, 300))[0], "the sets are not hostile any more"


@pytest.mark.parametrize("seed", range(20))
def test_the_truth_about_hostile_cones_is_true(seed):
    """The truth is explained and its projection; no explaining cost that chance finds is nearer."""
    case = hostile_cone(40_000 + seed)
    rng, move = np.random.default_rng(seed), np.linalg.norm(case.truth - case.q)
    at_truth = rv.project(case.truth[None], case.sets, threads=1)
    assert at_truth.distance[0] <= 1e-7 * max(move, 1e-3 * np.linalg.norm(case.truth))
    other = case.truth + rng.normal(size=(4, len(case.truth))) * move
    there = rv.project(other, case.sets[[0, 0, 0, 0]], threads=1).point
    there = there[np.isfinite(there).all(axis=1)]
    assert (np.linalg.norm(there - case.q, axis=1) >= move * (1 - 1e-6)).all()


@pytest.mark.parametrize("cone", [("nonnegative", 3), ("second-order", 4), ("semidefinite", 3)])
def test_slopes_of_projections_are_differences(cone):
    rng, cones = np.random.default_rng(0), [("zero", 2), cone]
    for _ in range(20):
        v = rng.normal(size=2 + rows_of(cone))
        D = slope_onto_cones(v, cones)
        for k, unit in enumerate(1e-6 * np.eye(len(v))):
            difference = (onto_cones(v + unit, cones) - onto_cones(v - unit, cones)) / 2e-6
            np.testing.assert_allclose(D[:, k], difference, atol=1e-6)
