"""The paper's synthetic data as files, for setting our figures beside the reference's."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..problems.linear import LinearProgram
from .dataset import DataSet, Split

PAPER_NAMES = ("sp_seed0", "sp_seed1", "knapsack_seed0", "knapsack_seed1")
SPLITS = ("train", "valid", "test")
_KEYS = ("A", "b", *(f"{split}_{part}" for split in SPLITS for part in ("z", "c", "sol")))


def load_paper_synthetic(folder: str | Path, name: str) -> DataSet:
    """Read `name`.npz from a folder: `A`, `b`, and `{train,valid,test}_{z,c,sol}`.

    The problem is A x = b, x >= 0, as the file has it: the knapsacks come in standard form, with
    a column (of cost 0) for each slack. Decisions are kept as they are, at interior-point
    accuracy; `OptimalitySet` reads what is within 1e-5 of a bound as at the bound.

    Parameters
    ----------
    folder : path
        Where the files are.
    name : str
        Of a file, without ".npz"; those of the paper are `PAPER_NAMES`.

    Returns
    -------
    DataSet

    Raises
    ------
    InputError
        If the file is missing, or an array of it is missing or of the wrong shape.
    """
    path = Path(folder) / f"{name}.npz"
    arrays = _read(path)
    A, b = arrays["A"], arrays["b"]
    if A.ndim != 2 or b.shape != A.shape[:1]:
        raise InputError(
            f"{path.name} must hold `A` (m, n) and `b` (m,); got {A.shape} and {b.shape}."
        )
    parts = [_split(path, arrays, split, A.shape[1]) for split in SPLITS]
    return DataSet(name, LinearProgram(A_eq=A, b_eq=b), *parts)


def _read(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        here = ", ".join(sorted(p.stem for p in path.parent.glob("*.npz")))
        raise InputError(
            f"The folder must hold {path.name}; {str(path.parent)!r} "
            + (f"holds only: {here}." if here else "holds no .npz file.")
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [key for key in _KEYS if key not in file]
            if not missing:
                return {key: np.asarray(file[key], dtype=float) for key in _KEYS}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path.name} must be an .npz file of plain number arrays; it is not."
        ) from error
    raise InputError(
        f"{path.name} must hold the arrays {', '.join(_KEYS)}; it lacks {', '.join(missing)}."
    )


def _split(path: Path, arrays: dict[str, np.ndarray], split: str, n: int) -> Split:
    contexts, costs, decisions = (arrays[f"{split}_{part}"] for part in ("z", "c", "sol"))
    expected = (len(contexts), n)
    for part, array in (("c", costs), ("sol", decisions)):
        if contexts.ndim != 2 or array.shape != expected:
            raise InputError(
                f"{path.name}: `{split}_{part}` must be (B, {n}) with a row for each row of "
                f"`{split}_z`, {contexts.shape}; got {array.shape}."
            )
    for part, array in (("z", contexts), ("c", costs), ("sol", decisions)):
        if not np.isfinite(array).all():
            row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
            raise InputError(f"{path.name}: `{split}_{part}` is not finite in row {row}.")
    return Split(contexts, decisions, costs)
