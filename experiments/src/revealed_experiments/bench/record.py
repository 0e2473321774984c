"""Results on disk: the figures with the machine, versions and settings that they belong to."""

from __future__ import annotations

import json
import math
import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from revealed.errors import InputError

PACKAGES = (
    "revealed", "numpy", "scipy", "numba", "torch", "triton", "scikit-learn", "highspy", "cvxpy",
    "ecos", "osqp", "piqp", "clarabel", "daqp",
)  # fmt: skip
DIGITS = 4
"""More than any of these measurements can support."""


def available_cores() -> int:
    """Cores that this process may use, which is what counts inside a container."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def chosen_device(asked: str | None) -> str:
    """The device asked for, refused where this machine has none of it; by default a GPU if any."""
    import torch

    has_gpu = torch.cuda.is_available()
    device = asked or ("cuda" if has_gpu else "cpu")
    if device.partition(":")[0] not in ("cpu", *(["cuda"] if has_gpu else [])):
        there = "cpu or cuda" if has_gpu else "cpu, for torch finds no GPU"
        raise InputError(f"`--device` must be {there}; got {device!r}.")
    return device


def surroundings(command: str, settings: dict[str, Any]) -> dict[str, Any]:
    """What a reader needs to judge the figures: when, where, with which versions and options."""
    return {
        "command": command,
        "settings": settings,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": {
            "processor": _processor(),
            "cores": available_cores(),
            "memory_gib": _memory_gib(),
            "system": f"{platform.system()} {platform.machine()}",
            # Well below 1 on a quiet machine; figures taken on a busy one are not worth keeping.
            "load_before": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        },
        "versions": {"python": platform.python_version()}
        | {name: found for name in PACKAGES if (found := _version(name))},
    }


def write_json(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Write strict JSON, creating folders; returns what the file keeps: figures to a few digits,
    and null where JSON has no number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = rounded(content, DIGITS)
    path.write_text(json.dumps(kept, indent=1, allow_nan=False) + "\n", "utf-8")
    return kept


def rounded(value: Any, digits: int) -> Any:
    """Figures as a file keeps them; what JSON has no number for becomes None."""
    if isinstance(value, dict):
        return {str(name): rounded(item, digits) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    if hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def _memory_gib() -> float | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (AttributeError, ValueError, OSError):
        return None
