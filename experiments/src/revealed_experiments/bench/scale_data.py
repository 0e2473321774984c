"""Decisions of a hidden linear rule in Parquet files, for `revealed bench scale`.

A file is a day of 100,000 5x5 paths with its contexts; file k is drawn from a seed of its own, so
files can be written one at a time, and a data set of fewer decisions is the first files of a larger
one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

PROBLEM = "grid_shortest_path(5, 5, directed='right-down')"
FEATURES = 5
DAY = 100_000


def problem() -> Any:
    """The forward problem of the benchmark."""
    import revealed as rv

    return rv.problems.grid_shortest_path(5, 5, directed="right-down")


def feature_names() -> list[str]:
    """Columns of contexts."""
    return [f"z{k + 1}" for k in range(FEATURES)]


def variable_names() -> list[str]:
    """Columns of decisions, 1 where the path goes."""
    return [f"x{k + 1}" for k in range(problem().n_variables)]


def write_days(folder: Path, size: int) -> list[Path]:
    """Write `size` decisions to files, those that are not there yet; the files."""
    import pyarrow
    import pyarrow.parquet as parquet

    folder.mkdir(parents=True, exist_ok=True)
    path = problem()
    rule = np.random.default_rng(0).standard_normal((FEATURES, path.n_variables))
    files = []
    for day, start in enumerate(range(0, size, DAY)):
        rows = min(DAY, size - start)
        file = folder / (f"day{day:04d}.parquet" if rows == DAY else f"first{rows}.parquet")
        files.append(file)
        if file.exists():
            continue
        rng = np.random.default_rng([1, day])
        Z = rng.standard_normal((DAY, FEATURES))[:rows]
        X = np.asarray(path.solve(6.0 + Z @ rule).x)
        columns = {name: Z[:, j] for j, name in enumerate(feature_names())}
        columns |= {name: X[:, j].astype(np.int8) for j, name in enumerate(variable_names())}
        draft = file.with_suffix(".new")
        parquet.write_table(pyarrow.table(columns), draft)
        draft.replace(file)
    return files


def read_days(files: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """All of it in memory: contexts and decisions."""
    import pyarrow.parquet as parquet

    tables = [parquet.read_table(file).to_pandas() for file in files]
    Z = np.concatenate([table[feature_names()].to_numpy(float) for table in tables])
    X = np.concatenate([table[variable_names()].to_numpy(float) for table in tables])
    return Z, X
