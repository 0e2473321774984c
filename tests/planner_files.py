"""A planner's files for tests to spoil."""

import csv

from revealed.cli import main
from revealed.cli.tour import copy_files


class Files:
    """A planner's files that a test may spoil."""

    def __init__(self, folder):
        copy_files(folder)
        self.folder = folder
        self.contexts = folder / "contexts.csv"
        self.decisions = folder / "decisions.csv"
        self.plan = folder / "plan.mps"

    def rows(self, path):
        with open(path, newline="") as file:
            return list(csv.reader(file))

    def write(self, path, rows, delimiter=","):
        with open(path, "w", newline="") as file:
            csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)

    def edit(self, path, row, column, value):
        """Replace a cell; row 1 is the first after the names. A function is given the old one."""
        rows = self.rows(path)
        at = rows[0].index(column)
        rows[row][at] = value(rows[row][at]) if callable(value) else value
        self.write(path, rows)

    def doctor(self, *options):
        """Exit code of the doctor."""
        return main(
            [
                "doctor",
                *("--problem", str(self.plan)),
                *("--contexts", str(self.contexts)),
                *("--decisions", str(self.decisions)),
                *options,
            ]
        )


def rename(files, path, old, new):
    rows = files.rows(path)
    rows[0][rows[0].index(old)] = new
    files.write(path, rows)


def append(files, path, row):
    rows = files.rows(path)
    files.write(path, [*rows, row])


def column(files, name, value):
    rows = files.rows(files.contexts)
    files.write(files.contexts, [[*rows[0], name], *([*row, value(row)] for row in rows[1:])])


def change(path, row, name, value):
    return lambda files: files.edit(getattr(files, path), row, name, value)


def expect_named(files, capsys, spoil, words, code):
    """Spoil the files; the doctor must end with this code and say these words."""
    spoil(files)
    assert files.doctor() == code
    told = " ".join("".join(capsys.readouterr()).split())
    for word in words:
        assert word in told, told
