"""The report as one HTML file: text, tables and bars, no script, nothing loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from ..._common.words import apart, count
from ..commands.headline import fine
from ..commands.judging import Judgment
from ..commands.telling import percent
from ..commands.words import Words, words_for
from .content import Content, Effect, Missed

EFFECTS, COSTS = 10, 60
BINS = 12


def render(content: Content) -> str:
    """The page."""
    model = content.model
    words = words_for(model.plan)
    title = f"What the decisions on {model.plan.name} reveal"
    sections = (
        ("answer", "In short", _short(content, words)),
        ("quality", "How well it does", _quality(content, words)),
        ("learned", f"What drives the {words.costs}", _learned(content, words)),
        ("misses", "Which decisions it misses, and why", _misses(content, words)),
        ("unknown", "What these decisions do not reveal", _unknown(content, words)),
        ("stability", "How stable the decisions are", _stability(content, words)),
        ("limits", "Limits of this report", _limits(content, words)),
    )
    links = "".join(f'<a href="#{name}">{escape(head)}</a>' for name, head, _ in sections)
    parts = "".join(
        f'<section id="{name}"><h2>{escape(head)}</h2>{body}</section>'
        for name, head, body in sections
    )
    style = files("revealed.cli.report").joinpath("page.css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f'<header><p class="brand">revealed</p><h1>{escape(title)}</h1>'
        f'<p class="lead">{escape(_made(content))}</p></header>'
        f'<nav aria-label="Sections">{links}</nav><main>{parts}</main>'
        "<footer>One file, no script, nothing loaded from elsewhere. Made by "
        f"{escape(str(model.training.get('made_by', 'revealed')))}.</footer></body></html>\n"
    )


def _made(content: Content) -> str:
    facts = content.model.training
    when = str(facts.get("when", ""))[:10]
    learned = facts.get("samples")
    told = [f"Learned from {count(learned, 'decision')}"] if isinstance(learned, int) else []
    told += [f"on {when}"] if when and told else []
    return " ".join(told) + ("." if told else "")


# --- sections ------------------------------------------------------------------------------------


def _short(content: Content, words: Words) -> str:
    held, tiles = _judged(content), []
    new = held is not content.seen
    where = "new decisions" if new else "decisions it has learned from"
    if held is not None:
        figures = held.plain()
        tiles.append((percent(figures["repeated_share"]), f"of {where} repeated exactly"))
        if figures["extra_cost"] is not None:
            what = f"extra {words.cost} of the observed decisions"
            what = what if words.best == "cheapest" else "value the observed decisions leave"
            tiles.append((fine(figures["extra_cost"]), what))
    best = _best_baseline(content)
    if best is not None:
        tiles.append((percent(best), "repeated by the better of two simple rules"))
    if content.changes.size:
        half = float(np.median(content.changes))
        what = f"that every {words.cost} may change before half of the explained decisions do"
        tiles.append((f"{half:.3g}", what))
    cells = "".join(f"<div><b>{escape(a)}</b><span>{escape(b)}</span></div>" for a, b in tiles)
    return f'<div class="figures">{cells}</div>{_p(_verdict(content))}'


def _verdict(content: Content) -> str:
    judged, best = _judged(content), _best_baseline(content)
    if judged is None or content.held is None:
        return "Nothing was held out, so how the model does on new decisions is not known."
    figures = judged.plain()
    low, high = figures["interval"]
    share = figures["repeated_share"]
    told = (
        f"On {count(figures['samples'], 'decision')} that the model has not learned from, it makes "
        f"the same decision in {percent(share)} of the cases (95% interval {percent(low)} to "
        f"{percent(high)})."
    )
    if best is None:
        return told
    if low > best:
        return f"{told} That is clearly more than simple rules reach ({percent(best)})."
    return f"{told} Simple rules reach {percent(best)}: whether the model is better is not certain."


def _quality(content: Content, words: Words) -> str:
    rows = [
        (name, judged.plain()["repeated_share"], len(judged.same))
        for name, judged in (("Model, new", content.held), ("Model, learned from", content.seen))
        if judged is not None
    ]
    bars = [(name, share, f"{percent(share)} of {size:,}", "own") for name, share, size in rows]
    told = content.model.training.get("baselines")
    for key, name in (
        ("most_frequent", "Always the most frequent decision"),
        ("no_context", f"Same {words.costs} every day"),
    ):
        share = _share(told, key)
        if share is not None:
            bars.append((name, share, percent(share), ""))
    note = (
        "Share of decisions repeated exactly, entry by entry. The simple rules are judged on the "
        "decisions held out when the model was fitted."
    )
    certificate = content.model.training.get("certificate")
    more = _p(str(certificate), "hint") if isinstance(certificate, str) else ""
    return _bars(bars) + _p(note, "hint") + more


def _learned(content: Content, words: Words) -> str:
    unit = f"What one standard deviation of each feature does to the {words.costs}."
    most = max((effect.size for effect in content.effects), default=0.0)
    effects = content.effects[:EFFECTS]
    bars = [(e.name, e.size / most if most else 0.0, _moves(e), "own") for e in effects]
    rest = len(content.effects) - len(effects)
    more = _p(f"{rest} smaller ones are not shown.", "hint") if rest > 0 else ""
    order = range(len(content.means))
    if len(content.means) > COSTS:
        order = sorted(np.argsort(-np.abs(content.means))[:COSTS])
    names = content.model.plan.variables
    largest = float(np.abs(content.means).max(initial=0.0)) or 1.0
    means = [(names[j], abs(content.means[j]) / largest, f"{content.means[j]:.4g}", "")
             for j in order]  # fmt: skip
    heads = f"Average predicted {words.costs}, in the order of the plan"
    shown = "" if len(content.means) <= COSTS else f" The {COSTS} largest are shown."
    level = (
        "Only differences between alternatives are meaningful: decisions reveal neither the "
        f"level of {words.costs} nor their currency.{shown}"
    )
    given = content.model.given
    if given is not None:
        said = given.describe(content.model.plan)
        unit += f" Given beforehand, and kept to: {said}."
    return (
        f"{_p(unit)}{_bars(bars)}{more}<details><summary>{escape(heads)}</summary>"
        f"{_p(level, 'hint')}{_bars(means)}</details>"
    )


def _moves(effect: Effect) -> str:
    parts = [f"{name} {value:+.3g}" for name, value in (*effect.raised[:1], *effect.lowered[:1])]
    return ", ".join(parts) or "nothing that decisions tell"


def _misses(content: Content, words: Words) -> str:
    if not content.misses:
        return _p(f"None: every decision is the {words.best} under the learned {words.costs}.")
    lead = (
        f"{count(content.n_missed, 'decision is', 'decisions are')} not the {words.best} under the "
        f"learned {words.costs}; the {len(content.misses)} farthest from it are listed. A miss is "
        "not always an error of the model: the decision maker may have known more, or erred."
    )
    heads = ("sample", "new", words.saving, f"the {words.best} instead", "why")
    rows = [_miss(miss) for miss in content.misses]
    return _p(lead) + _table(heads, rows, numbers=(2,))


def _miss(miss: Missed) -> tuple[str, ...]:
    moved = ", ".join(f"{name} {' → '.join(apart(a, b))}" for name, a, b in miss.changes)
    return (miss.name, "yes" if miss.held else "no", f"{miss.saving:.3g}", moved, miss.why)


def _unknown(content: Content, words: Words) -> str:
    known = content.known
    if known is None:
        return _p("The plan has too many variables to work this out.")
    names = content.model.plan.variables
    most = "at most " if content.model.plan.is_whole else ""
    told = [
        f"The {words.costs} of a sample are {known.n} independent numbers. Decisions like these "
        f"identify {most}{known.n_identified} of them; no amount of data identifies the other "
        f"{known.n_unknown}."
    ]
    if known.fixed.size:
        told.append(f"The plan leaves no choice for {_named(names, known.fixed)}.")
    if known.still.size:
        told.append(
            f"Always the same in the decisions, so that the {words.cost} is known from one side at "
            f"most: {_named(names, known.still)}."
        )
    return "".join(_p(sentence) for sentence in told)


def _named(names: Sequence[str], entries: np.ndarray) -> str:
    chosen = [names[int(j)] for j in entries]
    rest = len(chosen) - 6
    return ", ".join(chosen[:6]) + (f" and {rest} more" if rest > 0 else "")


def _stability(content: Content, words: Words) -> str:
    changes = content.changes
    if not changes.size:
        return _p("No decision is explained, so there is nothing to change.")
    high = float(np.quantile(changes, 0.95)) or 1.0
    counts, edges = np.histogram(np.clip(changes, 0.0, high), bins=BINS, range=(0.0, high))
    most = counts.max()
    columns = "".join(
        f'<div class="column" title="{edges[k]:.3g} to {edges[k + 1]:.3g}: {int(number)}">'
        f'<i style="height:{100 * number / most:.1f}%"></i></div>'
        for k, number in enumerate(counts)
    )
    lead = (
        f"How much every {words.cost} may change at once before the decision changes, for "
        f"{count(len(changes), 'decision')} that the model explains."
    )
    scale = f'<div class="scale"><span>0</span><span>{high:.3g} and more</span></div>'
    cones = "".join(_p(sentence) for sentence in content.cones)
    return f'{_p(lead)}<div class="histogram" role="img" aria-label="{escape(lead)}">{columns}</div>{scale}{cones}'  # noqa: E501


def _limits(content: Content, words: Words) -> str:
    facts = content.model.training
    told = [
        f"The learned {words.costs} explain decisions. They are not prices, and have no currency.",
        "Statements about new decisions hold if they are made like those in the tables: by the "
        "same people, under the same rules, on similar days.",
        "The plan's constraints are taken as true. A rule that the plan does not have shows up as "
        f"a strange {words.cost}.",
        f"This page judges {count(len(content.samples), 'sample')}"
        + (", some of all, kept in the model." if _is_part(content) else "."),
    ]
    if content.model.plan.integers and not content.model.plan.is_whole:
        told.append("Some variables must be whole; costs were learned for the relaxation.")
    if facts.get("converged") is False:
        told.append("The fit did not reach the minimum.")
    return "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in told) + "</ul>"


def _is_part(content: Content) -> bool:
    learned = content.model.training.get("samples")
    return isinstance(learned, int) and len(content.samples) < learned


# --- parts ---------------------------------------------------------------------------------------


def _judged(content: Content) -> Judgment | None:
    return content.seen if content.held is None else content.held


def _best_baseline(content: Content) -> float | None:
    told = content.model.training.get("baselines")
    shares = [_share(told, key) for key in ("most_frequent", "no_context")]
    return max((share for share in shares if share is not None), default=None)


def _share(told: Any, key: str) -> float | None:
    found = told.get(key) if isinstance(told, dict) else None
    share = found.get("repeated_share") if isinstance(found, dict) else None
    return float(share) if isinstance(share, int | float) else None


def _p(text: str, kind: str = "") -> str:
    return f"<p{f' class={kind}' if kind else ''}>{escape(text)}</p>" if text else ""


def _bars(rows: Iterable[tuple[str, float, str, str]]) -> str:
    """(name, share of the full width, words, class) each."""
    lines = "".join(
        f'<li><span class="name">{escape(name)}</span>'
        f'<span class="bar {kind}"><i style="width:{_width(share)}"></i></span>'
        f'<span class="value">{escape(value)}</span></li>'
        for name, share, value, kind in rows
    )
    return f'<ul class="bars">{lines}</ul>'


def _width(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.1f}%"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table that becomes a list of cards on a phone."""
    first = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-head="{escape(head)}"{" class=number" if k in numbers else ""}>'
            f"{escape(cell)}</td>"
            for k, (head, cell) in enumerate(zip(heads, row, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"
