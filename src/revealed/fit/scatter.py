"""Add up Hessians that are 0 but in a few entries, each between all pairs of features.

A matrix product would multiply zeros by zeros: on a network a sample is curved in a tenth of the
links, so in a hundredth of the pairs. Letters: b samples, n cost entries, e entries in which a
sample is curved, K pairs of features.
"""

from __future__ import annotations

import numpy as np

from .._common.compiled import kernel


@kernel
def scatter(
    total: np.ndarray, pairs: np.ndarray, entries: np.ndarray, hessians: np.ndarray
) -> None:
    """Add pairs[i, k] hessians[i, r, s] to total[k, entries[i, r], entries[i, s]], for `total`
    (K, n, n), `pairs` (b, K), `entries` (b, e) and `hessians` (b, e, e)."""
    b, e = entries.shape
    for k in range(len(total)):  # one pair at a time stays in the cache
        for i in range(b):
            for r in range(e):
                row = total[k, entries[i, r]]
                for s in range(e):
                    row[entries[i, s]] += pairs[i, k] * hessians[i, r, s]
