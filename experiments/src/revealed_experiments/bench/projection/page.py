"""The projection benchmark as a page of Markdown, and the sentence of it that the README quotes."""

from __future__ import annotations

from typing import Any

from .tables import GRID, Row, best_direct, our_time, ratio

PAPER_ROUTE = "CVXPY + ECOS"


def page(content: dict[str, Any]) -> str:
    """Everything the benchmark found, for reading; the JSON beside it has the rest."""
    hardware, versions = content["hardware"], content["versions"]
    facts = ", ".join(f"{name} {value}" for name, value in {**hardware, **versions}.items())
    lines = [
        "# Projection: times and ratios",
        "",
        f"Made by `{content['command']}`. {facts}.",
        "",
        "Microseconds a projection, median round, batch of "
        f"{content['settings']['batch']}; `*` marks a solver that was off by more than 1e-5 on "
        "some instance. Ratios are to ours on all threads, in brackets on one thread.",
        "",
        *_table(content["rows"]),
        "",
        *_scaling(content),
        "## Targets",
        "",
        *[
            f"- {'holds' if t['holds'] else '**missed**'}: {t['name']}: {t['value']:.3g} "
            f"({t['bound']})"
            for t in content["targets"]
        ],
    ]
    notes = [f"- {note}" for note in dict.fromkeys(content["notes"])]
    return "\n".join([*lines, *(["", "## Notes", "", *notes] if notes else []), ""])


def headline(content: dict[str, Any]) -> str:
    """The sentence that the README quotes; a test compares the two."""
    rows = {(row["case"], row["regime"]): row for row in content["rows"]}
    cold, near = rows[GRID, "cold"], rows[GRID, "near"]
    cores = content["hardware"]["cores"]
    paper, direct = (f"{_whole(ratio(cold, name))}x" for name in (PAPER_ROUTE, "best direct"))
    return (
        f"On 12x12 grids (1012 roads) a projection takes {our_time(cold):.0f} µs on {cores} cores "
        f"from a cold start: {paper} faster than the paper's route (CVXPY and ECOS, one at a time) "
        f"and {direct} faster than the best solver called directly "
        f"({_whole(ratio(near, 'best direct'))}x where costs are nearly right). All at equal "
        "accuracy, in one run."
    )


def _table(rows: list[Row]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row["rivals"]))
    heads = ["problem", "predictions", "ours", "ours, 1 thread", *names, "best direct"]
    lines = [_line(heads), _line(["---", "---", *["---:"] * (len(heads) - 2)])]
    for row in rows:
        best = best_direct(row)
        times = [_time(row["rivals"].get(name)) for name in names]
        one, both = ratio(row, "best direct", "1"), ratio(row, "best direct")
        against = f"{both:.1f} ({one:.1f}) {best[0]}" if best and both and one else "-"
        ours = [f"{our_time(row):.1f}", f"{our_time(row, '1'):.1f}"]
        lines.append(_line([row["case"], row["regime"], *ours, *times, against]))
    return lines


def _scaling(content: dict[str, Any]) -> list[str]:
    lines = []
    if side := content.get("time_by_side"):
        pairs = zip(side["sides"], side["us"], strict=True)
        times = ", ".join(f"{k}x{k} {us:.0f} µs" for k, us in pairs)
        lines.append(f"By the grid's side: {times}; exponent {side['exponent']:.2f}.")
    if memory := content.get("memory_by_batch"):
        pairs = zip(memory["batches"], memory["peak_mib"], strict=True)
        sizes = ", ".join(f"{batch} {peak:.0f} MiB" for batch, peak in pairs)
        lines.append(f"Peak memory by batch on {memory['grid']}: {sizes}.")
    return [*lines, ""] if lines else []


def _time(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "-"
    return f"{entry['median_us']:,.0f}" + ("*" if entry["n_failed"] else "")


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
