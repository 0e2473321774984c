"""What the projection benchmark says: ratios, targets held or missed, and the printed tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from .rivals import DIRECT
from .timing import USABLE

Row = dict[str, Any]
GRID = "grid 12x12"


def our_time(row: Row, threads: str = "all") -> float:
    """Median microseconds a projection of ours, on 1 thread or on all of them."""
    return row["ours"][threads]["median_us"]


def best_direct(row: Row) -> tuple[str, float] | None:
    """Name and time of the fastest direct solver that is usable on every instance."""
    usable = {
        name: entry["median_us"]
        for name, entry in row["rivals"].items()
        if name in DIRECT and entry["accuracy"] <= USABLE
    }
    if not usable:
        return None
    name = min(usable, key=usable.__getitem__)
    return name, usable[name]


def ratio(row: Row, name: str, threads: str = "all") -> float | None:
    """How many times faster ours is than a rival, or than the `best direct` solver."""
    if name == "best direct":
        best = best_direct(row)
        return None if best is None else best[1] / our_time(row, threads)
    if name not in row["rivals"]:
        return None
    return row["rivals"][name]["median_us"] / our_time(row, threads)


def targets(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Each target with the value found, for those whose cases were run."""
    rows: list[Row] = content["rows"]
    by_case = {(row["case"], row["regime"]): row for row in rows}
    found = []

    def judge(name: str, value: float | None, bound: float, *, at_least: bool = True) -> None:
        if value is not None:
            holds = value >= bound if at_least else value <= bound
            sign = ">=" if at_least else "<="
            found.append(
                {"name": name, "value": value, "bound": f"{sign} {bound:g}", "holds": holds}
            )

    if cold := by_case.get((GRID, "cold")):
        for name in ("CVXPY + ECOS", "CVXPY + ECOS as published"):
            judge(f"{GRID}, cold: times {name}", ratio(cold, name), 1000)
        judge(f"{GRID}, cold: times the best direct solver", ratio(cold, "best direct"), 20)
    if almost := by_case.get((GRID, "almost")):
        judge(f"{GRID}, almost: times the best direct solver", ratio(almost, "best direct"), 10)
    least = [value for row in rows if (value := ratio(row, "best direct")) is not None]
    judge("least ratio to the best direct solver in the table", min(least, default=None), 1)
    worst = [entry["accuracy"] for row in rows for entry in row["ours"].values()]
    judge("our worst accuracy", max(worst, default=None), 1e-7, at_least=False)
    if side := content.get("time_by_side"):
        judge("exponent of time in the grid's side", side["exponent"], 4.2, at_least=False)
    if memory := content.get("memory_by_batch"):
        slopes = memory["ratio_of_slopes"]
        judge("memory for a further sample, large over small", slopes, 1.25, at_least=False)
    return found


def print_tables(content: dict[str, Any], path: Path) -> None:
    """The table of times, the table of ratios, what scales how, and the targets."""
    from rich.console import Console

    # A file has no width of its own, and 80 columns break every line of these tables.
    console = Console(width=None if sys.stdout.isatty() else 150)
    rows: list[Row] = content["rows"]
    if rows:
        console.print(_times(rows))
        console.print(_ratios(rows))
    console.print("[dim]* off by more than 1e-5 somewhere; not counted as best direct solver[/]")
    if side := content.get("time_by_side"):
        pairs = zip(side["sides"], side["us"], strict=True)
        times = ", ".join(f"{k}: {us:.0f}" for k, us in pairs)
        console.print(f"us a sample by side ({times}): exponent {side['exponent']:.2f}")
    if memory := content.get("memory_by_batch"):
        sizes = ", ".join(
            f"{batch}: {peak:.0f} MiB"
            for batch, peak in zip(memory["batches"], memory["peak_mib"], strict=True)
        )
        console.print(f"peak memory by batch on {memory['grid']}: {sizes}")
    for note in dict.fromkeys(content["notes"]):
        console.print(f"[dim]{note}[/]")
    for target in content["targets"]:
        mark = "[green]holds [/]" if target["holds"] else "[red]missed[/]"
        console.print(f"{mark}  {target['name']}: {target['value']:.3g} ({target['bound']})")
    console.print(f"written to {path}")


def _times(rows: list[Row]):
    from rich.table import Table

    names = list(dict.fromkeys(name for row in rows for name in row["rivals"]))
    table = Table(title="microseconds a projection (median round)")
    for heading in ("problem", "predictions"):
        table.add_column(heading)
    for heading in ["ours, 1 thread", "ours, all", *names]:
        table.add_column(heading, justify="right")
    for row in rows:
        ours = [_number(our_time(row, threads)) for threads in ("1", "all")]
        table.add_row(
            row["case"], row["regime"], *ours, *(_cell(row["rivals"].get(n)) for n in names)
        )
    return table


def _ratios(rows: list[Row]):
    from rich.table import Table

    names = list(dict.fromkeys(name for row in rows for name in row["rivals"]))
    table = Table(title="times faster than (all threads / one thread)")
    for heading in ("problem", "predictions"):
        table.add_column(heading)
    for heading in [*names, "best direct"]:
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [_pair(row, name) for name in [*names, "best direct"]]
        best = best_direct(row)
        cells[-1] += f" ({best[0]})" if best else ""
        table.add_row(row["case"], row["regime"], *cells)
    return table


def _pair(row: Row, name: str) -> str:
    both, one = ratio(row, name), ratio(row, name, "1")
    return "-" if both is None or one is None else f"{_number(both)} / {_number(one)}"


def _cell(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "-"
    return _number(entry["median_us"]) + ("*" if entry["n_failed"] else "")


def _number(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"
