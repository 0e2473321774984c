"""The colors of drawn terrain, its season and its light: different on every map.

No color belongs to one kind of ground. Woods in autumn have the brown of tracks in summer, rivers
on the steppe that of its clay, and lakes in the north the gray of their rocks; clouds and the time
of day shift them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

EARTH, MEADOW, FOREST, WATER, ROCK = range(5)
"""The kinds of ground, from the quickest to cross to the slowest."""


@dataclass(frozen=True)
class Climate:
    """Two colors for each kind of ground, in the darkest and lightest places, and what grows."""

    earth: tuple[str, str]
    meadow: tuple[str, str]
    forest: tuple[str, str]
    water: tuple[str, str]
    rock: tuple[str, str]
    conifers: float = 0.0
    """Share of maps on which the woods are of conifers."""
    snow: float = 0.0
    """How white the peaks are, 0 to 1."""
    flowers: float = 0.0
    """How much the meadows flower, 0 to 1."""


CLIMATES = (
    Climate(  # spring: woods as fresh as the meadows
        earth=("#7c6446", "#b49a6c"),
        meadow=("#54862e", "#9cbc54"),
        forest=("#3a6420", "#9cb650"),
        water=("#205a7c", "#6aa8b8"),
        rock=("#66645c", "#b0aa9c"),
        flowers=1.0,
    ),
    Climate(  # summer
        earth=("#80624c", "#b6966a"),
        meadow=("#4e7a32", "#8eaa50"),
        forest=("#183e1c", "#54843a"),
        water=("#14426c", "#468ca8"),
        rock=("#585654", "#a8a29a"),
        conifers=0.25,
        snow=0.1,
        flowers=0.7,
    ),
    Climate(  # autumn: woods as brown as the tracks
        earth=("#5c4634", "#927456"),
        meadow=("#847c3a", "#baaa5e"),
        forest=("#5e2c14", "#cc7c34"),
        water=("#223e50", "#5c7e88"),
        rock=("#544e4c", "#9a908a"),
        conifers=0.2,
        snow=0.1,
        flowers=0.1,
    ),
    Climate(  # steppe after rain: everything has the color of clay
        earth=("#a47a50", "#dab282"),
        meadow=("#a08e4e", "#d4c27e"),
        forest=("#4c5428", "#968c4a"),
        water=("#7c6644", "#bca67c"),
        rock=("#8c6448", "#d0a07c"),
        conifers=0.1,
        flowers=0.2,
    ),
    Climate(  # north: lakes as gray as the rocks
        earth=("#56504a", "#8a8276"),
        meadow=("#4c6246", "#80946c"),
        forest=("#102c2c", "#40685c"),
        water=("#262e38", "#68727a"),
        rock=("#3e444c", "#8e969e"),
        conifers=0.9,
        snow=0.6,
        flowers=0.1,
    ),
    Climate(  # winter: snow on the meadows, ice on the lakes
        earth=("#8c847c", "#d2ccc6"),
        meadow=("#bcc4ce", "#f2f6fa"),
        forest=("#2c3e3a", "#a6b8ba"),
        water=("#8298a8", "#d4e2ea"),
        rock=("#5c6068", "#c0c6cc"),
        conifers=1.0,
        snow=1.0,
    ),
    Climate(  # moor: water dark with peat
        earth=("#3a302a", "#6c5c4e"),
        meadow=("#5a5434", "#8c8650"),
        forest=("#2c3a1e", "#666a34"),
        water=("#221c18", "#5c4e40"),
        rock=("#302c2e", "#6e6664"),
        conifers=0.5,
        flowers=0.4,
    ),
    Climate(  # tropics
        earth=("#8e5238", "#c4825c"),
        meadow=("#5c8830", "#a2be50"),
        forest=("#104a30", "#4e9644"),
        water=("#1a6a5c", "#6ab894"),
        rock=("#5c4640", "#9c8074"),
        flowers=0.3,
    ),
)

FLOWERS = ("#f4e9c8", "#e8c53a", "#c9a2d8", "#d2553f")


def linear(color: str) -> np.ndarray:
    """(3,) the light of a color "#rrggbb": the square of its numbers, near enough to sRGB and
    exact on every machine."""
    number = int(color[1:], 16)
    return (np.array([number >> 16, number >> 8 & 255, number & 255]) / 255.0) ** 2


_GROUND = np.array(
    [
        [[linear(end) for end in ends] for ends in (c.earth, c.meadow, c.forest, c.water, c.rock)]
        for c in CLIMATES
    ]
)
_GROWTH = np.array([[c.conifers, c.snow, c.flowers] for c in CLIMATES])
_FLOWERS = np.array([linear(color) for color in FLOWERS])


@dataclass(frozen=True)
class Weather:
    """How one map looks: all colors are light, float32."""

    ground: np.ndarray
    """(5, 2, 3) darkest and lightest color of each kind of ground."""
    sun: np.ndarray
    """(3,) color and strength of the light."""
    clouds: float
    """From below -1 (none) to above 1 (most of the map in shadow)."""
    conifers: bool
    snow: float
    flowers: float
    flower: np.ndarray
    """(3,)"""
    turn: int
    """0 to 7: how the map is turned and mirrored before it is drawn with light from the upper
    left, and back afterwards, so that light comes from any side."""


def draw_weather(rng: np.random.Generator) -> Weather:
    """A climate with a touch of another, and a time of day."""
    home, other = rng.integers(len(CLIMATES), size=2)
    touch = 0.6 * rng.random((5, 1, 1)) ** 2
    ground = _GROUND[home] + (_GROUND[other] - _GROUND[home]) * touch
    ground = ground * (0.85 + 0.3 * rng.random((5, 1, 1)) + 0.1 * rng.random((5, 1, 3)))
    conifers, snow, flowers = _GROWTH[home]
    warmth = 1.0 + (rng.random(3) - 0.5) * [0.22, 0.10, 0.24]
    return Weather(
        ground=ground.astype(np.float32),
        sun=(warmth * (0.82 + 0.34 * rng.random())).astype(np.float32),
        clouds=1.6 * rng.random() - 0.9,
        conifers=bool(rng.random() < conifers),
        snow=float(snow),
        flowers=float(flowers * rng.random()),
        flower=_FLOWERS[rng.integers(len(FLOWERS))].astype(np.float32),
        turn=int(rng.integers(8)),
    )
