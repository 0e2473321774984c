"""LP files (CPLEX's format), read by HiGHS and handed on as MPS.

model = rv.read_lp("plan.lp")
model.problem, model.cost, model.variable_names
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .._common.optional import require
from ..errors import InputError
from .imported import ImportedModel
from .mps import read_mps


def read_lp(path: Any) -> ImportedModel:
    """The model in an .lp or .lp.gz file, with its names; see `read_mps` for what is relaxed.

    Parameters
    ----------
    path : path
        A file in CPLEX's LP format.

    Returns
    -------
    ImportedModel
    """
    require("highspy", "read_lp", "solvers")
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path} does not exist; an LP file was expected.")
    with TemporaryDirectory(prefix="revealed-") as folder:
        converted = Path(folder) / f"{path.name}.mps"
        _convert(path, converted)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = read_mps(converted)
        for warning in said:
            told = str(warning.message).replace(converted.name, path.name)
            warnings.warn(told, warning.category, stacklevel=2)
    return replace(model, source=model.source.replace(converted.name, path.name))


def _convert(path: Path, out: Path) -> None:
    import highspy

    highs: Any = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    if highs.readModel(str(path)) == highspy.HighsStatus.kError:
        raise InputError(
            f"{path.name} cannot be read as an LP file. HiGHS, which reads it, expects CPLEX's LP "
            "format: an objective, `subject to`, `bounds`, `end`. Try it with your solver, or save "
            "the model as MPS."
        )
    if highs.writeModel(str(out)) == highspy.HighsStatus.kError:
        raise InputError(f"{path.name} was read, but HiGHS cannot write it as MPS.")
