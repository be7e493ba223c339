"""Products of types without kernels of their own: some groups of rows at a time become float32 panels.

The weight stays as the file holds it, row by row, also in memory.  Decoding is slow, and happens anew for
each product, but it is right for every type, and one kernel serves them all.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.linear_plain import panel_product
from engine.kernels.linear_scratch import LinearScratch
from engine.kernels.loader import load_kernel, token_tile
from engine.kernels.packing import GROUP, PackedWeight
from engine.kernels.product import Product
from engine.quantisation.damage import damaged_scale
from engine.quantisation.grids import LEVELS, grid
from engine.quantisation.table_types import FLOAT4_VALUES

Floats = NDArray[np.float32]

SMALL_TILE = 6
"""Tokens multiplied at once where there are no more; otherwise `token_tile`."""

NUMBERS_AT_ONCE = 256
"""Elements of a row of plain numbers that are taken as one block."""

KINDS: dict[str, int] = {
    "MXFP4": 0, "IQ2_XXS": 1, "IQ2_XS": 2, "IQ2_S": 3, "IQ3_XXS": 4, "IQ3_S": 5, "IQ1_S": 6, "IQ1_M": 7,
    "TQ1_0": 8, "TQ2_0": 9, "NVFP4": 10, "Q1_0": 11, "Q8_1": 12, "Q8_K": 13, "F64": 15,
    "I8": 14, "I16": 14, "I32": 14, "I64": 14,
}  # fmt: skip
"""The numbers by which source/decode_rows.py knows the types."""


def decoded_product(
    weight: PackedWeight, x: Floats, y: Floats, scratch: LinearScratch, threads: int, source: object
) -> Product:
    """See `linear_product`, which has checked everything."""
    tile = SMALL_TILE if len(x) <= SMALL_TILE else token_tile()
    name, type = weight.type.name, weight.type
    size = NUMBERS_AT_ONCE if type.block_size == 1 else type.block_size
    row_bytes = weight.cols // type.block_size * type.block_bytes
    sizes = (row_bytes, weight.cols, size, size // type.block_size * type.block_bytes)
    kernel = load_kernel("decode_rows")
    bits = scratch.bits
    memory = (scratch.work, bits, bits.view(np.uint64), scratch.found)
    tables = (_table(name), _signs())

    def decode(rows: NDArray[np.uint8], panels: Floats, first_group: int) -> None:
        flat = panels.reshape(len(panels), -1)
        kernel(rows.reshape(-1), flat, KINDS[name], *sizes, *tables, *memory, first_group, threads)

    return panel_product(decode, -(-weight.rows // GROUP), x, y, scratch, tile, threads, source)


def require_finite(name: str, scratch: LinearScratch) -> None:
    """Raises ModelFileError where a scale decoded since the last time was infinite or no number."""
    if scratch.found[:, 0].any():
        scratch.found[:] = 0
        raise damaged_scale(name)


@cache
def _table(type_name: str) -> NDArray[np.int8]:
    """int8[n]: the coordinates of a grid's points one after the other, or the values of four bits."""
    grid_name = "IQ1_S" if type_name == "IQ1_M" else type_name
    points: NDArray[Any] = grid(grid_name) if grid_name in LEVELS else FLOAT4_VALUES
    return np.ascontiguousarray(points).reshape(-1)


@cache
def _signs() -> Floats:
    """float32[256 * 8]: for each bit of each byte, the lowest first, -1 where it is set and 1 where not."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8), bitorder="little")
    return np.float32(1) - np.float32(2) * bits.astype(np.float32)
