"""Scheduling: by hand, against brute force, as whole schedules; and the energy data."""

import itertools
import zipfile

import numpy as np
import pytest

import revealed as rv
from revealed.datasets.energy import PERIODS, load_energy, synthetic_energy
from revealed.errors import InputError, ShapeError
from revealed.problems.catalogue.schedules import (
    energy_per_start,
    integer_schedules,
    scheduling,
    start_times,
)

TASKS = {"duration": [2, 1], "earliest": [0, 1], "latest": [4, 4], "n_periods": 4}


def test_variables_are_the_starts_that_fit():
    problem = scheduling(**TASKS)
    assert problem.structure.task.tolist() == [0, 0, 0, 1, 1, 1]
    assert problem.structure.start.tolist() == [0, 1, 2, 1, 2, 3]
    energy = energy_per_start(problem, [3.0, 5.0], hours=0.5).toarray()
    np.testing.assert_array_equal(energy[1], [0, 1.5, 1.5, 0])  # task 0 starts in period 1
    np.testing.assert_array_equal(energy[5], [0, 0, 0, 2.5])


def test_tasks_run_when_it_is_cheap():
    problem = scheduling(**TASKS)
    prices = np.array([[4.0, 1.0, 1.0, 3.0], [0.0, 0.0, 9.0, -1.0]])
    schedule = problem.solve(prices @ energy_per_start(problem, [1.0, 1.0]).toarray().T).x
    np.testing.assert_array_equal(start_times(problem, schedule)[:, 0], [1, 0])
    assert start_times(problem, schedule)[1, 1] == 3


def test_capacity_keeps_tasks_apart_as_brute_force_does():
    shape = {"duration": [2, 2, 1], "earliest": [0, 0, 0], "latest": [5, 5, 5], "n_periods": 5}
    usage, room = np.array([2.0, 2.0, 1.0]), np.array([3.0, 3.0, 2.0, 3.0, 3.0])
    problem = scheduling(**shape, usage=usage, capacity=room)
    energy = energy_per_start(problem, [1.0, 2.0, 1.5])
    costs = np.random.default_rng(0).random((6, 5)) @ energy.toarray().T
    found = integer_schedules(problem, costs)
    pairs = zip(problem.structure.task, problem.structure.start, strict=True)
    table = {pair: k for k, pair in enumerate(pairs)}
    for cost, schedule in zip(costs, found, strict=True):
        best = np.inf
        for starts in itertools.product(range(4), range(4), range(5)):
            load = np.zeros(5)
            for task, start in enumerate(starts):
                load[start : start + shape["duration"][task]] += usage[task]
            if (load <= room).all():
                best = min(best, sum(cost[table[task, s]] for task, s in enumerate(starts)))
        assert cost @ schedule == pytest.approx(best)
        assert problem.constraint_violation(schedule[None])[0] < 1e-9
    relaxed = problem.solve(costs)
    assert (relaxed.objective <= (costs * found).sum(axis=1) + 1e-9).all()  # a lower bound


def test_a_start_costs_the_energy_of_its_run_at_its_prices():
    days = synthetic_energy(3, 4, seed=2)
    problem = days.tasks.problem()
    energy = days.tasks.energy(problem)
    k = problem.n_variables // 2
    task, start = problem.structure.task[k], problem.structure.start[k]
    run = slice(start, start + days.tasks.duration[task])
    own = energy[k] @ days.prices[1]
    assert own == pytest.approx(energy[k, start] * days.prices[1, run].sum())
    np.testing.assert_allclose(energy.sum(axis=1).mean(), 1.0)


@pytest.mark.parametrize("solver", ["lbfgs", "armijo"])
def test_prices_are_learned_from_schedules_alone(solver):
    days = synthetic_energy(60, 8, seed=1)
    problem = days.tasks.problem()
    energy = days.tasks.energy(problem)
    weights = np.array([-8.0, 15.0] + [0.0] * 6)  # the truth is in the model: wind, demand
    costs = (days.features @ weights) @ energy.T
    context = np.einsum("np,bpf->bnf", energy, days.features)
    shared = rv.fit.SharedModel(fit_intercept=False)
    model = rv.InverseRegressor(problem, model=shared, solver=solver, threads=1)
    model.fit(context[:40], problem.solve(costs[:40]).x)
    regret = rv.metrics.relative_regret(
        problem,
        costs=model.predict_cost(context[40:]),
        decisions=problem.solve(costs[40:]).x,
        true_costs=costs[40:] + 60,  # every task starts once: a constant moves no schedule
    )
    assert regret < 0.005


@pytest.mark.parametrize(
    "change, words",
    [
        ({"latest": [1, 4]}, "Task 0 must run"),
        ({"duration": [2, 0]}, "Task 1 must run"),
        ({"duration": [2.5, 1]}, "whole number"),
        ({"earliest": [0]}, "one entry for each task"),
        ({"usage": [1, 1]}, "belong together"),
        ({"usage": [1, 1], "capacity": 0.0}, "above 0"),
        ({"usage": [1], "capacity": 2.0}, "each of the 2 tasks"),
        ({"usage": [1, -1], "capacity": 2.0}, "must not be negative"),
        ({"duration": [np.inf, 1]}, "whole number"),
    ],
)
def test_impossible_tasks_are_refused(change, words):
    with pytest.raises((InputError, ShapeError), match=words):
        scheduling(**{**TASKS, **change})


def test_other_problems_have_no_schedules():
    with pytest.raises(InputError, match=r"rv\.problems\.scheduling"):
        start_times(rv.problems.knapsack([1.0, 2.0], 1.0), np.zeros((1, 2)))
    with pytest.raises(InputError, match=r"rv\.problems\.scheduling"):
        integer_schedules(rv.problems.knapsack([1.0, 2.0], 1.0), np.zeros((1, 2)))


def test_a_schedule_that_is_not_proved_best_is_refused(monkeypatch):
    import scipy.optimize

    whole = scipy.optimize.OptimizeResult(x=np.zeros(9), success=False, message="Time limit.")
    monkeypatch.setattr(scipy.optimize, "milp", lambda *args, **options: whole)
    problem = scheduling(**TASKS)
    with pytest.raises(InputError, match="proved best for row 0 of `costs`: Time limit"):
        integer_schedules(problem, np.zeros((1, problem.n_variables)), time_limit=1)


def test_days_and_tasks_are_counted():
    with pytest.raises(InputError, match="`n_days` must be a positive integer"):
        synthetic_energy(0)


# --- the files -----------------------------------------------------------------------------------

INSTANCE = (
    "30\n1\n2\n0 190 0.1 0.0\n55\n1 170 0.1 0.1\n45\n2\n0 3 4 20 40.5\n22\n1 15 20 48 23.4\n9\n"
)
COLUMNS = (
    "#DateTime Holiday HolidayFlag ForecastWindProduction SystemLoadEA SMPEA ORKTemperature "
    "ORKWindspeed CO2Intensity SMPEP2"
)


def write_files(folder, *, missing=()):
    """Three days in the layout of the ICON files; day 1 may lack a number."""
    (folder / "data").mkdir()
    (folder / "load6").mkdir()
    (folder / "load6" / "day01.txt").write_text(INSTANCE)
    rng, lines = np.random.default_rng(0), [COLUMNS]
    for day, half_hour in itertools.product(range(3), range(PERIODS)):
        numbers = [0, *rng.random(6).round(3), 10 * day + half_hour]
        if day in missing and half_hour == 5:
            numbers[4] = np.nan
        cells = map(str, numbers)
        lines.append(f'"tue {day + 1}/11/2011 00:00" "New Year\'s Eve" ' + " ".join(cells))
    (folder / "data" / "prices2013.dat").write_text("\n".join(lines) + "\n")


def test_the_icon_files_are_read(tmp_path):
    write_files(tmp_path, missing=(1,))
    days = load_energy(tmp_path)
    assert days.prices.shape == (2, PERIODS)
    assert days.n_left_out == 1
    np.testing.assert_array_equal(days.prices[:, 3], [3, 23])
    assert len(days.names) == days.features.shape[2] == 12
    np.testing.assert_allclose(days.features[:, :, :6].mean(axis=(0, 1)), 0, atol=1e-12)
    assert days.tasks.capacity == 100
    assert days.tasks.duration.tolist() == [3, 15]
    assert days.tasks.latest.tolist() == [20, 48]
    assert days.tasks.usage.tolist() == [22, 9]
    assert days.tasks.power.tolist() == [40.5, 23.4]


def test_an_archive_is_read_like_its_contents(tmp_path):
    source, packed = tmp_path / "plain", tmp_path / "packed"
    source.mkdir()
    packed.mkdir()
    write_files(source)
    with zipfile.ZipFile(packed / "ICON_data.zip", "w") as archive:
        for name in ("data/prices2013.dat", "load6/day01.txt"):
            archive.write(source / name, name)
    np.testing.assert_array_equal(load_energy(packed).features, load_energy(source).features)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"prices2013\.dat is missing"):
        load_energy(tmp_path)


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("load6/day01.txt", "thirty\n", r"day01\.txt is not laid out"),
        ("load6/day01.txt", "30\n1\n", r"day01\.txt is not laid out"),
        ("data/prices2013.dat", "", r"prices2013\.dat is not laid out"),
        ("data/prices2013.dat", "#DateTime Holiday SMPEA\n", "a column ForecastWindProduction"),
    ],
)
def test_files_that_are_not_the_challenges_meet_a_sentence(tmp_path, name, text, words):
    write_files(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        load_energy(tmp_path)
