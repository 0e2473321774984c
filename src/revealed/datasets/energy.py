"""Electricity prices by the half-hour, and what has to be scheduled under them.

`load_energy` reads the files of the ICON challenge on forecasting and scheduling from a folder of
yours; `synthetic_energy` makes up days and tasks of the same kind where there are none. Both give
the same record. Letters: D days, P = 48 half-hours, p features, J tasks.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .._common.checks import positive_int
from ..errors import InputError
from ..problems.catalogue.schedules import energy_per_start, scheduling
from ..problems.linear import LinearProgram

T = TypeVar("T")
PERIODS = 48
HOURS = 0.5
ARCHIVE = "ICON_data.zip"
PRICE = "SMPEP2"
FORECASTS = {
    "ForecastWindProduction": "wind power forecast",
    "SystemLoadEA": "load forecast",
    "SMPEA": "price forecast",
    "ORKTemperature": "temperature",
    "ORKWindspeed": "wind speed",
    "CO2Intensity": "CO2 intensity",
}
"""Columns known before the day begins, and their names in words."""


@dataclass(frozen=True, eq=False)
class Tasks:
    """What has to run, and on what: tasks with windows, and the pooled capacity of the machines."""

    duration: np.ndarray
    """(J,) half-hours; `earliest` (J,) is the first of the window, `latest` (J,) the end of it."""
    earliest: np.ndarray
    latest: np.ndarray
    power: np.ndarray
    """(J,) while running; `usage` (J,) of the machines' capacity."""
    usage: np.ndarray
    capacity: float

    def problem(self) -> LinearProgram:
        """When to start each task, as a linear program; see `rv.problems.scheduling`."""
        return scheduling(
            self.duration,
            self.earliest,
            self.latest,
            n_periods=PERIODS,
            usage=self.usage,
            capacity=self.capacity,
        )

    def energy(self, problem: LinearProgram) -> np.ndarray:
        """(n, P) energy of each start in each half-hour, of all starts about 1 on average."""
        each = energy_per_start(problem, self.power, HOURS).toarray()
        return each / each.sum(axis=1).mean()


@dataclass(frozen=True, eq=False)
class EnergyDays:
    """Days with what was known of each half-hour beforehand and the price it turned out to have."""

    features: np.ndarray
    """(D, P, p), each with mean 0 and variance 1 over all days."""
    names: tuple[str, ...]
    prices: np.ndarray
    """(D, P)"""
    tasks: Tasks
    n_left_out: int = 0
    """Days dropped because a number was missing."""


def load_energy(folder: Any, *, load: int = 6, day: int = 1) -> EnergyDays:
    """The Irish prices of 2011 to 2013 and one instance, from the folder with the ICON files.

    Days with a missing number are left out and counted. On and off switching and idle power of the
    machines are not part of the model.

    Parameters
    ----------
    folder : path
        It holds ICON_data.zip or its contents: `data/prices2013.dat` and the instances, such as
        `load6/day01.txt`.
    load, day : int
        Which instance.

    Returns
    -------
    EnergyDays
        Features (D, 48, p), prices (D, 48) and tasks.
    """
    archive = Path(folder) / ARCHIVE
    root = zipfile.Path(archive) if archive.is_file() else Path(folder)
    prices = root / "data" / "prices2013.dat"
    instance = root / f"load{load}" / f"day{day:02d}.txt"
    for path in (prices, instance):
        if not path.is_file():
            raise InputError(
                f"`folder` must hold {ARCHIVE} or its contents; {path.name} is missing in "
                f"{str(folder)!r}."
            )
    tasks = _read(_read_tasks, instance, "utf-8")
    table, names = _read(_read_table, prices, "latin-1")
    whole = ~np.isnan(table).any(axis=(1, 2))
    known = table[whole][:, :, [names.index(name) for name in FORECASTS]]
    features = np.concatenate([_standard(known), _time_of_day(len(known))], axis=2)
    target = table[whole][:, :, names.index(PRICE)]
    return EnergyDays(
        features, (*FORECASTS.values(), *_HARMONICS), target, tasks, int((~whole).sum())
    )


def synthetic_energy(n_days: int = 200, n_tasks: int = 12, *, seed: int = 0) -> EnergyDays:
    """Made-up days: demand has a morning and an evening peak, wind is slow to change, and the price
    follows what is left of demand after wind, with noise that no forecast knows.

    Parameters
    ----------
    n_days, n_tasks : int
        How many.
    seed : int
        The same number gives the same data.

    Returns
    -------
    EnergyDays
        Features (D, 48, p), prices (D, 48) and tasks.
    """
    n_days, n_tasks = positive_int(n_days, "n_days"), positive_int(n_tasks, "n_tasks")
    rng = np.random.default_rng(seed)
    hour = np.arange(PERIODS) * HOURS
    peaks = np.exp(-(((hour - 8.5) / 2.5) ** 2)) + 1.4 * np.exp(-(((hour - 18.5) / 2.5) ** 2))
    strength = rng.uniform(0.6, 1.2, (n_days, 1))
    demand = strength * peaks + 0.05 * rng.standard_normal((n_days, PERIODS))
    drift = np.cumsum(rng.standard_normal((n_days, PERIODS)), axis=1) / np.sqrt(PERIODS)
    wind = np.exp(0.5 * drift + 0.3 * rng.standard_normal((n_days, 1)))
    prices = 60 + 40 * demand - 14 * wind + 3 * rng.standard_normal((n_days, PERIODS))
    known = np.stack([wind, demand], axis=2)
    features = np.concatenate([_standard(known), _time_of_day(n_days)], axis=2)
    return EnergyDays(features, ("wind", "demand", *_HARMONICS), prices, _some_tasks(rng, n_tasks))


def _some_tasks(rng: np.random.Generator, count: int) -> Tasks:
    duration = rng.integers(2, 13, count)
    earliest = np.array([rng.integers(0, PERIODS - d - 12) for d in duration])
    latest = np.array(
        [rng.integers(e + d + 8, PERIODS + 1) for e, d in zip(earliest, duration, strict=True)]
    )
    power = rng.uniform(50, 500, count)
    return Tasks(duration, earliest, latest, power, power, 0.7 * power.sum())


# --- the ICON files ------------------------------------------------------------------------------


def _read(parse: Callable[[str, str], T], path: Any, encoding: str) -> T:
    """What a file holds; a word that is no number, or too few lines, meet a sentence."""
    try:
        return parse(path.read_text(encoding), path.name)
    except (IndexError, ValueError) as fault:
        if isinstance(fault, InputError):
            raise
        raise InputError(
            f"{path.name} is not laid out like a file of the ICON challenge ({fault})."
        ) from None


def _read_tasks(text: str, name: str) -> Tasks:
    """One instance: resolution, resources, machines (two lines each), then tasks (two lines each).

    A machine's second line is its capacity of each resource; a task's lines are number, duration,
    first and last period, power, and then its use of each resource.
    """
    lines = [[float(word) for word in line.split()] for line in text.splitlines() if line.strip()]
    minutes, resources, machines = (int(line[0]) for line in lines[:3])
    if minutes != 60 * HOURS or resources != 1:
        raise InputError(
            f"{name} must have half-hours and one resource; it has {minutes} minutes and "
            f"{resources} resources."
        )
    capacity = sum(lines[4 + 2 * m][0] for m in range(machines))
    body = lines[4 + 2 * machines :]
    count = int(lines[3 + 2 * machines][0])
    if len(body) != 2 * count:
        raise InputError(f"{name} announces {count} tasks but has {len(body)} lines for them.")
    heads, usage = np.array(body[::2]), np.array(body[1::2])[:, 0]
    whole = heads[:, 1:4].astype(np.int64)
    return Tasks(whole[:, 0], whole[:, 1], whole[:, 2], heads[:, 4], usage, capacity)


def _read_table(text: str, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """(D, P, columns) numbers and the names of the columns; the date and the holiday, which are
    words in quotes, are left out."""
    heading, *lines = re.sub('"[^"\n]*"', "", text).splitlines()
    names = tuple(heading.lstrip("#").split())[2:]
    missing = [column for column in (*FORECASTS, PRICE) if column not in names]
    if missing:
        raise InputError(f"{name} must have a column {missing[0]}; it has {', '.join(names)}.")
    table = np.array([[float(word) for word in line.split()] for line in lines if line.strip()])
    if table.shape[1] != len(names) or len(table) % PERIODS:
        raise InputError(
            f"{name} must have {len(names)} numbers a line and {PERIODS} lines a day; got "
            f"{table.shape[1]} and {len(table)} lines."
        )
    return table.reshape(-1, PERIODS, len(names)), names


# --- features ------------------------------------------------------------------------------------

_HARMONICS = tuple(f"{kind} {k}" for k in (1, 2, 3) for kind in ("sin", "cos"))


def _time_of_day(n_days: int) -> np.ndarray:
    """(D, P, 6) waves of one, two and three periods a day."""
    angle = 2 * np.pi * np.arange(PERIODS)[:, None] / PERIODS * np.array([1, 2, 3])
    waves = np.stack([np.sin(angle), np.cos(angle)], axis=2).reshape(PERIODS, 6)
    return np.broadcast_to(np.sqrt(2) * waves, (n_days, PERIODS, 6))


def _standard(values: np.ndarray) -> np.ndarray:
    return (values - values.mean(axis=(0, 1))) / values.std(axis=(0, 1))
