"""Tables from the committed results of the benchmarks; no figure on any page is copied by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments/results"


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], numbers: int = 0) -> str:
    """A Markdown table whose last `numbers` columns are set to the right."""
    rule = ["---"] * (len(heads) - numbers) + ["---:"] * numbers
    lines = [heads, rule, *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"


def _cell(value: Any) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|")


def load(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def targets() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every target that a benchmark was held against, with the benchmark's name."""
    for path in sorted(RESULTS.glob("*.json")):
        for target in load(path.stem).get("targets", ()):
            yield path.stem, target


def targets_table(*, missed: bool) -> str:
    """All targets, or those that were missed."""
    rows = [
        (name, t["name"], "holds" if t["holds"] else "**missed**", t["bound"], _number(t["value"]))
        for name, t in targets()
        if not (missed and t["holds"])
    ]
    if not rows:
        return "None is missed.\n"
    return table(["benchmark", "target", "verdict", "asked", "found"], rows, 2)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)


def claims_list(experiment: str, *, failed: bool = False) -> str:
    """What is claimed of an experiment, with the verdict of its runs."""
    from revealed_experiments.report.claims import judge
    from revealed_experiments.report.reading import read_folder
    from revealed_experiments.report.study import gather
    from revealed_experiments.report.verdicts import FAILS, HOLDS

    rows = []
    for claim in judge(gather(read_folder(RESULTS / experiment), [])):
        if failed and claim.verdict != FAILS:
            continue
        verdict = claim.verdict.capitalize()
        verdict = verdict if claim.verdict == HOLDS else f"**{verdict}**"
        beside = (f"{a.ours:.3g} against {a.theirs:.3g} ({a.other})" for a in claim.against)
        rows.append(f"- {verdict}: {claim.sentence} {claim.measure.capitalize()}, ours against ")
        rows[-1] += f"theirs: {'; '.join(beside) or 'not there yet'}."
    return "\n".join(rows or ["None, by the runs at hand."]) + "\n"


def claims_board(experiment: str) -> str:
    """The verdicts as tables, one per group of claims: a row per claim, a column per problem."""
    from revealed_experiments.report.claims import judge
    from revealed_experiments.report.reading import read_folder
    from revealed_experiments.report.sections.findings import why
    from revealed_experiments.report.study import gather

    claims = judge(gather(read_folder(RESULTS / experiment), []))
    tables = []
    for whose in dict.fromkeys(claim.whose for claim in claims):
        mine = [claim for claim in claims if claim.whose == whose]
        problems = list(dict.fromkeys(claim.problem for claim in mine))
        cells = {(c.topic, c.problem): f"**{c.verdict.capitalize()}**: {why(c)}" for c in mine}
        rows = [
            (topic, *(cells.get((topic, problem), "-") for problem in problems))
            for topic in dict.fromkeys(claim.topic for claim in mine)
        ]
        tables.append(table([whose, *problems], rows))
    return "\n".join(tables)


def excess_risk(axis: str) -> str:
    """How far h is above the least, by training samples or by steps of POCS."""
    content = load("synthetic/excess_risk")
    rows = [(row["at"], row["excess"], row["error"]) for row in content[axis]]
    if axis == "samples":
        return table(
            ["training samples", "excess risk on fresh contexts", "standard error"], rows, 3
        )
    rows = [(*row, kept["promised"]) for row, kept in zip(rows, content[axis], strict=True)]
    heads = ["steps of POCS", "h above its minimum", "standard error", "promised: D²/2T"]
    return table(heads, rows, 4)


def audit() -> str:
    """The audit's figures beside those of the committed runs."""
    from revealed_experiments.bench.published import AUDIT_PATHS
    from revealed_experiments.report.numbers import mean
    from revealed_experiments.report.reading import read_folder
    from revealed_experiments.report.study import gather

    entries = {
        (e.runs[0].label, e.runs[0].optimiser): e
        for e in gather(read_folder(RESULTS / "synthetic"), []).of("paper path")
    }
    rows = [
        ("paths", entries[name].label, f"{said:.2f}", f"{mean(found):.2f}")
        for name, said in AUDIT_PATHS.items()
        if name in entries
        for found in (entries[name].final("test", "estimate_loss"),)
    ]
    rows += [
        ("knapsack", row["method"], f"{row['audit']:.3f}", f"{row['found']:.3f}")
        for row in load("synthetic/audit_knapsack")["rows"]
    ]
    return table(["problem", "method", "audit", "here"], rows, 2)


def mom_bases() -> str:
    """What MOM reaches with several bases that are all optimal under the true costs."""
    by_choice: dict[str, dict[str, dict]] = {}
    for row in load("synthetic/mom_bases")["rows"]:
        by_choice.setdefault(row["multipliers"], {})[row["optimizer"]] = row
    rows = [
        (
            name,
            *(
                f"{row[by]['test_estimate']:.2f} ± {row[by]['error']:.2f}"
                for by in ("armijo", "adam")
            ),
        )
        for name, row in by_choice.items()
    ]
    return table(["basis from the multipliers of", "MOM, Armijo", "MOM, Adam"], rows, 1)


def paper_route() -> str:
    """Seconds of an epoch through CVXPY and through ours, by dimension and by samples."""
    rows = [
        (
            f"{row['side']}x{row['side']}, {row['n']} costs",
            row["samples"],
            *(1e3 * row[name] for name in ("ECOS", "OSQP", "ours")),
            f"{row['ECOS'] / row['ours']:,.0f}x",
        )
        for row in load("synthetic/paper_route")["rows"]
    ]
    heads = [
        "grid",
        "samples",
        "CVXPY + ECOS, ms",
        "CVXPY + OSQP, ms",
        "ours, ms",
        "ECOS over ours",
    ]
    return table(heads, rows, 5)


def netlib_sentence() -> str:
    counts = load("netlib")["counts"]
    return (
        f"Of {counts['problems']} NETLIB problems the library projects on {counts['auto right']} "
        f"rightly, its kernel alone on {counts['kernel right']}; claimed solved but not so: "
        f"{counts['false claims']}.\n"
    )


def gpu_table() -> str:
    """Projections a second on a GPU, by problem, regime and precision."""
    content = load("gpu_projection")
    rows = [
        (
            line["problem"],
            line["regime"],
            line["precision"],
            f"{line['batch']:,}",
            f"{line['projections_per_second']:,.0f}",
            f"{line['solved']:.2%}",
        )
        for line in content["lines"]
    ]
    heads = ["problem", "predictions", "precision", "batch", "projections a second", "solved"]
    about = content["surroundings"]
    return f"{table(heads, rows, 3)}\nOn one {about['device']}, by `{about['command']}`.\n"


def learning_table() -> str:
    """How an iteration of POCS grows with the data."""
    content = load("learning")
    rows = [
        (
            f"{row['samples']:,}",
            f"{1e3 * row['projection_s']:.1f}",
            f"{1e3 * row['least_squares_s']:.1f}",
            f"{row['peak_mib']:.0f}",
        )
        for row in content["growth"]["rows"]
    ]
    loop = content["usual_loop"]
    return (
        table(["samples", "projections, ms", "least squares, ms", "peak memory, MiB"], rows, 3)
        + f"\nOne iteration. The usual loop (CVXPY and ECOS, one sample at a time) takes "
        f"{loop['ratio']['all']:.0f} times as long on {loop['samples']} samples. By "
        f"`{content['command']}`.\n"
    )


def online_table() -> str:
    """Streams of single decisions beside fits to the same decisions."""
    from revealed_experiments.bench.online.page import QUICK, late_excess, mean_of

    parts = load("online")["parts"]
    part, late = parts["paths"], late_excess(parts["drift"]["rows"], "abrupt")
    rows, sizes = part["rows"], sorted({row["size"] for row in part["rows"]})
    lines = [
        [name, *(f"{100 * mean_of(rows, name, size):.1f}%" for size in sizes)]
        for name in dict.fromkeys(row["learner"] for row in rows)
    ]
    single, ten = (
        1e3 * mean_of(rows, name, sizes[-1], "seconds") / sizes[-1]
        for name in ("one by one", "ten at a time")
    )
    seeds = len({row["seed"] for row in rows})
    heads = ["unseen decisions repeated after", *(f"{size:,}" for size in sizes)]
    return (
        table(heads, lines, len(sizes)) + f"\nNoisy 5x5 paths, {seeds} seeds. A decision takes "
        f"{single:.1f} ms of the processor one by one, {ten:.1f} ms ten at a time. Where the "
        "hidden costs change all at once, the excess cost some time later is "
        f"{100 * late[QUICK]:.0f}% with `forgetting=0.99` and "
        f"{100 * late['nothing forgotten']:.0f}% without forgetting. By `revealed bench online`; "
        "[more](../online.md).\n"
    )


def scale_table() -> str:
    """What a fit to partitions takes, by the number of decisions."""
    content = load("scale")
    rows = [
        (
            f"{line['samples']:,}",
            f"{line['evaluations']}",
            f"{line['run']['evaluation_processor_seconds']:.3g}",
            f"{line['relative_gap']:.0e}",
            f"{line['peak_mib']:,.0f}",
            f"{line['difference']:.0e}" if "difference" in line else "not compared",
        )
        for line in content["lines"]
    ]
    heads = ["decisions", "evaluations", "processor seconds each", "relative gap proved"]
    heads += ["peak memory, MiB", "coefficients, from those in memory"]
    about = content["surroundings"]
    return (
        table(heads, rows, 6) + f"\nFits to Parquet files of `{content['problem']}` decisions on "
        f"{about['hardware']['cores']} cores that other work shared, so times are those of the "
        f"processor; {content['memory']} were the budget. Coefficients are compared after fits to "
        f"a relative gap of 1e-9. {_growth(content['lines'])} By `{about['command']}`.\n\n"
        + _price_of_a_cluster()
    )


def _growth(lines: list[dict[str, Any]]) -> str:
    """How the largest fit compares with a tenth of it."""
    few, many = lines[-2:]
    ratio = many["run"]["evaluation_processor_seconds"] / few["run"]["evaluation_processor_seconds"]
    return (
        f"With {many['samples']:,} decisions an evaluation takes {ratio:.1f} times as long as with "
        f"{few['samples']:,}; fit and proof together took {many['processor_seconds']:,.0f} "
        f"processor seconds, in {many['run']['passes']} passes over the data."
    )


def _price_of_a_cluster() -> str:
    """A Dask cluster on one machine beside threads."""
    content = load("scale_price")
    out, back = (content["bytes_per_evaluation"][way] / 1e3 for way in ("out", "back"))
    return (
        f"A Dask cluster of {content['workers']} workers on the same machine took "
        f"{content['ratio']:.2f} times as long as {content['workers']} threads for an evaluation "
        f"of {content['samples']:,} decisions (medians of {len(content['seconds']['cluster'])} by "
        "the clock, with other work on the machine, so the second digit means little), and gave "
        f"the same bits. An evaluation sends {out:,.0f} kB and brings back {back:,.0f} kB, for "
        f"{content['partitions']} partitions. By `python -m "
        "revealed_experiments.bench.scale_plan price`.\n\n" + _routes_of_cities()
    )


def _routes_of_cities() -> str:
    """Routes with ends of their own on large networks."""
    told = []
    for line in load("scale_city")["lines"]:
        ours, other = (line["projection"][name] for name in ("auto", "clarabel"))
        ms = [f"{1e3 * one['processor_seconds']:.2g}" for one in (ours, other)]
        told.append(
            f"Routes ({line['network']}), {line['links']:,} costs and {line['trips']:,} trips "
            f"with ends of their own: relative gap {line['relative_gap']:.0e} in "
            f"{line['processor_seconds']:.0f} processor seconds; one projection takes {ms[0]} ms "
            f"of the processor, Clarabel's {ms[1]} ms."
        )
    by = " By `python -m revealed_experiments.bench.scale_city`.\n\n"
    return " ".join(told) + by + _plan_for_a_billion()


def _plan_for_a_billion() -> str:
    """What the driver takes beside workers that only sleep as long as they would compute."""
    content, inside = load("scale_plan"), load("scale_threads")
    added = "; ".join(
        f"{line['shares']:,} partitions, with {line['threads']} of a machine's cores each, add "
        f"{line['overhead']:.1f} s by the clock, and take "
        f"{line['processor_seconds_of_driver_and_scheduler']:.1f} s of the processor"
        for line in content["lines"]
    )
    kernels, cores = inside["share_in_kernels"], content["cores"]
    waiting = inside["waiting"][str(inside["threads"])]
    return (
        f"A plan for {content['samples']:,} decisions on {content['machines']} machines of {cores} "
        "cores, with workers that sleep instead of computing: an evaluation is "
        f"{content['lines'][0]['sleep_of_a_share']:.1f} s of work for every core, and Dask's tasks "
        f"come on top: {added} (driver, scheduler and idle workers in one process, with a load of "
        f"{content['surroundings']['hardware']['load_before']:.0f} on "
        f"{content['surroundings']['hardware']['cores']} cores before it began). So let one task "
        "at a time have a machine: `dask worker --nthreads 1`, and as many `partitions` as "
        "machines. The plan assumes that the threads of a machine share the work of a partition "
        f"without loss. For {cores} threads this has not been measured: there was no such machine. "
        f"{100 * kernels:.0f}% of an evaluation's processor time is spent in kernels that "
        f"run without the interpreter's lock, and {inside['threads']} threads wait for each other "
        f"{100 * waiting:.1f}% of their time. By `python -m "
        "revealed_experiments.bench.scale_plan plan` and `threads`.\n\n" + _killed_fits()
    )


def _killed_fits() -> str:
    """Fits that were killed and resumed."""
    content = load("scale_kills")
    same = "the same coefficients, bit for bit" if content["same_bits"] else "other coefficients"
    return (
        f"Fits of {content['samples']:,} decisions were killed with SIGKILL {content['kills']} "
        f"times in all, at random moments, {content['with_a_checkpoint']} times after the first "
        f"checkpoint, and resumed, {content['kills_with_other_threads']} times with other numbers "
        f"of threads: {same}, as one that nothing disturbed, in all {len(content['fits'])} fits. "
        "By `python -m revealed_experiments.bench.scale_kills`.\n"
    )


def headline() -> str:
    from revealed_experiments.bench.projection.page import headline as sentence

    return sentence(load("projection")) + "\n"


def benchmarks_readme() -> str:
    """How the figures were taken, without its title, for a page in docs/benchmarks."""
    text = (ROOT / "experiments/README.md").read_text("utf-8").replace("](../docs/", "](../")
    return text.partition("\n")[2].lstrip()


def own_pages() -> str:
    """The pages that benchmarks wrote beside their results, one heading lower."""
    parts = []
    for path in sorted(RESULTS.glob("*.md")):
        text = path.read_text("utf-8")
        parts.append("\n".join(_lower(text.splitlines())))
    return "\n\n".join(parts) + "\n"


def _lower(lines: Iterable[str]) -> Iterator[str]:
    fenced = False
    for line in lines:
        fenced ^= line.startswith("```")
        yield f"#{line}" if line.startswith("#") and not fenced else line


def first_day() -> str:
    """What an installation takes, and the tour, in an environment that was bare before."""
    content = load("first_day")
    cold, warm = (
        sum(each["processor_seconds"] for each in content[name].values())
        for name in ("tour", "tour_again")
    )
    return (
        f"In a bare environment of Python {content['python']} everything together takes "
        f"{content['installed_mb']} MB. The first command that computes also compiles, once for "
        f"this machine: the {len(content['tour'])} commands below, of which one writes files to "
        f"try, took {cold:.0f} seconds of the processor, and {warm:.0f} when repeated; importing "
        f"the library takes {content['import_seconds']:.2f} s. (`.ci/package`)\n"
    )


def given_table() -> str:
    """Regret with costs that are given beforehand, beside none."""
    content = load("given_costs")
    words = {
        "nothing": "nothing",
        "signs": "signs",
        "known, noise 0": "half of the costs, noise 0",
        "known, noise 0.05": "half of the costs, noise of a twentieth of their size",
        "known, noise 0.2": "half of the costs, noise of a fifth (the default)",
        "known, noise 0.8": "half of the costs, noise of four fifths",
    }
    sizes = list(content["regret"]["nothing"])
    rows = [
        (
            words[name],
            *(f"{own[size]['mean']:.2f}% ± {own[size]['se']:.2f}" for size in sizes),
            *(_beside(own[size]) if name != "nothing" else "" for size in sizes),
        )
        for name, own in content["regret"].items()
    ]
    heads = ["given", *(f"regret, {size} decisions" for size in sizes)]
    heads += [f"beside nothing, {size}" for size in sizes]
    lead = (
        "Noisy 5x5 paths with costs that never change on half of the edges, "
        f"{content['seeds']} seeds (`python experiments/scripts/given_costs.py`):\n\n"
    )
    return lead + table(heads, rows, 2 * len(sizes))


def _beside(own: dict[str, float]) -> str:
    return f"{own['beside_nothing']:+.2f} ± {own['beside_nothing_se']:.2f}"


def walks_table() -> str:
    """The expert's return from sampled walks, beside repaired counts and exact behavior."""
    content = load("walks")
    rows = []
    for count in (1, 2, 4):
        for walks in (5, 20, 80):
            own = [content["share"][f"{count} {walks} {way}"] for way in ("revealed", "repaired")]
            cells = [f"{each['mean']:.1%} ({each['worst']:.1%})" for each in own]
            exact = content["share"][f"{count} exact"]
            rows.append((count, walks, *cells, f"{exact['mean']:.1%} ({exact['worst']:.1%})"))
    lead = (
        f"Share of the expert's return in 40 new worlds, mean over {content['seeds']} seeds and "
        "worst seed (`python experiments/scripts/walks.py`):\n\n"
    )
    heads = ["worlds", "walks in each", "`sampled_behavior`", "repaired counts", "exact behavior"]
    return lead + table(heads, rows, 5)


def conformal_table() -> str:
    """Coverage of conformal cones over simulated splits, and robust decisions beside plain ones."""
    content = load("conformal")
    rows = []
    for kind, told in content["kinds"].items():
        robust = told["robust"]
        covered = [
            f"{told[f'{level}']['coverage']:.1%} ± {told[f'{level}']['standard_error']:.1%}"
            for level in content["settings"]["levels"]
        ]
        angles = [
            f"{told[f'{level}']['median_angle']:.0f}°" for level in content["settings"]["levels"]
        ]
        saved = f"{robust['worst_robust'] - 1:+.0%}"
        regret = f"{robust['regret_plain']:.1%} → {robust['regret_robust']:.1%}"
        rows.append((kind, *covered, ", ".join(angles), saved, regret))
    heads = [f"covered at level {level}" for level in content["settings"]["levels"]]
    heads = ["decisions", *heads, "half-angles", "worst case", "true regret"]
    return table(heads, rows, 5)
