"""Facts about this process and processor, for `bench` and `--selftest`."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import psutil

from engine.kernels.loader import current_level, load_kernel
from engine.quantisation.registry import FORMATS

NEEDED_KERNELS = (
    *(f"matvec_{name.lower()}" for name, format in FORMATS.items() if format.product != "decoded"),
    *(f"decode_{name.lower()}" for name, format in FORMATS.items() if format.product != "decoded"),
    "decode_rows",
    "add",
    "add_weighted_rows",
    "attention",
    "choose_experts",
    "clamped_swiglu",
    "gelu",
    "gelu_erf",
    "gelu_multiply",
    "interleave",
    "interleave_numbers",
    "layer_norm",
    "matmul_fixed",
    "matmul_panel",
    "pack_tokens",
    "rms_norm",
    "rope",
    "scale",
    "soft_cap",
    "silu_multiply",
    "store_kv",
    "store_kv_f32",
    "store_kv_q8",
    "tokens_to_fixed",
    "weigh_experts",
)


def peak_memory() -> int:
    """The most bytes this process ever had in memory, mapped files included."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    if sys.platform == "linux":  # where getrusage knows what the parent had when it started this process
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def kernels_in_use() -> list[str]:
    """Names of the compiled kernels that this process has loaded by now."""
    prefix = f"engine.kernels.compiled.{current_level().replace('-', '_')}."
    return sorted(name.removeprefix(prefix) for name in sys.modules if name.startswith(prefix))


def kernel_facts() -> dict[str, object]:
    """The level in use, and whether its kernels are compiled.  Raises `KernelsError` where one is missing."""
    kernels = [load_kernel(name) for name in NEEDED_KERNELS]
    compiled = not any(isinstance(kernel, types.FunctionType) for kernel in kernels)
    return {"cpu_level": current_level(), "kernels_compiled": compiled}
