"""Textures of drawn terrain: sheets larger than any map, of which a map takes windows.

They are made once in a process, the same every time; what differs from map to map is where the
windows lie.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .noise import fractal_noise, smooth_noise, strewn_bumps

SHEET = 768
"""Side of a sheet in pixels."""


# Sheets that tell two things of the same bumps, and so are cut at the same place.
_TOGETHER = {"pebble": "pebbles", "crown": "crowns", "spruce": "spruces"}


class Window:
    """Square cut-outs of side `side` from the sheets, each at a random place.

    `window["blades"]` is the same cut-out every time, `window.elsewhere("blades")` a new one.
    """

    def __init__(self, rng: np.random.Generator, side: int) -> None:
        self.side = side
        self._rng = rng
        places = rng.integers(SHEET - side + 1, size=(len(sheets()), 2))
        self._places = dict(zip(sheets(), places.tolist(), strict=True))

    def __getitem__(self, name: str) -> np.ndarray:
        return self._cut(name, *self._places[_TOGETHER.get(name, name)])

    def elsewhere(self, name: str) -> np.ndarray:
        return self._cut(name, *self._rng.integers(SHEET - self.side + 1, size=2))

    def _cut(self, name: str, top: int, left: int) -> np.ndarray:
        return sheets()[name][top : top + self.side, left : left + self.side]


@lru_cache(maxsize=1)
def sheets() -> dict[str, np.ndarray]:
    """All sheets by name, (SHEET, SHEET) float32; noises vary by about 1, heights are in pixels."""
    rng, size = np.random.default_rng(8675309), (SHEET, SHEET)
    crest = smooth_noise(rng, 1, size, (3.2, 13.0))[0]
    crest += 0.5 * smooth_noise(rng, 1, size, (2.2, 7.0))[0]
    crags = 18.0 * strewn_bumps(rng, size, 22.0, _peak)[0]
    crags += 4.0 * strewn_bumps(rng, size, 9.0, _peak)[0]
    crags += 0.35 * smooth_noise(rng, 1, size, 2.0)[0]
    pebbles, pebble = strewn_bumps(rng, size, 6.0, _pebble)
    crowns, crown = strewn_bumps(rng, size, 7.0, _crown)
    spruces, spruce = strewn_bumps(rng, size, 6.0, _spruce)
    return {
        "fine": smooth_noise(rng, 1, size, 1.6)[0],
        "patches": fractal_noise(rng, 1, size, 9.0, octaves=2)[0],
        "wide": fractal_noise(rng, 1, size, 40.0, octaves=2)[0],
        "swell": fractal_noise(rng, 1, size, 34.0)[0],
        "clouds": fractal_noise(rng, 1, size, 56.0, octaves=2)[0],
        "ragged": np.clip(0.2 * fractal_noise(rng, 1, size, 11.0)[0], -0.32, 0.32),
        "bend": _whole(np.clip(3.0 * fractal_noise(rng, 1, size, 16.0)[0], -4, 4)),
        "blades": smooth_noise(rng, 1, size, (4.0, 1.5))[0],
        "ripples": np.maximum(1 - 1.6 * np.abs(crest), 0),
        "crags": crags,
        "pebbles": 6.0 * pebbles,
        "pebble": np.where(pebbles > 0, pebble, np.float32(0.5)),
        "crowns": 7.0 * crowns,
        "crown": crown,
        "spruces": 9.0 * spruces,
        "spruce": spruce,
    }


def _whole(array: np.ndarray) -> np.ndarray:
    return np.rint(array).astype(np.int32)


def _crown(down: np.ndarray, across: np.ndarray, first: np.ndarray, second: np.ndarray):
    """The round top of a broadleaved tree."""
    radius = 0.52 + 0.34 * first
    inside = 1 - (down * down + across * across) / (radius * radius)
    return radius * np.sqrt(np.maximum(inside, 0)) * (0.8 + 0.4 * second)


def _spruce(down: np.ndarray, across: np.ndarray, first: np.ndarray, second: np.ndarray):
    """The pointed top of a conifer."""
    distance = np.sqrt(down * down + across * across)
    return np.maximum(1 - distance / (0.5 + 0.25 * first), 0) * (0.9 + 0.5 * second)


def _peak(down: np.ndarray, across: np.ndarray, first: np.ndarray, second: np.ndarray):
    """A pyramid, turned by an angle whose half has the tangent 2 first - 1."""
    half = 2 * first - 1
    cosine, sine = (1 - half * half) / (1 + half * half), 2 * half / (1 + half * half)
    along, beside = np.abs(cosine * down + sine * across), np.abs(cosine * across - sine * down)
    return np.maximum(0.45 + 0.55 * second - np.maximum(along, 0.8 * beside), 0)


def _pebble(down: np.ndarray, across: np.ndarray, first: np.ndarray, second: np.ndarray):
    """A small round stone, in about half of all places."""
    radius = 0.1 + 0.22 * first
    inside = 1 - (down * down + across * across) / (radius * radius)
    return np.where(second < 0.55, radius * np.sqrt(np.maximum(inside, 0)), 0)
