"""Small numbers packed into the bytes of a block: the inverse of the unpacking in `dequantise`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

_LEAST_STEP = np.float32(3e-39)


def half_bytes(values: Floats) -> Bytes:
    """Little-endian half-precision floats: [..., n] to uint8[..., 2n].

    Raises ModelFileError where a finite value is too large for half precision.
    """
    with np.errstate(over="ignore"):
        halves = values.astype("<f2")
    overflow = np.isinf(halves) & np.isfinite(values)
    if overflow.any():
        raise ModelFileError(f"The value {values[overflow][0]} is too large for half precision (65504).")
    return np.ascontiguousarray(halves).view(np.uint8)


def halves_of(packed: Bytes) -> Floats:
    """float32[..., n] of uint8[..., 2n]: what `half_bytes` made really stands for."""
    return packed.view("<f2").astype(np.float32)


def pack_nibbles(quants: Bytes) -> Bytes:
    """Numbers below 16, the first half in the low nibbles: uint8[..., 2n] to uint8[..., n]."""
    half = quants.shape[-1] // 2
    return quants[..., :half] | quants[..., half:] << np.uint8(4)


def pack_fifth_bits(quants: Bytes) -> Bytes:
    """Bit 4 of 32 numbers, that of number i as bit i: uint8[..., 32] to uint8[..., 4]."""
    return np.packbits(quants >> 4 & 1, axis=-1, bitorder="little")


def inverse(step: Floats) -> Floats:
    """1 / step, and 0 for a step so small that its inverse is no finite float32."""
    result: Floats = np.divide(1, step, out=np.zeros_like(step), where=np.abs(step) > _LEAST_STEP)
    return result
