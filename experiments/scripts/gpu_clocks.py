"""Times on a GPU, and what a file of them says about where they were taken."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch

Work = Callable[[], Any]


def milliseconds(work: Work, repeats: int = 20) -> float:
    """Median time on the device."""
    work()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return float(np.median(times))


def wall(work: Work, repeats: int = 5) -> float:
    """Median time on the host's clock, in milliseconds."""
    work()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return float(np.median(times))


def captured(work: Work) -> torch.cuda.CUDAGraph:
    """The work as a graph, to be replayed."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # whatever is compiled lazily is compiled here
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def copy_rate(device: torch.device) -> float:
    """Bytes a second of a large copy, read and written."""
    source = torch.rand(1 << 28, device=device, dtype=torch.float64)
    target = torch.empty_like(source)
    return 2e3 * source.numel() * 8 / milliseconds(lambda: target.copy_(source))


def surroundings(command: str) -> dict[str, Any]:
    """The machine, for the record."""
    import triton  # pyright: ignore[reportMissingImports]

    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device.name,
        "multiprocessors": device.multi_processor_count,
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "command": command,
    }
