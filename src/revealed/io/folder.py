"""Two files that belong together: `model.json` and the tensors it names by checksum.

Reading trusts nothing: sizes, types, versions and the checksum are looked at before a number is
used, and whatever is unknown is refused with a sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from .._common.disk import (
    DRAFT,
    held,
    remove,
    remove_drafts,
    strict_json,
    sync_folder,
    write_draft,
)
from .._common.words import plain_name
from ..errors import InputError, MissingDependencyError

FORMAT = "revealed model"
WITH_LIMITS = 2
"""The version of models whose contexts bring limits of the plan: a reader of version 1 would not
look for them, and decide wrongly."""
UNNAMED = 3
"""The version of estimators that the command line cannot read: without names of features and
variables, or of another kind than linear and quadratic."""
WITH_WHOLE = 4
"""The version of models whose decisions are whole: earlier readers would decide with fractions."""
WITH_COSTS = 5
"""The version of models of whose costs something is given: earlier readers would not keep to its
limits."""
VERSIONS = (1, WITH_LIMITS, UNNAMED, WITH_WHOLE, WITH_COSTS)
"""Of the format, that are read; a model is written in the oldest that can say what it is."""
INDEX, TENSORS = "model.json", "tensors.safetensors"
CHECKSUM = "sha256"
"""The entry of the index under which stands the checksum of its other entries: one changed digit of
a feature's mean is a model that predicts otherwise."""
ASIDE = f"{TENSORS}.old"
"""Where the tensors of a model stay while it is replaced."""
LARGEST_INDEX = 64 * 2**20
LARGEST_TENSORS = 16 * 2**30
WAIT = 30.0
"""Seconds to wait for another writer, who needs a moment only."""
LARGEST_INTEGER = 2**63 - 1
"""Of those that are used as a number; more digits fit no array."""
READINGS = 5
"""Attempts to read a model that is being replaced meanwhile."""
PAUSE = 0.02
"""Seconds between them."""

T = TypeVar("T")
Tensors = dict[str, np.ndarray]


def check_target(folder: Path) -> bool:
    """Refuse, before long work, a place where no model can be written; whether one is there that
    will be replaced."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise InputError(f"{nearest} is a file; a folder for the model was expected.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(f"{nearest} may not be written to; choose another folder for the model.")
    if not (folder / INDEX).exists():
        if (folder / TENSORS).exists() and not _unfinished(folder):
            raise InputError(
                f"{folder} holds a {TENSORS} without a {INDEX}: it is not ours, or what an "
                "interrupted copy left behind. It is left alone; remove it or choose another "
                "folder."
            )
        return False
    try:
        _index(folder / INDEX)
    except InputError as error:
        raise InputError(
            f"{folder} holds a {INDEX} that is not a model, or one of another version; it is left "
            "alone. Choose another folder."
        ) from error
    return True


def write_folder(
    folder: Path, facts: dict[str, Any], tensors: Tensors, *, version: int = 1
) -> None:
    """Write both files. Whenever this is interrupted, a model that was there can still be read:
    the new one takes its place with the index, and until then the old tensors are kept aside."""
    library = _safetensors()
    check_target(folder)
    content = library.save({name: np.asarray(array, order="C") for name, array in tensors.items()})
    index = {"format": FORMAT, "version": version, **facts}
    index["tensors"] = {"file": TENSORS, "sha256": hashlib.sha256(content).hexdigest()}
    index[CHECKSUM] = _checksum(index)
    text = json.dumps(index, allow_nan=False, indent=1, ensure_ascii=False)
    busy = f"Another process is writing a model to {folder}. Wait for it, or choose another folder."
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held(folder, wait=WAIT, busy=busy) as alone:
            check_target(folder)  # again: someone may have written there meanwhile
            _replace(folder, content, f"{text}\n".encode(), alone)
    except OSError as error:
        said = error.strerror or error
        raise InputError(f"The model cannot be written to {folder}: {said}.") from error


def _replace(folder: Path, content: bytes, index: bytes, alone: bool) -> None:
    """Put new tensors and a new index in the place of the old ones."""
    drafts: list[Path] = []
    try:
        _settle(folder)
        if alone:
            _clear(folder)
        drafts.append(write_draft(folder / TENSORS, content))
        drafts.append(write_draft(folder / INDEX, index))
        if (folder / TENSORS).exists() and (folder / INDEX).exists():
            os.replace(folder / TENSORS, folder / ASIDE)
        os.replace(drafts[0], folder / TENSORS)
        os.replace(drafts[1], folder / INDEX)
        sync_folder(folder)
        remove(folder / ASIDE)
    finally:
        for draft in drafts:
            remove(draft)


def read_folder(folder: str | os.PathLike[str]) -> tuple[Facts, Tensors]:
    """The index and the tensors of a folder written by `write_folder`."""
    place = Path(folder)
    if not (place / INDEX).is_file():
        what = f"has no {INDEX}" if place.is_dir() else "is not a folder"
        raise InputError(
            f"{os.fspath(folder)} {what}; a model written by `revealed fit` or `save` was expected."
        )
    facts, content = _matching(place)
    try:
        return facts, dict(_safetensors().load(content))
    except Exception as error:  # the library raises an exception of its own kind, and a few others
        raise InputError(f"{TENSORS} is not a readable safetensors file: {error}.") from error


def _matching(place: Path) -> tuple[Facts, bytes]:
    """The index and the bytes that belong to it. A writer may replace both between two looks; then
    both are read again."""
    for left in reversed(range(READINGS)):
        try:
            facts = _index(place / INDEX)
            entry = facts.part("tensors")
            if entry.get("file", str) != TENSORS:
                raise InputError(f"{facts.where}: tensors are expected in {TENSORS}.")
            return facts, _content(place, entry.get("sha256", str))
        except _Unmatched as fault:
            if not left or not (_written_to(place) or _belonging(place / INDEX) != fault.sha256):
                raise
            time.sleep(PAUSE)
        except OSError as error:
            if not left:
                raise InputError(f"{place} cannot be read: {error.strerror}.") from error
    raise AssertionError("the last attempt returns or raises")


def _written_to(place: Path) -> bool:
    """Whether a writer may be at work, or was killed there."""
    return (place / ASIDE).exists() or any(place.glob(f"{INDEX}.*{DRAFT}"))


class _Unmatched(InputError):
    """Tensors with another checksum than the index has."""

    def __init__(self, sentence: str, sha256: str) -> None:
        super().__init__(sentence)
        self.sha256 = sha256


class Facts:
    """A JSON object whose entries are asked for with the type they must have."""

    def __init__(self, content: dict[str, Any], where: str) -> None:
        self._content, self.where = content, where

    def get(self, name: str, kind: type[T]) -> T:
        """The entry, refused if it is missing or of another type."""
        value: Any = self._content.get(name)
        if isinstance(value, bool) and kind is not bool:
            value = None
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            raise InputError(f"{self.where}: {name!r} is too large a number.")
        if kind is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, kind):
            got = "nothing" if name not in self._content else json.dumps(value)[:60]
            raise InputError(f"{self.where}: {name!r} must be a {kind.__name__}; got {got}.")
        if isinstance(value, float) and not np.isfinite(value):
            raise InputError(f"{self.where}: {name!r} must be finite.")
        return cast(T, value)

    def part(self, name: str) -> Facts:
        """An entry that is an object itself."""
        return Facts(self.get(name, dict), f"{self.where}, {name}")

    def parts(self, name: str) -> list[Facts]:
        """An entry that is a list of objects."""
        items = self.get(name, list)
        for k, item in enumerate(items):
            if not isinstance(item, dict):
                raise InputError(f"{self.where}: item {k + 1} of {name!r} must be an object.")
        return [Facts(item, f"{self.where}, {name} {k + 1}") for k, item in enumerate(items)]

    def words(self, name: str) -> tuple[str, ...]:
        """An entry that is a list of texts, written the way tables are read."""
        items = self.get(name, list)
        if not all(isinstance(item, str) for item in items):
            raise InputError(f"{self.where}: {name!r} must be a list of texts.")
        return tuple(map(plain_name, items))

    def whole_numbers(self, name: str) -> tuple[int, ...]:
        """An entry that is a list of whole numbers."""
        items = self.get(name, list)
        if not all(type(item) is int and abs(item) <= LARGEST_INTEGER for item in items):
            raise InputError(f"{self.where}: {name!r} must be a list of whole numbers.")
        return tuple(items)

    def has(self, name: str) -> bool:
        return self._content.get(name) is not None

    @property
    def content(self) -> dict[str, Any]:
        """Everything as it is, for what has entries of any kind."""
        return dict(self._content)


def tensor(
    tensors: Tensors, name: str, shape: tuple[int | None, ...], kind: str = "f"
) -> np.ndarray:
    """A tensor with the shape (None: any) and kind ("f" float64, "i" int64) that it must have."""
    array = tensors.get(name)
    dtype = np.float64 if kind == "f" else np.int64
    if array is None:
        raise InputError(f"{TENSORS} has no tensor {name!r}; the model is not complete.")
    fits = array.ndim == len(shape) and all(
        want in (None, got) for want, got in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype != dtype:
        want = tuple("any" if s is None else s for s in shape)
        raise InputError(
            f"{TENSORS}, tensor {name!r}: expected {np.dtype(dtype)} of shape {want}, got "
            f"{array.dtype} of shape {array.shape}."
        )
    return array


def finite(tensors: Tensors, name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """A writable copy of a tensor of finite numbers."""
    array = tensor(tensors, name, shape)
    if not np.isfinite(array).all():
        raise InputError(f"The tensor {name!r} of the model holds numbers that are not finite.")
    return np.array(array)


def _index(path: Path) -> Facts:
    if not path.is_file():
        raise InputError(f"{path.name} is not a file.")
    if path.stat().st_size > LARGEST_INDEX:
        raise InputError(f"{path.name} is larger than any index; it is not read.")
    try:
        content = strict_json(path.read_bytes())
    except ValueError as error:
        raise InputError(
            f"{path.name} is not JSON that can be used: {error}. Copy the model anew."
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f'{path.name} does not say "format": "{FORMAT}"; it is something else.')
    version = content.get("version")
    if version not in VERSIONS or isinstance(version, bool):
        raise InputError(
            f"{path.name} is of format version {str(version)[:20]}; this version of revealed reads "
            f"{VERSIONS[0]} to {VERSIONS[-1]}. Use a version of revealed that reads it, or fit "
            "anew."
        )
    # Earlier versions wrote none.
    if content.pop(CHECKSUM, None) not in (None, _checksum(content)):
        raise InputError(
            f"{path.name} is not as it was written (its checksum differs): it was damaged or "
            f"edited. Copy the model anew; without its entry {CHECKSUM!r} it is read as it is."
        )
    return Facts(content, path.name)


def _checksum(index: dict[str, Any]) -> str:
    """Of what an index says, however it is laid out."""
    text = json.dumps(index, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _content(folder: Path, checksum: str) -> bytes:
    """The bytes that an index belongs to: in their place, or aside if writing was interrupted."""
    there = [path for path in (folder / TENSORS, folder / ASIDE) if path.is_file()]
    for path in there:
        if path.stat().st_size > LARGEST_TENSORS:
            raise InputError(f"{path.name} is larger than any model; it is not read.")
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() == checksum:
            return content
    if not there:
        raise _Unmatched(f"{folder} has no {TENSORS}; the model is not complete.", checksum)
    raise _Unmatched(
        f"{TENSORS} is not the file that {INDEX} belongs to (its checksum differs): it was damaged "
        "or replaced. Copy the model anew.",
        checksum,
    )


def _settle(folder: Path) -> None:
    """Put tensors back that a killed writer left aside and that the index still belongs to."""
    if (folder / INDEX).exists() and (folder / ASIDE).exists():
        checksum = _belonging(folder / INDEX)
        if checksum is not None and _sha256(folder / ASIDE) == checksum:
            os.replace(folder / ASIDE, folder / TENSORS)


def _clear(folder: Path) -> None:
    """Remove what killed writers left. Tensors without an index go before the draft of the index,
    by which they are known to be ours."""
    if not (folder / INDEX).exists() and _unfinished(folder):
        remove(folder / TENSORS)
    for name in (TENSORS, INDEX):
        remove_drafts(folder, f"{name}.")


def _unfinished(folder: Path) -> bool:
    """Whether a first writer was killed between its two moves: the draft of an index that belongs
    to the tensors is still there."""
    drafts = folder.glob(f"{INDEX}.*{DRAFT}")
    checksum = _sha256(folder / TENSORS)
    return checksum is not None and any(_belonging(draft) == checksum for draft in drafts)


def _belonging(index: Path) -> str | None:
    """The checksum that an index has for its tensors; None where it is no index."""
    try:
        return _index(index).part("tensors").get("sha256", str)
    except (InputError, OSError):
        return None


def _sha256(path: Path) -> str | None:
    """The checksum of a file, None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _safetensors() -> Any:
    try:
        from safetensors import numpy as library
    except ImportError as error:
        raise MissingDependencyError(
            "Models are kept with safetensors, which is not installed: `pip install safetensors`."
        ) from error
    return library


_BEYOND = "not finite"
"""The key under which JSON keeps a number that it has no sign for."""


def plain(value: Any, where: str) -> Any:
    """A value as JSON gives it back, numbers that are not finite under a key of their own."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(name): plain(item, f"{where}, {name}") for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, where) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return {_BEYOND: str(value)}
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise InputError(
        f"On disk there are numbers, text and lists of them; {where} is a {type(value).__name__}."
    )


def unplain(value: Any) -> Any:
    """What `plain` was given, lists for tuples."""
    if isinstance(value, dict):
        if value.keys() == {_BEYOND} and value[_BEYOND] in ("nan", "inf", "-inf"):
            return float(value[_BEYOND])
        return {name: unplain(item) for name, item in value.items()}
    return [unplain(item) for item in value] if isinstance(value, list) else value
