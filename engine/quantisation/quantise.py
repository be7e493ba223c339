"""Quantisers: float32 weights to the bytes of each type, for converting, quantising and tests.

Types that leave nothing to choose round exactly as the formats' reference implementation does; for the others
a search finds the scales with the least error (`quantise_k`, `quantise_table`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.tensor_types import TENSOR_TYPES
from engine.quantisation.packing import Bytes, Floats, half_bytes
from engine.quantisation.quantise_k import (
    quantise_q2_k,
    quantise_q3_k,
    quantise_q4_k,
    quantise_q5_k,
    quantise_q6_k,
)
from engine.quantisation.quantise_legacy import (
    quantise_q4_0,
    quantise_q4_1,
    quantise_q5_0,
    quantise_q5_1,
    quantise_q8_0,
)
from engine.quantisation.quantise_table import quantise_iq4_nl, quantise_iq4_xs
from engine.tensor import Tensor


def quantise(array: ArrayLike, type_name: str, threads: int = 1) -> Bytes:
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
    return QUANTISERS[type_name](blocks, threads).reshape(-1)


def make_tensor(name: str, array: ArrayLike, type_name: str = "F32") -> Tensor:
    """A tensor of the array's shape that owns its bytes.  Raises as `quantise`."""
    weights = np.asarray(array, np.float32)
    return Tensor.contiguous(name, TENSOR_TYPES[type_name], weights.shape, quantise(weights, type_name))


def _require_finite(weights: Floats, type_name: str) -> None:
    finite = np.isfinite(weights)
    if not finite.all():
        index = tuple(int(axis) for axis in np.argwhere(~finite)[0])
        raise ModelFileError(f"The weight at {index} is {weights[index]}, which {type_name} cannot hold.")


def _f32(blocks: Floats, threads: int) -> Bytes:
    return blocks.astype("<f4").view(np.uint8)


def _f16(blocks: Floats, threads: int) -> Bytes:
    return half_bytes(blocks)


def _bf16(blocks: Floats, threads: int) -> Bytes:
    """The upper half, rounded to nearest with ties to even; a NaN stays one by setting its highest bit."""
    bits = np.ascontiguousarray(blocks).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    upper = np.where(np.isnan(blocks), (bits >> 16) | 0x40, rounded)
    return upper.astype("<u2").view(np.uint8)


QUANTISERS: dict[str, Callable[[Floats, int], Bytes]] = {
    "F32": _f32,
    "F16": _f16,
    "BF16": _bf16,
    "Q8_0": quantise_q8_0,
    "Q4_0": quantise_q4_0,
    "Q4_1": quantise_q4_1,
    "Q5_0": quantise_q5_0,
    "Q5_1": quantise_q5_1,
    "Q2_K": quantise_q2_k,
    "Q3_K": quantise_q3_k,
    "Q4_K": quantise_q4_k,
    "Q5_K": quantise_q5_k,
    "Q6_K": quantise_q6_k,
    "IQ4_NL": quantise_iq4_nl,
    "IQ4_XS": quantise_iq4_xs,
}
"""By type name: float32[blocks, block_size] and threads to uint8[blocks, block_bytes]."""
