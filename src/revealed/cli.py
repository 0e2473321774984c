"""The `revealed` command: parses, calls, prints. All work is done by the modules it calls."""

import argparse
import errno
import importlib
import io
import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from .errors import RevealedError

EXIT_CODES = """exit codes:
  0    done, and every claim that was printed held
  1    done, but a claim failed (something not solved, a target missed)
  2    could not start: wrong arguments, unusable input, or a missing package
  70   a fault of revealed itself, with a traceback to report
  130  interrupted
  141  whoever read the output closed it before the end
"""

FAULT = 70  # what sysexits.h calls an internal software error
INTERRUPTED, CLOSED = 130, 141  # as shells count: 128 and the number of the signal

FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))  # of a disk

# Which extra of pyproject.toml brings which package, for those the commands import on demand.
EXTRA_OF = {
    "rich": "cli",
    "matplotlib": "cli",
    "highspy": "solvers",
    "clarabel": "solvers",
    "networkx": "graphs",
    "cvxpy": "bench",
    "ecos": "bench",
    "osqp": "bench",
    "piqp": "bench",
    "daqp": "bench",
    "dask": "sweeps",
    "distributed": "sweeps",
    "pyarrow": "tables",
}

# Command -> (module with `add_arguments` and `run`, one-line help, example)
COMMANDS = {
    "tour": (
        "revealed.tour",
        "copy a planner's files to try the commands below on, and say how",
        "revealed tour --out tour",
    ),
    "doctor": (
        "revealed.commands.doctor",
        "say what a table of decisions can teach, and what is wrong with it",
        "revealed doctor --problem plan.mps --contexts contexts.csv --decisions decisions.csv",
    ),
    "fit": (
        "revealed.commands.fit",
        "learn a cost model from a model file and tables of contexts and decisions",
        "revealed fit --problem plan.mps --contexts contexts.csv --decisions decisions.csv "
        "--out model",
    ),
    "predict": (
        "revealed.commands.predict",
        "decide for new contexts, or say what things cost there",
        "revealed predict model --contexts new.csv --out decisions.csv",
    ),
    "explain": (
        "revealed.commands.explain",
        "say whether to believe a model: what it explains, what it misses, how firm it is",
        "revealed explain model --contexts contexts.csv --decisions decisions.csv",
    ),
    "explore": (
        "revealed.commands.explore",
        "look at a model sample by sample in the browser, and move its contexts",
        "revealed explore model",
    ),
    "demo": (
        "revealed.demo",
        "learn street costs from routes alone, compare, and draw pictures",
        "revealed demo --out out/demo --seed 7",
    ),
    "report": (
        "revealed.report",
        "turn a folder of finished runs into one page that works offline",
        "revealed report benchmarks/results/synthetic --out out/report.html",
    ),
}
DATA = {
    "terrain": (
        "revealed.data.commands.terrain",
        "write made-up maps with shortest paths, in the layout of the Warcraft maps",
        "revealed data terrain --out out/terrain --side 12 --unique",
    ),
    "boards": (
        "revealed.data.commands.boards",
        "write boards of handwritten digits with cheapest perfect matchings",
        "revealed data boards --out out/boards --side 12 --digits sklearn",
    ),
}
BENCHES = {
    "projection": (
        "revealed.bench.projection.command",
        "time the projection against the solvers others use",
        "revealed bench projection --quick --out out/bench/projection.json",
    ),
    "netlib": (
        "revealed.bench.projection.netlib",
        "project on the NETLIB problems in a folder and count false claims",
        "revealed bench netlib --data path/to/netlib",
    ),
    "imports": (
        "revealed.bench.imports.command",
        "learn with models from MPS files and from CVXPY, end to end",
        "revealed bench imports --netlib path/to/netlib",
    ),
    "margins": (
        "revealed.bench.learning.margins",
        "repeat the paper's margin table and set it beside the reference",
        "revealed bench margins --data path/to/paper_synthetic",
    ),
    "learning": (
        "revealed.bench.learning.command",
        "time POCS against the usual loop, and see how it grows with the data",
        "revealed bench learning --data path/to/paper_synthetic",
    ),
    "minimum": (
        "revealed.bench.minimum.command",
        "count the projections that a fit takes to the minimum of its loss, beside POCS",
        "revealed bench minimum --data path/to/paper_synthetic",
    ),
    "noise": (
        "revealed.bench.noise.command",
        "compare our defaults with the Fenchel-Young loss on noisy and on exact decisions",
        "revealed bench noise --seeds 20",
    ),
    "scale": (
        "revealed.bench.scale",
        "fit from Parquet tables of up to a million decisions, with time and memory",
        "revealed bench scale --sizes 10000,100000",
    ),
    "synthetic": (
        "revealed.bench.synthetic.command",
        "every method on the paper's synthetic problems and on CaVE's yardstick",
        "revealed bench synthetic --quick --out out/synthetic",
    ),
    "vision": (
        "revealed.bench.vision.command",
        "every method on pictures: maps with shortest paths, digits with matchings",
        "revealed bench vision --quick --out out/vision",
    ),
    "run": (
        "revealed.bench.sweeps.run_one",
        "perform one run from its configuration file",
        "revealed bench run config.json --out out/runs",
    ),
    "epochs": (
        "revealed.bench.epochs.command",
        "time an epoch of every method, and of PyEPO's, in one run",
        "revealed bench epochs --pyepo .venv-pyepo/bin/python",
    ),
    "steps": (
        "revealed.bench.steps.command",
        "time a training step with our loss against one with the squared error",
        "revealed bench steps --quick --out out/steps.json",
    ),
    "routes": (
        "revealed.bench.routes.command",
        "learn road costs from drivers' routes, beside logit models of route choice",
        "revealed bench routes --data path/to/shanghai_routes",
    ),
    "pyepo": (
        "revealed.bench.epochs.pyepo",
        "compare the regret of our rivals with that of PyEPO's own, seed by seed",
        "revealed bench pyepo --pyepo .venv-pyepo/bin/python",
    ),
    "portfolio": (
        "revealed.bench.portfolio.command",
        "learn from the best portfolios in hindsight, walking forward through real prices",
        "revealed bench portfolio --seeds 3",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors of our own become one sentence."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An arrow that a terminal lacks is no reason to end.
        sys.stdout.reconfigure(errors="replace")
    words = sys.argv[1:] if argv is None else list(argv)
    code = CLOSED
    try:
        try:
            code = _run(words)
        finally:
            sys.stdout.flush()  # here, where a closed pipe can still be answered
    except BrokenPipeError:  # whoever read the output has seen enough
        _end_output()
    except Exception as error:
        if argv is not None:  # called from Python, which has its own ways
            raise
        if isinstance(error, OSError) and error.errno in FULL:
            _end_output()
            return _complain(f"The output cannot be written: {error.strerror}.", words)
        traceback.print_exc()
        code = _complain("a fault of our own; please report it with the lines above", words, FAULT)
    return code


def _end_output() -> None:
    """Let the rest of the output go nowhere, since its place takes no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: Sequence[str]) -> int:
    try:
        args = build_parser(words).parse_args(words)
        return int(args.run(args))
    except _WrongArguments as error:
        raise SystemExit(_complain(str(error), words)) from error
    except RevealedError as error:
        return _complain(str(error), words)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA_OF:  # not one of the optional ones: a fault of ours, show it whole
            raise
        extra = EXTRA_OF[package]
        return _complain(
            f"This command needs the package {package!r}, which is not installed; "
            f"`pip install 'revealed[{extra}]'` brings it.",
            words,
        )
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:  # not about a file the user named
            raise
        return _complain(f"Cannot use {str(error.filename)!r}: {error.strerror}.", words)
    except KeyboardInterrupt:
        return _complain("interrupted", words, INTERRUPTED)


def build_parser(words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The command line; each command's own options are declared by its module.

    Only modules of commands named among `words` are imported, so that none waits for the others;
    None imports all.
    """
    from . import __version__

    parser = _parser(
        _Parser,
        "learn the costs that decisions reveal",
        "revealed tour\n  revealed demo",
        prog="revealed",
    )
    parser.add_argument("--version", action="version", version=f"revealed {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_commands(commands, COMMANDS, words)
    data = _parser(
        commands.add_parser,
        "write a data set of pictures with decisions to a folder",
        "\n  ".join(example for _, _, example in DATA.values()),
        name="data",
    )
    names = data.add_subparsers(title="data sets", required=True, metavar="NAME")
    _add_commands(names, DATA, words)
    bench = _parser(
        commands.add_parser,
        "run an experiment and write its figures down",
        "\n  ".join(example for _, _, example in BENCHES.values()),
        name="bench",
    )
    names = bench.add_subparsers(title="benchmarks", required=True, metavar="NAME")
    _add_commands(names, BENCHES, words)
    return parser


def _add_commands(
    commands, table: dict[str, tuple[str, str, str]], words: Sequence[str] | None
) -> None:
    for name, (module_name, summary, example) in table.items():
        command = _parser(commands.add_parser, summary, example, name=name)
        if words is not None and name not in words:
            continue
        module = importlib.import_module(module_name)
        module.add_arguments(command)
        command.set_defaults(run=module.run)


def _parser(make, summary: str, example: str, *, name: str | None = None, **options):
    """A parser whose help has the same layout as all: summary, options, example, exit codes."""
    if name is not None:
        options |= {"name": name, "help": summary}
    return make(
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  {example}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **options,
    )


class _Parser(argparse.ArgumentParser):
    """A parser that leaves it to `main` to say what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise _WrongArguments(message)


class _WrongArguments(Exception):
    """What `argparse` does not understand."""


def _complain(sentence: str, words: Sequence[str], code: int = 2) -> int:
    """Tell people on the error stream, and machines that asked for JSON on the output too."""
    print(f"revealed: {sentence}", file=sys.stderr)
    if "--json" in words:
        print(json.dumps({"error": sentence}, indent=1, ensure_ascii=False))
    return code
