"""The commands that this distribution adds to `revealed`: `bench` and `data`."""

from revealed.cli.registry import Command, CommandGroup

BENCHES = {
    "projection": Command(
        "revealed_experiments.bench.projection.command",
        "time the projection against the solvers others use",
        "revealed bench projection --quick --out out/bench/projection.json",
    ),
    "netlib": Command(
        "revealed_experiments.bench.projection.netlib",
        "project on the NETLIB problems in a folder and count false claims",
        "revealed bench netlib --data path/to/netlib",
    ),
    "imports": Command(
        "revealed_experiments.bench.imports.command",
        "learn with models from MPS files and from CVXPY, end to end",
        "revealed bench imports --netlib path/to/netlib",
    ),
    "margins": Command(
        "revealed_experiments.bench.learning.margins",
        "repeat the paper's margin table and set it beside the reference",
        "revealed bench margins --data path/to/paper_synthetic",
    ),
    "learning": Command(
        "revealed_experiments.bench.learning.command",
        "time POCS against the usual loop, and see how it grows with the data",
        "revealed bench learning --data path/to/paper_synthetic",
    ),
    "minimum": Command(
        "revealed_experiments.bench.minimum.command",
        "count the projections that a fit takes to the minimum of its loss, beside POCS",
        "revealed bench minimum --data path/to/paper_synthetic",
    ),
    "noise": Command(
        "revealed_experiments.bench.noise.command",
        "compare our defaults with the Fenchel-Young loss on noisy and on exact decisions",
        "revealed bench noise --seeds 20",
    ),
    "integer": Command(
        "revealed_experiments.bench.integer.command",
        "learn knapsacks and tours from whole decisions, beside SPO+ and PFYL",
        "revealed bench integer --problems knapsack --seeds 3",
    ),
    "limits": Command(
        "revealed_experiments.bench.limits.command",
        "learn limits that nobody wrote down, together with costs",
        "revealed bench limits --parts exactness,coverage",
    ),
    "online": Command(
        "revealed_experiments.bench.online.command",
        "learn from decisions one after the other, and from costs that drift",
        "revealed bench online --parts drift --drift-seeds 3",
    ),
    "scale": Command(
        "revealed_experiments.bench.scale",
        "fit from Parquet tables of up to a million decisions, with time and memory",
        "revealed bench scale --sizes 10000,100000",
    ),
    "synthetic": Command(
        "revealed_experiments.bench.synthetic.command",
        "every method on the paper's synthetic problems and on CaVE's yardstick",
        "revealed bench synthetic --quick --out out/synthetic",
    ),
    "vision": Command(
        "revealed_experiments.bench.vision.command",
        "every method on pictures: maps with shortest paths, digits with matchings",
        "revealed bench vision --quick --out out/vision",
    ),
    "run": Command(
        "revealed_experiments.bench.sweeps.run_one",
        "perform one run from its configuration file",
        "revealed bench run config.json --out out/runs",
    ),
    "epochs": Command(
        "revealed_experiments.bench.epochs.command",
        "time an epoch of every method, and of PyEPO's, in one run",
        "revealed bench epochs --pyepo .venv-pyepo/bin/python",
    ),
    "steps": Command(
        "revealed_experiments.bench.steps.command",
        "time a training step with our loss against one with the squared error",
        "revealed bench steps --quick --out out/steps.json",
    ),
    "routes": Command(
        "revealed_experiments.bench.routes.command",
        "learn road costs from drivers' routes, beside logit models of route choice",
        "revealed bench routes --data path/to/shanghai_routes",
    ),
    "pyepo": Command(
        "revealed_experiments.bench.epochs.pyepo",
        "compare the regret of our rivals with that of PyEPO's own, seed by seed",
        "revealed bench pyepo --pyepo .venv-pyepo/bin/python",
    ),
    "portfolio": Command(
        "revealed_experiments.bench.portfolio.command",
        "learn from the best portfolios in hindsight, walking forward through real prices",
        "revealed bench portfolio --seeds 3",
    ),
    "report": Command(
        "revealed_experiments.report",
        "turn a folder of finished runs into one page that works offline",
        "revealed bench report experiments/results/synthetic --out out/report.html",
    ),
}
DATA_SETS = {
    "terrain": Command(
        "revealed_experiments.images.commands.terrain",
        "write made-up maps with shortest paths, in the layout of the Warcraft maps",
        "revealed data terrain --out out/terrain --side 12 --unique",
    ),
    "boards": Command(
        "revealed_experiments.images.commands.boards",
        "write boards of handwritten digits with cheapest perfect matchings",
        "revealed data boards --out out/boards --side 12 --digits sklearn",
    ),
}
BROUGHT_BY = {
    **dict.fromkeys(("ecos", "osqp", "piqp", "daqp"), "revealed-experiments"),
    "cvxpylayers": "revealed-experiments[layers]",
    **dict.fromkeys(("dask", "distributed"), "revealed-experiments[sweeps]"),
}
BENCH = CommandGroup(
    "run an experiment and write its figures down", "benchmarks", BENCHES, BROUGHT_BY
)
DATA = CommandGroup(
    "write a data set of pictures with decisions to a folder",
    "data sets",
    DATA_SETS,
    BROUGHT_BY,
)
GROUPS = {"bench": BENCH, "data": DATA}
