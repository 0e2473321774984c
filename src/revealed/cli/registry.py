"""The commands of `revealed`: their names, the modules that do the work, one line of help each.

Other distributions add groups of commands through entry points of the group `revealed.commands`,
each of which names a `CommandGroup`. `revealed bench` and `revealed data` come that way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Command(NamedTuple):
    """A command whose options and work a module has, as `add_arguments(parser)` and `run(args)`."""

    module: str
    """Imported only when the command is asked for."""
    summary: str
    """One line of help."""
    example: str


class CommandGroup(NamedTuple):
    """Commands under one name, as in `revealed bench minimum`."""

    summary: str
    title: str
    """Heading of the list of commands in the help."""
    commands: Mapping[str, Command]
    brought_by: Mapping[str, str] = {}
    """Optional packages that these commands import, and the requirement that brings each."""


BROUGHT_BY = {
    "rich": "revealed[cli]",
    "matplotlib": "revealed[cli]",
    "torch": "revealed[torch]",
    "clarabel": "revealed[solvers]",
    "networkx": "revealed[graphs]",
    "cvxpy": "revealed[importers]",
    "pyarrow": "revealed[tables]",
    "openpyxl": "revealed[tables]",
}
"""Optional packages that commands import on demand, and the requirement that brings each."""

COMMANDS = {
    "tour": Command(
        "revealed.cli.tour",
        "copy a planner's files to try the commands on, and show how",
        "revealed tour --out tour",
    ),
    "doctor": Command(
        "revealed.cli.commands.doctor",
        "check what can be learned from your tables, and what is wrong with them",
        "revealed doctor --problem plan.mps --contexts contexts.csv --decisions decisions.csv",
    ),
    "fit": Command(
        "revealed.cli.commands.fit",
        "learn a cost model from a model file and tables of contexts and decisions",
        "revealed fit --problem plan.mps --contexts contexts.csv --decisions decisions.csv "
        "--out model",
    ),
    "predict": Command(
        "revealed.cli.commands.predict",
        "predict decisions, or costs, for new contexts",
        "revealed predict model --contexts new.csv --out decisions.csv",
    ),
    "explain": Command(
        "revealed.cli.commands.explain",
        "show how far to trust a model: what it explains, what it misses, how certain it is",
        "revealed explain model --contexts contexts.csv --decisions decisions.csv",
    ),
    "explore": Command(
        "revealed.cli.commands.explore",
        "look at a model sample by sample in the browser, and change its contexts",
        "revealed explore model",
    ),
    "report": Command(
        "revealed.cli.commands.report",
        "write a one-page report on a model for people who will not run it",
        "revealed report model --out report.html",
    ),
    "demo": Command(
        "revealed.cli.demo",
        "learn street costs from routes alone, compare, and draw pictures",
        "revealed demo --out out/demo --seed 7",
    ),
}


def installed_groups() -> dict[str, CommandGroup]:
    """Groups of commands that installed distributions bring, by name."""
    from importlib.metadata import entry_points

    return {point.name: point.load() for point in entry_points(group="revealed.commands")}
