"""Facts about this process and processor, for `bench` and `--selftest`."""

from __future__ import annotations

import sys

import psutil
from engine.kernels.loader import load_kernels


def peak_memory() -> int:
    """The most bytes this process ever had in memory, mapped files included."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def kernel_facts() -> dict[str, object]:
    """Level of the kernels that were loaded, and whether they are compiled.  Raises `KernelsError`."""
    kernels = load_kernels()
    return {"cpu_level": kernels.level, "kernels_compiled": kernels.compiled}
