"""The page: sections one after the other, style and script inside, and no request to anyone."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from importlib import resources
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

from revealed import __version__
from revealed._common.words import count

from .drawing import Gallery
from .elements import Html, slug, text
from .numbers import listed
from .palette import style_sheet
from .sections import SECTIONS
from .study import Study

TITLES = {
    "synthetic": "Synthetic benchmark: every method on the same data",
    "vision": "Pictures in, decisions out: every method on the same maps and boards",
}

QUICK = (
    "A quick sweep: few candidates and few epochs. It proves that everything runs; the figures are "
    "no comparison of methods."
)


def write_page(path: Path, study: Study) -> None:
    """Write the page, and its figures into the folder `figures` beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    gallery = Gallery(path.parent / "figures", study.commands)
    path.write_text(page(study, gallery), "utf-8")


def page(study: Study, gallery: Gallery) -> str:
    """The whole document, from the template `page.html.j2`."""
    built = [(section.TITLE, section.build(study, gallery)) for section in SECTIONS]
    light, dark = style_sheet()
    colors = f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    script = _asset("page.js")
    return _template("page.html.j2").render(
        title=_title(study),
        summary=_summary(study),
        notice=QUICK if study.quick else None,
        sections=[(title, slug(title), content) for title, content in built if content],
        style=Html(colors + _asset("page.css")),
        script=Html(script),
        policy=_policy(script),
        version=__version__,
    )


def _template(name: str) -> Template:
    """A template beside this file; what is not markup already is escaped as in `elements`."""
    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        finalize=text,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def _policy(script: str) -> str:
    """Nothing from anywhere, and no script but our own: not even one that a label smuggles in."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _title(study: Study) -> str:
    experiment = study.folder.sweep.get("experiment")
    name = experiment if isinstance(experiment, str) and experiment else "finished runs"
    return TITLES.get(name, name[:1].upper() + name[1:])


def _summary(study: Study) -> str:
    """What there is to see, in two sentences at most."""
    if not study.runs:
        return (
            "There is no finished run in this folder yet. Start or resume the benchmark that "
            "writes to it, and make this page again."
        )
    statuses = Counter(run.status for run in study.runs)
    told = [f"{n:,} {status}" for status, n in statuses.most_common()]
    seeds = len({run.seed for run in study.runs})
    methods = len({entry.method for entry in study.entries})
    first = f"{count(len(study.runs), 'run')}: {listed(told)}."
    if not study.entries:
        return f"{first} No candidate finished with every seed, so there is nothing to compare."
    words = [count(methods, "method"), count(len(study.parts), "part"), count(seeds, "seed")]
    return f"{first} {listed(words)}; only the settings chosen on validation data are shown."


def _asset(name: str) -> str:
    return resources.files("revealed_experiments.report").joinpath(name).read_text("utf-8")
