"""Types whose elements stand alone: floats and whole numbers, little-endian.

Each function takes uint8[..., bytes of an element] and gives float32[..., 1].  What float32 cannot hold is
rounded to the nearest, large float64 to infinity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.quantisation.unpacking import Bytes, Floats, halves, numbers


def decode_f32(blocks: Bytes) -> Floats:
    return numbers(blocks, "<f4").astype(np.float32, copy=False)


def decode_f16(blocks: Bytes) -> Floats:
    return halves(blocks)


def decode_bf16(blocks: Bytes) -> Floats:
    """The upper half of a float32."""
    return (numbers(blocks, "<u2").astype(np.uint32) << 16).view(np.float32)


def decode_as(dtype: str) -> Callable[[Bytes], Floats]:
    """The function that reads numbers of a dtype such as ``<i8``."""

    def decode(blocks: Bytes) -> Floats:
        return numbers(blocks, dtype).astype(np.float32)

    return decode
