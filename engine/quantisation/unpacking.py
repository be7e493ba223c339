"""Small numbers out of the bytes of a block, as NumPy sees them: the inverse of `packing`.

Blocks are uint8[..., bytes]; what is cut out of them may have gaps between the blocks, but none inside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


def numbers(packed: Bytes, dtype: str) -> NDArray[Any]:
    """Little-endian numbers of a dtype such as ``<u2``: uint8[..., n * itemsize] to dtype[..., n]."""
    return np.ascontiguousarray(packed).view(dtype)


def halves(packed: Bytes) -> Floats:
    """Half-precision floats: uint8[..., 2n] to float32[..., n]."""
    return numbers(packed, "<f2").astype(np.float32)


def nibbles(packed: Bytes) -> Bytes:
    """All low half bytes, then all high ones: uint8[..., n] to uint8[..., 2n]."""
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def nibble_pairs(packed: Bytes) -> Bytes:
    """The low and the high half of each byte side by side: uint8[..., n] to uint8[..., 2n]."""
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


def bit_pairs(packed: Bytes) -> Bytes:
    """Bits 0-1 of all bytes, then bits 2-3, 4-5, 6-7: uint8[..., n] to uint8[..., 4n]."""
    planes = packed[..., None, :] >> np.array([0, 2, 4, 6], np.uint8)[:, None] & np.uint8(3)
    return planes.reshape(*packed.shape[:-1], -1)


def bits(packed: Bytes) -> Bytes:
    """Bit i of byte k as element 8k + i, 0 or 1: uint8[..., n] to uint8[..., 8n]."""
    return np.unpackbits(packed, axis=-1, bitorder="little")


def bit_planes(packed: Bytes) -> Bytes:
    """Bit 0 of all bytes, then bit 1, and so on: uint8[..., n] to uint8[..., 8n]."""
    planes = packed[..., None, :] >> np.arange(8, dtype=np.uint8)[:, None] & np.uint8(1)
    return planes.reshape(*packed.shape[:-1], -1)
