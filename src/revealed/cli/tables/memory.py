"""How large a table may become in memory, whatever a small file promises."""

from __future__ import annotations

import os

LARGEST = 16 * 2**30
SHARE = 3
"""Part of the machine's memory that a table may fill: reading needs it twice."""


def memory_limit() -> int:
    """Bytes that one table may take on this machine."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # a system that does not say
        return LARGEST
    return min(LARGEST, physical // SHARE)
