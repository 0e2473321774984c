"""The application: the `revealed` command, and what planners see of the library.

main, registry   the command line: parses, calls, prints
commands/        one module per command
tables/, plans/  files that people bring: tables, model files
doctor/          what is wrong with a table, and what decisions can teach
explain/         whether to trust a model
store/           a fitted model on disk
explorer/        a model in the browser
tour/, demo/     files to try, and the demonstration
"""

from .entry import build_parser as build_parser
from .entry import main as main

__all__ = ["build_parser", "main"]
