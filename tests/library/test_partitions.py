"""Fits to partitions: the same coefficients on every executor, from whatever they are read."""

from __future__ import annotations

import time
from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.fit import LBFGS, POCS
from revealed.fit.bound import lower_bound
from revealed.fit.draws import Draws, Place
from revealed.fit.evaluation import DistanceLoss, Evaluator
from revealed.fit.partitioned import Threads, share
from revealed.fit.partitioned.compact import Block, Frame, Shelf, pack, unpack
from revealed.fit.partitioned.executors import one_thread
from revealed.fit.partitioned.watching import Outlook, duration

pq = pytest.importorskip("pyarrow.parquet")
pa = pytest.importorskip("pyarrow")

SIZE = 600
GRID = rv.problems.grid_shortest_path(3, 3, directed="right-down")
N = GRID.n_variables
FEATURES = ["rain", "hour"]
VARIABLES = [f"x{k}" for k in range(N)]


def samples(size: int = SIZE, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Contexts and the decisions of a hidden linear rule."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((size, len(FEATURES)))
    W = np.random.default_rng(99).standard_normal((len(FEATURES), N))
    return Z, np.asarray(GRID.solve(4.0 + Z @ W + rng.standard_normal((size, N))).x)


def estimator(**settings: Any) -> rv.InverseRegressor:
    return rv.InverseRegressor(GRID, **({"ridge": 0.01, "random_state": 0} | settings))


def write_days(folder: Path, Z: np.ndarray, X: np.ndarray, days: int = 3, **more: Any) -> str:
    """Contexts and decisions side by side, a few files of two row groups each."""
    for k, rows in enumerate(np.array_split(np.arange(len(Z)), days)):
        columns = {name: Z[rows, j] for j, name in enumerate(FEATURES)}
        columns |= {name: X[rows, j] for j, name in enumerate(VARIABLES)}
        columns |= {name: values[rows] for name, values in more.items()}
        table = pa.table(columns)
        pq.write_table(table, folder / f"day{k}.parquet", row_group_size=-(-len(rows) // 2))
    return str(folder / "day*.parquet")


def in_files(days: str, **settings: Any) -> rv.datasets.Partitions:
    named = {"features": FEATURES, "variables": VARIABLES} | settings
    return rv.datasets.Partitions.from_parquet(GRID, days, days, **named)


# --- the same minimum -----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [{}, {"noise": 0.0}], ids=str)
def test_a_fit_to_partitions_has_the_minimum_of_the_fit_in_memory(loss):
    Z, X = samples()
    tight = {"solver": LBFGS(tol=1e-10)} | loss
    whole = estimator(**tight).fit(Z, X)
    data = rv.datasets.Partitions.from_arrays(GRID, Z, X, partitions=4)
    parts = estimator(**tight).fit(data)
    assert parts.loss_ == whole.loss_
    assert parts.certificate_.converged
    assert (
        abs(parts.certificate_.value - whole.certificate_.value) < 1e-9 * whole.certificate_.value
    )
    scale = np.abs(whole.coef_).max()
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=2e-5 * scale)


@pytest.mark.parametrize(
    "run", [{"workers": 1}, {"workers": 3}, {"executor": "processes"}], ids=str
)
@pytest.mark.parametrize("solver", [LBFGS(tol=1e-5), POCS(max_iter=5)], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_who_holds_the_partitions_does_not_change_a_bit(solver, run):
    Z, X = samples()
    data = rv.datasets.Partitions.from_arrays(GRID, Z, X, partitions=5)
    first = estimator(solver=solver).fit(data, run=rv.Run(workers=2))
    run = {"workers": 2} | run
    again = estimator(solver=solver).fit(data, run=rv.Run(**run))
    np.testing.assert_array_equal(again.coef_, first.coef_)
    np.testing.assert_array_equal(again.intercept_, first.intercept_)


def test_threads_that_share_a_partition_do_not_change_a_bit(monkeypatch):
    Z, X = samples()
    data = rv.datasets.Partitions.from_arrays(GRID, Z, X, partitions=2)
    monkeypatch.setattr("revealed.fit.partitioned.share.CHUNK", 16)
    stretches: list[int] = []
    in_order = share.in_order

    def counted(work, items, threads):
        items = list(items)
        stretches.append(len(items))
        return in_order(work, items, threads)

    monkeypatch.setattr(share, "in_order", counted)
    alone = estimator().fit(data, run=rv.Run(workers=1, threads=1))
    for threads in (2, 3, 7):
        again = estimator().fit(data, run=rv.Run(workers=1, threads=threads))
        np.testing.assert_array_equal(again.coef_, alone.coef_)
        assert again.certificate_.value == alone.certificate_.value
        assert again.certificate_.lower_bound == alone.certificate_.lower_bound
    assert min(stretches) >= 4
    whole = estimator(solver=LBFGS(tol=1e-10)).fit(Z, X)
    np.testing.assert_allclose(alone.coef_, whole.coef_, atol=2e-2 * np.abs(whole.coef_).max())


@pytest.mark.parametrize(
    "run, partitions, expected",
    [
        ({"workers": 8}, 64, (8, 1)),
        ({"workers": 8}, 3, (3, 2)),
        ({"workers": 8}, 1, (1, 8)),
        ({"workers": 8, "threads": 3}, 5, (5, 3)),
    ],
)
def test_cores_that_have_no_partition_help_with_others(run, partitions, expected):
    executor = rv.Run(**run).start(partitions)
    assert (executor.workers, executor.threads) == expected
    executor.close()


def test_answers_come_in_the_order_of_what_was_asked():
    rng = np.random.default_rng(0)
    waits = rng.uniform(0, 0.01, 40).tolist()

    def late(item):
        time.sleep(waits[item])
        return item

    assert list(share.in_order(late, range(40), 5)) == list(range(40))


def test_linear_algebra_has_its_threads_back_when_the_last_one_is_done():
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads() -> set[int]:
        return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        before = threads()  # a library may have been held at one thread by somebody else
        assert 2 in before
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == before


def test_the_certificate_of_pocs_counts_all_samples():
    Z, X = samples()
    data = rv.datasets.Partitions.from_arrays(GRID, Z, X, partitions=3)
    solver = POCS(max_iter=20)
    with pytest.warns(UserWarning, match="Not converged"):
        whole = estimator(solver=solver, ridge=0.0).fit(Z, X).certificate_
    with pytest.warns(UserWarning, match="Not converged"):
        parts = estimator(solver=solver, ridge=0.0).fit(data).certificate_
    for name in ("h", "mean_distance", "max_distance", "set_distance"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-7)
    assert (parts.inside, parts.samples) == (whole.inside, SIZE)


def test_weights_count_as_in_memory():
    Z, X = samples()
    weights = np.random.default_rng(1).integers(0, 4, SIZE).astype(float)
    exact = {"noise": 0.0, "solver": LBFGS(tol=1e-10)}
    whole = estimator(**exact).fit(Z, X, sample_weight=weights)
    data = rv.datasets.Partitions.from_arrays(GRID, Z, X, sample_weight=weights, partitions=3)
    parts = estimator(**exact).fit(data)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=2e-5 * np.abs(whole.coef_).max())


def test_features_of_entries_are_fitted_from_partitions_too():
    _, X = samples()
    entries = np.random.default_rng(2).standard_normal((N, 3))
    exact = {"noise": 0.0, "solver": LBFGS(tol=1e-10), "model": "shared"}
    whole = estimator(**exact).fit(entries, X)
    data = rv.datasets.Partitions.from_arrays(
        GRID, np.zeros((SIZE, 1)), X, partitions=3, entry_features=entries
    )
    parts = estimator(**exact).fit(data)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=2e-5 * np.abs(whole.coef_).max())
    np.testing.assert_array_equal(parts.predict(entries), whole.predict(entries))


# --- what is proved -------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [2, "huber", 1], ids=str)
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_bound_from_sums_alone_is_below_the_minimum(power, noise, monkeypatch):
    Z, X = samples(200)
    sets = rv.OptimalitySet(GRID, X)
    loss = DistanceLoss(power=power, noise=noise, delta=1.0, draws=2)
    model = rv.fit.LinearModel(ridge=0.05)
    features = model.prepare(Z, N)
    rv.fit.lbfgs(model, Z, sets, loss=loss, tol=1e-9, max_iter=300, features=features)
    evaluator = Evaluator(sets, replace_rounded(loss))
    monkeypatch.setattr(Evaluator, "keeps_duals", False)
    least, x = np.inf, model.point
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-4):
        model.move_to(x + size * rng.standard_normal(len(x)))
        value = evaluator(model, features).h + model.penalty()
        bound, _ = lower_bound(model, features, evaluator, value, *model.gradient())
        model.move_to(x)
        least = evaluator.look(model, features).h + model.penalty()
        assert bound <= least * (1 + 1e-7)
    if power != 1:
        assert bound > 0.999 * least


def replace_rounded(loss: DistanceLoss) -> DistanceLoss:
    """The loss as L-BFGS minimizes it: with the kink of the plain distance off."""
    from dataclasses import replace

    from revealed.projection.distance import ROUNDED

    return replace(loss, power=ROUNDED, delta=0.01) if loss.power == 1 else loss


# --- compact samples ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3, 4, 40])
def test_packed_states_come_back(n):
    codes = np.random.default_rng(0).integers(0, 4, (17, n)).astype(np.int8)
    packed = pack(codes)
    assert packed.shape == (17, -(-n // 4))
    np.testing.assert_array_equal(unpack(packed, n), codes)


def test_compact_sets_are_those_of_the_decisions():
    knapsack = rv.problems.knapsack(np.arange(1.0, 6.0), 6.0)
    rng = np.random.default_rng(0)
    X = np.asarray(knapsack.solve(-rng.random((30, knapsack.n_variables))).x)
    sets = rv.OptimalitySet(knapsack, X)
    block = Block.of(sets, rng.standard_normal((30, 2)), None)
    again = Frame(knapsack, 1.0, sets.tol, sets.row_used, 1.0).sets(block)
    np.testing.assert_array_equal(again.entry_state, sets.entry_state)
    np.testing.assert_array_equal(again.row_active, sets.row_active)
    costs = rng.standard_normal((30, knapsack.n_variables))
    np.testing.assert_array_equal(rv.project(costs, again).point, rv.project(costs, sets).point)


def test_blocks_beyond_the_budget_go_to_files(tmp_path):
    Z, X = samples(100)
    block = Block.of(rv.OptimalitySet(GRID, X), Z, np.arange(1.0, 101.0))
    shelf = Shelf(block.nbytes, tmp_path)
    shelf.add(block)
    shelf.add(block)
    assert (shelf.in_memory, shelf.on_disk) == (block.nbytes, block.nbytes)
    for name in ("states", "active", "Z", "weights"):
        np.testing.assert_array_equal(getattr(shelf[1], name), getattr(block, name))
    del shelf
    assert not list(tmp_path.iterdir())


def test_draws_follow_from_the_place_of_a_sample(monkeypatch):
    monkeypatch.setattr("revealed.fit.draws.KEPT", 0)
    options: dict[str, Any] = {"noise": 2.0, "pairs": 2, "seed": 5, "n": 3}
    whole = Draws(size=5000, **options)
    part = Draws(size=2500, place=Place(1700, 5000), **options)
    np.testing.assert_array_equal(part.of(slice(100, 2400)), whole.of(slice(1800, 4100)))
    index = np.array([2, 0, 2499])
    pair = np.array([0, 1, 1])
    np.testing.assert_array_equal(part.some(pair, index), whole.some(pair, index + 1700))


# --- Parquet --------------------------------------------------------------------------------------


def test_files_give_what_the_arrays_give(tmp_path):
    Z, X = samples()
    data = in_files(write_days(tmp_path, Z, X), partitions=4)
    assert len(data) == SIZE
    fit = estimator().fit(data)
    arrays = rv.datasets.Partitions.from_arrays(GRID, Z, X, partitions=4)
    assert list(fit.feature_names_in_) == FEATURES
    # Row groups end elsewhere than partitions of arrays, so sums are rounded in another order.
    coef = estimator().fit(arrays).coef_
    np.testing.assert_allclose(fit.coef_, coef, atol=1e-9 * np.abs(coef).max())


def test_a_budget_of_memory_changes_nothing_but_where_samples_are(tmp_path, monkeypatch):
    Z, X = samples()
    data = in_files(write_days(tmp_path, Z, X))
    free = estimator().fit(data)
    monkeypatch.setattr("revealed.fit.partitioned.fitting.share_budget", lambda *_: 0.0)
    tight = estimator().fit(data, run=rv.Run(memory="8GB", scratch=tmp_path))
    assert tight.partitions_report_["bytes_in_memory"] == 0
    assert tight.partitions_report_["bytes_on_disk"] > 0
    np.testing.assert_array_equal(tight.coef_, free.coef_)


def test_long_decisions_are_those_of_the_columns(tmp_path):
    Z, X = samples()
    ids = np.random.default_rng(3).permutation(SIZE)
    days = write_days(tmp_path, Z, X, id=ids)
    rows, entries = np.nonzero(X)
    (tmp_path / "long").mkdir()
    for k, part in enumerate(np.array_split(np.arange(SIZE), 3)):
        mine = np.flatnonzero(np.isin(rows, part))
        mine = np.random.default_rng(k).permutation(mine)
        table = {"id": ids[rows[mine]], "link": entries[mine], "used": X[rows, entries][mine]}
        pq.write_table(pa.table(table), tmp_path / "long" / f"{k}.parquet")
    data = rv.datasets.Partitions.from_parquet(
        GRID, days, tmp_path / "long", features=FEATURES, ids="id", long=("id", "link", "used")
    )
    X_read = np.concatenate([s.X for piece in sum(data.partitions, ()) for s in data.read(piece)])
    np.testing.assert_array_equal(X_read, X)


def test_limits_of_each_row_decide_what_binds(tmp_path):
    rng = np.random.default_rng(0)
    box = rv.LinearProgram(A_ub=np.ones((1, 3)), b_ub=[2.0], lb=0.0, ub=1.0)
    caps = rng.uniform(0.5, 2.5, (80, 1))
    own = rv.LinearProgram(A_ub=np.ones((1, 3)), b_ub=caps, lb=0.0, ub=1.0)
    Z = rng.standard_normal((80, 2))
    X = np.asarray(own.solve(Z @ rng.standard_normal((2, 3)) - 0.3).x)
    columns = {"a": Z[:, 0], "b": Z[:, 1], "cap": caps[:, 0]}
    columns |= {f"x{k}": X[:, k] for k in range(3)}
    pq.write_table(pa.table(columns), tmp_path / "all.parquet")
    path = tmp_path / "all.parquet"
    data = rv.datasets.Partitions.from_parquet(
        box, path, path, features=["a", "b"], variables=["x0", "x1", "x2"], limits={"b_ub": ["cap"]}
    )
    exact = {"ridge": 0.01, "noise": 0.0, "solver": LBFGS(tol=1e-10)}
    parts = rv.InverseRegressor(box, **exact).fit(data)
    whole = rv.InverseRegressor(own, **exact).fit(Z, X)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-5 * np.abs(whole.coef_).max())


def test_paths_have_ends_of_their_own(tmp_path):
    rng = np.random.default_rng(0)
    tails, heads = GRID.structure.tails, GRID.structure.heads
    edges = np.concatenate([np.column_stack([tails, heads]), np.column_stack([heads, tails])])
    ends = np.array([rng.choice(9, 2, replace=False) for _ in range(120)])
    city = rv.problems.shortest_path(edges, source=0, target=8)
    own = rv.problems.shortest_path(edges, source=ends[:, 0], target=ends[:, 1])
    features = np.column_stack([rng.uniform(1, 2, 24), rng.random(24)])
    X = np.asarray(own.solve(features @ [1.0, 2.0] + 0.3 * rng.random((120, 24))).x)
    rows, links = np.nonzero(X)
    trips = {"trip": np.arange(120), "from": ends[:, 0], "to": ends[:, 1], "hour": np.zeros(120)}
    pq.write_table(pa.table(trips), tmp_path / "trips.parquet")
    used = {"trip": rows, "link": links, "used": np.ones(len(rows))}
    pq.write_table(pa.table(used), tmp_path / "links.parquet")
    data = rv.datasets.Partitions.from_parquet(
        city,
        tmp_path / "trips.parquet",
        tmp_path / "links.parquet",
        features=["hour"],
        ids="trip",
        long=("trip", "link", "used"),
        ends=("from", "to"),
        entry_features=features,
    )
    exact = {"ridge": 0.01, "noise": 0.0, "solver": LBFGS(tol=1e-10), "model": "shared"}
    parts = rv.InverseRegressor(city, **exact).fit(data)
    whole = rv.InverseRegressor(own, **exact).fit(features, X)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=2e-5 * np.abs(whole.coef_).max())


# --- what goes wrong ------------------------------------------------------------------------------


def corrupt(file: Path, row_group: int) -> None:
    """Overwrite the data of a row group; the file still opens."""
    column = pq.ParquetFile(file).metadata.row_group(row_group).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    content = bytearray(file.read_bytes())
    content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    file.write_bytes(content)


def test_a_corrupt_row_group_is_named_or_skipped(tmp_path):
    Z, X = samples()
    days = write_days(tmp_path, Z, X)
    corrupt(tmp_path / "day1.parquet", 1)
    with pytest.raises(rv.PartitionError, match=r"day1\.parquet, row group 1 cannot be read"):
        estimator().fit(in_files(days))
    with pytest.warns(UserWarning, match=r"1 parts of the data were skipped: .*row group 1"):
        fit = estimator().fit(in_files(days, bad="skip"))
    assert fit.partitions_report_["samples"] == SIZE - 100
    kept = np.r_[0:300, 400:SIZE]
    arrays = rv.datasets.Partitions.from_arrays(GRID, Z[kept], X[kept])
    again = estimator().fit(arrays)
    np.testing.assert_allclose(fit.coef_, again.coef_, atol=1e-2 * np.abs(again.coef_).max())


def test_a_missing_or_broken_file_is_named_or_skipped(tmp_path):
    Z, X = samples()
    days = write_days(tmp_path, Z, X)
    data = in_files(days)
    (tmp_path / "day2.parquet").unlink()
    with pytest.raises(rv.PartitionError, match=r"day2\.parquet: there is no such file"):
        estimator().fit(data)
    (tmp_path / "day2.parquet").write_bytes(b"nothing")
    with pytest.raises(rv.PartitionError, match=r"day2\.parquet cannot be read"):
        in_files(days)
    data = in_files(days, bad="skip")
    assert len(data) == 400
    assert "day2" in data.skipped[0]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda d: in_files(d, features=["snow"]), "no column 'snow'"),
        (lambda d: in_files(d, variables=VARIABLES[:3]), "for each of the 12 variables; got 3"),
        (lambda d: in_files(d, variables=None), "give `variables`"),
        (lambda d: in_files(d + "x"), "no Parquet file is at"),
        (lambda d: in_files(d, bad="maybe"), "'refuse' or 'skip'"),
        (lambda d: estimator().fit(in_files(d), run=rv.Run(memory="10MB")), "too little"),
        (lambda d: rv.Run(memory="much"), "like '2GB'"),
        (lambda d: estimator().fit(in_files(d), run=rv.Run(executor="gpu")), "a Dask scheduler"),
        (lambda d: estimator(solver="adam", ridge=0.0).fit(in_files(d)), "'lbfgs' or 'pocs'"),
        (lambda d: estimator(model="auto").fit(in_files(d)), "name the model"),
        (lambda d: estimator().fit(np.zeros((3, 2)), np.zeros((3, N)), run=rv.Run()), "`run` is"),
    ],
)
def test_bad_calls_are_refused_in_a_sentence(tmp_path, call, message):
    days = write_days(tmp_path, *samples(60))
    with pytest.raises(rv.InputError, match=message):
        call(days)


def test_decisions_that_break_their_constraints_are_named_by_file(tmp_path):
    Z, X = samples(60)
    X[50] = 0.0
    days = write_days(tmp_path, Z, X)
    with pytest.raises(rv.InfeasibleDecisionError, match=r"day2\.parquet, row group 1: Decision 0"):
        estimator().fit(in_files(days))
    fit = estimator(infeasible="skip").fit(in_files(days))
    assert fit.partitions_report_["samples"] == 59
    assert "1 decisions break their constraints" in fit.decision_report_
    fit = estimator(infeasible="repair").fit(in_files(days))
    assert fit.partitions_report_["samples"] == 60
    assert "1 decisions broke their constraints and were moved" in fit.decision_report_


def test_a_day_of_which_every_decision_breaks_its_constraints_can_be_skipped(tmp_path):
    Z, X = samples(60)
    X[20:40] = 0.0
    days = write_days(tmp_path, Z, X)
    fit = estimator(infeasible="skip").fit(in_files(days))
    assert fit.partitions_report_["samples"] == 40
    assert "20 decisions break their constraints" in fit.decision_report_


def test_a_full_disk_is_told_in_a_sentence(tmp_path, monkeypatch):
    Z, X = samples(60)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("revealed.fit.partitioned.fitting.share_budget", lambda *_: 0.0)
    monkeypatch.setattr("tempfile.mkdtemp", full)
    data = rv.datasets.Partitions.from_arrays(GRID, Z, X)
    with pytest.raises(rv.InputError, match="No space left on device"):
        estimator().fit(data, run=rv.Run(memory="9GB", scratch=tmp_path))


# --- killed and resumed ---------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("loss", [{}, {"noise": 0.0, "loss": "distance"}], ids=str)
def test_a_fit_killed_again_and_again_ends_at_the_same_coefficients(tmp_path, monkeypatch, loss):
    Z, X = samples(300)
    data = rv.datasets.Partitions.from_arrays(GRID, Z, X, partitions=3)
    settings = {"solver": LBFGS(tol=1e-5)} | loss
    whole = estimator(**settings).fit(data)
    ask, rng, kills = Threads.ask, np.random.default_rng(0), []

    def ask_until(self, *question, left):
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return ask(self, *question)

    run = rv.Run(checkpoint=tmp_path / "checkpoints", checkpoint_every=0)
    while len(kills) < 6:
        left = [int(rng.integers(2, 5))]
        monkeypatch.setattr(Threads, "ask", partialmethod(ask_until, left=left))
        try:
            again = estimator(**settings).fit(data, run=run)
            break
        except Killed:
            kills.append(left)
    monkeypatch.setattr(Threads, "ask", ask)
    again = estimator(**settings).fit(data, run=run)
    assert len(kills) >= 2
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    np.testing.assert_array_equal(again.history_["loss"], whole.history_["loss"])
    assert again.certificate_.value == whole.certificate_.value


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    Z, X = samples(100)
    run = rv.Run(checkpoint=tmp_path, checkpoint_every=0)
    estimator().fit(rv.datasets.Partitions.from_arrays(GRID, Z, X), run=run)
    with pytest.raises(rv.InputError, match="of another run; these differ: sources"):
        estimator().fit(rv.datasets.Partitions.from_arrays(GRID, Z + 1.0, X), run=run)


# --- progress -------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_every_partition_is_told_when_it_is_done(executor, monkeypatch):
    Z, X = samples(200)
    data = rv.datasets.Partitions.from_arrays(GRID, Z, X, partitions=4)
    told: list[tuple[str, dict[int, int], list[int]]] = []

    def begin(self, what, sizes):
        told.append((what, sizes, []))
        return told[-1][2].append

    monkeypatch.setattr("revealed.fit.partitioned.watching.Watch.begin", begin)
    fit = estimator().fit(data, run=rv.Run(executor=executor, workers=2))
    assert told[0][0] == "Reading"
    for _, sizes, done in told:
        assert {*done} == {*sizes}
        assert sum(sizes.values()) == 200
    assert len(told) == fit.partitions_report_["passes"] + 1
    assert {what.rstrip(" 0123456789") for what, _, _ in told[1:]} == {"Pass", "Proof"}


def test_each_step_is_a_line_where_there_is_no_terminal(capsys):
    Z, X = samples()
    data = rv.datasets.Partitions.from_arrays(GRID, Z, X, partitions=2)
    estimator(verbose=True, solver=LBFGS(tol=1e-9)).fit(data)
    first, *steps = capsys.readouterr().err.splitlines()
    assert first.startswith("Read 600 samples in")
    assert steps[0].startswith("L-BFGS 0: h ")
    for line in steps:
        assert "samples a second" in line
        assert line.endswith(" MB")
    assert any("gap about" in line for line in steps)


def test_the_time_left_follows_from_how_fast_the_gap_falls():
    outlook = Outlook("L-BFGS", 500, 1e-4)
    aim = {"proof_at": 1e-5}
    outlook.add({"iteration": 0, "h": 2.0}, 0.0)
    assert outlook.words == "h 2"
    outlook.add({"iteration": 1, "h": 1.9, "expected_gap": 1e-1} | aim, 60.0)
    assert "left" not in outlook.words
    outlook.add({"iteration": 2, "h": 1.9, "expected_gap": 1e-2, "gap": 5e-2} | aim, 120.0)
    # Three more orders of magnitude, a minute each, and the proof.
    words = "about 6 min left, h 1.9, gap about 1e-02, proved 5e-02 (asked 1e-04)"
    assert outlook.words == words
    assert outlook.share == pytest.approx(1 / 4)
    outlook.add({"iteration": 3, "h": 1.9, "expected_gap": 1e-5} | aim, 180.0)
    assert outlook.words.startswith("about 3 min left")
    assert outlook.share == 1.0
    capped = Outlook("L-BFGS", 3, 1e-12)
    for k, gap in enumerate((1e-1, 9e-2)):
        row = {"iteration": k, "h": 1.0, "expected_gap": gap, "proof_at": 1e-13}
        capped.add(row, 10.0 * k)
    assert capped.words.startswith("about 50 s left")  # no more steps than are allowed
    pocs = Outlook("POCS", 10)
    for k in range(3):
        pocs.add({"iteration": k, "h": 1.0}, 5.0 * k)
    assert (pocs.words, pocs.share) == ("at most 40 s left, h 1", 0.2)
    assert (duration(0.2), duration(5400), duration(12_000)) == ("1 s", "1 h 30 min", "3 h 20 min")


# --- batches for torch ----------------------------------------------------------------------------


def test_processes_share_the_samples_between_them():
    Z, X = samples(200)
    Z[:, 0] = np.arange(200)
    data = rv.datasets.Partitions.from_arrays(GRID, Z, X, partitions=5)
    seen = []
    for rank in range(2):
        batches = rv.fit.PartitionBatches(data, batch_size=16, rank=rank, ranks=2)
        both = [list(batches.epoch(epoch)) for epoch in (0, 1, 0)]
        assert [len(one) for one in both] == [len(batches)] * 3
        first, second, again = (np.concatenate([z[:, 0] for z, _ in one]) for one in both)
        np.testing.assert_array_equal(first, again)
        assert (first != second).any()
        seen.append(first)
        z, sets = both[0][0]
        own = rv.OptimalitySet(GRID, X[z[:, 0].astype(int)])
        np.testing.assert_array_equal(sets.entry_state, own.entry_state)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(200))
    with pytest.raises(rv.InputError, match="a partition for each process"):
        rv.fit.PartitionBatches(data, ranks=6)


def test_another_number_of_processes_resumes_a_training(tmp_path):
    import subprocess
    import sys

    pytest.importorskip("torch")
    problem = rv.problems.grid_shortest_path(3, 3, directed="right-down")
    Z, X = samples(600)
    columns = {f"z{k + 1}": Z[:, k] for k in range(2)}
    columns |= {f"x{k + 1}": X[:, k] for k in range(problem.n_variables)}
    pq.write_table(pa.table(columns), tmp_path / "days.parquet", row_group_size=100)
    script = Path(__file__).resolve().parents[2] / "examples/train_partitions.py"
    worker = (
        tmp_path / "worker.py"
    )  # ends before Gloo's threads can abort it (test_examples.WORKER)
    worker.write_text(
        "import os, runpy, sys\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')\n"
        "sys.stdout.flush()\nos._exit(0)\n"
    )
    words = [str(worker), str(tmp_path / "days.parquet"), "--grid", "3", "--features", "2"]
    words += ["--checkpoint", str(tmp_path / "state.pt"), "--epochs"]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    told = ""
    for launch, epochs in (([*launcher, "2"], "2"), ([*launcher, "3"], "4"), ([], "5")):
        command = [sys.executable, *launch, *words, epochs]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        told += done.stdout
    lines = told.strip().splitlines()
    kept = [line.partition(":")[0] for line in lines]
    assert kept == [f"epoch {k}, {ranks} processes" for k, ranks in enumerate((2, 2, 3, 3, 1))]
    losses = [float(line.rpartition(" ")[2]) for line in lines]
    assert losses[1] < losses[0]
    assert max(losses[2:]) < losses[1]  # a network that began anew would be at losses[0] again
