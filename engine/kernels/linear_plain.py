"""Products of F32, F16 and BF16 weights, exact to float32."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.linear_scratch import FLOAT_BLOCK, HALF, PANEL_BYTES, LinearScratch, steps, view
from engine.kernels.loader import load_kernel, token_tile
from engine.kernels.packing import GROUP, PackedWeight
from engine.kernels.product import Product

Floats = NDArray[np.float32]

MATVEC_TOKENS = 6
"""Up to so many tokens each weight is widened anew for each; beyond, a panel costs less."""


def plain_product(
    weight: PackedWeight, x: Floats, y: Floats, scratch: LinearScratch, threads: int, source: object
) -> Product:
    """See `linear_product`, which has checked everything."""
    bits = scratch.bits.view(np.int32)
    name = weight.type.name.lower()
    if len(x) <= MATVEC_TOKENS:
        return Product(load_kernel(f"matvec_{name}"), (x, y, bits, scratch.work, threads))
    kernel = load_kernel(f"decode_{name}")

    def decode(words: NDArray[Any], panels: Floats, first_group: int) -> None:
        kernel(words, panels, bits, scratch.work, first_group, threads)

    return panel_product(decode, len(weight.data), x, y, scratch, token_tile(), threads, source)


def panel_product(
    decode: Callable[[NDArray[Any], Floats, int], None],
    n_groups: int,
    x: Floats,
    y: Floats,
    scratch: LinearScratch,
    tile: int,
    threads: int,
    source: object,
) -> Product:
    """Decodes some groups of rows and multiplies them, tile tokens at a time, until all rows are done.

    decode(words, panels, first_group) fills float32[groups, col blocks, 2, 64 * 32]: of each 64 columns, two
    halves of 32 rows; the columns beyond the last are zero already.
    """
    n_tiles, n_blocks = -(-len(x) // tile), -(-x.shape[1] // FLOAT_BLOCK)
    packed = view(scratch.tokens, np.float32, (n_tiles, n_blocks, FLOAT_BLOCK * tile))
    totals = view(scratch.totals, np.float32, (threads, n_tiles, 2, tile * HALF))
    at_once = threads * max(1, PANEL_BYTES // (n_blocks * FLOAT_BLOCK * GROUP * 4))
    fill = scratch.take(source, "float32", tile)
    prepare = partial(load_kernel("pack_tokens"), x, packed, tile, threads) if fill else None
    multiply, rest = load_kernel("matmul_panel"), x.shape[1] % FLOAT_BLOCK

    def panels(count: int) -> Floats:
        return view(scratch.panels, np.float32, (count, n_blocks, 2, FLOAT_BLOCK * HALF))

    every_step = steps(n_groups, at_once, panels)

    def run(words: NDArray[Any]) -> None:
        for first, weights in every_step:
            if rest:
                # what other products left there may be no number, which no zero of x would cancel
                weights[:, -1, :, rest * HALF :] = 0
            decode(words, weights, first)
            multiply(weights, packed, y, totals, first * GROUP, tile, threads)

    return Product(run, (), prepare)
