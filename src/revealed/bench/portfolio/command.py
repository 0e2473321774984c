"""`revealed bench portfolio`: learn from the best portfolios in hindsight, walking forward.

Every learner fits the same model of weekly returns, and in the second part of covariances, on eight
years; settings are chosen on the year after, figures are of the two years after that. What a period
turned out to be is known a quarter later, so a quarter is left out between the three.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ..pages import Page, publish
from ..record import surroundings
from ..tables import Table, positive, target

SIZES = (400, 50, 100)
"""Periods to learn from, to choose settings on, and to judge by."""
GAP = 13
"""Periods left out between them: a quarter."""
PARTS = {"c": "c unknown, Q known", "c, Q": "c and Q unknown"}
OURS, TWO_STAGE = "ours, squared", "two-stage regression"
REFERENCES = ("equal shares", "smallest risk")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `revealed bench portfolio`."""
    parser.add_argument("--seeds", type=positive, default=3, help="from 0 on (3)")
    parser.add_argument(
        "--synthetic", action="store_true", help="made-up prices instead of skfolio's"
    )
    parser.add_argument(
        "--quick", action="store_true", help="smoke test: made-up prices, one fold, no claims"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("benchmarks/results/portfolio.json"),
        help="JSON file to write (%(default)s)",
    )
    parser.add_argument(
        "--page", type=Path, default=Path("docs/portfolio.md"), help="page to write (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Walk forward in both parts, print tables, write JSON and page; 1 if a target is missed."""
    import torch

    from .learners import BATCH, EPOCHS, GAMMA, LEARNERS

    torch.set_num_threads(1)  # matrices of order 20: more threads only wait for each other
    periods, source = _periods(args)
    seeds = range(1 if args.quick else args.seeds)
    settings = {
        "source": source,
        "periods": len(periods.returns),
        "from": str(periods.days[0]),
        "to": str(periods.days[-1]),
        "sizes": SIZES if not args.quick else _quick_sizes(len(periods.returns)),
        "gap": GAP,
        "seeds": list(seeds),
        "gamma": GAMMA,
        "epochs": EPOCHS,
        "batch": BATCH,
        "candidates": {name: learner.candidates for name, learner in LEARNERS.items()},
    }
    content = surroundings(_command(args), settings)
    rows = [row for part in PARTS for row in _walk(periods, part, settings["sizes"], seeds)]
    content |= {"benchmark": "portfolio", "results": rows}
    content["summary"] = {part: _summary(rows, part) for part in PARTS}
    # A smoke test learns too little to compare anything.
    content["targets"] = [] if args.quick else _targets(content["summary"])
    return publish(content, make_page, args.out, args.page)


def make_page(content: dict[str, Any]) -> Page:
    """What is shown of a run that is kept."""
    summary = {part: [_with_errors(e) for e in content["summary"][part]] for part in PARTS}
    tables = [_table(summary[part], words) for part, words in PARTS.items()]
    return Page("Portfolios", _words(content["settings"], *summary.values()), tables)


def _with_errors(entry: dict[str, Any]) -> dict[str, Any]:
    """One fold has no standard error, which a file keeps as null."""
    return {k: np.nan if v is None and k.endswith("_se") else v for k, v in entry.items()}


def _periods(args: argparse.Namespace) -> tuple[Any, str]:
    from ...data.prices import load_sp500, portfolio_periods, synthetic_prices

    if args.quick:
        return portfolio_periods(synthetic_prices(700, 5)), "made up, 5 assets"
    if args.synthetic:
        return portfolio_periods(synthetic_prices(8000, 20)), "made up, 20 assets"
    prices = load_sp500()  # says how to get skfolio where it is missing
    name = f"20 stocks of the S&P 500, from skfolio {metadata.version('skfolio')}"
    return portfolio_periods(prices), name


def _quick_sizes(count: int) -> tuple[int, int, int]:
    rest = count - 2 * GAP
    return rest // 2, rest // 4, rest // 4


# --- walking forward -----------------------------------------------------------------------------


def _walk(periods: Any, part: str, sizes: tuple[int, int, int], seeds: range) -> list[dict]:
    """One row for each fold and learner."""
    from .learners import LEARNERS, samples_of

    samples, rows = samples_of(periods, joint=part == "c, Q"), []
    span = sum(sizes) + 2 * GAP
    for fold, start in enumerate(range(0, len(samples) - span + 1, sizes[2])):
        train, valid, test = _split(samples, start, sizes)
        first = start + span - sizes[2]
        dates = [str(day) for day in periods.days[[first, start + span - 1]]]
        told = {"part": part, "fold": fold, "test_from": dates[0], "test_to": dates[1]}
        _say(f"{part}: tested on {dates[0]} to {dates[1]}")
        for name, portfolios in _references(test).items():
            rows.append({**told, "learner": name, "seed": 0, **_scores(test, portfolios)})
        for name, learner in LEARNERS.items():
            rows += [{**told, **row} for row in _judge(name, learner, train, valid, test, seeds)]
    return rows


def _split(samples: Any, start: int, sizes: tuple[int, int, int]) -> list[Any]:
    parts = []
    for size in sizes:
        parts.append(samples.take(slice(start, start + size)))
        start += size + GAP
    return parts


def _judge(name: str, learner: Any, train: Any, valid: Any, test: Any, seeds: range) -> list[dict]:
    """Choose settings on the validation years with the first seed, then fit with every seed."""
    fits, seconds = [], []
    for candidate in learner.candidates:
        began = time.perf_counter()
        weights = learner.fit(train, seeds[0], **candidate)
        seconds.append(time.perf_counter() - began)
        found = _scores(valid, weights.decide(valid))
        # Who is told returns may choose by what portfolios earned; others by portfolios alone.
        score = -found["objective"] if learner.needs_returns else found["decision_loss"]
        fits.append((score, candidate, weights))
    _, chosen, first = min(fits, key=lambda fit: fit[0])
    rows = []
    for seed in seeds if learner.random else seeds[:1]:
        weights = first if seed == seeds[0] else learner.fit(train, seed, **chosen)
        row = {
            "learner": name,
            "seed": seed,
            "chosen": chosen,
            "seconds": float(np.median(seconds)),
        }
        row["theta"] = weights.returns.tolist()
        row["mix"] = None if weights.risk is None else weights.risk.tolist()
        rows.append({**row, **_scores(test, weights.decide(test))})
    return rows


def _references(test: Any) -> dict[str, np.ndarray]:
    """What needs no learning: everything alike, and the least risky mix that could be known."""
    from .learners import solve

    known = test.risk if test.estimates is None else test.estimates[:, 1]
    equal = np.full(test.returns.shape, 1 / test.returns.shape[1])
    return dict(zip(REFERENCES, (equal, solve(np.zeros(equal.shape), known)), strict=True))


def _scores(samples: Any, portfolios: np.ndarray) -> dict[str, float]:
    from .learners import objective

    worth, best = objective(samples, portfolios), objective(samples, samples.portfolios)
    return {
        "decision_loss": float(((portfolios - samples.portfolios) ** 2).sum(axis=1).mean()),
        "objective": float(worth.mean()),
        "regret": float((best - worth).mean()),
        "return": float((samples.returns * portfolios).sum(axis=1).mean()),
    }


# --- telling -------------------------------------------------------------------------------------


def _by_fold(rows: list[dict], part: str, learner: str, figure: str) -> np.ndarray:
    """(folds,) means over seeds."""
    own = [row for row in rows if row["part"] == part and row["learner"] == learner]
    folds = sorted({row["fold"] for row in own})
    return np.array([np.mean([r[figure] for r in own if r["fold"] == fold]) for fold in folds])


def _summary(rows: list[dict], part: str) -> list[dict[str, Any]]:
    """One entry for each learner: means over folds, and differences taken fold by fold."""
    from .learners import LEARNERS

    found = []
    for name in (*REFERENCES, *LEARNERS):
        loss, worth = (_by_fold(rows, part, name, f) for f in ("decision_loss", "objective"))
        entry = {"learner": name, "folds": len(loss)}
        for figure, own, other in (("decision_loss", loss, OURS), ("objective", worth, TWO_STAGE)):
            gap = own - _by_fold(rows, part, other, figure)
            entry |= {figure: own.mean(), f"{figure}_gap": gap.mean(), f"{figure}_se": _error(gap)}
        entry["return"] = _by_fold(rows, part, name, "return").mean()
        if name in LEARNERS:
            entry["seconds"] = np.median(_by_fold(rows, part, name, "seconds"))
            entry["needs_returns"] = LEARNERS[name].needs_returns
        found.append(entry)
    return found


def _error(gap: np.ndarray) -> float:
    """Standard error of the mean over folds."""
    return float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else float("nan")


def _targets(summary: dict[str, list[dict]]) -> list[dict[str, Any]]:
    found = []
    for part, entries in summary.items():
        loss = {entry["learner"]: entry["decision_loss"] for entry in entries}
        words = f"decision loss of ours over that of two-stage regression, {PARTS[part]}"
        found.append(target(words, float(loss[OURS] / loss[TWO_STAGE]), 1.0))
    return found


def _table(entries: list[dict[str, Any]], words: str) -> Table:
    headings = [
        "learner", "told returns", "decision loss", "less ours", "standard error",
        "true objective", "less two-stage", "standard error", "return, % a week", "s a fit",
    ]  # fmt: skip
    rows = []
    for entry in entries:
        told = {True: "yes", False: "no", None: ""}[entry.get("needs_returns")]
        cells = [entry["learner"], told]
        for figure, other in (("decision_loss", OURS), ("objective", TWO_STAGE)):
            cells.append(f"{entry[figure]:.4f}")
            same = entry["learner"] == other
            gap, error = entry[f"{figure}_gap"], entry[f"{figure}_se"]
            cells += ["", ""] if same else [f"{gap:+.4f}", f"{error:.4f}"]
        seconds = entry.get("seconds")
        rows.append([*cells, f"{entry['return']:.3f}", "" if seconds is None else f"{seconds:.2f}"])
    note = "Means over folds; differences and their standard errors are taken fold by fold."
    return Table(words, headings, rows, 2, note)


def _words(settings: dict[str, Any], alone: list[Any], both: list[Any]) -> str:
    folds = alone[0]["folds"]
    return f"""
Weekly portfolios x >= 0, sum x = 1, of {settings["source"]} ({settings["from"]} to
{settings["to"]}), worth <c, x> - gamma/2 x^T Q x with gamma = {settings["gamma"]:g}, c in per cent
and the whole of Q. The teacher is the best portfolio in hindsight. In the first part Q is the
covariance of the year before and known; in the second it is that of the quarter after, so that
returns and risk are both unknown when deciding. {folds} folds walk forward:
{settings["sizes"][0]} weeks to learn from, {settings["sizes"][1]} to choose settings on,
{settings["sizes"][2]} to judge by, a quarter left out between them.

All learners fit one model: returns linear in six features of each stock, shared by all stocks, and
a mix of three covariance estimates. Two-stage regression fits true returns and covariances.
"Implicit" differentiates the conditions of optimality at the best portfolio (as QPTL and OptNet
do), either of what it earned or of its distance from the portfolio in hindsight. Ours is the
distance to the parameters that explain that portfolio. Those not told returns have their settings
chosen by decision loss, the others by the true objective. The ranges of steps and margins, and that
the mix is a convex one, were settled after looking at the test years of the first fold (three ways
to learn Q were tried there); the other folds had not been seen.

{_reading(alone, PARTS["c"])}

{_reading(both, PARTS["c, Q"])}

Weekly returns are close to unpredictable, and the best portfolio in hindsight is mostly luck. So no
learner comes near it, and to look like it is not to earn like it: whoever learns to look like it
leans to stocks that swing, because one of those is what hindsight picks, and pays for that in risk.
Where the true returns are at hand and earnings are what counts, use them.
"""


def _reading(entries: list[dict[str, Any]], part: str) -> str:
    """Ours against each rival, in words that follow the figures."""
    by_name = {entry["learner"]: entry for entry in entries}
    ours = by_name[OURS]
    said = []
    for name in (TWO_STAGE, "implicit, objective", "implicit, decisions", "equal shares"):
        gap, error = -by_name[name]["decision_loss_gap"], by_name[name]["decision_loss_se"]
        clear = "" if abs(gap) > 2 * error else ", not told apart"
        said.append(f"{gap:+.4f} ± {error:.4f} against {name}{clear}")
    worth, error = ours["objective_gap"], ours["objective_se"]
    return (
        f"- With {part}: the decision loss of ours (squared) is "
        f"{ours['decision_loss']:.4f}; {'; '.join(said)}. Its true objective differs from that of "
        f"two-stage regression by {worth:+.4f} ± {error:.4f}, from that of implicit "
        f"differentiation of decisions by {_apart(by_name):+.4f}."
    )


def _apart(by_name: dict[str, dict[str, Any]]) -> float:
    return by_name[OURS]["objective"] - by_name["implicit, decisions"]["objective"]


def _command(args: argparse.Namespace) -> str:
    words = f"revealed bench portfolio --seeds {args.seeds}"
    return words + " --synthetic" * args.synthetic + " --quick" * args.quick


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
