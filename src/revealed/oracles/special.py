"""Oracles that know a structure, and those of them that work where the costs are.

A special oracle leaves to the general one what it cannot solve: it says GENERAL for that instance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._common.registry import Registry
from ..problems.linear import LinearProgram
from ..problems.solution import Solution

GENERAL = -1
"""Not a status: a special oracle's word for an instance it leaves to the general oracle."""

SpecialOracle = Callable[[LinearProgram, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""(problem, scaled costs (B, n)) -> decisions (B, n) and statuses (B,) or GENERAL."""
DeviceOracle = Callable[..., Solution]
"""(problem, costs on a GPU) -> a Solution there, without waiting for it."""

SPECIAL_ORACLES: Registry[SpecialOracle] = Registry("special oracle", home="revealed.oracles")
"""By the class of `problem.structure`."""
DEVICE_ORACLES: Registry[DeviceOracle] = Registry("oracle on a GPU", home="revealed.oracles")
"""By the class of `problem.structure`; others are solved on the CPU."""
