"""Colors: one for each method on the whole page, distinct with any color vision.

Ours are blues and nobody else is. A dashed line or an open dot means "needs true costs", so that no
meaning rests on color alone. Every color has a twin for dark screens: the page swaps them by its
style sheet, pictures on disk are light.
"""

from __future__ import annotations

from dataclasses import dataclass

INK, SOFT, RULE = "#1c1e21", "#5d636b", "#d5d8dc"
NEUTRAL, PAPER = "#767c84", "#ffffff"

# By the power of the distance; POCS, L-BFGS (our estimator) and the smoothed loss have their own.
OURS = {
    "2": "#0067b1",
    "pocs": "#062f62",
    "lbfgs": "#00017e",
    "1": "#2591d3",
    "huber": "#5b57c7",
    "smoothed": "#2086a5",
}
# Found by search: to normal, red-blind and green-blind eyes, on light and dark paper, any two of
# these and ours are at least 10 apart in CIELAB, and each stands out from the paper by 3 to 1.
RIVALS = {
    "st": "#a05f6c",
    "bb": "#56294a",
    "mom": "#94961b",
    "qptl": "#a82879",
    "optnet": "#0102f8",
    "spo+": "#3c8d2e",
    "dpo": "#6e5c30",
    "pfyl": "#9f5500",
    "intopt": "#5c2b1f",
    "cave": "#459e9a",
    "cave+": "#245f45",
    "nce": "#809869",
    "two-stage": "#851205",
}
OTHERS = (NEUTRAL, *RIVALS.values())
"""For methods never heard of, in turn."""
SHADES = ("#062f62", "#0067b1", "#2591d3", "#9f5500")
"""For variants of one method, which have no color of their own."""

# light -> dark
DARK = {
    INK: "#e8eaed",
    SOFT: "#a5acb5",
    RULE: "#3a4048",
    NEUTRAL: "#969da6",
    PAPER: "#14171b",
    "#0067b1": "#58b0ff",
    "#062f62": "#b9dcff",
    "#00017e": "#4148f8",
    "#2591d3": "#2c8be0",
    "#5b57c7": "#8470f5",
    "#2086a5": "#45c9fa",
    "#a05f6c": "#f3afbb",
    "#56294a": "#a37294",
    "#94961b": "#ebe775",
    "#a82879": "#fd81c7",
    "#0102f8": "#fdfa03",
    "#3c8d2e": "#93df7f",
    "#6e5c30": "#bea97b",
    "#9f5500": "#f8a257",
    "#5c2b1f": "#ac7365",
    "#459e9a": "#9ff1ec",
    "#245f45": "#73ac8f",
    "#809869": "#d2eaba",
    "#851205": "#dd694e",
}


@dataclass(frozen=True)
class Style:
    """How one method looks in every figure."""

    slug: str
    """Which series of a figure, for the page's legend."""
    label: str
    color: str
    ours: bool
    needs_true_costs: bool

    @property
    def color_variable(self) -> str:
        """For the style sheet: the color that suits the screen."""
        return f"var({variable(self.color)})"

    @property
    def width(self) -> float:
        return 2.4 if self.ours else 1.3

    @property
    def dashes(self):
        return (0, (3.2, 1.6)) if self.needs_true_costs else "solid"

    @property
    def layer(self) -> int:
        return 5 if self.ours else 3


def variable(color: str) -> str:
    """The name of a color in the style sheet."""
    return f"--c{color[1:]}"


def style_sheet() -> tuple[str, str]:
    """Declarations of all colors, for light screens and for dark ones."""
    light = "".join(f"{variable(c)}:{c};" for c in DARK)
    dark = "".join(f"{variable(c)}:{d};" for c, d in DARK.items())
    return light, dark
