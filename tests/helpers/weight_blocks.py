"""Weights made of bytes, not of quantised numbers: every bit of a block is used, and so are the extremes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.gguf.tensor_types import TENSOR_TYPES
from engine.tensor import Tensor

SCALES_AT: dict[str, list[int]] = {
    "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2],
    "Q6_K": [208],
}  # fmt: skip
"""Bytes at which a block keeps its float16 scale and minimum, as the formats define them."""

_PLAIN = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}

KINDS = ("random", "positive", "zero", "denormal", "extreme")
LARGEST_HALF = 65504.0


def make_weight(type_name: str, rows: int, cols: int, kind: str, seed: int = 0) -> Tensor:
    """random: any bits and scales around 0.01; positive: no scale below 0, so that biases add up; zero: all
    bytes 0; denormal: the smallest float16 as scale; extreme: the largest finite scale, and half of the
    blocks with every other bit set."""
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
        for start in SCALES_AT[type_name]:
            scales = _scales(n_blocks, kind, rng).astype("<f2")
            blocks[:, start : start + 2] = scales.view(np.uint8).reshape(n_blocks, 2)
        raw = blocks.reshape(-1)
    return Tensor.contiguous("w", type, (rows, cols), raw)


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
    values = rng.normal(0, 1, count)
    if kind == "zero":
        values[:] = 0
    elif kind == "denormal":
        # Below the smallest normal float32 nothing is left of a product; float16 has room for its own.
        values *= 1e-7 if type_name == "F16" else 1e-30
    elif kind == "extreme":
        values = np.sign(values) * (LARGEST_HALF if type_name == "F16" else 1e30)
    return values.astype(_PLAIN[type_name])
