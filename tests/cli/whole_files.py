"""A crew plan with whole numbers, as a planner would hand it over: model file and tables."""

import numpy as np

import revealed as rv
from revealed.cli.tables import write_table

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
NEED = (9, 7, 8, 7, 11, 13, 10)
PATTERNS = {
    "five": (0, 1, 2, 3, 4),
    "four": (0, 1, 2, 3),
    "split": (0, 1, 3, 4),
    "three": (0, 1, 2),
}
"""On which days, counted from the first, a crew works."""
MOST = 12
FEATURES = ("overtime", "season", "events")


class Crew:
    """28 kinds of shift, of which whole numbers cover the need of each day of the week; their
    costs depend on three features of the week, and are known here only."""

    def __init__(self, weeks=250, seed=0):
        self.names = tuple(f"{kind}_{day}" for kind in PATTERNS for day in DAYS)
        works = np.zeros((len(DAYS), len(self.names)))
        for k, days in enumerate(PATTERNS.values()):
            for first in range(len(DAYS)):
                works[[(first + day) % len(DAYS) for day in days], len(DAYS) * k + first] = 1.0
        self.works = works
        self.problem = rv.IntegerProgram(A_ub=-works, b_ub=np.negative(NEED), lb=0, ub=MOST)
        rng = np.random.default_rng(seed)
        self.Z = rng.standard_normal((weeks, len(FEATURES))).round(3)
        length = works.sum(axis=0)
        base = length * rng.uniform(0.9, 1.1, len(length)) + 0.8
        effects = 0.12 * length * rng.standard_normal((len(FEATURES), len(length)))
        self.costs = base + self.Z @ effects
        self.X = np.asarray(self.problem.solve(self.costs).x)

    def write(self, folder, learn=200):
        """plan.mps; contexts.csv and decisions.csv of the first weeks, next.csv of the others."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.mps").write_text(self.mps())
        write_table(folder / "contexts.csv", FEATURES, self.Z[:learn])
        write_table(folder / "decisions.csv", self.names, self.X[:learn])
        write_table(folder / "next.csv", FEATURES, self.Z[learn:])

    def mps(self):
        lines = ["NAME crew", "ROWS", " N cost", *(f" G need_{day}" for day in DAYS), "COLUMNS"]
        lines.append("    M1 'MARKER' 'INTORG'")
        for name, column in zip(self.names, self.works.T, strict=True):
            rows = " ".join(
                f"need_{day} 1" for day, there in zip(DAYS, column, strict=True) if there
            )
            lines += [f"    {name} {pair}" for pair in _pairs(rows)]
        lines += ["    M2 'MARKER' 'INTEND'", "RHS"]
        lines += [f"    RHS need_{day} {need}" for day, need in zip(DAYS, NEED, strict=True)]
        lines += ["BOUNDS", *(f" UP BND {name} {MOST}" for name in self.names), "ENDATA", ""]
        return "\n".join(lines)

    def regret(self, weeks, decisions):
        """Of the true costs, what decisions cost more than the best ones, as a share."""
        paid, best = ((self.costs[weeks] * X).sum() for X in (decisions, self.X[weeks]))
        return paid / best - 1.0


def _pairs(words):
    """Two entries a line, as model files have them."""
    parts = words.split()
    return [" ".join(parts[k : k + 4]) for k in range(0, len(parts), 4)]
