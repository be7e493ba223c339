"""Loads one kernel at the CPU level in use.  A missing kernel is an error, never a slower stand-in."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from engine.errors import KernelsError
from engine.kernels.cpu_level import choose_level

Kernel = Callable[..., Any]

# Between two operations libgomp's threads spin for milliseconds: on a busy machine they take the cores from
# the thread they wait for (a tenth of the speed was measured), and at rest the battery.  Without any spinning
# an idle machine writes half as fast: waking takes longer than an operation.  Read when libgomp is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "2000")


@cache
def current_level() -> str:
    """The level of this process, chosen once."""
    return choose_level()


@cache
def load_kernel(name: str, level: str | None = None) -> Kernel:
    """The exported function of a kernel: `matvec_q4_1` holds `matvec`, `rms_norm` holds `rms_norm`.

    Raises KernelsError where the kernel was not compiled for the level.
    """
    level = level or current_level()
    function = name.split("_")[0] if name.startswith(("matvec_", "decode_")) else name
    if level == "python":
        return _unstopped(getattr(importlib.import_module(f"engine.kernels.source.{name}"), function))
    module_name = f"engine.kernels.compiled.{level.replace('-', '_')}.{name}"
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise KernelsError(f"The kernel {name} is missing for the CPU level {level}.") from error
    kernel: Kernel = getattr(module, function)
    return kernel


def _unstopped(function: Kernel) -> Kernel:
    """Compiled integers wrap and floats overflow silently; the same source must not warn about it."""
    import numpy as np

    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run


def token_tile(level: str | None = None) -> int:
    """Tokens that float32 products hold in registers at once: what fits 32 or 16 vector registers."""
    level = level or current_level()
    return 14 if level in ("x86-64-v4", "arm64") else 6


def fixed_tile(n_tokens: int | None = None, level: str | None = None) -> int:
    """Tokens that fixed-point products hold in registers at once, for n_tokens or, if None, at the most."""
    level = level or current_level()
    most = 12 if level in ("x86-64-v4", "arm64") else 6
    return most if n_tokens is None or n_tokens > 6 else 6


def clear_choice() -> None:
    """Forgets the level and the loaded kernels, so that tests can change CAUSERIE_CPU_LEVEL."""
    current_level.cache_clear()
    load_kernel.cache_clear()
