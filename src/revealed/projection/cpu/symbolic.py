"""The sparsity of a Cholesky factor, and the lists by which it is filled.

Letters: m rows in elimination order, L the lower factor, stored by columns with the diagonal first.
Compiled functions only, in a file of their own: a change elsewhere then compiles none of them anew.
"""

import numpy as np

from ..._common.compiled import kernel


@kernel
def gram(start, value, pair_slot, L):
    """Add A A^T to L."""
    pair = 0
    for j in range(len(start) - 1):
        for a in range(start[j], start[j + 1]):
            for b in range(start[j], a + 1):
                L[pair_slot[pair]] += value[a] * value[b]
                pair += 1


@kernel
def symbolic_cholesky(indptr, indices):
    """Columns of the factor of a symmetric matrix given by its strictly lower rows (elimination
    tree walk)."""
    m = len(indptr) - 1
    parent = np.full(m, -1, np.int64)
    mark = np.full(m, -1, np.int64)
    count = np.ones(m, np.int64)
    for i in range(m):
        mark[i] = i
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            while mark[j] != i:
                mark[j] = i
                count[j] += 1
                if parent[j] == -1:
                    parent[j] = i
                j = parent[j]
    start = np.zeros(m + 1, np.int64)
    for j in range(m):
        start[j + 1] = start[j] + count[j]
    row = np.empty(start[m], np.int64)
    fill = start[:m].copy()
    mark[:] = -1
    for i in range(m):
        mark[i] = i
        row[fill[i]] = i
        fill[i] += 1
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            while mark[j] != i:
                mark[j] = i
                row[fill[j]] = i
                fill[j] += 1
                j = parent[j]
    return start, row


@kernel
def left_lists(start, row):
    """For each column j, the earlier columns with an entry in row j: that entry's slot and the
    column's end."""
    m = len(start) - 1
    count = np.zeros(m + 1, np.int64)
    for k in range(m):
        for p in range(start[k] + 1, start[k + 1]):
            count[row[p] + 1] += 1
    left_start = count
    for j in range(m):
        left_start[j + 1] += left_start[j]
    slot = np.empty(left_start[m], np.int64)
    end = np.empty(left_start[m], np.int64)
    fill = left_start[:m].copy()
    for k in range(m):
        for p in range(start[k] + 1, start[k + 1]):
            j = row[p]
            slot[fill[j]] = p
            end[fill[j]] = start[k + 1]
            fill[j] += 1
    return left_start, slot, end


@kernel
def alike(left_start, left_slot, left_end, row):
    """Marks the places where four columns in a row reach column j with the same rows."""
    alike = np.zeros(len(left_slot), np.bool_)
    for j in range(len(left_start) - 1):
        for k in range(left_start[j], left_start[j + 1] - 3):
            same = True
            for other in range(k + 1, k + 4):
                length = left_end[k] - left_slot[k]
                if left_end[other] - left_slot[other] != length:
                    same = False
                    break
                for p in range(length):
                    if row[left_slot[k] + p] != row[left_slot[other] + p]:
                        same = False
                        break
            alike[k] = same
    return alike


@kernel
def pair_slots(col_start, entry_row, start, row):
    """Slot of L for every pair of entries of every column of the stacked matrix."""
    total = 0
    for j in range(len(col_start) - 1):
        size = col_start[j + 1] - col_start[j]
        total += size * (size + 1) // 2
    slots = np.empty(total, np.int32)
    at = 0
    for j in range(len(col_start) - 1):
        for a in range(col_start[j], col_start[j + 1]):
            for b in range(col_start[j], a + 1):
                low = max(entry_row[a], entry_row[b])
                k = min(entry_row[a], entry_row[b])
                # The rows of a column increase, so there are at most low - k before this one, and
                # exactly as many where the factor is dense; else bisect.
                first, last = start[k], min(start[k + 1] - 1, start[k] + low - k)
                if row[last] == low:
                    first = last
                while first < last:
                    middle = (first + last) // 2
                    if row[middle] < low:
                        first = middle + 1
                    else:
                        last = middle
                slots[at] = first
                at += 1
    return slots
