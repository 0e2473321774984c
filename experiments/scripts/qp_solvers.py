"""Would a maintained solver of quadratic programs make our code around one unnecessary?

    python experiments/scripts/qp_solvers.py DIR --json experiments/results/qp_solvers.json

On the programs of Maros and Meszaros, what PIQP and Clarabel leave of the first-order conditions,
by the library's own certificate (`oracles.first_order.left_over`), as they answer and after
`_common.polish`, beside the oracle, which also tries other units and settings.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import piqp
from quadratic_programs import load
from scipy import sparse

from revealed.oracles import quadratic
from revealed.oracles.first_order import Program, left_over

LARGEST = 1600
"""Variables of the programs that are compared."""
LIMITS = (1e-10, 1e-8, 1e-6)


def by_piqp(program: Program, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Its answer and the multipliers of all rows."""
    rows, m = sparse.csc_matrix(program.A), program.n_zero
    solver = piqp.SparseSolver()
    for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
        setattr(solver.settings, name, tol)
    solver.settings.check_duality_gap, solver.settings.max_iter = True, 500
    P = sparse.csc_matrix(program.P)
    solver.setup(P, program.q, rows[:m], program.b[:m], rows[m:], None, program.b[m:])
    solver.solve()
    found = solver.result
    return np.array(found.x), np.concatenate([found.y, found.z_u])


def compare(path: Path) -> dict[str, Any] | None:
    """What each solver leaves over on one program; None for those that are too large or refused."""
    loaded = load(path)
    if loaded.problem.n_variables > LARGEST:
        return None
    P = loaded.P.toarray()
    rows = quadratic.polyhedron_rows(loaded.problem)
    program = Program.of(P, loaded.q, rows.A, rows.b, rows.n_zero)
    program, _ = program.within(program.unit)
    row: dict[str, Any] = {"name": path.stem, "variables": loaded.problem.n_variables}
    solvers = {
        "PIQP, 1e-8": lambda: by_piqp(program, 1e-8),
        "PIQP, 1e-12": lambda: by_piqp(program, 1e-12),
        "Clarabel": lambda: quadratic._by_clarabel(program, 60.0, 0)[1:],
    }
    for name, solve in solvers.items():
        begun = time.process_time()
        x, z = solve()
        seconds = time.process_time() - begun
        polished = left_over(program, *quadratic._exact(program, x, z))
        row[name] = {"left": left_over(program, x, z), "polished": polished, "seconds": seconds}
    begun = time.process_time()
    status, _ = quadratic.minimize_quadratic(loaded.problem, P, loaded.q, 60.0)
    row["oracle"] = {"status": status.name, "seconds": time.process_time() - begun}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    for path in sorted(args.folder.glob("*.mat")):
        try:
            row = compare(path)
        except ValueError as error:  # not convex
            print(f"{path.stem}: {str(error)[:80]}")
            continue
        if row is not None:
            rows.append(row)
    counts: dict[str, Any] = {"programs": len(rows)}
    for name in ("PIQP, 1e-8", "PIQP, 1e-12", "Clarabel"):
        for kind in ("left", "polished"):
            found = [sum(row[name][kind] <= limit for row in rows) for limit in LIMITS]
            counts[f"{name}, {kind}"] = dict(zip(map(str, LIMITS), found, strict=True))
    counts["oracle, proved"] = sum(row["oracle"]["status"] == "OPTIMAL" for row in rows)
    print(json.dumps(counts, indent=1))
    if args.json:
        args.json.write_text(json.dumps({"counts": counts, "rows": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
