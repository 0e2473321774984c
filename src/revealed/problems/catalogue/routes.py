"""Routes of vehicles: visit every customer once, in round trips from a depot that each carry no
more than a vehicle holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._common.arrays import to_float64
from ..._common.checks import check_whole
from ..._common.rows import frozen
from ...errors import InputError, ShapeError
from ..integer import IntegerProgram
from ..structures import RoutingStructure


def vehicle_routing(demands: Any, capacity: float, n_vehicles: int) -> IntegerProgram:
    """The cheapest routes of at most `n_vehicles` vehicles that serve every customer; costs are the
    same in both directions.

    Node 0 is the depot. A variable for each pair of nodes i < j, in the order of
    `np.triu_indices(n_nodes, 1)`: 1 if a vehicle goes from one to the other. An edge is used at
    most once, so every route serves two customers or more, as in PyEPO and CaVE. The rows say how
    many edges each node has; that they form routes within the capacity the structure knows. Solved
    to optimality by pricing all routes, which is fast for about 20 customers, else by cuts.

    Parameters
    ----------
    demands : (n,) array
        Node i is the customer with demand `demands[i - 1]`, at least 0; two customers or more.
    capacity : float
        What one vehicle holds; at least the largest demand.
    n_vehicles : int
        Together they hold all demands.

    Returns
    -------
    IntegerProgram
    """
    load, room = to_float64(demands, "demands"), float(capacity)
    check_whole(n_vehicles, "n_vehicles", 1)
    if load.ndim != 1 or len(load) < 2:
        raise ShapeError(
            f"`demands` must be (n,), one for each of two customers or more; got {load.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(load) & (load >= 0)))
    if bad.size:
        raise InputError(
            f"`demands` must be finite and at least 0; got {load[bad[0]]} for customer {bad[0]}."
        )
    if not np.isfinite(room) or load.max() > room:
        raise InputError(
            f"`capacity` must be finite and hold the largest demand, {load.max():g}; got {room:g}."
        )
    if load.sum() > n_vehicles * room:
        raise InputError(
            f"The demands sum to {load.sum():g}, more than {n_vehicles} vehicles of capacity "
            f"{room:g} hold. Give more vehicles or a larger capacity."
        )
    n = len(load) + 1
    tails, heads = (frozen(part.astype(np.int64)) for part in np.triu_indices(n, 1))
    edges = np.arange(len(tails))
    ends = (np.concatenate([tails, heads]), np.concatenate([edges, edges]))
    degree = sparse.csr_array((np.ones(2 * len(edges)), ends), shape=(n, len(edges)))
    structure = RoutingStructure(frozen(load.copy()), room, int(n_vehicles), tails, heads)
    return IntegerProgram(
        A_eq=degree[1:],
        b_eq=2.0,
        A_ub=degree[:1],
        b_ub=2.0 * n_vehicles,
        lb=0.0,
        ub=1.0,
        structure=structure,
    )


def routes_of(decision: Any) -> list[list[int]]:
    """The customers of each route, in their order.

    A route begins at the smaller of its two ends; routes come in the order of these.

    Parameters
    ----------
    decision : (E,) array
        Of `vehicle_routing`.

    Returns
    -------
    list of list of int

    Raises
    ------
    InputError
        If the edges do not form routes that serve every customer.
    """
    x = to_float64(decision, "decision").ravel()
    n = round((1 + np.sqrt(1 + 8 * len(x))) / 2)
    if n * (n - 1) // 2 != len(x) or n < 3:
        raise InputError(
            f"Routes through n nodes have n (n - 1) / 2 entries, one for each pair; got {len(x)}."
        )
    near: list[list[int]] = [[] for _ in range(n)]
    for i, j in zip(*(part[x > 0.5] for part in np.triu_indices(n, 1)), strict=True):
        near[i].append(int(j))
        near[j].append(int(i))
    left, routes = set(range(1, n)), []
    for first in sorted(near[0]):
        if first not in left:
            continue
        route, last, here = [], 0, first
        while here != 0:
            if here not in left or len(near[here]) != 2:
                raise InputError("`decision` is no set of routes: they meet, or do not end.")
            left.discard(here)
            route.append(here)
            a, b = near[here]
            last, here = here, b if a == last else a
        routes.append(route)
    if left:
        raise InputError(f"`decision` is no set of routes: none serves customer {min(left)}.")
    return routes
