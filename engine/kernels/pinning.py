"""Pinning the threads of the kernels to cores: the OpenMP library does it if asked before it is loaded.

Off by default: a thread that may not move waits for whatever else its core is busy with.  It helps where
nothing else runs, and on machines with several memories, where weights lie beside the core that wrote them.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from engine.errors import SettingsError
from engine.kernels.loader import load_kernel

ENVIRONMENT = {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}
"""One thread for each core, among the cores that this process may use."""


@cache
def pin_threads() -> None:
    """Pins every thread that will compute, to a core of its own.  May be called again.

    Raises `SettingsError` where it is too late, since a kernel was loaded, or where the system cannot do it.
    """
    if sys.platform == "darwin":
        raise SettingsError("macOS does not let a program pin its threads.", "Load the model without it.")
    if any(name.startswith("engine.kernels.compiled.") for name in sys.modules):
        raise SettingsError(
            "Threads can only be pinned before the first model is loaded.",
            "Start the program again, or load the model without it.",
        )
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # The library pins the thread that loads it at once: this one may only want to wait for others.
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(load_kernel, "rms_norm").result()
