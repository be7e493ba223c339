"""Products of F32, F16 and BF16 weights, exact to float32."""

from __future__ import annotations

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
    tile = token_tile()
    n_tiles, n_blocks = -(-len(x) // tile), -(-weight.cols // FLOAT_BLOCK)
    packed = view(scratch.tokens, np.float32, (n_tiles, n_blocks, FLOAT_BLOCK * tile))
    totals = view(scratch.totals, np.float32, (threads, n_tiles, 2, tile * HALF))
    at_once = threads * max(1, PANEL_BYTES // (n_blocks * FLOAT_BLOCK * GROUP * 4))
    fill = scratch.take(source, "float32")
    prepare = partial(load_kernel("pack_tokens"), x, packed, tile, threads) if fill else None
    decode, multiply = load_kernel(f"decode_{name}"), load_kernel("matmul_panel")

    def panels(count: int) -> Floats:
        return view(scratch.panels, np.float32, (count, n_blocks, 2, FLOAT_BLOCK * HALF))

    every_step = steps(len(weight.data), at_once, panels)

    def run(words: NDArray[Any]) -> None:
        for first, weights in every_step:
            if weight.cols % FLOAT_BLOCK:
                # what other products left there may be no number, which no zero of x would cancel
                weights[:, -1, :, weight.cols % FLOAT_BLOCK * HALF :] = 0
            decode(words, weights, bits, scratch.work, first, threads)
            multiply(weights, packed, y, totals, first * GROUP, tile, threads)

    return Product(run, (), prepare)
