"""Which compiled kernels suit this CPU: the x86-64 levels of the psABI, or arm64.

The environment variable CAUSERIE_CPU_LEVEL overrides the choice: x86-64-v2, x86-64-v3, x86-64-v4, arm64,
checked (asserts every index), or python (the same source, uncompiled and very slow).
"""

from __future__ import annotations

import importlib
import os
import platform

from engine.errors import KernelsError

ENVIRONMENT_VARIABLE = "CAUSERIE_CPU_LEVEL"

# Features that stand for the whole level, by NumPy's names for what the CPU and the system support.
_X86_FEATURES = {
    "x86-64-v4": ("AVX512F", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512VL", "AVX2", "FMA3"),
    "x86-64-v3": ("AVX2", "FMA3", "F16C", "AVX"),
    "x86-64-v2": ("SSE42", "POPCNT"),
}
LEVELS = (*_X86_FEATURES, "arm64", "checked", "python")


def _cpu_features() -> dict[str, bool]:
    """NumPy's table of CPU features; the only reader of the CPU that every platform already has."""
    return dict(importlib.import_module("numpy._core._multiarray_umath").__cpu_features__)


def supported_levels(machine: str | None = None, features: dict[str, bool] | None = None) -> tuple[str, ...]:
    """Levels this CPU can run, best first; without checked and python, which every CPU can."""
    machine = (machine or platform.machine()).lower()
    if machine in ("aarch64", "arm64"):
        return ("arm64",)
    if machine not in ("x86_64", "amd64"):
        return ()
    known = _cpu_features() if features is None else features
    return tuple(
        level for level, needed in _X86_FEATURES.items() if all(known.get(name, False) for name in needed)
    )


def choose_level(override: str | None = None) -> str:
    """The level to load: the override, else CAUSERIE_CPU_LEVEL, else the best this CPU can run.

    Raises KernelsError where the override is unknown or beyond this CPU, or no level suits.
    """
    asked = override or os.environ.get(ENVIRONMENT_VARIABLE, "")
    supported = supported_levels()
    if asked:
        if asked not in LEVELS:
            raise KernelsError(
                f"“{asked}” is no CPU level.", f"Set {ENVIRONMENT_VARIABLE} to one of {', '.join(LEVELS)}."
            )
        if asked not in (*supported, "checked", "python"):
            raise KernelsError(
                f"This CPU cannot run the kernels of level {asked}.",
                f"Unset {ENVIRONMENT_VARIABLE}, or set it to {supported[0] if supported else 'python'}.",
            )
        return asked
    if not supported:
        raise KernelsError(
            f"There are no kernels for this CPU ({platform.machine()}).",
            f"Set {ENVIRONMENT_VARIABLE}=python to run without them, very slowly.",
        )
    return supported[0]
