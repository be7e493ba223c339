"""Quantised weights back to float32, exactly as the formats define it: the truth the kernels are tested by.

Each function takes uint8[..., block_bytes] and gives float32[..., block_size].  "Nibbles" are half bytes,
low before high.  Layouts: the public GGUF specification and its reference implementation, whose order of
float32 operations is kept so that results are equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import UnsupportedModelError
from engine.tensor import Tensor

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

_BLOCKS_AT_ONCE = 1 << 15
"""Keeps the temporary arrays of a large tensor to some tens of MiB."""


def dequantise(tensor: Tensor) -> Floats:
    """float32[shape] of a whole tensor.  Raises UnsupportedModelError for a type without a formula here."""
    decode = _formula(tensor)
    blocks = tensor.as_bytes().reshape(-1, tensor.type.block_bytes)
    result = np.empty((len(blocks), tensor.type.block_size), np.float32)
    for start in range(0, len(blocks), _BLOCKS_AT_ONCE):
        part = slice(start, start + _BLOCKS_AT_ONCE)
        result[part] = decode(blocks[part])
    return result.reshape(tensor.shape)


def dequantise_rows(tensor: Tensor, rows: NDArray[np.integer[Any]]) -> Floats:
    """float32[len(rows), columns] of some rows of a matrix, in the order asked for.

    Raises IndexError for a row outside the matrix, UnsupportedModelError as `dequantise`.
    """
    decode = _formula(tensor)
    n_rows, n_columns = tensor.shape
    # A negative row would silently count from the end.
    if rows.size and (int(rows.min()) < 0 or int(rows.max()) >= n_rows):
        raise IndexError(f"{tensor.name} has no row {rows.min()} or {rows.max()}; it has {n_rows} rows")
    return decode(tensor.as_bytes()[rows]).reshape(len(rows), n_columns)


def _formula(tensor: Tensor) -> Callable[[Bytes], Floats]:
    try:
        return FORMULAS[tensor.type.name]
    except KeyError:
        raise UnsupportedModelError(
            f"The tensor {tensor.name} is of type {tensor.type.name}, which this engine cannot compute with."
        ) from None


def _f32(blocks: Bytes) -> Floats:
    """One little-endian float32."""
    return np.ascontiguousarray(blocks).view("<f4").astype(np.float32, copy=False)


def _f16(blocks: Bytes) -> Floats:
    """One little-endian half-precision float."""
    return np.ascontiguousarray(blocks).view("<f2").astype(np.float32)


def _bf16(blocks: Bytes) -> Floats:
    """The upper half of a float32."""
    upper = np.ascontiguousarray(blocks).view("<u2").astype(np.uint32)
    return (upper << 16).view(np.float32)


def _q8_0(blocks: Bytes) -> Floats:
    """f16 d, int8 q[32]: d * q."""
    quants = blocks[..., 2:].view(np.int8)
    return _f16(blocks[..., :2]) * quants


def _q4_0(blocks: Bytes) -> Floats:
    """f16 d, 16 bytes of nibbles: d * (q - 8)."""
    return _f16(blocks[..., :2]) * (_nibbles(blocks[..., 2:]).view(np.int8) - np.int8(8))


def _q4_1(blocks: Bytes) -> Floats:
    """f16 d, f16 m, 16 bytes of nibbles: d * q + m."""
    return _f16(blocks[..., :2]) * _nibbles(blocks[..., 4:]) + _f16(blocks[..., 2:4])


def _q5_0(blocks: Bytes) -> Floats:
    """f16 d, 32 fifth bits, 16 bytes of nibbles: d * (q - 16)."""
    quants = _nibbles(blocks[..., 6:]) | _fifth_bits(blocks[..., 2:6])
    return _f16(blocks[..., :2]) * (quants.view(np.int8) - np.int8(16))


def _q5_1(blocks: Bytes) -> Floats:
    """f16 d, f16 m, 32 fifth bits, 16 bytes of nibbles: d * q + m."""
    quants = _nibbles(blocks[..., 8:]) | _fifth_bits(blocks[..., 4:8])
    return _f16(blocks[..., :2]) * quants + _f16(blocks[..., 2:4])


def _q4_k(blocks: Bytes) -> Floats:
    """f16 d, f16 dmin, 12 bytes of scales, 128 bytes of nibbles: (d * scale) * q - (dmin * minimum).

    Each 32 bytes of nibbles hold two sub-blocks: the low nibbles, then the high ones.
    """
    nibbles = _nibbles(blocks[..., 16:].reshape(*blocks.shape[:-1], 4, 32))
    return _scaled_with_minimum(blocks, nibbles.reshape(*blocks.shape[:-1], 8, 32))


def _q5_k(blocks: Bytes) -> Floats:
    """As Q4_K, with 32 bytes of fifth bits before the nibbles.

    Bit s of byte i belongs to element i of sub-block s.
    """
    outer = blocks.shape[:-1]
    nibbles = _nibbles(blocks[..., 48:].reshape(*outer, 4, 32)).reshape(*outer, 8, 32)
    shifts = np.arange(8, dtype=np.uint8)[:, None]
    fifth: Bytes = (blocks[..., None, 16:48] >> shifts & np.uint8(1)) << np.uint8(4)
    return _scaled_with_minimum(blocks, nibbles | fifth)


def _q6_k(blocks: Bytes) -> Floats:
    """128 bytes ql, 64 bytes qh, int8 scales[16], f16 d: (d * scale) * (q - 32).

    A scale holds for 16 elements.  Each half (128 elements) takes 64 bytes of ql and 32 of qh: its elements
    0-31, 32-63, 64-95, 96-127 are the low nibbles of ql[:32], of ql[32:], the high nibbles of both, with the
    bits 0-1, 2-3, 4-5, 6-7 of qh on top.
    """
    outer = blocks.shape[:-1]
    low = _nibbles(blocks[..., :128].reshape(*outer, 2, 64)).reshape(*outer, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    high = (blocks[..., 128:192].reshape(*outer, 2, 1, 32) >> shifts & 3) << np.uint8(4)
    quants = (low | high).view(np.int8) - np.int8(32)
    scales = _f16(blocks[..., 208:]) * blocks[..., 192:208].view(np.int8)
    return (scales[..., None] * quants.reshape(*outer, 16, 16)).reshape(*outer, 256)


def _nibbles(packed: Bytes) -> Bytes:
    """All low nibbles, then all high ones: uint8[..., n] to uint8[..., 2n]."""
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def _fifth_bits(packed: Bytes) -> Bytes:
    """Bit i of four bytes, as 16 or 0, for element i: uint8[..., 4] to uint8[..., 32]."""
    return np.unpackbits(packed, axis=-1, bitorder="little") << np.uint8(4)


def _scaled_with_minimum(blocks: Bytes, quants: Bytes) -> Floats:
    """quants uint8[..., 8, 32] of a block that begins with d, dmin and 12 bytes of scales: float32[..., 256].

    The 12 bytes hold 6-bit scales and minimums of 8 sub-blocks.  Those of the first four are the low six bits
    of bytes 0-3 and 4-7; of the last four, the low and high nibbles of bytes 8-11, with the upper two bits of
    bytes 0-3 and 4-7 on top.
    """
    packed = blocks[..., 4:16]
    first, second, third = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([first & 63, third & 15 | (first >> 2) & 48], axis=-1)
    minimums = np.concatenate([second & 63, third >> 4 | (second >> 2) & 48], axis=-1)
    steps = _f16(blocks[..., :2]) * scales
    offsets = _f16(blocks[..., 2:4]) * minimums
    result: Floats = steps[..., None] * quants - offsets[..., None]
    return result.reshape(*blocks.shape[:-1], 256)


FORMULAS: dict[str, Callable[[Bytes], Floats]] = {
    "F32": _f32,
    "F16": _f16,
    "BF16": _bf16,
    "Q8_0": _q8_0,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
"""By type name: uint8[..., block_bytes] to float32[..., block_size]."""
