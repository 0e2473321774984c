"""Which function of the distance the estimator minimizes, by name or as a small object.

"squared"    1/2 distance^2
"distance"   the distance itself
"huber"      squared near the set, then a line; `Huber(delta=0.5)` says where it bends
"welsch"     squared near the set, then flat: gives up what is far; `Welsch(delta=0.5)`
"""

from __future__ import annotations

from typing import Any

from .._common.settings import Settings
from ..errors import InputError
from ..projection.distance import POWERS


class Huber(Settings):
    """Squared distance up to `delta`, beyond it a line with the same slope.

    Parameters
    ----------
    delta : float or None
        Where it bends, in units of cost. None takes the noise of the fit, or 1 without noise.
    """

    power = "huber"

    def __init__(self, delta: float | None = None) -> None:
        self.delta = delta


class Welsch(Settings):
    """delta^2 (1 - exp(-distance^2 / 2 delta^2)): squared near the set, at most delta^2 far away.

    Decisions that nothing explains stop to matter. The loss is not convex: a fit begins near the
    minimum of Huber's form and ends in a minimum that may be a local one.

    Parameters
    ----------
    delta : float or None
        In units of cost. None takes the noise of the fit, or 1 without noise.
    """

    power = "welsch"

    def __init__(self, delta: float | None = None) -> None:
        self.delta = delta


_BY_NAME: dict[str, Any] = {"auto": "auto", "squared": 2, "distance": 1}
_BY_NAME |= {power: power for power in POWERS if isinstance(power, str)}


def power_and_delta(loss: Any) -> dict[str, Any]:
    """`power` and `delta` of a loss by name or object, "auto" and None where the data decide."""
    if isinstance(loss, Huber | Welsch):
        return {"power": loss.power, "delta": loss.delta}
    if not isinstance(loss, str) or loss not in _BY_NAME:
        known = ", ".join(_BY_NAME)
        raise InputError(f"`loss` must be one of {known}, Huber(...) or Welsch(...); got {loss!r}.")
    return {"power": _BY_NAME[loss], "delta": None}
