"""The `revealed` command: parses, calls, prints. All work is done by the modules it calls."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from . import __version__
from .errors import RevealedError

EXIT_CODES = """exit codes:
  0    done, and every claim that was printed held
  1    done, but a claim failed (something not solved, a target missed)
  2    could not start: wrong arguments, unusable input, or a missing package
  130  interrupted
"""

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
}

# Command -> (module with `add_arguments` and `run`, one-line help, example)
COMMANDS = {
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
BENCHES = {
    "projection": (
        "revealed.bench.projection",
        "time the projection against the solvers others use",
        "revealed bench projection --quick --out out/bench/projection.json",
    ),
    "netlib": (
        "revealed.bench.netlib",
        "project on the NETLIB problems in a folder and count false claims",
        "revealed bench netlib --data path/to/netlib",
    ),
    "margins": (
        "revealed.bench.margins",
        "repeat the paper's margin table and set it beside the reference",
        "revealed bench margins --data path/to/paper_synthetic",
    ),
    "learning": (
        "revealed.bench.learning",
        "time POCS against the usual loop, and see how it grows with the data",
        "revealed bench learning --data path/to/paper_synthetic",
    ),
    "noise": (
        "revealed.bench.noise",
        "learn from noisy decisions with the squared, plain and Huber distance",
        "revealed bench noise --seeds 10",
    ),
    "synthetic": (
        "revealed.bench.synthetic",
        "every method on the paper's synthetic problems and on CaVE's yardstick",
        "revealed bench synthetic --quick --out out/synthetic",
    ),
    "run": (
        "revealed.bench.run_one",
        "perform one run from its configuration file",
        "revealed bench run config.json --out out/runs",
    ),
    "epochs": (
        "revealed.bench.epochs",
        "time an epoch of every method, and of PyEPO's, in one run",
        "revealed bench epochs --pyepo .venv-pyepo/bin/python",
    ),
    "pyepo": (
        "revealed.bench.pyepo",
        "compare the regret of our rivals with that of PyEPO's own, seed by seed",
        "revealed bench pyepo --pyepo .venv-pyepo/bin/python",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors of our own become one sentence."""
    try:
        args = build_parser().parse_args(argv)
        return int(args.run(args))
    except RevealedError as error:
        return _complain(str(error))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA_OF:  # not one of the optional ones: a fault of ours, show it whole
            raise
        extra = EXTRA_OF[package]
        return _complain(
            f"This command needs the package {package!r}, which is not installed; "
            f"`pip install 'revealed[{extra}]'` brings it."
        )
    except OSError as error:
        if error.filename is None:  # not about a file the user named
            raise
        return _complain(f"Cannot use {str(error.filename)!r}: {error.strerror}.")
    except KeyboardInterrupt:
        print("revealed: interrupted", file=sys.stderr)
        return 130


def build_parser() -> argparse.ArgumentParser:
    """The whole command line; each command's own options are declared by its module."""
    parser = _parser(
        argparse.ArgumentParser,
        "learn the costs that decisions reveal",
        "revealed demo\n  revealed bench projection --quick",
        prog="revealed",
    )
    parser.add_argument("--version", action="version", version=f"revealed {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_commands(commands, COMMANDS)
    bench = _parser(
        commands.add_parser,
        "run an experiment and write its figures down",
        "\n  ".join(example for _, _, example in BENCHES.values()),
        name="bench",
    )
    _add_commands(bench.add_subparsers(title="benchmarks", required=True, metavar="NAME"), BENCHES)
    return parser


def _add_commands(commands, table: dict[str, tuple[str, str, str]]) -> None:
    for name, (module_name, summary, example) in table.items():
        module = importlib.import_module(module_name)
        command = _parser(commands.add_parser, summary, example, name=name)
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


def _complain(sentence: str) -> int:
    print(f"revealed: {sentence}", file=sys.stderr)
    return 2
