"""Where the figures come from: commands, machine, versions, settings, and what the words mean."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ..drawing import Gallery
from ..elements import Html, command_box, join, paragraph, tag
from ..study import Study

TITLE = "Origin"
TERMS = (
    (
        "decision loss",
        "|x(c) − x*|², between the decision under learned costs and the one seen.",
    ),
    ("estimate loss", "⟨c*, x(c) − x*⟩, what that decision costs more under the true costs."),
    ("relative regret", "the sum of those over the sum of the optimal costs."),
    ("optimal", "a decision whose true cost is the least there is; of several as good any counts."),
    ("needs true costs", "trains on the costs themselves, which decisions alone do not give."),
)


def build(study: Study, gallery: Gallery) -> Html | None:
    """Commands, then lists of facts as the sweep recorded them."""
    sweep = study.folder.sweep
    facts = [
        _facts("Machine", _pairs(sweep.get("hardware"))),
        _facts("Versions", _pairs(sweep.get("versions"))),
        _facts("Settings", _pairs(sweep.get("settings"))),
        _facts("Words", TERMS),
    ]
    when = sweep.get("when")
    return join(
        [
            paragraph(f"Runs of {_date(when)}, made by" if isinstance(when, str) else "Made by"),
            command_box(study.commands),
            tag("div", *(fact for fact in facts if fact), class_="facts"),
        ]
    )


def _date(when: str) -> str:
    try:
        return datetime.fromisoformat(when).astimezone(UTC).strftime("%Y-%m-%d, %H:%M UTC")
    except ValueError:
        return when


def _facts(title: str, pairs: Iterable[tuple[str, str]]) -> Html | None:
    rows = [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs]
    return tag("div", tag("h3", title), tag("dl", *rows)) if rows else None


def _pairs(record: Any) -> list[tuple[str, str]]:
    if not isinstance(record, dict):
        return []
    pairs = []
    for name, value in record.items():
        name = str(name).replace("_gib", ", GiB").replace("_", " ")
        pairs.append((name, _plain(value)))
    return pairs


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_plain(item)}" for name, item in value.items())
    return "–" if value is None else str(value)
