"""Prices of assets, and what a portfolio manager knew and learned afterwards in each period.

`load_sp500` reads the prices that the package skfolio carries; `synthetic_prices` makes up others
from a factor model where it is not installed. `portfolio_periods` turns either into samples.
Letters: D days, T periods, n assets, p features, K covariance estimates.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._common.checks import positive_int
from ..errors import InputError, MissingDependencyError

PERIOD, YEAR, QUARTER = 5, 252, 63
"""Trading days: of a period between two decisions, of a year, of a quarter."""
FEATURES = ("last week", "last month", "last quarter", "last year", "volatility", "market")
ESTIMATES = ("a quarter's covariance", "a year's covariance", "a year's variances")


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of assets by day."""

    days: np.ndarray
    """(D,) datetime64[D]"""
    names: tuple[str, ...]
    values: np.ndarray
    """(D, n), above 0."""


@dataclass(frozen=True, eq=False)
class PortfolioPeriods:
    """What was known at the beginning of each period, and what came; per cent and per cent^2."""

    days: np.ndarray
    """(T,) the day before the period begins."""
    features: np.ndarray
    """(T, n, p) of each asset, known then; mean 0 over the assets, and about unit size."""
    covariance: np.ndarray
    """(T, n, n) of returns of a period, from the year before."""
    estimates: np.ndarray
    """(T, K, n, n) further estimates known then, in the order of `ESTIMATES`."""
    returns: np.ndarray
    """(T, n) of the period that followed."""
    risk: np.ndarray
    """(T, n, n) the covariance that the quarter which followed turned out to have."""


def load_sp500() -> Prices:
    """20 stocks of the S&P 500, 1990 to 2022, by day, from the installed package skfolio.

    Only its data file is read, nothing of it is imported: `pip install --no-deps skfolio` is enough
    (1.5 MB), none of the packages that skfolio itself builds on is needed.

    Returns
    -------
    Prices
        With `days` (D,), `names` and `values` (D, 20).

    Raises
    ------
    MissingDependencyError
        If skfolio is not installed.
    """
    found = importlib.util.find_spec("skfolio")
    if found is None or not found.submodule_search_locations:
        raise MissingDependencyError(
            "The S&P 500 prices come with the package 'skfolio', which is not installed; "
            "`pip install --no-deps skfolio` brings its data, `synthetic_prices()` does without."
        )
    folder = Path(next(iter(found.submodule_search_locations)))
    return read_prices(folder / "datasets" / "data" / "sp500_dataset.csv.gz")


def read_prices(path: Path) -> Prices:
    """Prices from a CSV file (.gz too): a column of days, then one column for each asset."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"A file of prices was expected at {path}; there is none.")
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        heading, *rows = [*csv.reader(file)] or [[]]
    if len(heading) < 2 or not rows:
        raise InputError(f"{path.name} must hold a heading, and a line for each day; it does not.")
    for line, row in enumerate(rows, start=2):
        if len(row) != len(heading):
            raise InputError(
                f"{path.name}, line {line}: {len(heading)} cells were expected, as in the heading; "
                f"got {len(row)}."
            )
    values = np.array([[_price(cell) for cell in row[1:]] for row in rows])
    bad = np.argwhere(~(np.isfinite(values) & (values > 0)))
    if bad.size:
        day, asset = bad[0]
        raise InputError(
            f"{path.name} must hold a price above 0 for every day and asset; line {day + 2} has "
            f"none for {heading[asset + 1]!r}. Drop the day or the asset."
        )
    return Prices(_days([row[0] for row in rows], path.name), tuple(heading[1:]), values)


def _price(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def _days(words: list[str], name: str) -> np.ndarray:
    try:
        return np.array(words, "datetime64[D]")
    except ValueError as fault:
        raise InputError(f"{name} must have days such as 2020-01-31 first ({fault}).") from None


def synthetic_prices(n_days: int = 2000, n_assets: int = 10, *, seed: int = 0) -> Prices:
    """Made-up prices: three factors, the first of which is the market, and noise of each asset.

    Returns lean a little on those of the month before, so that there is something to learn.

    Parameters
    ----------
    n_days, n_assets : int
        How many.
    seed : int
        The same number gives the same prices.

    Returns
    -------
    Prices
        With `days` (D,), `names` and `values` (D, n).
    """
    n_days, n_assets = positive_int(n_days, "n_days"), positive_int(n_assets, "n_assets")
    rng = np.random.default_rng(seed)
    loads = np.column_stack([rng.uniform(0.5, 1.5, n_assets), rng.normal(0, 0.5, (n_assets, 2))])
    returns = rng.normal(0, 0.008, (n_days, 3)) @ loads.T
    returns += rng.normal(0, 1, (n_days, n_assets)) * rng.uniform(0.005, 0.02, n_assets)
    for day in range(21, n_days):
        recent = returns[day - 21 : day].mean(axis=0)
        returns[day] += 0.0003 + 0.3 * (recent - recent.mean())
    days = np.datetime64("2000-01-03") + np.arange(n_days)
    names = tuple(f"asset {k + 1}" for k in range(n_assets))
    return Prices(days, names, 100 * np.exp(np.cumsum(returns, axis=0)))


def portfolio_periods(prices: Prices) -> PortfolioPeriods:
    """Every period of five trading days with a year of prices before it and a quarter after it.

    Parameters
    ----------
    prices : Prices
        At least 316 days of at least 2 assets.

    Returns
    -------
    PortfolioPeriods
        What was known before each period, and the returns and risk that followed.
    """
    steps = 100 * np.diff(np.log(prices.values), axis=0)  # per cent a day; row k ends on day k + 1
    last = len(steps) - QUARTER
    if steps.shape[1] < 2:
        raise InputError("Portfolios need at least 2 assets to choose from; got 1.")
    if last < YEAR:
        raise InputError(
            f"Portfolios need at least {YEAR + QUARTER + 1} days of prices; got {len(steps) + 1}."
        )
    ends = np.arange(YEAR, last + 1, PERIOD)
    parts = [_one_period(steps, int(end)) for end in ends]
    features, year, quarter, returns, risk = (np.array(part) for part in zip(*parts, strict=True))
    diagonal = year * np.eye(year.shape[1])
    return PortfolioPeriods(
        prices.days[ends],
        features,
        year,
        np.stack([quarter, year, diagonal], axis=1),
        returns,
        risk,
    )


def _one_period(steps: np.ndarray, end: int) -> tuple[np.ndarray, ...]:
    """Features, covariances before, returns and covariance after, at the end of one day."""
    before, after = steps[end - YEAR : end], steps[end : end + QUARTER]
    year, quarter = (PERIOD * np.cov(part.T) for part in (before, before[-QUARTER:]))
    known = _features(before, year)
    # What is known of each asset in relation to the others: portfolios do not depend on levels.
    spread = known - known.mean(axis=0)
    spread /= np.maximum(spread.std(axis=0), 1e-12)
    return spread, year, quarter, after[:PERIOD].sum(axis=0), PERIOD * np.cov(after.T)


def _features(before: np.ndarray, year: np.ndarray) -> np.ndarray:
    """(n, p) in the order of `FEATURES`; the year leaves out its last month, as momentum does."""
    market = before.mean(axis=1)
    lean = before.T @ (market - market.mean()) / len(market) / market.var()
    return np.column_stack(
        [
            before[-PERIOD:].sum(axis=0),
            before[-21:].sum(axis=0),
            before[-QUARTER:].sum(axis=0),
            before[:-21].sum(axis=0),
            np.sqrt(np.diag(year)),
            lean,
        ]
    )
