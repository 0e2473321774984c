"""The `revealed` command: parses, calls, prints. All work is done by the modules it calls."""

import argparse
import errno
import importlib
import io
import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import NoReturn

from ..errors import RevealedError
from .registry import BROUGHT_BY, COMMANDS, Command, CommandGroup, installed_groups

EXIT_CODES = """exit codes:
  0    done, and every claim that was printed held
  1    done, but a claim failed (something not solved, a target missed)
  2    could not start: wrong arguments, unusable input, or a missing package
  70   a fault of revealed itself, with a traceback to report
  130  interrupted
  141  the reader of the output closed it early
"""

FAULT = 70  # what sysexits.h calls an internal software error
INTERRUPTED, CLOSED = 130, 141  # as shells count: 128 and the number of the signal

FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))  # of a disk


def main(
    argv: Sequence[str] | None = None, *, groups: Mapping[str, CommandGroup] | None = None
) -> int:
    """Run one command and return its exit code; errors of our own become one sentence.

    `groups` are commands of other distributions; those that are installed, if it is None.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An arrow that a terminal lacks is no reason to end.
        sys.stdout.reconfigure(errors="replace")
    words = sys.argv[1:] if argv is None else list(argv)
    code = CLOSED
    try:
        try:
            code = _run(words, groups)
        finally:
            sys.stdout.flush()  # here, where a closed pipe can still be answered
    except BrokenPipeError:  # the reader of the output has seen enough
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


def _run(words: Sequence[str], groups: Mapping[str, CommandGroup] | None) -> int:
    try:
        args = build_parser(words, groups).parse_args(words)
        return int(args.run(args))
    except _WrongArguments as error:
        raise SystemExit(_complain(str(error), words)) from error
    except RevealedError as error:
        return _complain(str(error), words)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        known = _brought_by(groups)
        if package not in known:  # not one of the optional ones: a fault of ours, show it whole
            raise
        return _complain(
            f"This command needs the package {package!r}, which is not installed; "
            f"`pip install '{known[package]}'` brings it.",
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


def _brought_by(groups: Mapping[str, CommandGroup] | None) -> dict[str, str]:
    """Optional packages of all commands, and what brings them."""
    known = dict(BROUGHT_BY)
    for group in (installed_groups() if groups is None else groups).values():
        known |= group.brought_by
    return known


def build_parser(
    words: Sequence[str] | None = None, groups: Mapping[str, CommandGroup] | None = None
) -> argparse.ArgumentParser:
    """The command line; each command's own options are declared by its module.

    Only modules of commands named among `words` are imported, so that none waits for the others;
    None imports all.
    """
    from .. import __version__

    parser = _parser(
        _Parser,
        "learn the costs that decisions reveal",
        "revealed tour\n  revealed demo",
        prog="revealed",
    )
    parser.add_argument("--version", action="version", version=f"revealed {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_commands(commands, COMMANDS, words)
    for name, group in (installed_groups() if groups is None else groups).items():
        examples = "\n  ".join(command.example for command in group.commands.values())
        added = _parser(commands.add_parser, group.summary, examples, name=name)
        names = added.add_subparsers(title=group.title, required=True, metavar="NAME")
        _add_commands(names, group.commands, words)
    return parser


def _add_commands(commands, table: Mapping[str, Command], words: Sequence[str] | None) -> None:
    for name, entry in table.items():
        command = _parser(commands.add_parser, entry.summary, entry.example, name=name)
        if words is not None and name not in words:
            continue
        module = importlib.import_module(entry.module)
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
    """Print the error for people on stderr, and for machines that asked for JSON on stdout too."""
    print(f"revealed: {sentence}", file=sys.stderr)
    if "--json" in words:
        print(json.dumps({"error": sentence}, indent=1, ensure_ascii=False))
    return code
