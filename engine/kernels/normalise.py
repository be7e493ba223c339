"""RMS and layer normalisation of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.kernels.checks import (
    check_array,
    check_in_place,
    check_output,
    check_separate,
    check_threads,
    require,
)
from engine.kernels.loader import load_kernel

Floats = NDArray[np.float32]


def bind_rms_norm(x: Floats, weight: Floats, out: Floats, eps: float, threads: int) -> Callable[[], None]:
    """x, out: float32[rows, width], may be the same array; weight: float32[width]."""
    check_array("x", x, np.float32, (None, None))
    check_array("weight", weight, np.float32, (x.shape[1],))
    check_output("out", out, np.float32, x.shape)
    check_in_place("x", x, out)
    check_separate("weight", weight, "out", out)
    check_threads(threads)
    require(x.shape[1] > 0, "rows are empty")
    require(eps >= 0.0, f"eps must not be negative, it is {eps}")
    return partial(load_kernel("rms_norm"), x, weight, out, float(eps), threads)


def bind_layer_norm(
    x: Floats, weight: Floats, bias: Floats | None, out: Floats, eps: float, threads: int
) -> Callable[[], None]:
    """x, out: float32[rows, width], may be the same array; weight, and bias if there is one: float32[width],
    or float32[heads, width] where row i takes the weight of head i % heads."""
    check_array("x", x, np.float32, (None, None))
    weights = weight[None] if weight.ndim == 1 else weight
    check_array("weight", weights, np.float32, (None, x.shape[1]))
    biases = np.empty((0, x.shape[1]), np.float32) if bias is None else bias
    if bias is not None:
        check_array("bias", bias, np.float32, weight.shape)
        biases = bias.reshape(weights.shape)
    check_output("out", out, np.float32, x.shape)
    check_in_place("x", x, out)
    check_separate("weight", weight, "out", out)
    check_separate("bias", biases, "out", out)
    check_threads(threads)
    require(x.shape[1] > 0, "rows are empty")
    require(len(weights) > 0 and len(x) % len(weights) == 0, f"{len(x)} rows for {len(weights)} heads")
    require(eps >= 0.0, f"eps must not be negative, it is {eps}")
    return partial(load_kernel("layer_norm"), x, weights, biases, out, float(eps), threads)


def rms_norm(x: Floats, weight: Floats, eps: float, threads: int = 1) -> Floats:
    """float32[rows, width]; allocates its result."""
    out = np.empty_like(x)
    bind_rms_norm(x, weight, out, eps, threads)()
    return out


def layer_norm(x: Floats, weight: Floats, bias: Floats | None, eps: float, threads: int = 1) -> Floats:
    """float32[rows, width]; allocates its result."""
    out = np.empty_like(x)
    bind_layer_norm(x, weight, bias, out, eps, threads)()
    return out
