"""Metrics against brute force: every path of a small grid listed, every formula written out."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import revealed as rv
from helpers import catalogue, direct_projection, tiny_path
from revealed import metrics
from revealed.datasets import paper_paths
from revealed.fit import LinearModel, pocs

CASES = catalogue()


def name_of(case):
    return case.name


def all_paths(rows, cols):
    """(problem, (P, n)): the right-down grid and every path through it, found by walking it."""
    problem = rv.problems.grid_shortest_path(rows, cols, directed="right-down")
    A = problem.A_eq.toarray()  # 1 where an edge leaves a node, -1 where it enters
    start, goal = int(np.argmax(problem.b_eq)), int(np.argmin(problem.b_eq))
    found, todo = [], [(start, [])]
    while todo:
        node, used = todo.pop()
        if node == goal:
            found.append(used)
        for edge in np.flatnonzero(A[node] > 0):
            todo.append((int(np.argmin(A[:, edge])), [*used, edge]))
    paths = np.zeros((len(found), problem.n_variables))
    for path, edges in zip(paths, found, strict=True):
        path[edges] = 1.0
    return problem, paths


@pytest.fixture(scope="module")
def grid():
    """A 3x4 grid with all of its paths, predicted and true costs, and the best true decisions."""
    problem, paths = all_paths(3, 4)
    assert len(paths) == 10
    rng = np.random.default_rng(0)
    predicted, true = (1 + 4 * rng.random((12, problem.n_variables)) for _ in range(2))
    return problem, paths, predicted, true, paths[(true @ paths.T).argmin(axis=1)]


# --- every metric against brute force ------------------------------------------------------------


def test_metrics_that_need_no_truth(grid):
    problem, paths, C, _, X = grid
    best = paths[(C @ paths.T).argmin(axis=1)]
    given = {"costs": C, "decisions": X}
    loss = metrics.decision_loss(problem, **given)
    np.testing.assert_allclose(loss, ((best - X) ** 2).sum(axis=1))
    np.testing.assert_array_equal(metrics.accuracy(problem, **given), (loss == 0) * 1.0)
    np.testing.assert_array_equal(metrics.exact(problem, **given), (loss == 0) * 1.0)
    gap = [c @ x - (paths @ c).min() for c, x in zip(C, X, strict=True)]
    np.testing.assert_allclose(metrics.suboptimality_loss(problem, **given), gap, atol=1e-12)
    np.testing.assert_allclose(
        metrics.normalized_suboptimality_loss(problem, **given),
        gap / np.linalg.norm(C, axis=1),
        atol=1e-12,
    )


def test_metrics_that_need_the_truth(grid):
    problem, paths, C, true, X = grid
    given = {"costs": C, "decisions": X, "true_costs": true}
    best = paths[(C @ paths.T).argmin(axis=1)]
    regret = (true * best).sum(axis=1) - (true @ paths.T).min(axis=1)
    np.testing.assert_allclose(metrics.estimate_loss(problem, **given), regret, atol=1e-12)
    share = regret.sum() / (true @ paths.T).min(axis=1).sum()
    assert metrics.relative_regret(problem, **given) == pytest.approx(share)
    assert share > 0.01
    np.testing.assert_array_equal(metrics.optimal(problem, **given), (regret < 1e-9) * 1.0)
    given["decisions"] = None
    np.testing.assert_array_equal(metrics.optimal(problem, **given), (regret < 1e-9) * 1.0)
    np.testing.assert_allclose(metrics.estimate_loss(problem, **given), regret, atol=1e-12)
    assert metrics.relative_regret(problem, **given) == pytest.approx(share)


@pytest.mark.parametrize("margin", [0.1, 1.0])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_gamma_and_membership_by_an_independent_projection(case, margin):
    sets = rv.OptimalitySet(case.problem, case.problem.solve(case.costs).x, margin)
    rng = np.random.default_rng(3)
    inside = rv.project(case.costs, sets).point
    C = np.sign(case.costs) * (0.5 + rng.random(case.costs.shape))
    C[0] = inside[0]
    nearest = np.array([direct_projection(sets, b, c, "clarabel") for b, c in enumerate(C)])
    x = case.problem.solve(C).x
    length = np.linalg.norm(nearest, axis=1)
    gamma = (nearest * (x - sets.decisions)).sum(axis=1) / length
    given = {"costs": C, "decisions": sets, "margin": margin}
    np.testing.assert_allclose(metrics.suboptimality(case.problem, **given), gamma, atol=1e-7)
    distance = np.linalg.norm(nearest - C, axis=1)
    np.testing.assert_array_equal(metrics.in_set(case.problem, **given), distance < 1e-7)
    assert metrics.in_set(case.problem, **given)[0] == 1


def test_right_costs_score_perfectly(grid):
    problem, _, _, true, X = grid
    given = {"costs": true, "decisions": X}
    for zero in (metrics.decision_loss, metrics.suboptimality, metrics.suboptimality_loss):
        np.testing.assert_allclose(zero(problem, **given), 0, atol=1e-12)
    assert metrics.relative_regret(problem, **given, true_costs=true) == 0
    assert (metrics.accuracy(problem, **given) == 1).all()
    assert (metrics.in_set(problem, **given, margin=0.0) == 1).all()


# --- Gamma and its predecessors ------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-6, 0.5, 1e6])
def test_gamma_does_not_depend_on_the_unit_of_cost(grid, scale):
    problem, _, C, _, X = grid
    given = {"decisions": X, "margin": 1.0}
    gamma = metrics.suboptimality(problem, costs=C, **given)
    assert gamma.max() > 0.1
    given["margin"] = scale
    scaled = metrics.suboptimality(problem, costs=scale * C, **given)
    np.testing.assert_allclose(scaled, gamma, rtol=1e-7)
    given["margin"] = 0.0  # with no margin, the scale of the costs alone
    plain = metrics.suboptimality(problem, costs=C, **given)
    scaled = metrics.suboptimality(problem, costs=scale * C, **given)
    np.testing.assert_allclose(scaled, plain, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 0.01, 1.0, 100.0, 1e6])
def test_relative_gamma_does_not_depend_on_the_scale_of_the_prediction(grid, scale):
    problem, _, C, _, X = grid
    found = metrics.relative_suboptimality(problem, costs=C, decisions=X)
    assert found.max() > 0.1
    scaled = metrics.relative_suboptimality(problem, costs=scale * C, decisions=X)
    np.testing.assert_allclose(scaled, found, rtol=1e-7, atol=1e-9)


def test_relative_gamma_is_gamma_at_a_margin_in_proportion(grid):
    """Moving the margin to the cost is the same as moving the cost to the margin."""
    problem, _, C, _, X = grid
    found = metrics.relative_suboptimality(problem, costs=C, decisions=X)
    for b in range(len(C)):
        shortest = rv.project(np.zeros((1, C.shape[1])), rv.OptimalitySet(problem, X[b : b + 1]))
        margin = np.linalg.norm(C[b]) / shortest.distance[0]
        given = {"costs": C[b : b + 1], "decisions": X[b : b + 1], "margin": margin}
        assert found[b] == pytest.approx(metrics.suboptimality(problem, **given)[0], abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_gamma_ranks_backwards_where_costs_are_long_and_relative_gamma_does_not(seed):
    """A thousand samples decide better than ten, whatever unit the ten's costs are in."""
    data = paper_paths((1000, 0, 200), side=4, seed=seed)
    found = {}
    for size, unit in ((10, 1000.0), (1000, 1.0)):
        seen = data.train.head(size)
        model = LinearModel(fit_intercept=False)
        pocs(model, seen.contexts, rv.OptimalitySet(data.problem, seen.decisions), max_iter=50)
        given = {
            "costs": unit * model.predict_cost(data.test.contexts),
            "decisions": data.test.decisions,
        }
        found[size] = [
            getattr(metrics, name)(data.problem, **given).mean()
            for name in ("decision_loss", "suboptimality", "relative_suboptimality")
        ]
    few, many = found[10], found[1000]
    assert few[0] > many[0]
    assert few[1] < many[1]
    assert few[2] > many[2]


def test_what_gamma_mends():
    """Going over node 1 was observed; small costs and near ties flatter its predecessors."""
    problem = tiny_path()
    X = np.array([[1.0, 1.0, 0.0]])

    def three(cost):
        given = {"costs": np.array([cost]), "decisions": X}
        names = ("suboptimality_loss", "normalized_suboptimality_loss", "suboptimality")
        return [float(getattr(metrics, name)(problem, **given)[0]) for name in names]

    wrong, small, near_tie = three([1.0, 1.0, 1.0]), three([1e-6] * 3), three([0.5, 0.5, 0.999999])
    assert min(wrong) > 0.1
    assert small[0] < 1e-5
    assert small[1] == pytest.approx(wrong[1])
    assert near_tie[1] < 1e-5
    assert min(small[2], near_tie[2]) > 0.1


def test_directions_that_do_not_exist_are_nan():
    problem = rv.LinearProgram(A_eq=[[1.0, 1.0]], b_eq=[1.0])
    X = np.array([[1.0, 0.0]])
    zero = np.zeros((1, 2))
    assert np.isnan(metrics.normalized_suboptimality_loss(problem, costs=zero, decisions=X))
    assert np.isnan(metrics.relative_suboptimality(problem, costs=zero, decisions=X))
    worst = np.array([[1.0, -1.0]])  # opposite to the ray of the set: its projection is 0
    assert np.isnan(metrics.suboptimality(problem, costs=worst, decisions=X, margin=0.0))
    assert metrics.suboptimality(problem, costs=worst, decisions=X) == pytest.approx(np.sqrt(2))


# --- ties ----------------------------------------------------------------------------------------


def test_two_tied_decisions_share_one_half(grid):
    """Neighboring paths, which differ around one square, made equally cheap; others are dear."""
    problem, paths, C, _, _ = grid
    apart = ((paths[:, None] - paths[None]) ** 2).sum(axis=2)
    pairs = np.argwhere(np.triu(apart == 4))
    assert len(pairs) >= 8
    for (first, second), cost in zip(pairs, C, strict=False):
        mine = paths[[first, second]].max(axis=0) > 0
        cost = np.where(mine, cost, 100.0)
        cost[np.argmax(paths[first] > paths[second])] -= cost @ (paths[first] - paths[second])
        score = metrics.accuracy(problem, costs=[cost] * len(paths), decisions=paths)
        assert score[[first, second]].tolist() == [0.5, 0.5]
        assert score.sum() == 1


def test_a_tie_in_truth_counts_as_optimal_and_one_in_the_prediction_falls_one_way(grid):
    problem, paths, C, _, _ = grid
    equal = np.ones((len(paths), problem.n_variables))
    predicted = C[: len(paths)]
    best = metrics.optimal(problem, costs=predicted, decisions=paths, true_costs=equal)
    assert best.tolist() == [1.0] * len(paths)
    assert metrics.exact(problem, costs=equal, decisions=paths).sum() == 1
    dearer = equal + 1e-5 * (1.0 - paths)  # under which each path is the only best one, by little
    best = metrics.optimal(problem, costs=equal, decisions=paths, true_costs=dearer)
    assert best.sum() == 1


@pytest.mark.parametrize("level", [0.0, 1.0, 1e-8, 1e8])
def test_equal_costs_share_the_point_among_all_paths(grid, level):
    """Each draw chooses one path, so the scores of all paths add up to 1 exactly."""
    problem, paths, C, _, _ = grid
    costs = np.full((len(paths), C.shape[1]), level)
    score = metrics.accuracy(problem, costs=costs, decisions=paths, draws=400)
    assert score.sum() == pytest.approx(1, abs=1e-12)
    assert 0 < score.min() < score.max() < 0.5
    noise = np.random.default_rng(99).standard_normal((20000, C.shape[1]))
    chosen = np.bincount((noise @ paths.T).argmin(axis=1), minlength=len(paths)) / len(noise)
    assert np.abs(score - chosen).max() < 4 * 0.5 / np.sqrt(400)


def test_ties_on_a_simplex_are_even():
    problem = rv.LinearProgram(A_eq=np.ones((1, 4)), b_eq=[1.0])
    score = metrics.accuracy(problem, costs=np.zeros((4, 4)), decisions=np.eye(4), draws=1000)
    assert score.sum() == 1
    np.testing.assert_allclose(score, 0.25, atol=4 * 0.5 / np.sqrt(1000))


def test_ties_that_go_on_for_ever():
    """Costs of 0 where one may go in circles: most noise would leave nothing best."""
    problem = rv.problems.grid_shortest_path(2, 2)
    rng = np.random.default_rng(0)
    assert (problem.solve(rng.standard_normal((20, 8))).status == rv.SolveStatus.UNBOUNDED).any()
    both = np.unique(problem.solve(rng.random((20, 8))).x, axis=0)
    assert len(both) == 2
    score = metrics.accuracy(problem, costs=np.zeros((2, 8)), decisions=both)
    assert score.sum() == 1
    assert score.min() > 0.2


def test_a_difference_of_a_thousandth_is_no_tie(grid):
    problem, paths, _, _, _ = grid
    for nudge, score in ((-1e-3, 1.0), (1e-3, 0.0)):
        cost = 1.0 + nudge * paths[[3]]
        assert metrics.accuracy(problem, costs=cost, decisions=paths[[3]]) == score


def test_a_decision_that_is_no_vertex_is_never_chosen():
    problem = rv.LinearProgram(A_eq=np.ones((1, 3)), b_eq=[1.0])
    middle = np.array([[0.5, 0.5, 0.0]])
    cost = np.array([[1.0, 1.0, 2.0]])
    assert metrics.accuracy(problem, costs=cost, decisions=middle) == 0
    assert metrics.suboptimality_loss(problem, costs=cost, decisions=middle) == pytest.approx(0)


def test_scores_depend_on_the_instance_alone(grid):
    problem, paths, C, _, X = grid
    costs = np.vstack([C[:3], np.ones((3, C.shape[1]))])
    decisions = np.vstack([X[:3], paths[:3]])
    together = metrics.accuracy(problem, costs=costs, decisions=decisions)
    alone = [
        metrics.accuracy(problem, costs=costs[[i]], decisions=decisions[[i]])[0] for i in range(6)
    ]
    np.testing.assert_array_equal(together, alone)
    backwards = metrics.accuracy(problem, costs=costs[::-1], decisions=decisions[::-1])
    np.testing.assert_array_equal(together, backwards[::-1])
    other = metrics.accuracy(problem, costs=costs, decisions=decisions, seed=1)
    assert not np.array_equal(together, other)
    np.testing.assert_array_equal(together[:3], other[:3])


def test_ties_with_constraints_of_their_own():
    problem = rv.problems.knapsack(np.ones(3), np.array([1.0, 2.0, 1.0]))
    X = np.array([[1.0, 0, 0], [1, 1, 0], [0, 0, 1]])
    costs = np.array([[-1.0, -1, 0], [-1, -1, -1], [-1, -1, -3]])
    score = metrics.accuracy(problem, costs=costs, decisions=X, draws=600)
    assert score[0] == 0.5
    assert score[1] == pytest.approx(1 / 3, abs=4 * 0.5 / np.sqrt(600))
    assert score[2] == 1


# --- kinds of input ------------------------------------------------------------------------------

PER_INSTANCE = (
    metrics.decision_loss,
    metrics.suboptimality,
    metrics.relative_suboptimality,
    metrics.suboptimality_loss,
    metrics.normalized_suboptimality_loss,
    metrics.in_set,
    metrics.accuracy,
    metrics.exact,
)


@pytest.mark.parametrize("metric", PER_INSTANCE, ids=lambda f: f.__name__)
def test_kinds_of_input_agree(grid, metric):
    problem, _, C, _, X = grid
    plain = metric(problem, costs=C, decisions=X)
    assert plain.shape == (12,)
    assert plain.dtype == np.float64
    sets = rv.OptimalitySet(problem, X)
    np.testing.assert_array_equal(metric(problem, costs=C, decisions=sets), plain)
    tensor = metric(problem, costs=torch.tensor(C, requires_grad=True), decisions=torch.tensor(X))
    np.testing.assert_array_equal(tensor, plain)
    single = metric(problem, costs=torch.tensor(C, dtype=torch.float32), decisions=sets)
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single, plain, atol=1e-5)
    assert metric(problem, costs=C[:0], decisions=sets[:0]).shape == (0,)


def test_metrics_with_the_truth_take_every_kind(grid):
    problem, _, C, true, X = grid
    sets = rv.OptimalitySet(problem, X)
    plain = metrics.estimate_loss(problem, costs=C, decisions=X, true_costs=true)
    tensor = metrics.estimate_loss(
        problem, costs=torch.tensor(C), decisions=sets, true_costs=torch.tensor(true)
    )
    np.testing.assert_array_equal(tensor, plain)
    regret = metrics.relative_regret(
        problem, costs=torch.tensor(C), decisions=sets, true_costs=torch.tensor(true)
    )
    assert isinstance(regret, float)


def test_constraints_of_their_own_and_slices():
    problem = rv.problems.knapsack(np.array([3.0, 5, 4, 7]), np.array([6.0, 9, 11, 14, 7]))
    rng = np.random.default_rng(0)
    true, C = -rng.random((5, 4)), -rng.random((5, 4))
    sets = rv.OptimalitySet(problem, problem.solve(true).x)
    chosen = np.array([4, 1])
    for metric in PER_INSTANCE:
        whole = metric(problem, costs=C, decisions=sets)
        part = metric(problem, costs=C[chosen], decisions=sets[chosen])
        np.testing.assert_allclose(part, whole[chosen], rtol=1e-9, atol=1e-12)
    given = {"costs": C[chosen], "true_costs": true[chosen]}
    whole = metrics.relative_regret(problem[chosen], decisions=None, **given)
    assert metrics.relative_regret(problem, decisions=sets[chosen], **given) == whole


def test_summary_is_the_means(grid):
    problem, _, C, true, X = grid
    got = metrics.summary(problem, costs=C, decisions=X, true_costs=true)
    for metric in PER_INSTANCE[:6]:
        if metric is metrics.relative_suboptimality:  # needs projections of its own
            continue
        expected = metric(problem, costs=C, decisions=X).mean()
        assert got[metric.__name__] == pytest.approx(expected)
    sets = rv.OptimalitySet(problem, X)
    assert got["h"] == pytest.approx(0.5 * (rv.project(C, sets).distance ** 2).mean())
    given = {"costs": C, "decisions": X, "true_costs": true}
    assert got["estimate_loss"] == pytest.approx(metrics.estimate_loss(problem, **given).mean())
    assert got["relative_regret"] == metrics.relative_regret(problem, **given)
    assert "relative_regret" not in metrics.summary(problem, costs=C, decisions=X)
    empty = metrics.summary(problem, costs=C[:0], decisions=X[:0], true_costs=true[:0])
    assert all(np.isnan(value) for value in empty.values())


# --- bad input -----------------------------------------------------------------------------------


def test_costs_without_an_optimum_are_named():
    problem = rv.LinearProgram(A_eq=[[1.0, -1.0]], b_eq=[1.0])
    costs, X = np.array([[1.0, 1.0], [1.0, -2.0], [0.0, -1.0]]), np.array([[1.0, 0.0]] * 3)
    for metric in (metrics.decision_loss, metrics.accuracy, metrics.suboptimality):
        with pytest.raises(
            rv.InputError, match=r"predicted cost of instance 1 .*UNBOUNDED; 2 of 3"
        ):
            metric(problem, costs=costs, decisions=X)
    with pytest.raises(rv.InputError, match="true cost of instance 1"):
        metrics.estimate_loss(problem, costs=np.ones((3, 2)), true_costs=costs)


def test_decisions_that_are_not_optimal_are_refused_where_it_matters(grid):
    problem, paths, C, true, X = grid
    noisy = X.copy()
    noisy[4] = paths[(true[4] @ paths.T).argmax()]
    given = {"costs": C, "decisions": noisy, "true_costs": true}
    with pytest.raises(rv.InputError, match=r"Decision 4 .*\(1 of 12 .*decisions=None"):
        metrics.relative_regret(problem, **given)
    assert metrics.estimate_loss(problem, **given)[4] < 0


def test_other_bad_input_meets_a_sentence(grid):
    problem, _, C, true, X = grid
    sets = rv.OptimalitySet(problem, X, 0.5)
    refused = [
        (metrics.decision_loss, {"costs": C[0], "decisions": X}, "use `costs\\[None\\]`"),
        (metrics.decision_loss, {"costs": C, "decisions": X[:3]}, "12 costs and 3 decisions"),
        (metrics.suboptimality, {"costs": C, "decisions": sets}, "margin=None"),
        (metrics.in_set, {"costs": C, "decisions": X, "margin": -1.0}, "at least 0"),
        (metrics.accuracy, {"costs": C, "decisions": X, "draws": 5}, "even number"),
        (metrics.accuracy, {"costs": C, "decisions": X, "seed": -1}, "`seed` must be a whole"),
        (metrics.in_set, {"costs": C, "decisions": X, "tol": np.nan}, "`tol` must be a finite"),
        (metrics.accuracy, {"costs": C, "decisions": X + 1}, "breaks equality row"),
        (
            metrics.estimate_loss,
            {"costs": C, "decisions": X, "true_costs": true[:2]},
            "one row for each of the 12",
        ),
        (
            metrics.relative_regret,
            {"costs": C, "decisions": X, "true_costs": 0 * true},
            "other than 0",
        ),
        (metrics.relative_regret, {"costs": C[:0], "true_costs": C[:0]}, "other than 0"),
    ]
    for metric, given, complaint in refused:
        with pytest.raises(rv.InputError, match=complaint):
            metric(problem, **given)
    simplex = rv.LinearProgram(A_eq=np.ones((1, X.shape[1])), b_eq=[1.0])
    with pytest.raises(rv.ShapeError, match="another problem"):
        metrics.decision_loss(simplex, costs=C, decisions=sets)


def test_metrics_and_theory_leave_torch_alone():
    code = "import sys, revealed.metrics, revealed.theory; print('torch' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "False"


def test_beyond_linear_programs_only_what_makes_sense_is_measured():
    problem = rv.problems.portfolio(np.eye(3))
    C = np.array([[1.0, 2.5, 3.0], [0.2, 0.1, 0.0]])
    X = problem.solve(C).x
    given = {"costs": C[::-1].copy(), "decisions": X}
    swapped = ((X - X[::-1]) ** 2).sum(axis=1)
    np.testing.assert_allclose(metrics.decision_loss(problem, **given), swapped, atol=1e-8)
    np.testing.assert_array_equal(metrics.exact(problem, costs=C, decisions=X), [1.0, 1.0])
    np.testing.assert_array_equal(metrics.exact(problem, **given), [0.0, 0.0])
    inside = metrics.in_set(problem, costs=C, decisions=X, margin=0.0, tol=1e-6)
    np.testing.assert_array_equal(inside, [1.0, 1.0])
    for metric in (metrics.suboptimality, metrics.suboptimality_loss, metrics.accuracy):
        with pytest.raises(rv.InputError, match="needs a problem of such costs"):
            metric(problem, **given)
    for metric in (metrics.estimate_loss, metrics.relative_regret, metrics.optimal):
        with pytest.raises(rv.InputError, match="needs a problem of such costs"):
            metric(problem, **given, true_costs=C)


def test_sets_of_parameters_are_no_sets_of_costs(grid):
    problem, _, C, _, X = grid
    n = problem.n_variables
    sets = rv.OptimalitySet(problem, X, form=rv.CostForm(np.eye(n), np.ones(n)))
    with pytest.raises(rv.InputError, match=r"form\.costs"):
        metrics.decision_loss(problem, costs=C, decisions=sets)
