"""Simple reference quantisers: float32 weights to the bytes of each type, for tests and small tools.

The plain types round exactly as the formats' reference implementation does; the K types, in
`engine.quantisation.quantise_k`, choose their scales by a plain rule of our own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.tensor_types import TENSOR_TYPES
from engine.quantisation.packing import Bytes, Floats, half_bytes, inverse, pack_fifth_bits, pack_nibbles
from engine.quantisation.quantise_k import quantise_q4_k, quantise_q5_k, quantise_q6_k
from engine.tensor import Tensor


def quantise(array: ArrayLike, type_name: str) -> Bytes:
    """uint8[bytes] of an array whose last axis is a whole number of blocks.

    Raises UnsupportedModelError for a type without a quantiser, ValueError where a row is cut by a block,
    ModelFileError for weights that the type cannot hold: too large, or NaN or infinite in a block type.
    """
    if type_name not in QUANTISERS:
        raise UnsupportedModelError(f"Weights cannot be written as {type_name}.")
    type = TENSOR_TYPES[type_name]
    weights = np.asarray(array, np.float32)
    if weights.ndim == 0 or weights.shape[-1] % type.block_size:
        raise ValueError(f"{weights.shape} are no whole blocks of {type.block_size}")
    blocks = weights.reshape(-1, type.block_size)
    if type.block_size > 1:
        _require_finite(weights, type_name)
    return QUANTISERS[type_name](blocks).reshape(-1)


def make_tensor(name: str, array: ArrayLike, type_name: str = "F32") -> Tensor:
    """A tensor of the array's shape that owns its bytes.  Raises as `quantise`."""
    weights = np.asarray(array, np.float32)
    return Tensor.contiguous(name, TENSOR_TYPES[type_name], weights.shape, quantise(weights, type_name))


def _require_finite(weights: Floats, type_name: str) -> None:
    finite = np.isfinite(weights)
    if not finite.all():
        index = tuple(int(axis) for axis in np.argwhere(~finite)[0])
        raise ModelFileError(f"The weight at {index} is {weights[index]}, which {type_name} cannot hold.")


def _f32(blocks: Floats) -> Bytes:
    return blocks.astype("<f4").view(np.uint8)


def _f16(blocks: Floats) -> Bytes:
    return half_bytes(blocks)


def _bf16(blocks: Floats) -> Bytes:
    """The upper half, rounded to nearest with ties to even; a NaN stays one by setting its highest bit."""
    bits = np.ascontiguousarray(blocks).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    upper = np.where(np.isnan(blocks), (bits >> 16) | 0x40, rounded)
    return upper.astype("<u2").view(np.uint8)


def _q8_0(blocks: Floats) -> Bytes:
    """Step: largest magnitude / 127.  Halves are rounded away from zero."""
    step = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    scaled = blocks * inverse(step)
    quants = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int8)
    return np.concatenate([half_bytes(step), quants.view(np.uint8)], axis=1)


def _q4_0(blocks: Floats) -> Bytes:
    step, quants = _signed(blocks, 8)
    return np.concatenate([half_bytes(step), pack_nibbles(quants)], axis=1)


def _q5_0(blocks: Floats) -> Bytes:
    step, quants = _signed(blocks, 16)
    return np.concatenate(
        [half_bytes(step), pack_fifth_bits(quants), pack_nibbles(quants & np.uint8(15))], axis=1
    )


def _q4_1(blocks: Floats) -> Bytes:
    step, minimum, quants = _with_minimum(blocks, 15)
    return np.concatenate([half_bytes(step), half_bytes(minimum), pack_nibbles(quants)], axis=1)


def _q5_1(blocks: Floats) -> Bytes:
    step, minimum, quants = _with_minimum(blocks, 31)
    fifth = pack_fifth_bits(quants)
    return np.concatenate(
        [half_bytes(step), half_bytes(minimum), fifth, pack_nibbles(quants & np.uint8(15))], axis=1
    )


def _signed(blocks: Floats, zero: int) -> tuple[Floats, Bytes]:
    """Steps and quants 0 to 2 zero - 1: the first weight of the largest magnitude becomes quant 0.

    The sum is taken in float64, where the product is exact, as a fused multiply-add would.
    """
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    step = largest / np.float32(-zero)
    scaled = blocks.astype(np.float64) * inverse(step).astype(np.float64) + (zero + 0.5)
    return step, np.trunc(scaled.astype(np.float32)).clip(0, 2 * zero - 1).astype(np.uint8)


def _with_minimum(blocks: Floats, most: int) -> tuple[Floats, Floats, Bytes]:
    """Steps, minimums and quants 0 to most, spread from the least to the greatest weight."""
    minimum = blocks.min(axis=1, keepdims=True)
    step = (blocks.max(axis=1, keepdims=True) - minimum) / np.float32(most)
    quants = np.trunc((blocks - minimum) * inverse(step) + np.float32(0.5))
    return step, minimum, quants.clip(0, most).astype(np.uint8)


QUANTISERS: dict[str, Callable[[Floats], Bytes]] = {
    "F32": _f32,
    "F16": _f16,
    "BF16": _bf16,
    "Q8_0": _q8_0,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q4_K": quantise_q4_k,
    "Q5_K": quantise_q5_k,
    "Q6_K": quantise_q6_k,
}
"""By type name: float32[blocks, block_size] to uint8[blocks, block_bytes]."""
