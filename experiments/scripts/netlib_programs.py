"""Linear programs of NETLIB: all solved, and the infeasible ones proved infeasible.

    python experiments/scripts/netlib_programs.py NETLIB_DIR INFEASIBLE_DIR
    python experiments/scripts/netlib_programs.py NETLIB_DIR INFEASIBLE_DIR --json FILE

The first folder has .mps.gz files, the second .mat files with c, A, b, G, h_l, h_u, x_l, x_u for
min c x with A x = b, h_l <= G x <= h_u, x_l <= x <= x_u, where 1e20 stands for infinity. Feasible
programs are compared with HiGHS's interior-point method as scipy runs it; a proof of infeasibility
is checked again by an elastic program: no decision comes near to all rows. The exit code is 1 if a
claim is false, a program is not answered, or an infeasible one takes longer than `--seconds`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io, sparse
from scipy.optimize import linprog

import revealed as rv
from revealed.cli.commands.options import number
from revealed.importers import read_mps

AGREE = 1e-7
"""Objectives, relative to 1 + |objective|."""
NOTHING = 1e-10
"""What rows are broken by in all, relative, below which a decision counts as feasible."""


def load(path: Path) -> tuple[rv.LinearProgram, np.ndarray]:
    """The constraints and the cost in a .mat file."""
    raw = io.loadmat(path)
    c, b, low, high, lb, ub = (
        np.ravel(raw[name]).astype(float) for name in ("c", "b", "h_l", "h_u", "x_l", "x_u")
    )
    A, G = (sparse.csr_array(raw[name]).astype(float) for name in ("A", "G"))
    below, above = high < 1e20, low > -1e20
    problem = rv.LinearProgram(
        A_eq=A if len(b) else None,
        b_eq=b if len(b) else None,
        A_ub=sparse.vstack([G[below], -G[above]], format="csr"),
        b_ub=np.concatenate([high[below], -low[above]]),
        lb=np.where(lb <= -1e20, -np.inf, lb),
        ub=np.where(ub >= 1e20, np.inf, ub),
    )
    return problem, c


def second_opinion(problem: rv.LinearProgram, cost: np.ndarray) -> Any:
    """HiGHS's interior-point method, through scipy, on the same program."""
    return linprog(
        cost,
        A_ub=problem.ub_rows.matrix(0),
        b_ub=problem.b_ub,
        A_eq=problem.eq_rows.matrix(0),
        b_eq=problem.b_eq,
        bounds=np.column_stack([problem.lb, problem.ub]),
        method="highs-ipm",
    )


def least_violation(problem: rv.LinearProgram) -> float:
    """What the rows of size 1 must be broken by in all, found by an elastic program."""
    A = sparse.vstack([problem.eq_rows.matrix(0), problem.ub_rows.matrix(0)], format="csr")
    m, n, m_eq = *A.shape, problem.eq_rows.shape[0]
    size = np.maximum(abs(A).max(axis=1).toarray().ravel(), 1e-300)
    even = sparse.diags_array(1.0 / size) @ A
    eye = sparse.eye_array(m, format="csr")
    b = np.concatenate([problem.b_eq, problem.b_ub]) / size
    wide = sparse.hstack([even, -eye, eye[:, :m_eq]], format="csr")
    found = linprog(
        np.concatenate([np.zeros(n), np.ones(m + m_eq)]),
        A_ub=wide[m_eq:],
        b_ub=b[m_eq:],
        A_eq=wide[:m_eq],
        b_eq=b[:m_eq],
        bounds=[*zip(problem.lb, problem.ub, strict=True), *[(0, None)] * (m + m_eq)],
        method="highs-ipm",
    )
    return float(found.fun) / (1.0 + np.abs(b[np.isfinite(b)]).max(initial=0.0))


def asked(problem: rv.LinearProgram, cost: np.ndarray) -> tuple[str, float, float]:
    """Status in words, objective, seconds."""
    start = time.perf_counter()
    found = problem.solve(cost[None], threads=1)
    seconds = time.perf_counter() - start
    return rv.SolveStatus(int(found.status[0])).name, float(found.objective[0]), seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("feasible", type=Path)
    parser.add_argument("infeasible", type=Path)
    parser.add_argument("--seconds", type=number, default=10.0, help="for each infeasible program")
    parser.add_argument("--json", type=Path, help="where to keep the table")
    args = parser.parse_args()
    records = []
    print(f"{'program':<10} {'n':>6} {'rows':>6} {'claimed':<11} {'s':>7}  check")
    for path in sorted(args.feasible.glob("*.mps*")):
        model = read_mps(path)
        cost = np.asarray(model.cost, float)
        status, objective, seconds = asked(model.problem, cost)
        best = second_opinion(model.problem, cost).fun
        off = abs(objective - best) / (1.0 + abs(best))
        records.append(row(path, model.problem, status, seconds, off))
        records[-1]["right"] = bool(status == "OPTIMAL" and off <= AGREE)
        show(records[-1], f"objective off {off:.0e}")
    for path in sorted(args.infeasible.glob("*.mat")):
        problem, cost = load(path)
        status, _, seconds = asked(problem, cost)
        broken = least_violation(problem)
        records.append(row(path, problem, status, seconds, broken))
        right = status == "INFEASIBLE" and broken > NOTHING and seconds <= args.seconds
        records[-1]["right"] = bool(right)
        show(records[-1], f"rows broken by {broken:.0e}")
    wrong = [record["program"] for record in records if not record["right"]]
    slowest = max(record["seconds"] for record in records)
    print(f"{len(records)} programs, the slowest in {slowest:.2f} s; not right: {wrong or 'none'}")
    if args.json:
        args.json.write_text(json.dumps({"programs": records}, indent=1) + "\n")
    return 1 if wrong else 0


def row(path: Path, problem: rv.LinearProgram, status: str, seconds: float, check: float) -> dict:
    rows = problem.eq_rows.shape[0] + problem.ub_rows.shape[0]
    return {
        "program": path.name.split(".")[0],
        "n": problem.n_variables,
        "rows": rows,
        "claimed": status,
        "seconds": round(seconds, 3),
        "check": float(check),
    }


def show(record: dict, check: str) -> None:
    print(
        f"{record['program']:<10} {record['n']:>6} {record['rows']:>6} {record['claimed']:<11} "
        f"{record['seconds']:>7.2f}  {check}{'' if record['right'] else '  WRONG'}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
