"""Parts of pages that are made when the pages are built: results, outputs, help texts.

They go to docs/generated/parts, from where pages include them.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import commands
import results
import tour

DOCS = Path(__file__).resolve().parents[1]
FOLDER = DOCS / "generated/parts"
GALLERY = """\
Examples
========

Each script is short, needs nothing to download, and prints what it found. The pictures and outputs
below were made by the scripts when these pages were built.
"""
PARTS = {
    "targets.md": lambda: results.targets_table(missed=False),
    "missed.md": lambda: results.targets_table(missed=True),
    "claims.md": lambda: results.claims_board("synthetic"),
    "failed.md": lambda: results.claims_list("synthetic", failed=True),
    "vision_claims.md": lambda: results.claims_list("vision"),
    "vision_failed.md": lambda: results.claims_list("vision", failed=True),
    "excess_samples.md": lambda: results.excess_risk("samples"),
    "excess_steps.md": lambda: results.excess_risk("steps"),
    "audit.md": results.audit,
    "mom_bases.md": results.mom_bases,
    "paper_route.md": results.paper_route,
    "scale.md": results.scale_table,
    "online.md": results.online_table,
    "netlib.md": results.netlib_sentence,
    "gpu.md": results.gpu_table,
    "learning.md": results.learning_table,
    "conformal.md": results.conformal_table,
    "given.md": results.given_table,
    "first_day.md": results.first_day,
    "walks.md": results.walks_table,
    "headline.md": results.headline,
    "pages.md": results.own_pages,
    "benchmarks.md": results.benchmarks_readme,
    "commands.md": commands.page,
}


def make_all(app: Any, config: Any) -> None:
    """Everything that pages include or show."""
    write_parts()
    stage_examples()


def write_parts(folder: Path = FOLDER) -> None:
    """Make every part; one that is as before is left alone, so that its pages are not read anew."""
    for name, make in PARTS.items():
        _write(folder / name, make())
    for name, (line, printed) in tour.play().items():
        text = tour.without_times(f"$ {tour.wrapped(line)}\n{printed}").replace("- s", "a few s")
        _write(folder / f"tour-{name}.txt", text)
    reports = folder / "extra/reports"
    reports.mkdir(parents=True, exist_ok=True)
    for name in ("synthetic", "vision"):
        shutil.copyfile(results.RESULTS / name / "report.html", reports / f"{name}.html")


def stage_examples(folder: Path = DOCS / "generated/scripts") -> None:
    """The scripts of the gallery with a heading of its own; those that are gone are taken away."""
    scripts = {path.name: path for path in (DOCS.parent / "examples").glob("plot_*.py")}
    for old in folder.glob("plot_*.py"):
        if old.name not in scripts:
            old.unlink()
            for page in (folder.parent / "gallery").glob(f"{old.stem}*"):
                page.unlink()  # or Sphinx would find a page that no other names
    for name, path in scripts.items():
        _write(folder / name, path.read_text("utf-8"))
    _write(folder / "GALLERY_HEADER.rst", GALLERY)


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text("utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def setup(app: Any) -> dict[str, bool]:
    # Before Sphinx looks which pages there are, and what changed.
    app.connect("config-inited", make_all, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
