"""What a driver can see of a move from one road link to the next: the columns every model shares.

Lengths are in units of 100 m. Nothing is taken from how often links are used.

Letters: M moves, p features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed.datasets.routes import RoadNetwork, Turn

RANK = {"primary": 3, "secondary": 2, "tertiary": 1}
"""Importance of a road class; the others (residential, living street, unclassified) have 0."""
MAIN = 2
"""Rank from which on a road counts as a main road."""
MANY_LANES = 3
HUNDRED_METERS = 100.0
JUNCTION = 0.5
"""Added to the length of a move (in 100 m) for the unit in which its cost may vary."""


@dataclass(frozen=True)
class MoveFeatures:
    """Features of the moves of a network; the first is the length of the link entered."""

    names: tuple[str, ...]
    per_length: np.ndarray
    """(p,) whether a feature is counted for every 100 m, not once a move."""
    own: np.ndarray
    """(p,) whether a feature stands for one link alone; only such coefficients are penalized."""
    values: np.ndarray
    """(M, p)"""

    @property
    def unit(self) -> np.ndarray:
        """(M,) what a move's cost is measured in: its length and 50 m."""
        return self.values[:, 0] + JUNCTION

    def column(self, name: str) -> int:
        return self.names.index(name)


def move_features(network: RoadNetwork) -> MoveFeatures:
    """All features of a network's moves."""
    left, entered = network.moves.T
    rank = np.array([RANK.get(kind, 0) for kind in network.road_class])
    columns = _of_links(network, entered, rank[entered])
    n_length = len(columns)
    columns |= _of_turns(network.turn, rank[left], rank[entered])
    columns |= _of_junctions(network, rank)
    return MoveFeatures(
        tuple(columns),
        np.arange(len(columns)) < n_length,
        np.zeros(len(columns), dtype=bool),
        np.column_stack([np.asarray(column, dtype=float) for column in columns.values()]),
    )


def with_own_costs(features: MoveFeatures, network: RoadNetwork) -> MoveFeatures:
    """The same, and a feature for every link: what no other feature tells of it (fixed effects)."""
    entered = network.moves[:, 1]
    own = np.zeros((network.n_moves, network.n_links))
    own[np.arange(network.n_moves), entered] = features.unit
    none, every = np.zeros(network.n_links, dtype=bool), np.ones(network.n_links, dtype=bool)
    return MoveFeatures(
        features.names + tuple(f"link {i}" for i in range(network.n_links)),
        np.concatenate([features.per_length, none]),
        np.concatenate([features.own, every]),
        np.hstack([features.values, own]),
    )


def _of_links(network: RoadNetwork, entered: np.ndarray, rank: np.ndarray) -> dict:
    """Of the link entered, for every 100 m of it."""
    length = network.length[entered] / HUNDRED_METERS
    return {
        "length": length,
        "on primary roads": length * (rank == RANK["primary"]),
        "on secondary roads": length * (rank == RANK["secondary"]),
        "on tertiary roads": length * (rank == RANK["tertiary"]),
        "on one-way streets": length * network.one_way[entered],
        # Lanes are missing for most links; where the map says nothing there are seldom many.
        "on three lanes or more": length * (network.lanes[entered] >= MANY_LANES),
    }


def _of_turns(turn: np.ndarray, before: np.ndarray, after: np.ndarray) -> dict:
    """Of the turn, with the importance of the roads before and after it."""
    to_left = np.isin(turn, (Turn.LEFT, Turn.SHARP_LEFT))
    to_right = np.isin(turn, (Turn.RIGHT, Turn.SHARP_RIGHT))
    back = turn == Turn.U_TURN
    return {
        "left turn": to_left,
        "right turn": to_right,
        "U-turn": back,
        "slight turn": np.isin(turn, (Turn.SLIGHT_LEFT, Turn.SLIGHT_RIGHT)),
        "left turn onto a main road": to_left & (after >= MAIN),
        "left turn off a main road": to_left & (before >= MAIN),
        "right turn onto a main road": to_right & (after >= MAIN),
        "right turn off a main road": to_right & (before >= MAIN),
        "U-turn on a main road": back & (after >= MAIN),
        "onto a more important road": after > before,
        "onto a less important road": after < before,
    }


def _of_junctions(network: RoadNetwork, rank: np.ndarray) -> dict:
    """Of the junction between the two links: other street, roads crossed."""
    left, entered = network.moves.T
    name, ahead = network.name, np.isin(network.turn, (0, 1, 7))
    crossed, legs = _crossings(network, rank)
    own = np.maximum(rank[left], rank[entered])
    return {
        "link": np.ones(len(left)),
        "other street": (name[left] != name[entered]) & (network.turn != Turn.U_TURN),
        "across a more important road": ahead & (crossed > own),
        "across a primary road, on one": ahead & (crossed == 3) & (own == 3),
        "no junction": legs <= 2,
    }


def _crossings(network: RoadNetwork, rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(M,) rank of the best other road at the junction (-1: none), and its number of legs."""
    roads: dict[int, dict[int, int]] = {}
    for start, end, importance in zip(network.start, network.end, rank, strict=True):
        for here, there in ((start, end), (end, start)):
            roads.setdefault(int(here), {})[int(there)] = int(importance)
    crossed, legs = np.empty(network.n_moves), np.empty(network.n_moves)
    for i, (left, entered) in enumerate(network.moves):
        leg = roads[int(network.end[left])]
        own = (network.start[left], network.end[entered])
        crossed[i] = max((r for node, r in leg.items() if node not in own), default=-1)
        legs[i] = len(leg)
    return crossed, legs
