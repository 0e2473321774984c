"""What the paper and this project claim, and whether these runs bear it out."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..claims import judge
from ..drawing import Gallery
from ..elements import Html, join, paragraph, tag
from ..numbers import fixed, listed, places_for, with_error
from ..study import Study
from ..verdicts import FAILS, HOLDS, OPEN, UNSURE, Claim

TITLE = "Claims in detail"
MARKS = {
    HOLDS: ("good", "✓ holds"),
    FAILS: ("bad", "✗ does not hold"),
    UNSURE: ("unsure", "≈ cannot be told"),
}
SIGNS = {True: ("✓", "good"), False: ("✗", "bad"), None: ("≈", "unsure")}


def build(study: Study, gallery: Gallery) -> Html | None:
    """A card for each claim: verdict, sentence, numbers, rule and protocol."""
    claims = judge(study)
    if not claims:
        return None
    words = (
        "Verdicts rest on paired differences, seed by seed: the 95% interval of their mean "
        "(Student's t) must lie on one side of what the claim asks."
    )
    return join([paragraph(words), tag("div", *map(_card, claims), class_="cards")])


def chip(claim: Claim) -> Html:
    """The verdict in a colored label; its mark tells it without color."""
    class_, words = MARKS.get(claim.verdict, ("open", "– open"))
    return tag("span", words, class_=f"verdict {class_}")


def summary(claims: list[Claim]) -> str:
    """How many hold, in one sentence."""
    words = {
        HOLDS: "hold",
        FAILS: "do not hold",
        UNSURE: "cannot be told from these seeds",
        OPEN: "are open, since runs are missing",
    }
    counts = Counter(claim.verdict for claim in claims)
    told = [f"{counts[verdict]} {words[verdict]}" for verdict in words if verdict in counts]
    if len(told) == 1:
        return f"All {told[0]}."
    return f"Of {len(claims)} claims {listed(told)}."


def _card(claim: Claim) -> Html:
    class_ = MARKS.get(claim.verdict, ("open", ""))[0]
    parts = [tag("p", chip(claim)), tag("p", claim.sentence, class_="claim"), _numbers(claim)]
    parts += [tag("p", remark, class_="note") for remark in claim.remarks]
    if lacking := [*claim.missing, *claim.absent]:
        parts.append(tag("p", f"Still missing: {'; '.join(lacking)}.", class_="note"))
    parts.append(tag("p", tag("b", "Rule."), f" {claim.rule}", class_="note"))
    if claim.protocol:
        parts.append(tag("p", tag("b", "Protocol."), f" {claim.protocol}", class_="note"))
    return tag("article", *parts, class_=f"card {class_}")


def _numbers(claim: Claim) -> Html | None:
    if not claim.against:
        return None
    head = tag("tr", *(tag("th", words, scope="col") for words in _HEADINGS))
    rows = []
    # By ours, which is compared with each: rivals that are far off would hide the near ones.
    places = places_for(np.array([each.ours for each in claim.against]))
    for each in claim.against:
        gap = with_error(each.gaps, places)
        sign, class_ = SIGNS[each.passes]
        mark = tag("span", sign, class_=class_)
        cells = (fixed(each.ours, places), fixed(each.theirs, places), gap, mark)
        rows.append(tag("tr", tag("th", each.other, scope="row"), *(tag("td", c) for c in cells)))
    title = tag("caption", f"{claim.ours}: {claim.measure}")
    return tag("table", title, tag("thead", head), tag("tbody", *rows), class_="evidence")


_HEADINGS = ("against", "ours", "theirs", "difference ± s.e.", "")
