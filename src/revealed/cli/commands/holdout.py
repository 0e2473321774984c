"""Which samples a model is judged on: drawn once, and found again by whoever judges later."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from ...errors import InputError


def split_rows(size: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and rows held out, both in order; the same for the same arguments."""
    if not 0 <= share < 1:
        raise InputError(f"--holdout must be at least 0 and below 1; got {share:g}.")
    held = round(share * size)
    if held >= size:
        raise InputError(f"Holding out {share:g} of {size} samples leaves none to learn from.")
    order = np.random.default_rng(seed).permutation(size)
    return np.sort(order[held:]), np.sort(order[:held])


def fingerprint(tables: Iterable[np.ndarray]) -> str:
    """What tells tables apart: the same for the same numbers in the same order of rows."""
    told = hashlib.sha256()
    for table in tables:
        told.update(np.ascontiguousarray(table).data)
    return told.hexdigest()


def share_interval(hits: int, size: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share."""
    if size == 0:
        return 0.0, 1.0
    from scipy.stats import binomtest  # takes a tenth of a second to load, and few commands ask

    found = binomtest(hits, size).proportion_ci(method="wilson")
    return float(found.low), float(found.high)
