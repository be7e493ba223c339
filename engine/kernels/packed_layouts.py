"""Blocks that are not packed in the file's order, so that their kernels read one stream with few steps.

Q4_K: two of the 16 bytes of scales before each 16 bytes of nibbles.
Q6_K: d first; then for each 16 columns of a half their four scales and 16 times three bytes: two of nibbles
and one of bit pairs, which `fuse_q6_k` turns to words of whole values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gguf.tensor_types import QuantType

Words = NDArray[np.uint16]

FUSED = frozenset({"Q6_K"})
"""Types whose values are put together once their bytes are interleaved."""


def _q4_k_order() -> NDArray[np.int64]:
    scales = [byte // 2 * 18 + byte % 2 for byte in range(16)]
    return np.array(scales + [byte // 16 * 18 + 2 + byte % 16 for byte in range(128)])


def _q6_k_order() -> NDArray[np.int64]:
    order = np.zeros(210, np.int64)
    order[208:] = 0, 1
    for half in range(2):
        for column in range(32):
            piece = 2 + (half * 2 + column // 16) * 52
            three = piece + 4 + column % 16 * 3
            order[half * 64 + column], order[half * 64 + 32 + column] = three, three + 1
            order[128 + half * 32 + column] = three + 2
        for scale in range(8):
            order[192 + half * 8 + scale] = 2 + (half * 2 + scale % 2) * 52 + scale // 2
    return order


_ORDERS = {"Q4_K": _q4_k_order(), "Q6_K": _q6_k_order()}


def byte_places(type: QuantType, width: int) -> NDArray[np.int64]:
    """int64[width]: where each byte of a row of blocks lies once it is interleaved."""
    within = _ORDERS.get(type.name, np.arange(type.block_bytes))
    return (np.arange(0, width, type.block_bytes)[:, None] + within).reshape(-1)


def file_rows(
    type: QuantType, data: NDArray[Any], groups: NDArray[Any], rows: NDArray[Any]
) -> NDArray[np.uint8]:
    """uint8[n, bytes of a row] as a file has them, of rows in groups of interleaved uint8[groups, ...]."""
    if type.name in FUSED:
        words = data.view(np.uint16).reshape(len(data), -1, 32)[groups, :, rows // 2]
        packed = _parted(words, rows[:, None] % 2 == 1)
    else:
        packed = np.ascontiguousarray(data.reshape(len(data), -1, 64)[groups, :, rows])
    return packed[:, byte_places(type, packed.shape[1])]


def _parted(words: Words, odd: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Bytes of one row out of each of two, as before `fuse_q6_k`.  words: uint16[n, row]; odd: bool[n, 1]."""
    packed = np.where(odd, words >> 8, words & 255).astype(np.uint8)
    pieces = words.reshape(-1, 210)[:, 2:].reshape(-1, 4, 52)[..., 4:].reshape(-1, 4, 16, 3)
    p, q, r = pieces[..., 0], pieces[..., 1], pieces[..., 2]
    is_odd = np.repeat(odd, words.shape[1] // 210, axis=0)[..., None]
    a, b, d = (np.where(is_odd, word >> 4, word >> 10) & 63 ^ 32 for word in (p, q, r))
    c = np.where(is_odd, (q & 15) << 2 | r & 3, (p & 15) << 2 | r >> 2 & 3) ^ 32
    low, high = a & 15 | (c & 15) << 4, b & 15 | (d & 15) << 4
    pairs = a >> 4 | b >> 4 << 2 | c >> 4 << 4 | d >> 4 << 6
    blocks = packed.reshape(-1, 210)[:, 2:].reshape(-1, 4, 52)
    blocks[..., 4:] = np.stack([low, high, pairs], axis=-1).astype(np.uint8).reshape(-1, 4, 48)
    packed.reshape(-1, 210)[:, 2:] = blocks.reshape(-1, 208)
    return packed
