"""y = x W^T for every supported type: few tokens stream the packed weights, many share decoded panels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.checks import check_array, check_output, check_separate, check_threads, require
from engine.kernels.loader import load_kernel, token_tile
from engine.kernels.packing import GROUP, PackedWeight

Floats = NDArray[np.float32]

MATVEC_TOKENS = 6
"""Up to so many tokens each weight is decoded anew for each; beyond, decoding a panel once costs less."""

BLOCK = 64
"""Columns of a block of a panel."""

HALF = 32
"""Rows that a panel keeps side by side: a group of rows is two halves."""

_PANEL_BYTES = 512 * 1024
"""Decoded weights of one thread between two steps: about half of a core's second-level cache."""

_SMALLEST_SUB_BLOCK = 16
"""Columns that share a scale, at the least: so many sums of x a product with few tokens may need."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearScratch:
    """Memory of one caller, reused by all products.

    packed: tokens in tiles; panels: decoded weights; partial: sums of a group of rows; sums: of x over
    sub-blocks; bits and work: one piece per thread for scales.  Zeros at first: padding must stay finite.
    """

    packed: Floats
    panels: Floats
    partial: Floats
    sums: Floats
    bits: NDArray[np.int32]
    work: Floats

    @classmethod
    def allocate(cls, max_tokens: int, max_cols: int, threads: int) -> LinearScratch:
        """Enough for products of max_tokens tokens with max_cols columns."""
        check_threads(threads)
        padded = _round_up(max_tokens, token_tile())
        blocks = -(-max_cols // BLOCK)
        # a product with fewer columns takes more groups at once, up to the full budget
        panel = max(_PANEL_BYTES // 4, blocks * BLOCK * GROUP)
        return cls(
            packed=np.zeros(padded * blocks * BLOCK, np.float32),
            panels=np.zeros(threads * panel, np.float32),
            partial=np.zeros(threads * padded * GROUP, np.float32),
            sums=np.zeros(MATVEC_TOKENS * (max_cols // _SMALLEST_SUB_BLOCK + 1), np.float32),
            bits=np.zeros((threads, GROUP), np.int32),
            work=np.zeros((threads, 3, 1024), np.float32),
        )

    @property
    def nbytes(self) -> int:
        arrays = (self.packed, self.panels, self.partial, self.sums, self.bits, self.work)
        return sum(int(array.nbytes) for array in arrays)


def _round_up(count: int, step: int) -> int:
    return -(-count // step) * step


def _groups_per_thread(blocks: int) -> int:
    return max(1, _PANEL_BYTES // (blocks * BLOCK * GROUP * 4))


def bind_linear(
    weight: PackedWeight, x: Floats, y: Floats, scratch: LinearScratch, threads: int
) -> Callable[[], None]:
    """x: float32[n, cols]; y: float32[n, rows], overwritten, no part of x.  Raises ValueError, TypeError."""
    check_array("x", x, np.float32, (None, weight.cols))
    check_output("y", y, np.float32, (x.shape[0], weight.rows))
    check_separate("x", x, "y", y)
    check_threads(threads)
    require(len(x) > 0, "x holds no tokens")
    require(scratch.work.shape[0] >= threads, f"scratch is too small for {threads} threads")
    if len(x) <= MATVEC_TOKENS:
        return _bind_few(weight, x, y, scratch, threads)
    return _bind_many(weight, x, y, scratch, threads)


def _bind_few(
    weight: PackedWeight, x: Floats, y: Floats, scratch: LinearScratch, threads: int
) -> Callable[[], None]:
    n_sums = weight.cols // _SMALLEST_SUB_BLOCK + 1
    sums = _part(scratch.sums, (len(x), n_sums), f"{weight.cols} columns")
    kernel = load_kernel(f"matvec_{weight.type.name.lower()}")
    return partial(kernel, weight.data, x, y, sums, scratch.bits, scratch.work, threads)


def _bind_many(
    weight: PackedWeight, x: Floats, y: Floats, scratch: LinearScratch, threads: int
) -> Callable[[], None]:
    """Packs the tokens; then decodes some groups of rows and multiplies them, until all rows are done."""
    tile = token_tile()
    n_tiles, n_blocks = -(-len(x) // tile), -(-weight.cols // BLOCK)
    what = f"{len(x)} tokens of {weight.cols} columns"
    packed = _part(scratch.packed, (n_tiles, n_blocks, BLOCK * tile), what)
    sums = _part(scratch.partial, (threads, n_tiles, 2, tile * HALF), what)
    decode = load_kernel(f"decode_{weight.type.name.lower()}")
    multiply = load_kernel("matmul_panel")
    calls: list[Callable[[], object]] = [partial(load_kernel("pack_tokens"), x, packed, tile, threads)]
    n_groups = len(weight.data)
    at_once = threads * _groups_per_thread(n_blocks)
    for first in range(0, n_groups, at_once):
        shape = (min(at_once, n_groups - first), n_blocks, 2, BLOCK * HALF)
        panels = _part(scratch.panels, shape, what)
        calls.append(partial(decode, weight.data, panels, scratch.bits, scratch.work, first, threads))
        calls.append(partial(multiply, panels, packed, y, sums, first * GROUP, tile, threads))
    return partial(_run_all, tuple(calls))


def _run_all(calls: tuple[Callable[[], object], ...]) -> None:
    for call in calls:
        call()


def _part(memory: Floats, shape: tuple[int, ...], what: str) -> NDArray[Any]:
    size = int(np.prod(shape))
    require(memory.size >= size, f"scratch is too small for {what}")
    return memory[:size].reshape(shape)


def linear(weight: PackedWeight, x: Floats, threads: int = 1) -> Floats:
    """float32[n, rows]; allocates its result and scratch."""
    check_array("x", x, np.float32, (None, weight.cols))
    y = np.empty((x.shape[0], weight.rows), np.float32)
    bind_linear(weight, x, y, LinearScratch.allocate(x.shape[0], weight.cols, threads), threads)()
    return y
