"""Time of a projection under the usual forms of costs, by the kernel and by the conic solver.

    python experiments/scripts/forms.py                    grids of 5x5 and 12x12, one thread
    python experiments/scripts/forms.py --sizes 5 --batch 400

Milliseconds an instance, the largest residual of the kernel's answers, and how many of them it left
to the conic solver. The conic solver is timed on the first few instances.
"""

import argparse
import time
from collections.abc import Iterator

import numpy as np

import revealed as rv
from revealed import CostForm, OptimalitySet, Projection, ProjectionStatus
from revealed.cli.commands.options import positive


def forms(grid: rv.LinearProgram, rng: np.random.Generator) -> Iterator[tuple[str, CostForm]]:
    n = grid.n_variables
    known = np.where(rng.random(n) < 0.4, 1.0, np.nan)
    yield "vertices", CostForm.vertices(grid)
    yield "vertices, costs >= 0.1", CostForm.vertices(grid, at="both", cost_lower=0.1)
    yield "tied", CostForm.tied(rng.integers(0, n // 4, n))
    yield "known", CostForm.known(known)
    yield "known, >= 0", CostForm.known(known, lower=0.0)
    yield "8 features, >= 0", CostForm.features(rng.random((n, 8)) + 0.1, lower=0.0)
    yield "every entry, >= 0", CostForm.identity(n, lower=0.0)


def timed(q: np.ndarray, sets: OptimalitySet, method: str) -> tuple[Projection, float]:
    """The answer and milliseconds an instance."""
    started = time.perf_counter()
    near = rv.project(q, sets, method=method, threads=1)
    return near, (time.perf_counter() - started) / len(q) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=positive, nargs="+", default=[5, 12])
    parser.add_argument("--batch", type=positive, default=200)
    parser.add_argument("--few", type=positive, default=16, help="instances for the conic solver")
    given = parser.parse_args()
    print(f"{'grid':7}{'form':24}{'kernel':>9}{'conic':>9}{'residual':>10}{'empty':>7}{'left':>6}")
    for k in given.sizes:
        grid, rng = rv.problems.grid_shortest_path(k, k), np.random.default_rng(0)
        for name, form in forms(grid, rng):
            w = rng.random((given.batch, form.n_parameters)) * 1.2 + 0.25
            sets = OptimalitySet(
                grid, grid.solve(np.maximum(form.costs(w), 0.01)).x, 0.02, form=form
            )
            q = w + 0.5 * rng.normal(size=w.shape)
            timed(q[:8], sets[:8], "kernel")  # compiles, and analyses the form
            near, kernel = timed(q, sets, "kernel")
            _, conic = timed(q[: given.few], sets[: given.few], "clarabel")
            empty = near.status == ProjectionStatus.EMPTY
            left = len(q) - near.solved.sum() - empty.sum()
            worst = near.residual[near.solved].max(initial=0.0)
            row = f"{k}x{k}".ljust(7) + f"{name:24}{kernel:9.3f}{conic:9.2f}{worst:10.0e}"
            print(f"{row}{empty.sum():7}{left:6}", flush=True)


if __name__ == "__main__":
    main()
