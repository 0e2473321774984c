"""Routes on large road networks, fitted from Parquet with ends of their own; projections beside
Clarabel.

    python -m revealed_experiments.bench.scale_city --routes FOLDER --out FILE

The city is made up: a lattice of streets with avenues, 10,000 links or more. The routes of a real
city are read in place from the folder of `datasets.load_routes`, if one is given.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

SIDE = 51
"""Junctions along a side of the made-up city: 4 * 51 * 50 links."""
TRIPS, TRUTH = 300, np.array([1.0, 0.6, 0.4])
COMPARED = 5
"""Projections that Clarabel does too, for it takes one at a time."""


def main() -> None:
    """Fit each network; print and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routes", type=Path)
    parser.add_argument("--size", type=int, default=24_468)
    parser.add_argument("--trips", type=int, default=TRIPS)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        lines.append(_measured("made-up city", *_city(args.trips), Path(folder)))
        print(json.dumps(lines[-1]), flush=True)
        if args.routes is not None:
            lines.append(_measured("Shanghai", *_shanghai(args.routes, args.size), Path(folder)))
            print(json.dumps(lines[-1]), flush=True)
    if args.out:
        from .record import surroundings, write_json

        about = surroundings("python -m revealed_experiments.bench.scale_city", {})
        write_json(args.out, {"surroundings": about, "lines": lines})


def _city(trips: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """A network, features (n, p) of its links, ends (B, 2) of trips and the links they take."""
    import revealed as rv

    rng = np.random.default_rng(0)
    whole = rv.problems.grid_shortest_path(SIDE, SIDE)
    tails, heads = whole.structure.tails, whole.structure.heads
    row, column = np.divmod(np.column_stack([tails, heads]), SIDE)
    avenue = ((row % 10 == 0).all(axis=1) | (column % 10 == 0).all(axis=1)).astype(float)
    features = np.column_stack(
        [rng.uniform(0.5, 1.5, len(tails)), 1.0 - avenue, rng.random(len(tails))]
    )
    ends = np.array([rng.choice(SIDE * SIDE, 2, replace=False) for _ in range(trips)])
    graph = np.column_stack([tails, heads])
    own = rv.problems.shortest_path(graph, source=ends[:, 0], target=ends[:, 1])
    taste = 0.2 * rng.random((trips, len(tails)))
    network = rv.problems.shortest_path(graph, source=0, target=1)
    return network, features, ends, np.asarray(own.solve(features @ TRUTH + taste).x)


def _shanghai(folder: Path, size: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    import revealed as rv
    from revealed.datasets.routes import Turn

    network = rv.datasets.load_road_network(folder)
    routes = rv.datasets.load_routes(folder, "path.csv", network)
    routes = routes[np.arange(min(size, len(routes)))]
    entered = network.moves[:, 1]
    turns = [np.isin(network.turn, [t]) for t in (Turn.LEFT, Turn.RIGHT, Turn.U_TURN)]
    main_road = np.isin(network.road_class[entered], ["primary", "secondary"])
    features = np.column_stack([network.length[entered] / 100.0, *turns, ~main_road]).astype(float)
    ends = np.column_stack([routes.origin, routes.destination])
    plan = rv.problems.shortest_path(network.moves, source=0, target=1, n_nodes=network.n_links)
    return plan, features, ends, routes.decisions()


def _measured(
    name: str, network: Any, features: np.ndarray, ends: np.ndarray, X: np.ndarray, folder: Path
) -> dict[str, Any]:
    import pyarrow
    import pyarrow.parquet as parquet

    import revealed as rv
    from revealed.fit import LBFGS, SharedModel

    trip = np.arange(len(X))
    columns = {"trip": trip, "first": ends[:, 0], "last": ends[:, 1], "hour": np.zeros(len(X))}
    parquet.write_table(pyarrow.table(columns), folder / "trips.parquet")
    rows, links = np.nonzero(X)
    used = {"trip": rows, "link": links, "used": np.ones(len(rows), np.int8)}
    parquet.write_table(pyarrow.table(used), folder / "links.parquet")
    data = rv.datasets.Partitions.from_parquet(
        network,
        folder / "trips.parquet",
        folder / "links.parquet",
        features=["hour"],
        ids="trip",
        long=("trip", "link", "used"),
        ends=("first", "last"),
        entry_features=features,
    )
    # The weight of length is given: a positive unit, without which all weights of 0 explain much.
    model = SharedModel(given={0: 1.0}, fit_intercept=False)
    est = rv.InverseRegressor(network, model=model, margin=0.0, ridge=1e-3, solver=LBFGS(tol=1e-4))
    began, cpu = time.perf_counter(), time.process_time()
    est.fit(data, run=rv.Run(memory="2GB"))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    own = rv.problems.shortest_path(
        np.column_stack([network.structure.tails, network.structure.heads]),
        source=ends[:COMPARED, 0], target=ends[:COMPARED, 1], n_nodes=network.structure.n_nodes,
    )  # fmt: skip
    costs = np.tile(est.predict_cost(features)[0], (COMPARED, 1))
    sets = rv.OptimalitySet(own, X[:COMPARED].astype(float), 1.0)
    rv.project(costs[:1], sets[:1], threads=1)
    timed = {}
    for method in ("auto", "clarabel"):
        at = time.process_time()
        near = rv.project(costs, sets, method=method, threads=1)
        timed[method] = {
            "processor_seconds": (time.process_time() - at) / COMPARED,
            "solved": int(near.solved.sum()),
            "distance": float(near.distance.mean()),
        }
    told: Any = est.certificate_
    return {
        "network": name,
        "links": network.n_variables,
        "nodes": network.shape[0],
        "trips": len(X),
        "seconds": seconds,
        "processor_seconds": cpu,
        "weights": est.coef_.tolist(),
        "value": told.value,
        "relative_gap": told.relative_gap,
        "converged": told.converged,
        "unsolved": told.unsolved,
        "run": est.partitions_report_,
        "projection": timed,
    }


if __name__ == "__main__":
    main()
