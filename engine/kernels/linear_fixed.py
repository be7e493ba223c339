"""Products of quantised weights in 16-bit fixed point (docs/decisions/0011-fixed-point.md)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.linear_scratch import FIXED_BLOCK, HALF, PANEL_BYTES, LinearScratch, steps, view
from engine.kernels.loader import fixed_tile, load_kernel
from engine.kernels.packing import GROUP, PackedWeight
from engine.kernels.product import Product

Floats = NDArray[np.float32]

MATVEC_TOKENS = 8
"""Up to so many tokens each weight is decoded anew for each; beyond, decoding a panel once costs less."""

_TIES = {"Q4_0": -3, "Q4_1": -3, "Q4_K": -3, "Q5_0": -2, "Q5_1": -2, "Q5_K": -2}
"""What sums of 32 products begin with, against halves that are always rounded up (source/fixed.py)."""


def fixed_product(
    weight: PackedWeight, x: Floats, y: Floats, scratch: LinearScratch, threads: int, source: object
) -> Product:
    """See `linear_product`, which has checked everything."""
    tile = 1 if len(x) <= MATVEC_TOKENS else fixed_tile(len(x))
    n_tiles, n_blocks = -(-len(x) // tile), weight.cols // FIXED_BLOCK
    packed = view(scratch.tokens, np.int16, (n_tiles, n_blocks, FIXED_BLOCK * tile))
    scales = view(scratch.token_scales, np.float32, (n_tiles, n_blocks, tile))
    sums = view(scratch.token_sums, np.float32, (n_tiles, n_blocks, tile))
    prepare: Callable[[], object] | None = None
    if scratch.take(source, tile):
        rounded = scratch.bits.view(np.int32)
        prepare = partial(
            load_kernel("tokens_to_fixed"), x, packed, scales, sums, scratch.work, rounded, tile, threads
        )
    groups, copy_rows = _whole_groups(y)
    if tile > 1:
        multiply = _panel_product(weight, packed, scales, sums, groups, scratch, tile, threads)
        return Product(multiply, (), prepare, copy_rows)
    tokens = [part.reshape(len(x), -1) for part in (packed, scales, sums)]
    kernel = load_kernel(f"matvec_{weight.type.name.lower()}")
    return Product(kernel, (*tokens, groups, scratch.bits, scratch.work, threads), prepare, copy_rows)


def _whole_groups(y: Floats) -> tuple[Floats, Callable[[], object] | None]:
    """y as float32[n, groups, 64]; where its last group is not whole, memory of its own and a copy to y."""
    n, rows = y.shape
    if rows % GROUP == 0:
        return y.reshape(n, -1, GROUP), None
    padded = np.empty((n, -(-rows // GROUP), GROUP), np.float32)
    return padded, partial(np.copyto, y, padded.reshape(n, -1)[:, :rows])


def _panel_product(
    weight: PackedWeight,
    packed: NDArray[np.int16],
    token_scales: Floats,
    token_sums: Floats,
    y: Floats,
    scratch: LinearScratch,
    tile: int,
    threads: int,
) -> Callable[[NDArray[np.uint16]], None]:
    """Decodes some groups of rows and multiplies them, until all rows are done."""
    n_tiles, n_blocks, _ = packed.shape
    name = weight.type.name
    at_once = threads * max(1, PANEL_BYTES // (weight.cols * GROUP * 2))
    totals = view(scratch.totals, np.float32, (threads, n_tiles, 2, tile * HALF))
    lines = totals.reshape(threads, n_tiles, 2, tile, HALF)
    decode, multiply = load_kernel(f"decode_{name.lower()}"), load_kernel("matmul_fixed")
    ties = _TIES.get(name, 0)

    def panels(count: int) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """As the product sees them, and row by row, as decoding does."""
        weights = [
            view(scratch.panels, np.int16, (count, n_blocks, 2, FIXED_BLOCK * HALF)),
            view(scratch.panel_scales, np.float32, (count, n_blocks, GROUP)),
            view(scratch.panel_offsets, np.float32, (count, n_blocks, GROUP)),
        ]
        return weights, [part.reshape(count, -1) for part in weights]

    every_step = steps(len(weight.data), at_once, panels)

    def run(words: NDArray[np.uint16]) -> None:
        for first, (weights, flat) in every_step:
            decode(words, *flat, scratch.bits, first, threads)
            multiply(*weights, packed, token_scales, token_sums, y, totals, lines, first, ties, tile, threads)

    return run
