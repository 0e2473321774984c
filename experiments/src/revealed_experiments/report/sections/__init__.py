"""One module for each thing the page tells; the order here is the order of the page.

A section is a module with a `TITLE` and a function `build(study, gallery)` that returns markup, or
None where the runs have nothing to say about it. To add one, write the module and enter it here.
"""

from __future__ import annotations

from typing import Protocol

from ..drawing import Gallery
from ..elements import Html
from ..study import Study
from . import (
    choice,
    claims,
    departures,
    epochs,
    excess,
    findings,
    kernels,
    margins,
    origin,
    results,
    route,
    solvers,
    trouble,
    vision_choice,
    vision_gallery,
    vision_results,
    vision_times,
    yardstick,
)


class Section(Protocol):
    """What a module in this package offers."""

    @property
    def TITLE(self) -> str: ...

    def build(self, study: Study, gallery: Gallery) -> Html | None: ...


SECTIONS: tuple[Section, ...] = (
    findings,
    claims,
    departures,
    vision_gallery,
    vision_results,
    vision_times,
    results,
    yardstick,
    solvers,
    margins,
    kernels,
    epochs,
    route,
    excess,
    choice,
    vision_choice,
    trouble,
    origin,
)
