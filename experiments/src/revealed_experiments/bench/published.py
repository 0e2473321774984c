"""Figures from elsewhere that ours are set beside. All that is typed by hand is typed here."""

from __future__ import annotations

MARGINS = (10.0, 1.0, 0.1, 0.01)

PAPER = "Mishra, Raj and Vaswani, From Inverse Optimization to Feasibility to ERM (ICML 2024)"

# The paper's margin table: 150 POCS iterations, linear model, 100 training samples, no seed given.
# problem -> margin -> mean decision loss on (train, test).
PAPER_TABLE: dict[str, dict[float, tuple[float, float]]] = {
    "sp": {10.0: (0.779, 1.95), 1.0: (0.779, 1.89), 0.1: (0.699, 2.11), 0.01: (2.63, 3.23)},
    "knapsack": {10.0: (2.033, 2.32), 1.0: (2.033, 2.32), 0.1: (2.08, 2.39), 0.01: (2.11, 2.32)},
}

REFERENCE = (
    "the program of the paper's authors, run on these files (150 iterations, exact least-squares "
    "step, random start)"
)

# data -> margin -> decision loss (train, test), estimate loss (train, test).
REFERENCE_RUN: dict[str, dict[float, tuple[float, float, float, float]]] = {
    "sp_seed0": {
        10.0: (0.70, 1.84, 1.24, 7.91),
        1.0: (0.70, 1.80, 1.24, 7.88),
        0.1: (0.64, 1.70, 1.01, 8.59),
        0.01: (1.86, 3.16, 6.25, 43.65),
    },
    "sp_seed1": {
        10.0: (0.40, 2.64, 1.78, 13.33),
        1.0: (0.40, 2.60, 1.78, 13.15),
        0.1: (0.26, 2.54, 0.57, 10.94),
        0.01: (0.98, 3.98, 4.12, 29.55),
    },
    "knapsack_seed0": {
        10.0: (3.12, 3.66, 1.16, 1.15),
        1.0: (3.12, 3.66, 1.16, 1.15),
        0.1: (3.12, 3.66, 1.16, 1.15),
        0.01: (3.18, 3.66, 1.18, 1.15),
    },
    "knapsack_seed1": {
        10.0: (2.05, 2.57, 0.59, 0.69),
        1.0: (2.05, 2.57, 0.59, 0.69),
        0.1: (2.05, 2.57, 0.59, 0.69),
        0.01: (2.39, 2.90, 0.68, 0.79),
    },
}

REFERENCE_CUT = 1e-6
"""Entries above this count as positive in the reference program."""

CAVE = "CaVE (Tang and Khalil, 2024) on PyEPO's generator, ten seeds, Adam 1e-2, batch 32"

# degree -> method -> mean test relative regret in per cent; their draws, not ours.
CAVE_REGRET: dict[int, dict[str, float]] = {
    4: {
        "two-stage (true costs)": 8.82,
        "SPO+ (true costs)": 7.79,
        "PFYL": 7.68,
        "CaVE exact": 10.73,
        "CaVE+": 8.39,
        "CaVE hybrid": 8.35,
        "NCE": 11.34,
    },
    6: {
        "two-stage (true costs)": 12.58,
        "SPO+ (true costs)": 7.72,
        "PFYL": 7.86,
        "CaVE exact": 11.30,
        "CaVE+": 8.89,
        "CaVE hybrid": 8.84,
        "NCE": 13.78,
    },
}

# (method, optimizer) -> mean test estimate loss on five seeds, as an outside audit measured it.
AUDIT_PATHS: dict[tuple[str, str], float] = {
    ("ours, ERM", "armijo"): 11.36,
    ("MOM, true basis", "armijo"): 7.51,
    ("MOM, true basis", "adam"): 4.87,
    ("QPTL", "adam"): 8.90,
}
AUDIT_KNAPSACK: dict[tuple[str, str], float] = {
    ("ours, POCS", "pocs"): 0.732,
    ("ours, ERM", "armijo"): 0.730,
    ("SPO+", "adam"): 0.746,
    ("QPTL", "adam"): 0.852,
}
"""On the data sets of the general form, taken in standard form."""
