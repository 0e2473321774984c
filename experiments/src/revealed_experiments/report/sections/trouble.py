"""What went wrong: runs that diverged or failed, methods left without a run, unreadable files."""

from __future__ import annotations

import re
from collections import Counter

from revealed._common.words import count

from ...bench.sweeps.choose import dropped
from ..drawing import Gallery
from ..elements import Html, command_box, details, join, paragraph, tag
from ..numbers import NONE, listed
from ..reading import Run
from ..study import Study, optimiser_name
from ..tables import Cell, Column, Row, SortTable

TITLE = "What went wrong"
LONGEST = 240


def build(study: Study, gallery: Gallery) -> Html | None:
    """Everything that is not a finished run; one sentence if all went well."""
    bad = [run for run in study.runs if not run.finished]
    parts: list[Html | None] = [_notices(study), _left_out(study)]
    if bad:
        parts += [paragraph(_counted(bad, len(study.runs))), _table(bad).markup(), _repeat(bad)]
    elif study.runs:
        parts.append(paragraph(f"Nothing: {_all(len(study.runs))}."))
    told = [part for part in parts if part is not None]
    return join(told) if told else None


def _all(n: int) -> str:
    return "the one run finished" if n == 1 else f"all {n:,} runs finished"


def _counted(bad: list[Run], n: int) -> str:
    statuses = [f"{k:,} {status}" for status, k in Counter(run.status for run in bad).items()]
    return (
        f"Of {count(n, 'run')} {listed(statuses)}. A candidate that is listed here with any seed "
        "was not eligible."
    )


def _notices(study: Study) -> Html | None:
    notices = study.folder.notices
    if not notices:
        return None
    return tag("div", *(tag("p", notice) for notice in notices), class_="notice", role="note")


def _left_out(study: Study) -> Html | None:
    """Methods of which the page shows nothing."""
    lost = dropped([run.raw for run in study.runs])
    if not lost:
        return None
    items = []
    for each in lost:
        ended = listed([f"{n} {status}" for status, n in each.n_runs.items()])
        tried = count(each.n_candidates, "candidate")
        items.append(tag("li", f"{each.label} on {each.part}: {tried}, none eligible ({ended})."))
    return join([paragraph("Methods that no table or figure shows:"), tag("ul", *items)])


def _table(bad: list[Run]) -> SortTable:
    """Runs of a method that ended alike, together: too large a step fails with every seed."""
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in bad:
        alike = re.sub(r"[\d.]+", "#", run.message)  # "sample 13", "sample 60"
        groups.setdefault((run.label, run.part, run.optimiser, run.status, alike), []).append(run)
    columns = [Column("method"), Column("problem"), Column("optimiser"), Column("steps")]
    columns += [Column("seeds"), Column("runs", True), Column("status"), Column("what it said")]
    rows = []
    for (label, part, _, status, _), runs in groups.items():
        steps = sorted({run.config["step"] for run in runs} - {None}, reverse=True)
        seeds = ", ".join(map(str, sorted({run.seed for run in runs})))
        cells: list[Cell | str] = [label, part, optimiser_name(runs[0])]
        cells += [", ".join(f"{step:g}" for step in steps) or NONE, seeds]
        cells += [Cell(str(len(runs)), len(runs)), status, _said(runs)]
        rows.append(Row(cells))
    return SortTable("Runs that did not finish", columns, rows)


def _said(runs: list[Run]) -> Cell:
    """The message of the first, and whether others differ in a number."""
    message = runs[0].message
    shown = message if len(message) <= LONGEST else f"{message[:LONGEST]}…"
    shown += " (and the like)" if len({run.message for run in runs}) > 1 else ""
    return Cell(shown, shown, "long")


def _repeat(bad: list[Run]) -> Html | None:
    lines = [run.command for run in bad if run.command]
    return details(f"Repeat one of them ({len(lines)})", command_box(lines)) if lines else None
