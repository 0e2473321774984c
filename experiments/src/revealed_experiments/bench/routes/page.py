"""The tables and words of `revealed bench routes`."""

from __future__ import annotations

from typing import Any

from ..pages import Page
from ..tables import Table

FINDINGS = """
**Finding.** Of {test:,} routes that were not learned from, ours predicts {ours[exact]:.1f}% to the
last link and {ours[links]:.1f}% of links; the recursive logit {logit[exact]:.1f}% and
{logit[links]:.1f}%, the shortest route by length {shortest[exact]:.1f}% and {shortest[links]:.1f}%.
With named features only, ours and the recursive logit differ by {named[mean]:+.1f} points of exact
routes ({named[low]:+.1f} to {named[high]:+.1f}).

![Learned cost of each meter of road, and two routes]({map})
"""
METHOD = """
{train:,} routes that taxi drivers took, each with its own origin and destination, teach the cost of
{moves:,} moves between {links} road links; {test:,} other routes judge it. {ends:.0%} of these go
between ends that some training route shares. True costs of links are unknown.

**The model.** A state is a link, a decision a path of moves from the first link to the last: so a
left turn can cost more than a right one. The cost of a move is linear in what a driver can see of
it (length, road class, turn, roads crossed), with the same coefficients everywhere; that of length
is 1, so that every other one reads as meters. Every model is fitted twice: with these *named
features only*, and with a cost of its own for each link besides (a fixed effect, shrunk by a ridge
that validation routes choose), for what no map tells. A cost below one meter counts as one meter
({floor} moves). How often a link is used (the column `cnt`) is not looked at.

**The loss** was chosen among those below on {validation:,} training routes that were held back:
{setting}, ridge {ridge:g}. All were fitted to {tuning:,} other routes; the best convex and the best
bounded one then to all others, with links' own costs; the winner to all {train:,}. Features and
candidates were found by trials on the same training routes; nothing was chosen on the test table.

Distances are relative: the cost of a move counts in units of its length plus 50 m, and the margin
is a share of that too. *plain* and *huber* are the distance d itself and its rounded form; *noise*
adds normal noise of that share of length before projecting; *bounded* is 1 - exp(-d²/2 delta²),
which lets routes go that no costs explain. That one is not convex; the solver begins it near the
minimum of a convex loss.

**In Python** this is `InverseRegressor(routes.problem(), model=SharedModel(given={{0: 1.0}},
fit_intercept=False), cost_map=unit, loss=Welsch(delta=0.12), margin=0.08).fit(features,
routes.decisions())`, with one row of features for each move; `coef_` is the table below. [A whole
script](generated/gallery/plot_route_choice.rst) does it on a small town.

**The rivals** have the same features, the own costs of links included. The recursive logit
(Fosgerau, Frejinger and Karlström 2013) is fitted by exact maximum likelihood and predicts its most
probable route, or one drawn from it (*sampled*). The path-size logit chooses among routes generated
by link penalties and random lengths (in training also those that were driven) and predicts the most
probable of these; its ridge is that of the recursive logit.

**Routes that are no paths.** A route that enters a link twice cannot be cheapest under any costs
above 0 and is left out ({skipped} here); passing a junction twice by different links is allowed. A
route with a move that the network does not have is refused.

**Time**, in seconds by the clock and of the processor (cores together). Learning from {train:,}
routes, both models: {learn_wall:.0f} and {learn_cpu:.0f}. Choosing loss and ridge:
{choose_wall:.0f} and {choose_cpu:.0f}. Standard errors: {errors_wall:.0f} and {errors_cpu:.0f}. The
recursive logit: {recursive_wall:.0f} and {recursive_cpu:.0f}, its ridge
{choose_recursive_wall:.0f} and {choose_recursive_cpu:.0f}. The path-size logit:
{path_size_wall:.0f} and {path_size_cpu:.0f}. The machine had {cores} cores and a load of {load:.1f}
from others.
"""


def make_page(content: dict[str, Any], picture: str = "routes.png") -> Page:
    """What is shown of a run that is kept: routes predicted, the lead over each rival, the
    coefficients, the losses tried; `picture` is where the map lies, seen from the page."""
    tables = [_scores(content), _gains(content), _coefficients(content), _tried(content)]
    return Page(
        "Road costs from drivers' routes", _findings(content, picture), tables, _method(content)
    )


def _findings(content: dict[str, Any], picture: str) -> str:
    told = {
        word: {key: 100 * content["scores"][name][key]["mean"] for key in ("exact", "links")}
        for word, name in NAMED.items()
    }
    gain = content["gains"]["recursive logit, named features only"]["exact"]
    told["named"] = {key: 100 * value for key, value in gain.items()}
    return FINDINGS.format(test=content["data"]["test"]["routes"], map=picture, **told)


NAMED = {"ours": "ours", "logit": "recursive logit", "shortest": "shortest by length"}


def _method(content: dict[str, Any]) -> str:
    data, times = content["data"], content["times"]
    seconds = {
        f"{step}_{kind}": found[f"{kind}_s"]
        for step, found in times.items()
        for kind in ("wall", "cpu")
    }
    return METHOD.format(
        train=data["train"]["routes"],
        test=data["test"]["routes"],
        moves=data["moves"],
        links=data["links"],
        ends=data["test_ends_in_training"],
        validation=data["validation"],
        tuning=data["tuning"],
        setting=content["ours"]["setting"],
        ridge=content["ours"]["ridge"],
        floor=content["ours"]["moves_at_the_floor"],
        skipped=data["train"]["skipped"] + data["test"]["skipped"],
        cores=content["hardware"]["cores"],
        load=content["hardware"]["load_before"] or 0.0,
        **seconds,
    )


def _scores(content: dict[str, Any]) -> Table:
    rows = [
        [name, *(_range(content["scores"][name][measure]) for measure in MEASURES)]
        for name in content["scores"]
    ]
    note = (
        "Means over routes in %, with 95% bootstrap intervals. Links that match: on both routes "
        "over on either (Jaccard). Driver's links: those on the predicted route over all. Both "
        "without the first and the last link, which are given."
    )
    return Table("Test routes", ["method", *MEASURES.values()], rows, 1, note)


MEASURES = {"links": "links that match", "found": "driver's links", "exact": "exact routes"}


def _gains(content: dict[str, Any]) -> Table:
    rows = [
        [rival, *(_range(content["gains"][rival][measure], "+") for measure in MEASURES)]
        for rival in content["gains"]
    ]
    note = (
        "Percentage points, route by route on the same test routes, with 95% intervals; where the "
        "rival has named features only, so has ours."
    )
    return Table("Ours ahead of", ["rival", *MEASURES.values()], rows, 1, note)


def _coefficients(content: dict[str, Any]) -> Table:
    rows = []
    for row in content["coefficients"]:
        given = row["feature"] == "length"
        rows.append(
            [
                row["feature"],
                f"a {row['unit']}",
                f"{row['meters']:+.0f}",
                "given" if given else f"{row['standard_error']:.1f}",
                "" if given else f"{row['low']:+.0f} to {row['high']:+.0f}",
                "" if given else _sign(row),
                f"{row['with_own_costs']:+.0f}",
                f"{row['recursive_meters']:+.0f}",
                f"{row['path_size_meters']:+.0f}",
            ]
        )
    headings = ["feature", "for", "meters", "std. error", "95% interval", "drivers",
                "with own costs", "recursive logit", "path-size logit"]  # fmt: skip
    note = (
        "What a feature is worth in meters of length: extra meters for each 100 m on such a road, "
        "or for each such move. Effects add up: a left turn off a main road costs its own and that "
        "of a left turn. Standard errors: {draws} bootstrap draws of {size:,} routes, each fitted "
        "from the beginning, scaled to the whole table; given the loss that was chosen. `avoid`, "
        "`seek`: the interval is on one side of 0. `with own costs`: the same coefficients where "
        "links have costs of their own as well."
    )
    note = note.format(**content["ours"]["bootstrap"])
    return Table("Coefficients", headings, rows, 2, note)


def _sign(row: dict[str, Any]) -> str:
    if row["low"] > 0:
        return "avoid"
    return "seek" if row["high"] < 0 else "?"


def _tried(content: dict[str, Any]) -> Table:
    rows = [
        [row["setting"], f"{100 * row['links']:.1f}", f"{100 * row['exact']:.1f}"]
        for row in content["tried"]
    ]
    note = "On validation routes, in %; the highest sum of the two is chosen."
    return Table("Losses tried", ["loss", "links that match", "exact routes"], rows, 1, note)


def _range(found: dict[str, float], sign: str = "") -> str:
    mean, low, high = (f"{100 * found[key]:{sign}.1f}" for key in ("mean", "low", "high"))
    return f"{mean} ({low} to {high})"
