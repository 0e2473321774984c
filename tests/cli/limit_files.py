"""A planner's files whose limits differ from day to day, for tests to spoil."""

import csv
import json

import numpy as np

import revealed as rv
from revealed.cli import main
from revealed.cli.plans import find_limits, read_limits, read_plan
from revealed.cli.tables import open_table

FOODS = ("oats", "wheat", "soy", "corn", "fish")
PROTEIN, FAT = np.array([0.1, 0.2, 0.4, 0.15, 0.3]), np.array([0.3, 0.1, 0.05, 0.2, 0.1])
LIMITS = ("total=orders", "protein", "upper:fish=stock", "upper:salt=salt_most")
DAYS = 90
FIXED = ("--ridge", "0.01", "--model", "linear")
"""For fits of which nobody looks at what cross-validation would choose."""


def blend():
    """A model file with every kind of row: an equality, one of each sense, and a range."""
    lines = ["NAME blend", "ROWS", " N cost", " E total", " G protein", " L fat", " L salt"]
    lines += ["COLUMNS"]
    for name, protein, fat in zip(FOODS, PROTEIN, FAT, strict=True):
        lines += [f" {name} cost 1 total 1", f" {name} protein {protein} fat {fat}"]
        lines += [f" {name} salt {fat}"]
    lines += ["RHS", " RHS total 100 protein 20", " RHS fat 20 salt 30", "RANGES", " RNG salt 29"]
    lines += ["BOUNDS", *(f" UP BND {name} 60" for name in FOODS), "ENDATA", ""]
    return "\n".join(lines)


def problem(orders, protein, stock, salt):
    """The same, built by hand: one instance a day."""
    days = len(orders)
    return rv.LinearProgram(
        np.ones((1, 5)),
        orders[:, None],
        np.stack([-PROTEIN, FAT, FAT, -FAT]),
        np.column_stack([-protein, np.full(days, 20.0), salt, np.full(days, -1.0)]),
        0.0,
        np.column_stack([np.full((days, 4), 60.0), stock]),
    )


def blend_files(place):
    """A plan, contexts with four columns of limits, decisions that are best under them, and the
    model that was learned from these."""
    (place / "blend.mps").write_text(blend())
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(DAYS, 2)).round(4)
    orders = rng.integers(80, 120, DAYS).astype(float)
    protein = (orders * rng.uniform(0.18, 0.25, DAYS)).round(2)
    stock = rng.integers(20, 60, DAYS).astype(float)
    salt = rng.integers(14, 20, DAYS).astype(float)
    costs = 3.0 + Z @ rng.normal(size=(2, 5))
    answer = problem(orders, protein, stock, salt).solve(costs)
    assert np.asarray(answer.optimal).all()
    rows = zip(Z.tolist(), orders, protein, stock, salt, strict=True)
    write(
        place / "contexts.csv",
        ["day", "rain", "wind", "orders", "protein", "stock", "salt_most"],
        [[f"d{b}", *z, *own] for b, (z, *own) in enumerate(rows)],
    )
    taken = np.asarray(answer.x)
    write(
        place / "decisions.csv",
        ["day", *FOODS],
        [[f"d{b}", *taken[b].tolist()] for b in range(DAYS)],
    )
    assert main([*fit(place), *FIXED, "--out", str(place / "model")]) == 0
    return place


def write(path, names, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def tables(place):
    return [
        *("--contexts", str(place / "contexts.csv")),
        *("--decisions", str(place / "decisions.csv")),
    ]


def fit(place, limits=LIMITS, command="fit"):
    asked = [word for limit in limits for word in ("--limit", limit)]
    return [command, "--problem", str(place / "blend.mps"), *tables(place), *asked]


def words(captured):
    return " ".join("".join(captured.readouterr()).split())


def own_limits(place):
    plan, file = read_plan(place / "blend.mps"), open_table(place / "contexts.csv")
    limits = find_limits(plan, LIMITS, file.names)
    return plan, limits, read_limits(file, plan, limits)


def findings(capsys, call, code=0):
    assert main([*call, "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    return {finding["code"]: finding for finding in told["findings"]}


def read(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def edit(path, row, column, value):
    rows = read(path)
    rows[row][rows[0].index(column)] = value
    write(path, rows[0], rows[1:])


def copied(folder, place):
    for name in ("blend.mps", "contexts.csv", "decisions.csv"):
        (place / name).write_bytes((folder / name).read_bytes())
    return place
