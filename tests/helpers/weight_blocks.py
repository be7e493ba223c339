"""Weights made of bytes, not of quantised numbers: every bit of a block is used, and so are the extremes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.gguf.tensor_types import TENSOR_TYPES
from engine.quantisation.dequantise import dequantise
from engine.tensor import Tensor

SCALES_AT: dict[str, list[int]] = {
    "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "Q1_0": [0], "Q8_1": [0],
    "TQ1_0": [52], "TQ2_0": [64], "IQ1_S": [0], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0],
    "IQ3_S": [0],
}  # fmt: skip
"""Bytes at which a block keeps its float16 scale and minimum, as the formats define them."""

_PLAIN = {
    "F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8",
    "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
}  # fmt: skip

KINDS = ("random", "positive", "zero", "denormal", "extreme")
LARGEST_HALF = 65504.0


def make_weight(type_name: str, rows: int, cols: int, kind: str, seed: int = 0) -> Tensor:
    """random: any bits and scales around 0.01; positive: no scale below 0, so that biases add up; zero: all
    bytes 0; denormal: the smallest float16 as scale; extreme: the largest finite scale, and half of the
    blocks with every other bit set.  Scales of other kinds are what comes near those."""
    type = TENSOR_TYPES[type_name]
    rng = np.random.default_rng(seed)
    n_blocks = rows * cols // type.block_size
    if type_name in _PLAIN:
        raw = _plain_values(type_name, n_blocks, kind, rng).view(np.uint8)
    else:
        blocks = rng.integers(0, 256, (n_blocks, type.block_bytes), np.uint8)
        if kind == "zero":
            blocks[:] = 0
        elif kind == "extreme":
            blocks[::2] = 0xFF
        for start in SCALES_AT.get(type_name, []):
            scales = _scales(n_blocks, kind, rng).astype("<f2")
            blocks[:, start : start + 2] = scales.view(np.uint8).reshape(n_blocks, 2)
        if type_name in _OTHER_SCALES:
            _OTHER_SCALES[type_name](blocks, _scales(n_blocks, kind, rng))
        raw = blocks.reshape(-1)
    return Tensor.contiguous("w", type, (rows, cols), raw)


def random_matrix(type_name: str, shape: tuple[int, int], deviation: float, seed: int) -> Tensor:
    """Blocks of random bits whose values have about that standard deviation, and hardly any mean.

    Whole numbers cannot be small: they are -1, 0 and 1.
    """
    if type_name in _PLAIN:
        tensor = make_weight(type_name, *shape, "denormal" if type_name.startswith("I") else "random", seed)
        if type_name == "F64":
            tensor.data.view("<f8")[:] *= deviation
        return tensor
    tensor = make_weight(type_name, *shape, "random", seed)
    blocks = tensor.data.reshape(-1, tensor.type.block_bytes)
    _set_scale(type_name, blocks, 1.0)
    _set_scale(type_name, blocks, deviation / float(dequantise(tensor).std()))
    return tensor


def _set_scale(type_name: str, blocks: NDArray[np.uint8], scale: float) -> None:
    # Q2_K: the mean of scale times quant is 1.5 times that of the minimum
    for start, factor in zip(SCALES_AT.get(type_name, []), (1.0, 1.5), strict=False):
        blocks[:, start : start + 2] = np.array([scale * factor], "<f2").view(np.uint8)
    if type_name in _OTHER_SCALES:
        _OTHER_SCALES[type_name](blocks, np.full(len(blocks), scale))


def _scales(count: int, kind: str, rng: np.random.Generator) -> NDArray[np.float64]:
    signs = rng.choice([-1.0, 1.0], count)
    return {
        "random": rng.normal(0, 0.01, count),
        "positive": np.abs(rng.normal(0, 0.01, count)),
        "zero": np.zeros(count),
        "denormal": signs * 6e-8,
        "extreme": signs * LARGEST_HALF,
    }[kind]


def _plain_values(type_name: str, count: int, kind: str, rng: np.random.Generator) -> NDArray[np.generic]:
    if type_name == "BF16":
        # The upper halves of float32 numbers.
        floats = _plain_values("F32", count, kind, rng)
        return (floats.view(np.uint32) >> 16).astype("<u2")
    if type_name.startswith("I"):
        return _whole_numbers(_PLAIN[type_name], count, kind, rng)
    values = rng.normal(0, 1, count)
    if kind == "zero":
        values[:] = 0
    elif kind == "denormal":
        # Below the smallest normal float32 nothing is left of a product; float16 has room for its own.
        values *= 1e-7 if type_name == "F16" else 1e-30
    elif kind == "extreme":
        values = np.sign(values) * (LARGEST_HALF if type_name == "F16" else 1e30)
    return values.astype(_PLAIN[type_name])


def _whole_numbers(dtype: str, count: int, kind: str, rng: np.random.Generator) -> NDArray[np.generic]:
    most = {"random": 100, "positive": 100, "zero": 0, "denormal": 1, "extreme": np.iinfo(dtype).max}[kind]
    least = 0 if kind == "positive" else -most
    return rng.integers(least, most, count, np.int64, endpoint=True).astype(dtype)


def _float32_scale(blocks: NDArray[np.uint8], scales: NDArray[np.float64]) -> None:
    """Q8_K."""
    blocks[:, :4] = scales.astype("<f4").view(np.uint8).reshape(-1, 4)


def _spread_scale(blocks: NDArray[np.uint8], scales: NDArray[np.float64]) -> None:
    """IQ1_M: the nibbles of a float16 are the upper ones of bytes 49, 51, 53, 55, the lowest first."""
    bits = scales.astype("<f2").view("<u2")
    for i in range(4):
        nibbles = (bits >> 4 * i & 15).astype(np.uint8) << np.uint8(4)
        blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | nibbles


def _exponent(blocks: NDArray[np.uint8], scales: NDArray[np.float64]) -> None:
    """MXFP4: 2**(byte - 128), here never below 2**-100, so that products are no denormal numbers."""
    with np.errstate(divide="ignore"):
        blocks[:, 0] = np.log2(np.abs(scales)).clip(-100, 100).round() + 128


def _four_scales(blocks: NDArray[np.uint8], scales: NDArray[np.float64]) -> None:
    """NVFP4: floats of four bits of exponent (bias 7) and three of mantissa, each 16 elements one."""
    with np.errstate(divide="ignore"):
        exponents = np.log2(np.abs(scales)).clip(-7, 8).round().astype(np.uint8) + 7
    blocks[:, :4] = exponents[:, None] << 3 | blocks[:, :4] & 0x86


_OTHER_SCALES = {
    "Q8_K": _float32_scale,
    "IQ1_M": _spread_scale,
    "MXFP4": _exponent,
    "NVFP4": _four_scales,
}
"""Types whose scales are no float16 numbers of their own."""
