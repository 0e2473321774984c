"""Whole decisions: files of MIPLIB with bounds from both sides, and small programs against lists.

    python experiments/scripts/integer_programs.py MIPLIB_DIR --json FILE
    python experiments/scripts/integer_programs.py MIPLIB_DIR --programs 500 --first 1000

Files: each is read, solved, and its objective compared with that of HiGHS reading the same file;
then the file's own cost, with noise, is projected onto the set of its solution within `--seconds`.
Small programs (`tests/library/listed_programs.py`): knapsacks, set covers, assignments with a side
constraint, tours of six nodes, general integers, routes of five customers. Every feasible decision
is listed, so the projection is known from Clarabel over all of them. The same programs are then
projected with a budget of one and two questions, and with functions that lie, raise or stop early
in place of the oracle. Last, questions per projection, cold and warm. The exit code is 1 if an
objective differs, a projection is off, a lower bound is above the distance, or anything false is
called solved.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import revealed as rv
from revealed.cli.commands.options import number, positive
from revealed.importers import read_mps
from revealed.problems.solution import SolveStatus
from revealed_experiments.bench.integer.data import draw
from revealed_experiments.bench.record import surroundings, write_json

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/library"))
from listed_programs import KINDS, is_member, listed, nearest_by_list

AGREE = 1e-6
NOISE = 0.1
"""Of the largest entry of a file's cost."""


def reference(path: Path) -> float:
    """HiGHS's objective, with HiGHS's own reader."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.readModel(str(path))
    highs.run()
    return highs.getInfo().objective_function_value


def on_file(path: Path, seconds: float) -> dict[str, Any]:
    """Read, solve, project."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rv.importers.RelaxationWarning)
        model = read_mps(path)
    problem = model.integer_problem
    assert model.cost is not None
    before = time.process_time()
    found = problem.solve(model.cost[None], threads=1)
    used = time.process_time() - before
    mine, theirs = float(found.objective[0]) + model.constant, reference(path)
    size = np.abs(model.cost).max()
    q = model.cost + NOISE * size * np.random.default_rng(0).normal(size=model.cost.shape)
    # A margin in the unit of the cost; what no distance separates cannot have one.
    sets = rv.OptimalitySet(problem, problem.rounded(found.x), NOISE * size, tol=1e-6)
    rv.project(q[None], sets, max_iter=1, time_limit=60)  # compiles
    begun = time.perf_counter()
    near: Any = rv.project(q[None], sets, time_limit=seconds, threads=1)
    return {
        "file": path.name.partition(".")[0],
        "variables": problem.n_variables,
        "whole": int(problem.integer.sum()),
        "proved": bool(found.status[0] == SolveStatus.OPTIMAL),
        "objective": mine,
        "highs": theirs,
        "agree": abs(mine - theirs) <= AGREE * (1.0 + abs(theirs)),
        "solve_cpu_s": used,
        "lower": float(near.lower_bound[0] / size),
        "upper": float(near.distance[0] / size),
        "solved": bool(near.solved[0]),
        "status": rv.ProjectionStatus(int(near.status[0])).name,
        "calls": int(near.calls[0]) + 1,
        "project_s": time.perf_counter() - begun,
    }


def on_programs(count: int, first: int) -> dict[str, Any]:
    """Exact, budgeted and misled projections of small programs, `count` in all."""
    tally = {"programs": 0, "projections": 0, "not_solved": 0, "off": 0, "worst": 0.0}
    tally |= {"budgeted": 0, "bound_above": 0, "outside": 0, "misled": 0, "false_solved": 0}
    for k in range(count):
        kind, seed = KINDS[k % len(KINDS)], first + k // len(KINDS)
        problem, points = listed(kind, seed)
        rng = np.random.default_rng([7, k])
        margin = float(rng.choice([0.0, 0.5, 1.0]))
        sign = -1.0 if kind == "knapsack" else 1.0
        true = sign * rng.uniform(0.2, 1.0, (2, problem.n_variables))
        true = rng.normal(size=true.shape) if kind == "general" else true
        X = points[(true @ points.T).argmin(axis=1)]
        q = true + rng.normal(size=true.shape)
        nearest = [
            nearest_by_list(problem, *pair, points, margin) for pair in zip(q, X, strict=True)
        ]
        tally["programs"] += 1
        for budget in (1, 2):
            fresh = problem.replaced(_cache={})
            near = rv.project(q, rv.OptimalitySet(fresh, X, margin), max_iter=budget)
            _count(tally, "budgeted", problem, near, nearest, q, X, points, margin)
        near = rv.project(q, rv.OptimalitySet(problem, X, margin))
        for b in range(len(q)):
            off = float(np.abs(near.point[b] - nearest[b]).max())
            tally["projections"] += 1
            tally["not_solved"] += int(not near.solved[b])
            tally["off"] += int(off > AGREE)
            tally["worst"] = max(tally["worst"], off)
        known = {bytes(x) for x in points}
        for liar in liars(points, rng):
            own = rv.OracleProblem(
                liar,
                problem.n_variables,
                lb=problem.lb,
                ub=problem.ub,
                feasible=lambda x, known=known: bytes(x) in known,
                on_error="fail",
            )
            near = rv.project(q, rv.OptimalitySet(own, X, margin))
            _count(tally, "misled", problem, near, nearest, q, X, points, margin)
    return tally


def _count(
    tally: dict[str, Any], name: str, problem: Any, near: Any, nearest: Any, q: Any, X: Any,
    points: Any, margin: float,
) -> None:  # fmt: skip
    for b in range(len(q)):
        tally[name] += 1
        truth = float(np.linalg.norm(nearest[b] - q[b]))
        above = near.lower_bound[b] > truth + AGREE or near.lower_bound[b] > near.distance[b]
        tally["bound_above"] += int(above)
        wrong = np.abs(near.point[b] - nearest[b]).max() > AGREE
        tally["false_solved"] += int(bool(near.solved[b]) and bool(wrong))
        inside = is_member(problem, near.point[b], X[b], points, margin, 1e-8)
        # A function that lies may be believed about costs, never about being solved.
        tally["outside"] += int(name == "budgeted" and not inside)


def liars(points: np.ndarray, rng: np.random.Generator) -> list[Any]:
    """Functions that do not return the cheapest decision, or not always."""

    def the_same(cost: np.ndarray) -> Any:
        return points[len(points) // 2]

    def second_best(cost: np.ndarray) -> Any:
        return points[np.argsort(points @ cost)[min(1, len(points) - 1)]]

    def of_other_costs(cost: np.ndarray) -> Any:
        return points[(points @ (cost + rng.normal(size=len(cost)))).argmin()]

    def nothing_now_and_then(cost: np.ndarray) -> Any:
        return None if rng.random() < 0.5 else points[(points @ cost).argmin()]

    def raises_now_and_then(cost: np.ndarray) -> Any:
        if rng.random() < 0.5:
            raise RuntimeError("no license")
        return points[(points @ cost).argmin()]

    def of_some_decisions(cost: np.ndarray) -> Any:
        some = points[rng.choice(len(points), max(1, len(points) // 2), replace=False)]
        return some[(some @ cost).argmin()]  # a search that is stopped early

    return [the_same, second_best, of_other_costs, nothing_now_and_then, raises_now_and_then,
            of_some_decisions]  # fmt: skip


def questions(names: list[str], size: int, labels: Path | None) -> list[dict[str, Any]]:
    """Oracle calls per exact projection of costs near the true ones: a first time, and again after
    a step of 1% of the cost."""
    rows = []
    for name in names:
        data = draw(name, 400, size, 1, labels)
        sets = rv.OptimalitySet(data.problem, data.train.decisions)
        rng = np.random.default_rng(0)
        scale = np.abs(data.train.costs).mean()
        q = data.train.costs / scale * 3 + rng.normal(size=data.train.costs.shape)
        cold: Any = rv.project(q, sets, threads=1)
        moved = q * (1 + 0.01 * rng.normal(size=q.shape))
        warm: Any = rv.project(moved, sets, threads=1)
        rows.append(
            {"problem": name, "samples": size, "cold": float(cold.calls.mean()),
             "warm": float(warm.calls.mean()), "solved": bool(cold.solved.all()),
             "solved_warm": bool(warm.solved.all())}
        )  # fmt: skip
    return rows


PARTS = ("files", "calls", "small")


def main() -> int:
    """Run all and say what is false."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with .mps.gz files")
    parser.add_argument("--seconds", type=number, default=60.0, help="for one projection of a file")
    parser.add_argument("--programs", type=positive, default=500)
    parser.add_argument("--first", type=int, default=1000, help="seed of the first programs")
    parser.add_argument("--labels", type=Path, help="folder to keep labels in")
    parser.add_argument("--parts", default=",".join(PARTS), help="such as %(default)s")
    parser.add_argument("--json", type=Path, help="other parts that are there are kept")
    args = parser.parse_args()
    there = args.json is not None and args.json.is_file()
    kept = json.loads(args.json.read_text("utf-8")) if there else {}
    parts = {name: kept[name] for name in PARTS if name in kept}
    asked = args.parts.split(",")
    if "files" in asked:
        paths = sorted(args.folder.glob("*.mps.gz"))
        parts["files"] = [on_file(path, args.seconds) for path in paths]
    if "calls" in asked:
        parts["calls"] = questions(["knapsack", "tsp-20"], 100, args.labels)
    if "small" in asked:
        parts["small"] = on_programs(args.programs, args.first)
    print(json.dumps(parts, indent=1, default=str))
    if args.json:
        command = f"python experiments/scripts/integer_programs.py MIPLIB_DIR --first {args.first}"
        content = surroundings(command, {"seconds": args.seconds, "programs": args.programs})
        write_json(args.json, content | {"benchmark": "integer_programs"} | parts)
    files, small = parts.get("files", []), parts.get("small", {})
    right = all(row["agree"] and row["lower"] <= row["upper"] for row in files)
    wrong = ("not_solved", "off", "bound_above", "outside", "false_solved")
    return int(not right or any(small.get(name) for name in wrong))


if __name__ == "__main__":
    raise SystemExit(main())
