"""When losses on whole decisions ask the oracle: seldom, and little at a time."""

from __future__ import annotations

from typing import Any

from .._common.checks import check_whole, positive_int
from ..errors import InputError


class Questions:
    """Options of `project` for each call of a loss: every few calls ask, the others make do with
    the alternatives that are known."""

    def __init__(self, max_calls: int | None, ask_every: int) -> None:
        if max_calls is not None:
            check_whole(max_calls, "max_calls", 1)
        self.every = positive_int(ask_every, "ask_every")
        if max_calls is None and self.every > 1:
            raise InputError(
                f"`ask_every` is {ask_every}, which goes with a budget of questions: give "
                "`max_calls` too, such as max_calls=1."
            )
        self.most, self._turn = max_calls, 0

    def options(self) -> dict[str, Any]:
        """Of the next call; none where every projection is to be exact."""
        if self.most is None:
            return {}
        self._turn += 1
        if (self._turn - 1) % self.every:
            return {"method": "known"}
        return {"method": "cuts", "max_iter": self.most}
