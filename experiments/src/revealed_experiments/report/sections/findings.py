"""What the runs say of each claim, on a board: a row per claim, a column per problem."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from ..claims import judge
from ..drawing import Gallery
from ..elements import Html, join, paragraph, tag
from ..numbers import fixed, places_for
from ..study import Study
from ..verdicts import Claim
from .claims import chip, summary

TITLE = "Findings"


def build(study: Study, gallery: Gallery) -> Html | None:
    """How many hold, then the board; claims without a topic are one line each."""
    claims = judge(study)
    if not claims:
        return None
    boards = [
        _board(whose, list(group)) for whose, group in groupby(_sorted(claims), lambda c: c.whose)
    ]
    return join([paragraph(summary(claims)), *boards])


def _sorted(claims: list[Claim]) -> list[Claim]:
    """Claims of one group together, in the order in which groups first come."""
    order = {whose: k for k, whose in enumerate(dict.fromkeys(c.whose for c in claims))}
    return sorted(claims, key=lambda claim: order[claim.whose])


def _board(whose: str, claims: list[Claim]) -> Html:
    problems = list(dict.fromkeys(claim.problem for claim in claims if claim.problem))
    if not problems:
        return tag("ul", *map(_line, claims), class_="verdicts")
    head = tag("tr", *(tag("th", words, scope="col") for words in (whose, *problems)))
    rows = []
    for topic in dict.fromkeys(claim.topic for claim in claims):
        found = {claim.problem: claim for claim in claims if claim.topic == topic}
        cells = [_cell(found.get(problem), problem) for problem in problems]
        rows.append(tag("tr", tag("th", topic, scope="row"), *cells))
    return tag("table", tag("thead", head), tag("tbody", *rows), class_="board")


def _line(claim: Claim) -> Html:
    return tag("li", chip(claim), f" {claim.sentence}")


def _cell(claim: Claim | None, problem: str) -> Html:
    if claim is None:
        return tag("td", "–", data_problem=problem)
    return tag("td", chip(claim), tag("span", why(claim), class_="why"), data_problem=problem)


def why(claim: Claim) -> str:
    """The two figures that the verdict hangs on."""
    each = claim.deciding
    if each is None:
        return "runs are missing"
    places = places_for(np.array([each.ours, each.theirs]))
    return f"{fixed(each.ours, places)} against {fixed(each.theirs, places)}, {each.other}"
