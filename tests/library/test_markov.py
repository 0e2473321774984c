"""Markov decision processes: the linear program against value iteration, and rewards recovered."""

import numpy as np
import pytest
from scipy import sparse

import revealed as rv
from revealed.errors import InputError, ShapeError
from revealed.problems import (
    grid_world,
    markov_decision_process,
    occupancy_of,
    policy_of,
    sampled_behavior,
)

GAMMA = 0.9
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(4), (4, 3))  # 4 states, 3 actions
REWARD = RNG.normal(size=(1, 12))


def value_iteration(P, reward, gamma):
    """(S,) best values and (S,) best actions, by the definition."""
    values = np.zeros(P.shape[0])
    for _ in range(2000):
        gains = reward.reshape(P.shape[:2]) + gamma * P @ values
        values = gains.max(axis=1)
    return values, gains.argmax(axis=1)


def test_the_optimum_is_that_of_value_iteration():
    problem = markov_decision_process(P, GAMMA)
    answer = problem.solve(-REWARD)
    values, actions = value_iteration(P, REWARD[0], GAMMA)
    assert -answer.objective[0] == pytest.approx(values.mean(), rel=1e-9)  # uniform start
    np.testing.assert_array_equal(policy_of(answer.x, 3)[0].argmax(axis=1), actions)


def test_occupancies_count_discounted_visits():
    policy = RNG.dirichlet(np.ones(3), (2, 4))
    start = np.array([1.0, 0.0, 0.0, 0.0])
    found = occupancy_of(policy, P, GAMMA, start)
    state, total = np.tile(start, (2, 1)), np.zeros((2, 12))
    for step in range(400):
        taken = state[:, :, None] * policy
        total += GAMMA**step * taken.reshape(2, 12)
        state = np.einsum("bsa,sat->bt", taken, P)
    np.testing.assert_allclose(found, total, atol=1e-12)
    problem = markov_decision_process(P, GAMMA, start)
    assert problem.constraint_violation(found).max() < 1e-12
    np.testing.assert_allclose(policy_of(found, 3), policy, atol=1e-9)


def test_actions_and_their_chances_are_the_same_policy():
    actions = np.array([[0, 2, 1, 1]])
    one_hot = np.eye(3)[actions]
    np.testing.assert_array_equal(occupancy_of(actions, P, GAMMA), occupancy_of(one_hot, P, GAMMA))


def test_behavior_where_nobody_goes_is_not_invented():
    mu = np.array([[0.0, 0.0, 3.0, 1.0]])
    np.testing.assert_array_equal(policy_of(mu, 2), [[[0.5, 0.5], [0.75, 0.25]]])


def test_worlds_in_a_batch_are_the_worlds_alone():
    worlds = np.stack([P, RNG.dirichlet(np.ones(4), (4, 3))])
    rewards = RNG.normal(size=(2, 12))
    together = markov_decision_process(worlds, GAMMA).solve(-rewards).x
    for b in range(2):
        alone = markov_decision_process(worlds[b], GAMMA).solve(-rewards[[b]]).x[0]
        np.testing.assert_allclose(together[b], alone, atol=1e-12)


def test_sparse_transitions_make_the_same_program():
    dense, flat = markov_decision_process(P, GAMMA), sparse.csr_array(P.reshape(12, 4))
    same = markov_decision_process(flat, GAMMA)
    np.testing.assert_allclose(same.A_eq.toarray(), dense.A_eq.toarray())
    np.testing.assert_array_equal(same.b_eq, dense.b_eq)


def test_a_walker_slips_to_the_sides_and_stays_before_walls():
    blocked = np.array([[False, True], [False, False]])
    moves = grid_world(blocked, slip=0.2)
    up, right, down = 1, 2, 3
    np.testing.assert_allclose(moves[2, right], [0.1, 0, 0.1, 0.8])  # slips up, or off the grid
    np.testing.assert_allclose(moves[0, right], [0.9, 0, 0.1, 0])  # a wall to the right
    np.testing.assert_allclose(moves[0, down], [0.2, 0, 0.8, 0])
    np.testing.assert_allclose(moves[3, up], [0, 0, 0.1, 0.9])
    assert (moves[:, 0] == np.eye(4)).all()  # staying never slips
    assert (moves[1] == np.eye(4)[1]).all()  # nobody leaves an obstacle
    np.testing.assert_allclose(moves.sum(axis=2), 1.0)


def small_worlds(count, seed, side=5):
    """Problems and features (B, 125, 3) of worlds with two fields and an effort."""
    rng = np.random.default_rng(seed)
    walls = rng.random((count, side, side)) < 0.1
    free = ~walls.reshape(count, -1)
    start = free / free.sum(axis=1, keepdims=True)
    problem = markov_decision_process(grid_world(walls, 0.2), GAMMA, start)
    fields = np.repeat(rng.normal(size=(count, side * side, 2)), 5, axis=1)
    effort = np.tile([0.0, 1, 1, 1, 1], side * side)[:, None]
    effort = np.broadcast_to(effort, (count, len(effort), 1))
    return problem, np.concatenate([fields, effort], axis=2)


def test_the_learned_reward_earns_the_experts_return_in_worlds_never_seen():
    worth = np.array([1.0, -0.5, -0.1])
    seen, features = small_worlds(4, seed=1)
    shared = rv.fit.SharedModel(fit_intercept=False)
    solver = rv.fit.LBFGS(max_iter=200)
    model = rv.InverseRegressor(seen, model=shared, solver=solver, threads=1)
    model.fit(features, seen.solve(-features @ worth).x)
    unseen, new = small_worlds(6, seed=2)
    for problem, known in ((seen, features), (unseen, new)):
        reward = known @ worth
        best = (reward * problem.solve(-reward).x).sum(axis=1)
        earned = (reward * model.predict(known, problem=problem)).sum(axis=1)
        assert (best > 0).all()
        assert (earned >= 0.99 * best).all()


def test_a_reward_for_every_state_and_action_explains_one_world_exactly():
    problem, features = small_worlds(1, seed=3)
    expert = problem.solve(-features @ [1.0, -0.5, -0.1]).x
    nearest = rv.project(np.zeros((1, problem.n_variables)), rv.OptimalitySet(problem, expert))
    assert nearest.solved.all()
    np.testing.assert_allclose(problem.solve(nearest.point).x, expert, atol=1e-8)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: markov_decision_process(np.ones((2, 3)), 0.9), "must be \\(S, A, S\\)"),
        (lambda: markov_decision_process(2 * P, 0.9), "sum to 1"),
        (lambda: markov_decision_process(P, 1.0), "below 1"),
        (lambda: markov_decision_process(P, 0.9, [1.0, 0.0]), "`start` must be"),
        (lambda: markov_decision_process(P, 0.9, [0.5] * 4), "sum to 1 over the states"),
        (lambda: markov_decision_process(sparse.eye_array(5, 4), 0.9), "sparse"),
        (lambda: occupancy_of(np.array([[0, 3, 0, 0]]), P, 0.9), "actions 0 to 2"),
        (lambda: occupancy_of(np.ones((1, 4, 3)), P, 0.9), "over the actions"),
        (lambda: occupancy_of(np.zeros((2, 4), int), P, 0.9, np.eye(4)[:3]), "each of the 2"),
        (lambda: policy_of(np.ones((1, 7)), 3), "one entry for each state and action"),
        (lambda: policy_of(np.ones((1, 6)), 0), "positive integer"),
        (lambda: policy_of(np.full((1, 6), np.nan), 3), "got nan in row 0, entry 0"),
        (lambda: policy_of(-np.ones((1, 6)), 3), "must not be negative"),
        (lambda: grid_world(np.zeros((2, 2), bool), "often"), "a probability"),
        (lambda: grid_world(np.zeros(3, bool)), "`blocked` must be"),
    ],
)
def test_bad_input_meets_a_sentence(call, words):
    with pytest.raises((InputError, ShapeError), match=words):
        call()


# --- behavior that was sampled ----------------------------------------------------------------


def _walks(P, policy, count, length, rng):
    """Trajectories of a deterministic policy from uniform starts."""
    taken = []
    for _ in range(count):
        steps, state = [], rng.integers(len(P))
        for _ in range(length):
            steps.append((state, policy[state]))
            state = rng.choice(len(P), p=P[state, policy[state]])
        taken.append(np.array(steps))
    return taken


def _sampled(seed, count=6, length=8):
    rng = np.random.default_rng(seed)
    P = grid_world(rng.random((4, 4)) < 0.1, slip=0.2)
    problem = markov_decision_process(P, GAMMA)
    costs = rng.standard_normal((1, problem.n_variables))
    policy = policy_of(problem.solve(costs).x, 5)[0].argmax(axis=1)
    taken = _walks(P, policy, count, length, rng)
    return problem, costs, taken, *sampled_behavior(problem, [taken], 5, GAMMA)


@pytest.mark.parametrize("seed", range(4))
def test_walks_of_an_expert_are_explained_by_the_true_costs(seed):
    _, costs, _, seen, behavior = _sampled(seed)
    assert rv.OptimalitySet(seen, behavior, 0.0).contains(costs).all()


@pytest.mark.parametrize("seed", range(4))
def test_costs_under_which_another_action_is_better_where_it_was_seen_do_not_explain_them(seed):
    _, costs, taken, seen, behavior = _sampled(seed)
    state, action = taken[0][0]
    better = costs.copy()
    better[0, state * 5 + (action + 1) % 5] = costs.min() - 100.0
    assert not rv.OptimalitySet(seen, behavior, 0.0).contains(better).any()


@pytest.mark.parametrize("seed", range(4))
def test_states_that_no_walk_came_to_may_be_as_bad_as_they_like(seed):
    _, costs, taken, seen, behavior = _sampled(seed)
    unseen = np.setdiff1d(np.arange(16), np.concatenate(taken)[:, 0])
    worse = costs.reshape(16, 5).copy()
    worse[unseen] += 100.0
    assert unseen.size
    assert rv.OptimalitySet(seen, behavior, 0.0).contains(worse.reshape(1, -1)).all()


def test_the_most_frequent_action_of_a_state_is_the_one_that_is_learned():
    P = grid_world(np.zeros((2, 2), bool))
    problem = markov_decision_process(P, 0.5)
    taken = [[np.array([[0, 2], [1, 0]]), np.array([[0, 2], [1, 3]]), np.array([[0, 3], [1, 0]])]]
    _, behavior = sampled_behavior(problem, taken, 5, 0.5)
    visits = behavior.reshape(4, 5)
    assert np.flatnonzero(visits[0]).tolist() == [2]
    assert np.flatnonzero(visits[1]).tolist() == [0]
    assert visits[0].sum() == pytest.approx(1.0)
    assert visits[1].sum() == pytest.approx(0.5)
    assert not visits[2:].any()


def test_walks_in_several_worlds_have_the_rows_of_their_own():
    rng = np.random.default_rng(0)
    P = grid_world(rng.random((3, 3, 3)) < 0.2, slip=0.1)
    problem = markov_decision_process(P, GAMMA)
    costs = rng.standard_normal((3, problem.n_variables))
    policies = policy_of(problem.solve(costs).x, 5).argmax(axis=2)
    taken = [_walks(*world, 3, 6, rng) for world in zip(P, policies, strict=True)]
    seen, behavior = sampled_behavior(problem, taken, 5, GAMMA)
    assert rv.OptimalitySet(seen, behavior, 0.0).contains(costs).all()
    with pytest.raises(ShapeError, match="each of the 3 worlds; got 1"):
        sampled_behavior(problem, taken[:1], 5, GAMMA)


@pytest.mark.parametrize(
    "steps, said",
    [
        (np.zeros((3, 3), int), "got shape"),
        (np.zeros((3, 2)), "of float64"),
        (np.array([[0, 1], [4, 0]]), "got [4, 0] in step 1"),
        (np.array([[0, 5]]), "actions 0 to 4"),
    ],
)
def test_walks_that_are_none_are_refused_with_their_place(steps, said):
    problem = markov_decision_process(grid_world(np.zeros((2, 2), bool)), 0.5)
    with pytest.raises((ShapeError, InputError)) as caught:
        sampled_behavior(problem, [[steps]], 5, 0.5)
    assert said in str(caught.value)
    assert "`trajectories[0][0]`" in str(caught.value)
