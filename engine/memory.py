"""Memory and cores of this machine that this process may use."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import psutil

CGROUP = Path("/sys/fs/cgroup")


def free_memory() -> int:
    """Bytes that can be taken without swapping, within the limit of a container."""
    available = int(psutil.virtual_memory().available)
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        used = int((CGROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return available
    return min(available, max(0, int(limit) - used)) if limit.isdigit() else available


@cache
def usable_cores() -> int:
    """Physical cores this process may run on, at least 1; two threads of one core gain kernels nothing.

    As at the first call: a thread that was pinned later sees its own core only.
    """
    logical = psutil.cpu_count(logical=True) or 1
    physical = psutil.cpu_count(logical=False) or logical
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical
    return max(1, min(allowed, physical))


def readable_bytes(count: int) -> str:
    """Decimal units and three digits: 98.4 MB."""
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}" if unit != "bytes" else f"{count} bytes"
        size /= 1000
    return f"{size:,.3g} TB" if size < 999.5 else f"{size:,.0f} TB"
