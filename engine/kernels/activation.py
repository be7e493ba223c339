"""Elementwise operations: gates, activations, sum, scale, soft cap."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.kernels.checks import check_array, check_in_place, check_output, check_threads, require
from engine.kernels.loader import load_kernel

Floats = NDArray[np.float32]


def _flat(out: Floats, **sources: Floats) -> tuple[Floats, ...]:
    """The sources, then out, all of one shape, as float32[size].  Raises ValueError or TypeError."""
    shape = out.shape
    check_output("out", out, np.float32, shape)
    for name, source in sources.items():
        check_array(name, source, np.float32, shape)
        check_in_place(name, source, out)
    return tuple(array.reshape(-1) for array in (*sources.values(), out))


def _bind_gate(kernel: str, gate: Floats, up: Floats, out: Floats, threads: int) -> Callable[[], None]:
    check_threads(threads)
    flat = _flat(out, gate=gate, up=up)
    return partial(load_kernel(kernel), *flat, threads)


def bind_silu_multiply(gate: Floats, up: Floats, out: Floats, threads: int) -> Callable[[], None]:
    """out = silu(gate) * up; arrays of one shape; out may be gate or up."""
    return _bind_gate("silu_multiply", gate, up, out, threads)


def bind_gelu_multiply(gate: Floats, up: Floats, out: Floats, threads: int) -> Callable[[], None]:
    """out = gelu(gate) * up with the tanh form of gelu; arrays of one shape; out may be gate or up."""
    return _bind_gate("gelu_multiply", gate, up, out, threads)


def bind_clamped_swiglu(gate: Floats, up: Floats, out: Floats, threads: int) -> Callable[[], None]:
    """out = g sigmoid(1.702 g) (u + 1), where g is gate held below 7 and u is up held to -7 ... 7; arrays of
    one shape; out may be gate or up."""
    return _bind_gate("clamped_swiglu", gate, up, out, threads)


def _bind_activation(kernel: str, x: Floats, out: Floats, threads: int) -> Callable[[], None]:
    check_threads(threads)
    flat = _flat(out, x=x)
    return partial(load_kernel(kernel), *flat, threads)


def bind_gelu(x: Floats, out: Floats, threads: int) -> Callable[[], None]:
    """out = gelu(x) in the tanh form; out may be x."""
    return _bind_activation("gelu", x, out, threads)


def bind_gelu_erf(x: Floats, out: Floats, threads: int) -> Callable[[], None]:
    """out = gelu(x) in the exact form, with the error function; out may be x."""
    return _bind_activation("gelu_erf", x, out, threads)


def bind_add(a: Floats, b: Floats, out: Floats) -> Callable[[], None]:
    """out = a + b; arrays of one shape; out may be a or b."""
    flat = _flat(out, a=a, b=b)
    return partial(load_kernel("add"), *flat)


def bind_scale(x: Floats, out: Floats, factor: float) -> Callable[[], None]:
    """out = x * factor; out may be x."""
    flat = _flat(out, x=x)
    return partial(load_kernel("scale"), *flat, np.float32(factor))


def bind_soft_cap(x: Floats, out: Floats, cap: float, threads: int) -> Callable[[], None]:
    """out = cap * tanh(x / cap); out may be x; cap > 0."""
    require(cap > 0.0, f"cap must be positive, it is {cap}")
    check_threads(threads)
    flat = _flat(out, x=x)
    return partial(load_kernel("soft_cap"), *flat, np.float32(cap), threads)


def silu_multiply(gate: Floats, up: Floats, threads: int = 1) -> Floats:
    out = np.empty_like(gate)
    bind_silu_multiply(gate, up, out, threads)()
    return out


def gelu_multiply(gate: Floats, up: Floats, threads: int = 1) -> Floats:
    out = np.empty_like(gate)
    bind_gelu_multiply(gate, up, out, threads)()
    return out


def gelu(x: Floats, threads: int = 1) -> Floats:
    out = np.empty_like(x)
    bind_gelu(x, out, threads)()
    return out


def gelu_erf(x: Floats, threads: int = 1) -> Floats:
    out = np.empty_like(x)
    bind_gelu_erf(x, out, threads)()
    return out


def add(a: Floats, b: Floats) -> Floats:
    out = np.empty_like(a)
    bind_add(a, b, out)()
    return out


def scale(x: Floats, factor: float) -> Floats:
    out = np.empty_like(x)
    bind_scale(x, out, factor)()
    return out


def soft_cap(x: Floats, cap: float, threads: int = 1) -> Floats:
    out = np.empty_like(x)
    bind_soft_cap(x, out, cap, threads)()
    return out
