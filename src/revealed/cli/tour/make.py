"""How the files of the tour were made: `python -m revealed.cli.tour.make`.

Costs of roads are linear in the day's context; on one day in twenty the dispatcher sends a crate
the wrong way. Letters: B days, n roads.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...problems.linear import LinearProgram
from ..tables import write_table

DEPOTS = ("north", "south", "harbour")
SHOPS = ("market", "station", "school", "hill", "bridge", "park", "mill", "square")
STOCK = (50, 60, 55)
ORDERS = (21, 17, 9, 14, 23, 11, 19, 16)
DAYS, NEXT = 240, 14
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
WRONG = 0.05


def roads() -> tuple[str, ...]:
    return tuple(f"{depot}_{shop}" for depot in DEPOTS for shop in SHOPS)


def problem() -> LinearProgram:
    """Every shop gets its order, no depot sends more than its stock."""
    k, s = len(DEPOTS), len(SHOPS)
    shops = np.tile(np.eye(s), (1, k))
    depots = np.repeat(np.eye(k), s, axis=1)
    return LinearProgram(A_eq=shops, b_eq=ORDERS, A_ub=depots, b_ub=STOCK)


def mps() -> str:
    """The same as a model file, with the costs left at 0."""
    lines = ["NAME          BAKERY", "ROWS", " N  cost"]
    lines += [f" E  order_{shop}" for shop in SHOPS] + [f" L  stock_{depot}" for depot in DEPOTS]
    lines.append("COLUMNS")
    for depot in DEPOTS:
        for shop in SHOPS:
            lines.append(f"    {depot}_{shop}  order_{shop}  1  stock_{depot}  1")
    lines.append("RHS")
    lines += [f"    RHS  order_{shop}  {n}" for shop, n in zip(SHOPS, ORDERS, strict=True)]
    lines += [f"    RHS  stock_{depot}  {n}" for depot, n in zip(DEPOTS, STOCK, strict=True)]
    return "\n".join([*lines, "ENDATA", ""])


def days(rng: np.random.Generator, count: int) -> tuple[np.ndarray, list[str]]:
    """(B, 4) fuel price, rain, roadworks at the bridge and on the hill; weekdays."""
    fuel = np.full(count, 1.6)
    for k in range(1, count):  # wanders, and comes back
        fuel[k] = 1.6 + 0.95 * (fuel[k - 1] - 1.6) + rng.normal(0.0, 0.06)
    rain = np.round(np.maximum(rng.gamma(0.8, 4.0, count) - 1.0, 0.0), 1)
    works = (rng.random((count, 2)) < [0.3, 0.2]).astype(float)
    names = [WEEKDAYS[k % len(WEEKDAYS)] for k in range(count)]
    return np.column_stack([np.round(np.clip(fuel, 1.1, 2.4), 3), rain, works]), names


def costs(contexts: np.ndarray, weekdays: list[str], rng: np.random.Generator) -> np.ndarray:
    """(B, n): distance times fuel, more in the rain on steep roads, at roadworks and on Fridays."""
    n = len(DEPOTS) * len(SHOPS)
    distance = rng.uniform(4.0, 12.0, n)
    steep = rng.uniform(0.0, 0.35, n)
    shop = np.arange(n) % len(SHOPS)
    fuel, rain, bridge, hill = contexts.T
    friday = np.array([day == "Fri" for day in weekdays], float)
    c = np.outer(fuel, distance) + np.outer(rain, steep)
    c += np.outer(bridge, 6.0 * (shop == SHOPS.index("bridge")) + 3.0 * (np.arange(n) < 8))
    c += np.outer(hill, 7.0 * (shop == SHOPS.index("hill")) + 2.5 * (np.arange(n) >= 16))
    return c + np.outer(friday, np.where(shop < 3, 4.0, 0.0) * (np.arange(n) >= 8))


def samples() -> tuple[np.ndarray, list[str], np.ndarray]:
    """(B, 4) contexts, weekdays, and (B, n) decisions of all days, those to come included."""
    rng = np.random.default_rng(20)
    contexts, weekdays = days(rng, DAYS + NEXT)
    c = costs(contexts, weekdays, rng)
    taken = c.copy()
    wrong = rng.random(len(c)) < WRONG
    taken[wrong] += rng.normal(0.0, 6.0, (int(wrong.sum()), c.shape[1]))
    return contexts, weekdays, np.asarray(problem().solve(taken).x)


def main(folder: Path | None = None) -> None:
    folder = folder or Path(__file__).parent / "files"
    contexts, weekdays, decisions = samples()
    dates = [str(day) for day in np.arange("2026-03-02", "2027-03-02", dtype="datetime64[D]")]
    dates = [day for k, day in enumerate(dates) if k % 7 != 6][: len(contexts)]  # closed on Sundays
    (folder / "plan.mps").write_text(mps(), "utf-8")
    _contexts(folder / "contexts.csv", dates[:DAYS], weekdays[:DAYS], contexts[:DAYS])
    _contexts(folder / "next_days.csv", dates[DAYS:], weekdays[DAYS:], contexts[DAYS:])
    write_table(folder / "decisions.csv", roads(), decisions[:DAYS], key=("day", dates[:DAYS]))


def _contexts(path: Path, dates: list[str], weekdays: list[str], values: np.ndarray) -> None:
    names = "day,weekday,fuel_price,rain_mm,works_bridge,works_hill"
    rows = [
        ",".join([date, weekday, *(f"{value:g}" for value in line)])
        for date, weekday, line in zip(dates, weekdays, values.tolist(), strict=True)
    ]
    path.write_text("\n".join([names, *rows, ""]), "utf-8")


if __name__ == "__main__":
    main()
