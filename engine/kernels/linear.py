"""y = x W^T for every supported type: a product with one token streams the weights, many tokens share them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.kernels.checks import check_array, check_output, check_separate, check_threads, require
from engine.kernels.loader import load_kernel, token_tile
from engine.kernels.packing import GROUP, PackedWeight

Floats = NDArray[np.float32]

MATVEC_TOKENS = 4
"""Up to so many tokens each weight is decoded anew for each; beyond, padding to a whole tile costs less."""

_PANEL_COLS = 256

_WITHOUT_MATVEC = ("Q4_K", "Q5_K")
"""Types that still use the kernel for many tokens, in its smallest tile, for few."""

_SMALL_TILE = 6


@dataclass(frozen=True, slots=True, eq=False)
class LinearScratch:
    """Memory of one caller, reused by all products: packed: tokens in tiles; panels, partials: per thread."""

    packed: Floats
    panels: Floats
    partials: Floats

    @classmethod
    def allocate(cls, max_tokens: int, max_cols: int, threads: int) -> LinearScratch:
        """Enough for products of max_tokens tokens with max_cols columns."""
        check_threads(threads)
        padded = _padded_tokens(max_tokens)
        return cls(
            np.empty(padded * max_cols, np.float32),
            np.empty((threads, _PANEL_COLS * GROUP), np.float32),
            np.empty(threads * padded * GROUP, np.float32),
        )

    @property
    def nbytes(self) -> int:
        return int(self.packed.nbytes + self.panels.nbytes + self.partials.nbytes)


def _padded_tokens(n: int) -> int:
    tile = token_tile()
    return -(-n // tile) * tile


def bind_linear(
    weight: PackedWeight, x: Floats, y: Floats, scratch: LinearScratch, threads: int
) -> Callable[[], None]:
    """x: float32[n, cols]; y: float32[n, rows], overwritten, no part of x.  Raises ValueError or TypeError."""
    check_array("x", x, np.float32, (None, weight.cols))
    check_output("y", y, np.float32, (x.shape[0], weight.rows))
    check_separate("x", x, "y", y)
    check_threads(threads)
    n, cols = x.shape
    require(n > 0, "x holds no tokens")
    type_name = weight.type.name.lower()
    if n <= MATVEC_TOKENS and weight.type.name not in _WITHOUT_MATVEC:
        return partial(load_kernel(f"matvec_{type_name}"), weight.data, x, y, threads)
    tile = _SMALL_TILE if n <= _SMALL_TILE else token_tile()
    padded = -(-n // tile) * tile
    require(scratch.packed.size >= padded * cols, f"scratch is too small for {n} tokens of {cols} columns")
    require(
        scratch.panels.shape[0] >= threads and scratch.partials.size >= threads * padded * GROUP,
        f"scratch is too small for {threads} threads",
    )
    packed = scratch.packed[: padded * cols].reshape(padded // tile, cols * tile)
    partials = scratch.partials[: threads * padded * GROUP].reshape(threads, padded * GROUP)
    kernel = load_kernel(f"matmul_{type_name}")
    return partial(kernel, weight.data, x, y, packed, scratch.panels, partials, tile, threads)


def linear(weight: PackedWeight, x: Floats, threads: int = 1) -> Floats:
    """float32[n, rows]; allocates its result and scratch."""
    check_array("x", x, np.float32, (None, weight.cols))
    y = np.empty((x.shape[0], weight.rows), np.float32)
    bind_linear(weight, x, y, LinearScratch.allocate(x.shape[0], weight.cols, threads), threads)()
    return y
