"""The quadratic programs of Maros and Meszaros: what is claimed of them, and projections onto the
sets of their solutions, beside Clarabel asked directly.

    python experiments/scripts/quadratic_programs.py DIR
    python experiments/scripts/quadratic_programs.py DIR --only "HS*" --no-projections
    python experiments/scripts/quadratic_programs.py DIR --json experiments/results/quadratic.json

The folder has .mat files with P, q, A, l, u for min 1/2 x P x + q x with l <= A x <= u, where 1e20
stands for infinity and bounds of single variables are rows. The exit code is 1 if a claim is false,
if fewer programs are solved than by Clarabel, or if a projection that is called solved is not.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import clarabel
import numpy as np
from scipy import io, sparse

import revealed as rv
from revealed import EntryState
from revealed.cli.commands.options import positive

AGREE = 1e-5
"""Objectives, relative; Clarabel's own tolerance is 1e-8 of the terms, not of the sum."""
NEAR = 1e-4
"""What a projection may cost above Clarabel's, relative: where gradients are 1e5 times as long as
the move, Clarabel's own answers at several tolerances differ by 1e-5."""
BROKEN = 1e-6
"""What it may break rows by, relative."""


class Program(NamedTuple):
    """min 1/2 x P x + q x with l <= A x <= u, and the same as a problem."""

    P: Any
    q: np.ndarray
    A: Any
    l: np.ndarray
    u: np.ndarray
    problem: rv.QuadraticProgram


def load(path: Path) -> Program:
    raw = io.loadmat(path)
    P = sparse.csc_array(raw["P"]).astype(float)
    P = sparse.csc_array(0.5 * (P + P.T))
    A = sparse.csr_array(raw["A"]).astype(float)
    q, low, high = (np.ravel(raw[name]).astype(float) for name in "qlu")
    low, high = np.where(low <= -1e20, -np.inf, low), np.where(high >= 1e20, np.inf, high)
    A.eliminate_zeros()
    alone = np.diff(A.indptr) == 1
    lb, ub = np.full(len(q), -np.inf), np.full(len(q), np.inf)
    for i in np.flatnonzero(alone):
        j, a = A.indices[A.indptr[i]], A.data[A.indptr[i]]
        ends = sorted((low[i] / a, high[i] / a))
        lb[j], ub[j] = max(lb[j], ends[0]), min(ub[j], ends[1])
    same = (low == high) & ~alone
    above, below = np.isfinite(high) & ~same & ~alone, np.isfinite(low) & ~same & ~alone
    problem = rv.QuadraticProgram(
        Q=P.toarray(),
        sense="min",
        A_eq=A[same],
        b_eq=low[same],
        A_ub=sparse.vstack([A[above], -A[below]], format="csr"),
        b_ub=np.concatenate([high[above], -low[below]]),
        lb=lb,
        ub=ub,
    )
    return Program(P, q, A, low, high, problem)


def ask_clarabel(P: Any, q: np.ndarray, A: Any, low: Any, high: Any, tol: float = 1e-8) -> Any:
    """Clarabel's own answer to min 1/2 x P x + q x with low <= A x <= high."""
    same = low == high
    above, below = np.isfinite(high) & ~same, np.isfinite(low) & ~same
    rows = sparse.vstack([A[same], A[above], -A[below]], format="csc")
    b = np.concatenate([low[same], high[above], -low[below]])
    cones = [clarabel.ZeroConeT(int(same.sum()))]
    cones.append(clarabel.NonnegativeConeT(int(above.sum() + below.sum())))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    upper = sparse.csc_matrix(sparse.triu(P))
    return clarabel.DefaultSolver(upper, q, sparse.csc_matrix(rows), b, cones, settings).solve()


def projections(program: Program, x: np.ndarray, count: int) -> tuple[int, float, int]:
    """How many of the perturbed costs are certified, by how much their objective is above that of
    Clarabel at most, and how many that are certified are wrong.

    The move r to the nearest cost minimizes 1/2 |r|^2 + <gradient, r> over the directions in which
    no constraint that binds ends; below 0, the excess says that Clarabel stopped short.
    """
    problem, rng = program.problem, np.random.default_rng(0)
    sets = rv.OptimalitySet(problem, np.tile(x, (count, 1)), margin=0.0, tol=1e-6)
    usual = np.sqrt(np.mean(program.q**2)) or 1.0
    step = np.where(program.q != 0, 0.1 * np.abs(program.q), 0.01 * usual)
    costs = program.q + step * rng.uniform(-1, 1, (count, len(x)))
    found = rv.project(costs, sets)
    state, active = np.asarray(sets.entry_state)[0], np.asarray(sets.row_active)[0]
    at = {s: state == s for s in EntryState}
    low = np.where(at[EntryState.AT_LOWER] | at[EntryState.FIXED], 0.0, -np.inf)
    high = np.where(at[EntryState.AT_UPPER] | at[EntryState.FIXED], 0.0, np.inf)
    rows = sparse.csr_array(problem.ub_rows.matrix(0))[active]
    eye = sparse.csr_array(sparse.eye_array(len(x)))
    A = sparse.vstack([problem.eq_rows.matrix(0), rows, eye], format="csr")
    m_eq, m_ub = problem.eq_rows.shape[0], rows.shape[0]
    low = np.concatenate([np.zeros(m_eq), np.full(m_ub, -np.inf), low])
    high = np.concatenate([np.zeros(m_eq + m_ub), high])
    worst, wrong = -np.inf, 0
    for k in range(count):
        gradient, move = costs[k] + program.P @ x, np.asarray(found.point)[k] - costs[k]
        best = least_objective(eye, gradient, A, low, high)
        size = max(float(found.distance[k]), 1e-3 * float(np.linalg.norm(costs[k])))
        # Clarabel breaks its rows by about 1e-12 of the gradient, at a price of that size.
        scale = 0.5 * size**2 + 1e-3 * float(np.abs(gradient) @ np.abs(move))
        excess = (0.5 * move @ move + gradient @ move - best) / scale
        reach = A @ move
        broken = np.maximum(low - reach, reach - high) / (abs(A) @ np.abs(move) + size)
        worst = max(worst, excess)
        wrong += bool(found.solved[k]) and (excess > NEAR or broken.max(initial=0.0) > BROKEN)
    return int(np.sum(found.solved)), float(worst), int(wrong)


def least_objective(P: Any, q: np.ndarray, A: Any, low: Any, high: Any) -> float:
    """The least value that Clarabel finds at several tolerances; 0 is always to be had."""
    unit, best = np.abs(q).max() or 1.0, 0.0
    for tol in (1e-8, 1e-11, 1e-13):
        r = unit * np.asarray(ask_clarabel(P, q / unit, A, low, high, tol).x)
        if np.isfinite(r).all():
            best = min(best, float(0.5 * r @ r + q @ r))
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*", help="names, as the shell would match them")
    parser.add_argument("--no-projections", action="store_true")
    parser.add_argument("--count", type=positive, default=3, help="costs for each program")
    parser.add_argument("--json", type=Path, help="where to keep the table")
    args = parser.parse_args()
    records = []
    totals = {"false": 0, "ours failed": 0, "Clarabel failed": 0, "certified": 0, "asked": 0}
    wrong = 0
    print(
        f"{'program':<10} {'n':>5} {'rows':>6} {'Clarabel':<16} {'ours':<10} {'objective off':>13} "
        f"{'s':>6} {'certified':>9} {'above theirs':>12}"
    )
    for path in sorted(args.folder.glob(f"{args.only}.mat")):
        try:
            program = load(path)
        except rv.errors.InputError as error:  # VALUES is not convex
            print(f"{path.stem:<10} refused: {error}")
            records.append({"program": path.stem, "ours": "REFUSED"})
            continue
        answer = ask_clarabel(program.P, program.q, program.A, program.l, program.u)
        start = time.perf_counter()
        found = program.problem.solve(program.q[None], threads=1)
        seconds = time.perf_counter() - start
        status = rv.SolveStatus(int(found.status[0])).name
        theirs = str(answer.status)
        off = (float(found.objective[0]) - answer.obj_val) / (1.0 + abs(answer.obj_val))
        # Both may be right to their tolerances; ours is false if theirs is lower.
        false = status in ("INFEASIBLE", "UNBOUNDED") or (
            status == "OPTIMAL" and theirs == "Solved" and abs(off) > AGREE
        )
        totals["false"] += bool(false)
        totals["ours failed"] += status in ("FAILED", "LIMIT")
        totals["Clarabel failed"] += theirs != "Solved"
        records.append(
            {
                "program": path.stem,
                "n": len(program.q),
                "rows": len(program.l),
                "clarabel": theirs,
                "ours": status,
                "objective_off": float(off) if np.isfinite(off) else None,
                "seconds": round(seconds, 3),
                "false": bool(false),
            }
        )
        line = f"{path.stem:<10} {len(program.q):>5} {len(program.l):>6} {theirs:<16} {status:<10} "
        line += f"{off:>13.1e} {seconds:>6.2f}"
        if status == "OPTIMAL" and not args.no_projections:
            certified, worst, bad = projections(program, found.x[0], args.count)
            totals["certified"] += certified
            totals["asked"] += args.count
            wrong += int(bad)
            records[-1] |= {
                "projected": args.count,
                "certified": certified,
                "above_clarabel": worst,
            }
            line += f" {certified:>4} of {args.count:<2} {worst:>12.1e}"
        print(line + ("  FALSE" if false else ""), flush=True)
    print(", ".join(f"{name}: {number}" for name, number in totals.items()), f"wrong: {wrong}")
    if args.json:
        args.json.write_text(
            json.dumps({"totals": totals | {"wrong": wrong}, "programs": records}, indent=1) + "\n"
        )
    good = not totals["false"] and not wrong
    return 0 if good and totals["ours failed"] <= totals["Clarabel failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
