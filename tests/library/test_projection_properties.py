"""What the definition of a projection implies, on sets that hypothesis makes up: small integer
data, so that ties, dependent rows and degenerate decisions are common."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

import revealed as rv
from helpers import AGREEMENT, parts_of, yardstick

INF = np.inf
modest = settings(max_examples=60, deadline=None, derandomize=True)
small = st.integers(-2, 2)
eighths = st.integers(-80, 80).map(lambda k: k / 8)  # ties; the floats below are the ties broken
tiny_is_none = st.floats(-100.0, 100.0).map(lambda c: c if abs(c) > 1e-100 else 0.0)
numbers = st.one_of(eighths, tiny_is_none)  # squares of less underflow in the tests' own norms


@st.composite
def parts(draw):
    """A_eq, A_ub, x, lb, ub, slack of a problem that x satisfies, each entry in a random state."""
    n = draw(st.integers(1, 7))
    A_eq = draw(arrays(float, (draw(st.integers(0, 3)), n), elements=small))
    A_ub = draw(arrays(float, (draw(st.integers(0, 3)), n), elements=small))
    x = draw(arrays(float, n, elements=small))
    gap = st.sampled_from([0.0, 0.0, 1.0, 3.0, INF])
    lb, ub = x - draw(arrays(float, n, elements=gap)), x + draw(arrays(float, n, elements=gap))
    slack = draw(arrays(float, len(A_ub), elements=st.sampled_from([0.0, 0.0, 2.0])))
    return A_eq, A_ub, x, lb, ub, slack


def build(A_eq, A_ub, x, lb, ub, slack, margin, count):
    problem = rv.LinearProgram(
        A_eq=A_eq, b_eq=A_eq @ x, A_ub=A_ub, b_ub=A_ub @ x + slack, lb=lb, ub=ub
    )
    return rv.OptimalitySet(problem, np.tile(x, (count, 1)), margin)


margins = st.sampled_from([0.0, 0.01, 1.0, 10.0])


@st.composite
def cases(draw, count=2):
    """`count` times the same set, and as many costs."""
    given_parts, margin = draw(parts()), draw(margins)
    costs = draw(arrays(float, (count, len(given_parts[2])), elements=numbers))
    return build(*given_parts, margin, count), costs


def projected(costs, sets):
    p = rv.project(costs, sets)
    assert p.solved.all()
    return p


def assert_same(points, others, costs, sets, allowed=AGREEMENT):
    for b in range(len(sets)):
        off = np.linalg.norm(points[b] - others[b])
        assert off <= allowed * yardstick(others[b], costs[b], sets.margins[b])


@modest
@given(cases())
def test_idempotent(case):
    sets, costs = case
    point = projected(costs, sets).point
    again = projected(point, sets)
    assert_same(again.point, point, costs, sets)
    size = np.linalg.norm(point, axis=1) + sets.margins
    assert (again.distance <= 1e-9 * size).all()


@modest
@given(cases())
def test_non_expansive(case):
    sets, costs = case
    point = projected(costs, sets).point
    apart = np.linalg.norm(costs[0] - costs[1])
    size = np.linalg.norm(costs) + sets.margins.max()
    assert np.linalg.norm(point[0] - point[1]) <= apart + 1e-9 * size


@modest
@given(cases())
def test_the_move_is_orthogonal_to_what_may_move_freely(case):
    sets, costs = case
    p = projected(costs, sets)
    for b in range(len(sets)):
        own = parts_of(sets, b)
        move = p.point[b] - costs[b]
        limit = 1e-7 * yardstick(p.point[b], costs[b], own.margin)
        v, mu = np.split(p.multipliers[b], [len(own.A_eq)])
        assert (np.abs(own.A_eq @ move) <= limit * 10).all()
        assert (own.A_ub[own.active] @ move <= limit * 10).all()
        assert (move[own.lower] >= -limit).all()
        assert (move[own.upper] <= limit).all()
        assert (np.abs(move[own.fixed]) <= limit).all()
        reduced = p.point[b] - own.A_eq.T @ v + own.A_ub.T @ mu
        # Complementarity: an entry with room beyond the margin does not move.
        room = np.where(own.lower, reduced - own.margin, -reduced - own.margin)
        at_bound = own.lower | own.upper
        assert (room[at_bound] >= -limit).all()
        assert (np.minimum(room, np.abs(move))[at_bound] <= limit).all()
        assert (np.abs(reduced[own.free]) <= limit).all()
        excess, lean = mu[own.active] - own.margin, -(own.A_ub[own.active] @ move)
        assert (np.minimum(excess, lean) <= limit * 10).all()
        assert (mu[~own.active] == 0).all()


@modest
@given(cases())
def test_the_point_is_in_the_set_with_its_margin(case):
    sets, costs = case
    point = projected(costs, sets).point
    assert sets.contains(point).all()
    size = np.abs(point).max(axis=1) + sets.margins + 1e-300
    assert (sets.max_margin(point) >= sets.margins - 1e-6 * size).all()


@modest
@given(cases(count=3))
def test_batch_equals_loop(case):
    sets, costs = case
    together = projected(costs, sets)
    alone = np.vstack([projected(costs[b : b + 1], sets[b]).point for b in range(3)])
    assert_same(alone, together.point, costs, sets)


@modest
@given(parts(), margins, st.data())
def test_order_of_rows_does_not_matter(given_parts, margin, data):
    A_eq, A_ub, x, lb, ub, slack = given_parts
    costs = data.draw(arrays(float, (2, len(x)), elements=numbers))
    one, two = (data.draw(st.permutations(range(len(A)))) for A in (A_eq, A_ub))
    sets = build(*given_parts, margin, 2)
    shuffled = build(A_eq[list(one)], A_ub[list(two)], x, lb, ub, slack[list(two)], margin, 2)
    assert_same(projected(costs, shuffled).point, projected(costs, sets).point, costs, sets)


@modest
@given(parts(), margins, st.data())
def test_order_of_columns_does_not_matter(given_parts, margin, data):
    A_eq, A_ub, x, lb, ub, slack = given_parts
    costs = data.draw(arrays(float, (2, len(x)), elements=numbers))
    order = list(data.draw(st.permutations(range(len(x)))))
    sets = build(*given_parts, margin, 2)
    moved = (A_eq[:, order], A_ub[:, order], x[order], lb[order], ub[order], slack)
    shuffled = projected(costs[:, order], build(*moved, margin, 2)).point
    assert_same(shuffled, projected(costs, sets).point[:, order], costs[:, order], sets)


@modest
@given(parts(), margins, st.data())
def test_units_of_rows_do_not_matter(given_parts, margin, data):
    # A binding inequality's margin is in the units of its row, so those are only free at margin 0.
    A_eq, A_ub, x, lb, ub, slack = given_parts
    costs = data.draw(arrays(float, (2, len(x)), elements=numbers))
    signed = st.sampled_from([-1000.0, -1.0, 0.01, 7.0])
    one = data.draw(arrays(float, len(A_eq), elements=signed))
    two = np.abs(data.draw(arrays(float, len(A_ub), elements=signed)))
    two = two if margin == 0 else np.ones(len(A_ub))
    sets = build(*given_parts, margin, 2)
    scaled = (one[:, None] * A_eq, two[:, None] * A_ub, x, lb, ub, two * slack)
    other = projected(costs, build(*scaled, margin, 2)).point
    assert_same(other, projected(costs, sets).point, costs, sets)


@modest
@given(parts(), margins, st.data())
def test_repeating_a_row_does_not_matter(given_parts, margin, data):
    A_eq, A_ub, x, lb, ub, slack = given_parts
    costs = data.draw(arrays(float, (2, len(x)), elements=numbers))
    sets = build(*given_parts, margin, 2)
    twice = build(np.vstack([A_eq, A_eq]), A_ub, x, lb, ub, slack, margin, 2)
    assert_same(projected(costs, twice).point, projected(costs, sets).point, costs, sets)


@modest
@given(parts(), margins, st.sampled_from([1e-6, 1 / 3, 1024.0, 1e6]), st.data())
def test_costs_and_margin_have_one_unit(given_parts, margin, unit, data):
    costs = data.draw(arrays(float, (2, len(given_parts[2])), elements=numbers))
    sets, scaled = (build(*given_parts, chi, 2) for chi in (margin, margin * unit))
    one, two = projected(costs, sets), projected(costs * unit, scaled)
    assert_same(two.point, one.point * unit, costs * unit, scaled)


@modest
@given(cases(), st.data())
def test_adding_a_combination_of_equalities_moves_the_point_along(case, data):
    sets, costs = case
    A_eq = sets.problem.A_eq.toarray()
    along = data.draw(arrays(float, len(A_eq), elements=eighths)) @ A_eq
    one, two = projected(costs, sets), projected(costs + along, sets)
    assert_same(two.point, one.point + along, costs + along, sets)


@modest
@given(cases())
def test_distance_is_the_length_of_the_move(case):
    sets, costs = case
    p = projected(costs, sets)
    expected = np.linalg.norm(p.point - costs, axis=1)
    size = np.linalg.norm(costs, axis=1) + sets.margins
    assert (np.abs(p.distance - expected) <= 1e-12 * size + 1e-12 * expected).all()


@modest
@given(cases())
def test_halfway_there_the_goal_is_the_same(case):
    sets, costs = case
    point = projected(costs, sets).point
    halfway = projected((costs + point) / 2, sets).point
    assert_same(halfway, point, costs, sets)


@modest
@given(cases(), st.integers(0, 2**32 - 1))
def test_nothing_in_the_set_is_nearer(case, seed):
    sets, costs = case
    p = projected(costs, sets)
    # Other members of the set: projections of random costs around the point.
    size = np.linalg.norm(p.point, axis=1, keepdims=True) + sets.margins[:, None] + 1.0
    noise = np.random.default_rng(seed).standard_normal(costs.shape) * size
    others = projected(p.point + noise, sets).point
    apart = np.linalg.norm(others - p.point, axis=1)
    size = size.ravel()
    limit = 1e-7 * (p.distance + 1e-3 * size) * apart + 1e-15 * size * p.distance
    assert (((costs - p.point) * (others - p.point)).sum(axis=1) <= limit).all()
