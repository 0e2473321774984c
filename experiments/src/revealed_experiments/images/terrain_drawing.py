"""Pictures of terrain, 8 pixels to a tile, drawn from the kinds of ground.

Each kind has a texture of its own (pebbles, blades, crowns of trees, ripples, crags); the border
between two is ragged and seldom where the tiles meet; woods and rocks rise, catch the light and
cast shadows. A map is drawn at twice its size and averaged, so that edges are soft.

Arrays are (side, side) float32 while drawing. What is light is added and scaled as light, and
becomes a color by a square root at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .terrain_palette import EARTH, FOREST, MEADOW, ROCK, WATER, Weather, draw_weather
from .terrain_textures import Window

TILE = 8
"""Pixels of a tile's side in the finished picture."""

_FINE = 2 * TILE  # pixels of a tile's side while drawing
_RIM = 8  # pixels drawn beyond each side and cut off at the end: light and shadow come from there

# The light comes from the upper left. Its components down, right and toward the viewer; and, for
# the shadows, how far a ray has come up, down and right after each step away from the light.
_LIGHT = (0.62, 0.38, 0.68)
_LEAD = (1.12, 1.0, 1.0, 1.12, 1.0)  # tracks and streams hang together where they run diagonally
_RAY = tuple((0.95 * step, round(0.85 * step), round(0.53 * step)) for step in range(1, 8))


def draw_map(kinds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(8 n, 8 n, 3) uint8: a picture of (n, n) kinds of ground, numbers from 0 to 4."""
    weather = draw_weather(rng)
    window = Window(rng, len(kinds) * _FINE + 2 * _RIM)
    surface = _surface(_shares(_turned(kinds, weather.turn), window), window, weather)
    light = _sunlight(surface.height) * _clouds(window, weather)
    channels = [_halved(surface.color(weather, c) * light) * weather.sun[c] for c in range(3)]
    picture = np.sqrt(np.clip(np.stack(channels, axis=-1), 0, 1)) * 255
    return _turned_back((picture + 0.5).astype(np.uint8), weather.turn)


def _shares(kinds: np.ndarray, window: Window) -> np.ndarray:
    """(5, side, side): how much each pixel belongs to each kind, by the four nearest tiles.

    Chance has a say, and bends the whole by some pixels, but never as far as the middle of a tile.
    """
    padded = np.pad(kinds, 1, mode="edge")
    one_hot = (padded == np.arange(5)[:, None, None]).astype(np.float32)
    place = (np.arange(window.side) - _RIM + 0.5) / _FINE + 0.5
    first = place.astype(np.int64)
    step = _smooth((place - first).astype(np.float32))
    shares = np.zeros((5, window.side, window.side), np.float32)
    for k in np.flatnonzero(one_hot.any(axis=(1, 2))):
        tall = one_hot[k, first] * (1 - step)[:, None] + one_hot[k, first + 1] * step[:, None]
        np.multiply(np.take(tall, first, axis=1), 1 - step, out=shares[k])
        shares[k] += np.take(tall, first + 1, axis=1) * step
        shares[k] *= _LEAD[k] + window.elsewhere("ragged")
    return _bent(shares, window)


def _bent(layers: np.ndarray, window: Window) -> np.ndarray:
    """Each pixel's values taken from one a little away, the way smoothly changing."""
    line = np.arange(window.side)
    down = np.clip(line[:, None] + window.elsewhere("bend"), 0, window.side - 1)
    right = np.clip(line + window.elsewhere("bend"), 0, window.side - 1)
    flat = layers.reshape(len(layers), -1)
    return np.take(flat, down * window.side + right, axis=1)


@dataclass(frozen=True)
class _Surface:
    """What the ground of a map is like before light falls on it."""

    kind: np.ndarray
    height: np.ndarray
    """In pixels."""
    tone: np.ndarray
    """From the darkest (0) to the lightest (1) color of its kind."""
    overlays: list[tuple[np.ndarray, np.ndarray]]
    """What lies on top: how thick, and the (3,) color."""

    def color(self, weather: Weather, channel: int) -> np.ndarray:
        dark, pale = weather.ground[:, :, channel].T
        color = np.take(pale - dark, self.kind)
        color *= self.tone
        color += np.take(dark, self.kind)
        for thickness, paint in self.overlays:
            color += (paint[channel] - color) * thickness
        return color


def _surface(shares: np.ndarray, window: Window, weather: Weather) -> _Surface:
    kind = _largest(shares)
    mask = [kind == k for k in range(5)]
    shore, foot = (_lead_over_others(shares, k) for k in (WATER, ROCK))
    tone, height = np.empty_like(shore), 2.2 * window["swell"]
    for k, values in _tones(shore, window, weather).items():
        np.copyto(tone, values, where=mask[k])
    for k, values in _heights(foot, window, weather).items():
        np.add(height, values, out=height, where=mask[k])
    # Water is level, whatever the land does.
    np.copyto(height, 0.25 * window["ripples"] - 1.2, where=mask[WATER])
    overlays = _overlays(mask, shore, window, weather)
    return _Surface(kind, height, np.clip(tone, -0.25, 1.3), overlays)


def _tones(shore: np.ndarray, window: Window, weather: Weather) -> dict[int, np.ndarray]:
    patches, wide, fine = window["patches"], window["wide"], window["fine"]
    trees, tree = (window[name] for name in _trees(weather))
    glints = window["ripples"] * window["ripples"]
    return {
        EARTH: 0.5 + 0.16 * patches + 0.1 * fine + 0.08 * wide + 0.7 * (window["pebble"] - 0.5),
        MEADOW: 0.45 + 0.22 * wide + 0.13 * patches + 0.17 * window["blades"],
        FOREST: 0.17 * trees + 0.55 * tree - 0.42 + 0.08 * wide,
        WATER: 0.85 - 0.8 * _ramp(shore, 0.0, 1.2) + 0.1 * wide + 0.22 * glints,
        ROCK: 0.35 + 0.03 * window["crags"] + 0.12 * patches + 0.08 * fine,
    }


def _heights(foot: np.ndarray, window: Window, weather: Weather) -> dict[int, np.ndarray]:
    """Above the swell of the land."""
    return {
        EARTH: 0.5 * window["pebbles"] - 0.4,
        MEADOW: 0.22 * window["blades"],
        FOREST: 0.75 * window[_trees(weather)[0]] + 1.0,
        ROCK: window["crags"] * (0.35 + 0.65 * _ramp(foot, 0.0, 0.8)),
    }


def _trees(weather: Weather) -> tuple[str, str]:
    return ("spruces", "spruce") if weather.conifers else ("crowns", "crown")


def _overlays(
    mask: list[np.ndarray], shore: np.ndarray, window: Window, weather: Weather
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Foam along shores, snow on peaks, flowers in meadows."""
    white = np.ones(3, np.float32)
    foam = 0.35 * (1 - _ramp(shore, 0.02, 0.25)) * mask[WATER]
    summits = window["crags"] + 2 * window["patches"]
    snow = weather.snow * _ramp(summits, 10.0, 13.0) * mask[ROCK]
    dots = (window["pebbles"] > 0.6) & (window["pebble"] < 0.5 * weather.flowers)
    flowers = 0.75 * (mask[MEADOW] & dots).astype(np.float32)
    return [(foam, 0.75 * white), (snow, 0.9 * white), (flowers, weather.flower)]


def _largest(shares: np.ndarray) -> np.ndarray:
    """(side, side): the kind of the largest share; `argmax` over a first axis is far slower."""
    kind, top = np.zeros(shares.shape[1:], np.intp), shares[0].copy()
    for k in range(1, len(shares)):
        np.copyto(kind, k, where=shares[k] > top)
        np.maximum(top, shares[k], out=top)
    return kind


def _lead_over_others(shares: np.ndarray, kind: int) -> np.ndarray:
    """By how much the share of a kind is above the largest other one: 0 at its border."""
    others = [share for k, share in enumerate(shares) if k != kind]
    return shares[kind] - np.maximum.reduce(others)


def _sunlight(height: np.ndarray) -> np.ndarray:
    """Brightness of a surface by how it faces the light, and the shadows it casts on itself."""
    down, right = np.zeros_like(height), np.zeros_like(height)
    down[1:-1] = 0.5 * (height[2:] - height[:-2])
    right[:, 1:-1] = 0.5 * (height[:, 2:] - height[:, :-2])
    facing = _LIGHT[0] * down + _LIGHT[1] * right + _LIGHT[2]
    facing /= np.sqrt(1 + down * down + right * right)
    light = 0.38 + 0.95 * np.maximum(facing, 0)
    hidden = np.zeros(height.shape, bool)
    side = len(height)
    for up, south, east in _RAY:
        blocker = height[: side - south, : side - east]
        hidden[south:, east:] |= blocker > height[south:, east:] + (up + 0.8)
    return np.where(hidden, 0.58 * light, light)


def _clouds(window: Window, weather: Weather) -> np.ndarray:
    return 1 - 0.4 * _ramp(window["clouds"] + weather.clouds, 0.0, 1.4)


def _halved(layer: np.ndarray) -> np.ndarray:
    """Mean over squares of 2 x 2 pixels, without the rim."""
    inner = layer[_RIM:-_RIM, _RIM:-_RIM]
    rows = inner[::2] + inner[1::2]
    return 0.25 * (rows[:, ::2] + rows[:, 1::2])


def _smooth(t: np.ndarray) -> np.ndarray:
    return t * t * (3 - 2 * t)


def _ramp(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """0 below `low`, 1 above `high`, smooth between."""
    return _smooth(np.clip((x - low) * (1 / (high - low)), 0, 1))


def _turned(array: np.ndarray, turn: int) -> np.ndarray:
    """One of the eight ways to lay a square down."""
    array = array[::-1] if turn & 1 else array
    array = array[:, ::-1] if turn & 2 else array
    return array.swapaxes(0, 1) if turn & 4 else array


def _turned_back(array: np.ndarray, turn: int) -> np.ndarray:
    array = array.swapaxes(0, 1) if turn & 4 else array
    array = array[:, ::-1] if turn & 2 else array
    return array[::-1] if turn & 1 else array
