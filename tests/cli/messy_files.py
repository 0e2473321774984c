"""A production plan as files, clean, and as planners keep them: rounded, gappy, with units."""

import csv
import datetime

import numpy as np

from plan_cases import production

PRODUCTS = ("bread", "rolls", "cake", "pie", "tart", "buns", "rye", "oat")


def mps(problem, names):
    """A model file of a plan that maximizes, with inequality rows and upper bounds."""
    A, rows = problem.A_ub.toarray(), range(len(problem.b_ub))
    lines = ["NAME bakery", "OBJSENSE", "  MAX", "ROWS", " N profit"]
    lines += [f" L machine{i}" for i in rows] + ["COLUMNS"]
    for j, name in enumerate(names):
        lines.append(f" {name} profit 1")
        lines += [f" {name} machine{i} {A[i, j]:.17g}" for i in rows if A[i, j]]
    lines += ["RHS", *(f" RHS machine{i} {problem.b_ub[i]:.17g}" for i in rows), "BOUNDS"]
    lines += [f" UP BND {name} {problem.ub[j]:.17g}" for j, name in enumerate(names)]
    return "\n".join([*lines, "ENDATA", ""])


def days(size):
    first = datetime.date(2026, 1, 1)
    return [(first + datetime.timedelta(days=k)).isoformat() for k in range(size)]


def clean_files(place, seed=3, size=300):
    """The plan, contexts and decisions with every digit."""
    problem, Z, X = production(seed, days=size)
    (place / "plan.mps").write_text(mps(problem, PRODUCTS))
    names = ["day", "oil", "flour", "sun", "staff"]
    Z = Z * [7.0, 3000.0, 1.0, 1.0] + [70.0, 12000.0, 0.0, 10.0]
    Z = np.column_stack([Z[:, 0].round(1), Z[:, 1].round(1), Z[:, 2], Z[:, 3]])
    rows = [[day, *map(repr, z)] for day, z in zip(days(size), Z.tolist(), strict=True)]
    write(place / "contexts.csv", [names, *rows])
    rows = [[day, *map(repr, x)] for day, x in zip(days(size), X.tolist(), strict=True)]
    write(place / "decisions.csv", [["day", *PRODUCTS], *rows])
    return problem, Z, X


def messy_files(place, seed=3, size=300):
    """The same: units, decimal commas and thousands separators in the contexts, two decimals in
    the decisions, and rows that are wrong."""
    problem, Z, X = clean_files(place, seed, size)
    names = days(size)
    rows = []
    for day, z in zip(names, Z.tolist(), strict=True):
        oil, flour = f"{z[0]:.1f}".replace(".", ","), german(z[1])
        rows.append([day, f"{oil} USD/bbl", f"{flour} kg", comma(z[2]), comma(z[3])])
    rows[7][3] = ""  # an empty cell
    rows[31][1] = "n/a"
    rows[12][2] = "much"  # one bad row
    write(place / "contexts.csv", [["day", "oil", "flour", "sun", "staff"], *rows], ";")
    taken = [[day, *(f"{v:.2f}" for v in x)] for day, x in zip(names, X.tolist(), strict=True)]
    taken[20][3] = ""
    taken[41][1] = "9999.99"  # breaks the plan
    del taken[55]  # a day without a decision
    write(place / "decisions.csv", [["day", *PRODUCTS], *taken])
    return problem, Z, X


def comma(value):
    return repr(value).replace(".", ",")


def german(value):
    """12.345,6"""
    return f"{value:,.1f}".replace(",", " ").replace(".", ",").replace(" ", ".")


def write(path, rows, delimiter=","):
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)


def files(place):
    return [
        *("--problem", str(place / "plan.mps")),
        *("--contexts", str(place / "contexts.csv")),
        *("--decisions", str(place / "decisions.csv")),
    ]
