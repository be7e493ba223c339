"""Rotary position embedding from a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.kernels.checks import check_array, check_in_place, check_output, check_threads, require
from engine.kernels.loader import load_kernel

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


def bind_rope(
    x: Floats,
    out: Floats,
    positions: Ints,
    cos: Floats,
    sin: Floats,
    head_size: int,
    interleaved: bool,
    threads: int,
) -> Callable[[], None]:
    """x, out: float32[n, heads * head_size], may be the same array; cos, sin: float32[positions, pairs] with
    2 * pairs <= head_size; positions: int32[n], read at each call, which the caller keeps inside the table.

    interleaved: pair i is dimensions (2i, 2i + 1); else (i, i + pairs).
    """
    check_array("x", x, np.float32, (None, None))
    check_output("out", out, np.float32, x.shape)
    check_in_place("x", x, out)
    check_array("positions", positions, np.int32, (x.shape[0],))
    check_array("cos", cos, np.float32, (None, None))
    check_array("sin", sin, np.float32, cos.shape)
    check_threads(threads)
    require(head_size > 0 and x.shape[1] % head_size == 0, f"{x.shape[1]} is no multiple of {head_size}")
    require(2 * cos.shape[1] <= head_size, f"{cos.shape[1]} pairs do not fit a head of {head_size}")
    kernel = load_kernel("rope")
    return partial(kernel, x, out, positions, cos, sin, head_size, bool(interleaved), threads)


def rope(
    x: Floats,
    positions: Ints,
    cos: Floats,
    sin: Floats,
    head_size: int,
    interleaved: bool,
    threads: int = 1,
) -> Floats:
    """Checks the positions too, and allocates its result."""
    out = np.empty_like(x)
    call = bind_rope(x, out, positions, cos, sin, head_size, interleaved, threads)
    check_positions(positions, cos.shape[0])
    call()
    return out


def check_positions(positions: Ints, length: int) -> None:
    """Raises ValueError where a position lies outside 0 to length - 1."""
    if positions.size:
        low, high = int(positions.min()), int(positions.max())
        require(low >= 0 and high < length, f"positions {low} to {high} lie outside 0 to {length - 1}")
