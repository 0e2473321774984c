"""`revealed bench margins`: the paper's table beside ours, on data of the paper's own generator.

150 POCS iterations at four margins on every file. Problems are taken in standard form as the files
have them, A x = b, x >= 0: of the knapsack's 21 columns 11 are slacks, whose cost is known to be 0,
but the reference program predicts all 21 (only then do its figures come out), so this does too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from revealed.cli.commands.options import positive

from ..pages import Page, publish
from ..published import MARGINS, PAPER_TABLE, REFERENCE, REFERENCE_CUT, REFERENCE_RUN
from ..record import surroundings
from ..tables import Table, target

Row = dict[str, Any]
MEASURES = ("train decision", "test decision", "train estimate", "test estimate")
# How far above the reference the decision loss may be, at the margins that the target is about.
ALLOWED = {"sp": 0.25, "knapsack": 0.1}
TARGET_MARGINS = (10.0, 1.0)
DRAWS = 5
"""Random starts that are averaged."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench margins`."""
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder of the paper's .npz files"
    )
    parser.add_argument("--iterations", type=positive, default=150, help="of POCS and of ERM (150)")
    parser.add_argument("--only", metavar="TEXT", help="only files whose name contains this")
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: three iterations, no claims"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("experiments/results/margins.json"),
        help="JSON file to write (%(default)s)",
    )
    parser.add_argument(
        "--page", type=Path, default=Path("docs/margins.md"), help="page to write (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Fit, print the table beside the reference, write JSON and page; 1 if a target was missed."""
    from revealed.datasets import PAPER_NAMES, load_paper_synthetic
    from revealed.errors import InputError

    names = [name for name in PAPER_NAMES if not args.only or args.only in name]
    if not names:
        raise InputError(f"`--only {args.only}` matches none of {', '.join(PAPER_NAMES)}.")
    iterations = min(args.iterations, 3) if args.quick else args.iterations
    command = f"revealed bench margins --data {args.data.name} --iterations {iterations}"
    command += " --quick" if args.quick else ""
    content = surroundings(command, {"iterations": iterations, "margins": list(MARGINS)})
    rows: list[Row] = []
    for name in names:
        data = load_paper_synthetic(args.data, name)
        for margin in MARGINS:
            print(f"  {name}, margin {margin:g}", file=sys.stderr, flush=True)
            rows.append(_fit(data, margin, iterations, draws=1 if args.quick else DRAWS))
    content |= {"benchmark": "margins", "reference": REFERENCE, "rows": rows}
    # A smoke test stops too early to be set beside anything.
    content["targets"] = [] if args.quick else _targets(rows)
    return publish(content, make_page, args.out, args.page)


def make_page(content: dict[str, Any]) -> Page:
    """What is shown of a run that is kept."""
    rows = content["rows"]
    tables = [_main_table(rows), _start_table(rows), _erm_table(rows)]
    method = _method(rows, content["settings"]["iterations"])
    return Page("The paper's margin table", _findings(rows), tables, method)


def _fit(data, margin: float, iterations: int, draws: int) -> Row:
    """POCS from zero, POCS from random starts, and ERM with Armijo's line search."""
    from revealed.fit import erm, pocs
    from revealed.optimality.sets import EntryState, OptimalitySet

    sets = OptimalitySet(data.problem, data.train.decisions, margin=margin)
    contexts = data.train.contexts
    model = _model()
    history = pocs(model, contexts, sets, max_iter=iterations, tol=0.0)
    other = _model()
    armijo = erm(other, contexts, sets, optimizer="armijo", max_epochs=iterations, tol=0.0)
    random = []
    for draw in range(draws):
        started = _random_start(data, np.random.default_rng(draw))
        pocs(started, contexts, sets, max_iter=iterations, tol=0.0)
        random.append(_measure(started, data))
    return {
        "data": data.name,
        "margin": margin,
        "ours": dict(zip(MEASURES, _measure(model, data), strict=True)),
        "reference": dict(zip(MEASURES, REFERENCE_RUN[data.name][margin], strict=True)),
        "random_start": dict(zip(MEASURES, np.median(random, axis=0), strict=True)),
        "h": history["h"][-1],
        "h_half_way": history["h"][iterations // 2],
        "armijo_h": armijo["h"][-1],
        "armijo_over_pocs": armijo["h"][-1] / history["h"][-1],
        "unsolved": int(history["unsolved"].sum()),
        "seconds": float(history["projection_seconds"].sum() + history["fit_seconds"].sum()),
        "states_unlike_exact": _unlike_exact(data, sets),
        "misread_by_reference": int(
            (
                (data.train.decisions > REFERENCE_CUT) & (sets.entry_state == EntryState.AT_LOWER)
            ).sum()
        ),
    }


def _unlike_exact(data, sets) -> int:
    """Entries whose state is not that of the exact decision under the true cost."""
    from revealed.optimality.sets import OptimalitySet

    exact = OptimalitySet(data.problem, data.problem.solve(data.train.costs).x)
    return int((np.asarray(exact.entry_state) != sets.entry_state).sum())


def _model():
    """Linear without intercept: the last feature of the files is always 1."""
    from revealed.fit import LinearModel

    return LinearModel(fit_intercept=False)


def _random_start(data, rng: np.random.Generator):
    """Coefficients of the size that deep-learning libraries start a linear layer with."""
    model, d = _model(), data.train.contexts.shape[1]
    size = 1.0 / np.sqrt(d)
    model.coef = rng.uniform(-size, size, (data.problem.n_variables, d))
    model.intercept = np.zeros(data.problem.n_variables)
    return model


def _measure(model, data) -> tuple[float, float, float, float]:
    """Mean decision loss on train and test, mean estimate loss on train and test."""
    from revealed import metrics

    decision, estimate = [], []
    for split in (data.train, data.test):
        given = {"costs": model.predict_cost(split.contexts), "decisions": split.decisions}
        decision.append(float(metrics.decision_loss(data.problem, **given).mean()))
        loss = metrics.estimate_loss(data.problem, **given, true_costs=split.costs)
        estimate.append(float(loss.mean()))
    return (*decision, *estimate)  # type: ignore[return-value]


def _targets(rows: list[Row]) -> list[dict[str, Any]]:
    found = []
    for kind, allowed in ALLOWED.items():
        worst = [
            row["ours"][measure] - row["reference"][measure]
            for row in rows
            if _kind(row) == kind and row["margin"] in TARGET_MARGINS
            for measure in MEASURES[:2]
        ]
        if worst:
            name = f"{kind}: decision loss above the reference's at margins 10 and 1, at most"
            found.append(target(name, max(worst), allowed))
    ratio = max(row["armijo_over_pocs"] for row in rows)
    found.append(target("h of ERM with Armijo over h of POCS, at most", ratio, 1.02))
    found.append(target("projections not certified", sum(row["unsolved"] for row in rows), 0))
    return found


def _main_table(rows: list[Row]) -> Table:
    headings = ["data", "margin"]
    for measure in MEASURES:
        headings += [measure, "ref.", "diff."]
    lines = []
    for row in rows:
        cells = [row["data"], f"{row['margin']:g}"]
        for measure in MEASURES:
            ours, theirs = row["ours"][measure], row["reference"][measure]
            cells += [f"{ours:.2f}", f"{theirs:.2f}", _difference(row, measure)]
        lines.append(cells)
    paper = "; ".join(
        f"{kind} " + ", ".join(f"{m:g}: {a:g} / {b:g}" for m, (a, b) in PAPER_TABLE[kind].items())
        for kind in dict.fromkeys(_kind(row) for row in rows)
    )
    note = (
        "✓ within the target (margins 10 and 1: paths at most 0.25 above the reference, knapsack "
        f"0.1), ✗ not. On draws of its own the paper prints (train / test by margin): {paper}."
    )
    return Table("Decision and estimate loss after POCS", headings, lines, n_words=1, note=note)


def _difference(row: Row, measure: str) -> str:
    gap = round(row["ours"][measure] - row["reference"][measure], 2) + 0.0  # no "-0.00"
    if row["margin"] not in TARGET_MARGINS or measure not in MEASURES[:2]:
        return f"{gap:+.2f}"
    return f"{gap:+.2f} {'✓' if gap <= ALLOWED[_kind(row)] else '✗'}"


def _start_table(rows: list[Row]) -> Table:
    headings = ["data", "margin"]
    headings += [
        f"{m}, {start}" for m in MEASURES[:2] for start in ("from 0", "random", "reference")
    ]
    lines = [
        [row["data"], f"{row['margin']:g}"]
        + [
            f"{row[start][m]:.2f}"
            for m in MEASURES[:2]
            for start in ("ours", "random_start", "reference")
        ]
        for row in rows
    ]
    note = (
        f"random: median of {DRAWS} starts, uniform in [-1, 1]/sqrt(d). Figures in thousands: a "
        "slack of the knapsack's budget, in units of weight, was predicted to cost less than "
        "nothing, so the best decision leaves the whole budget unused."
    )
    return Table("Where it starts", headings, lines, n_words=1, note=note)


def _erm_table(rows: list[Row]) -> Table:
    headings = ["data", "margin", "h half way", "h of POCS", "h of Armijo", "Armijo over POCS"]
    headings += ["POCS, ms"]
    lines = [
        [
            row["data"],
            f"{row['margin']:g}",
            *(f"{row[name]:.4g}" for name in ("h_half_way", "h", "armijo_h")),
            f"{row['armijo_over_pocs']:.3f}",
            f"{1e3 * row['seconds']:.0f}",
        ]
        for row in rows
    ]
    note = "As many iterations of each. Below 1, gradient descent has got further than POCS."
    return Table("First-order minimization of the same loss", headings, lines, 1, note)


def _kind(row: Row) -> str:
    return row["data"].partition("_")[0]


def _findings(rows: list[Row]) -> str:
    spread = max(
        max(some) - min(some)
        for name in dict.fromkeys(row["data"] for row in rows)
        for measure in MEASURES[:2]
        for some in [[row["ours"][measure] for row in rows if row["data"] == name]]
    )
    above = max(
        row["ours"][measure] - row["reference"][measure]
        for row in rows
        if row["margin"] in TARGET_MARGINS
        for measure in MEASURES[:2]
    )
    least = min(row["margin"] for row in rows)
    worse = max(
        row["reference"][MEASURES[1]] - row["ours"][MEASURES[1]]
        for row in rows
        if row["margin"] == least
    )
    return f"""
**Finding.** The margin is a unit, not a tuning knob: from a start of 0, the decision losses of all
four margins differ by at most {spread:.2g}. At margins 10 and 1 ours is at most {above:.2f} above
the paper's own program. At {least:g} that program, which starts at random, has a test decision
loss up to {worse:.2f} above ours.

**Why all margins agree.** The costs that explain a decision with margin 10 are ten times those
with margin 1. From a start of 0 the iterates scale along, so decisions are the same at every
margin. The reference starts from random coefficients, whose size has to be seen against the
margin: at 10 and 1 they are soon forgotten, at 0.01 they are still there when it stops. The
second table starts ours at random too, and the rise at 0.01 comes back.
"""


def _method(rows: list[Row], iterations: int) -> str:
    by_data = {row["data"]: row["misread_by_reference"] for row in rows}
    misread = ", ".join(f"{name} {count}" for name, count in by_data.items())
    unlike = sum({row["data"]: row["states_unlike_exact"] for row in rows}.values())
    return f"""
{iterations} POCS iterations with a linear model, from coefficients of 0, on the files of
`{{sp,knapsack}}_seed{{0,1}}.npz`, beside the reference: {REFERENCE}.

**Active sets.** Decisions in the files come from an interior-point solver. Entries that stand for 0
but lie above the reference's cut of {REFERENCE_CUT:g} (training split: {misread}) make it demand a
reduced cost of exactly 0 where at least the margin is right. `OptimalitySet` reads them as 0; its
states differ from those of the exact decisions in {unlike} entries.

**The knapsack's slacks.** The files have the knapsack in standard form, with 11 slack columns whose
cost is known to be 0. The reference predicts all 21 columns and counts all 21 in the decision loss;
so does this table. For use, prefer `rv.problems.knapsack`, which has no slack to predict.
"""
