"""Experts that a checkpoint holds in MXFP4, as a model file holds them: the numbers stay what they are.

A checkpoint has the 4 bits of 32 numbers in 16 bytes, each byte two neighbours, the earlier one in its low
half, and the scales apart.  A block of a model file is the scale, then 16 bytes, each with a number in its
low half and the one 16 places later in its high half.  Sources: OCP, "Microscaling Formats (MX)
Specification" 1.0; the public gpt-oss checkpoints; the block of ggml.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from engine.conversion.safetensors import SourceTensor
from engine.errors import ModelFileError
from engine.gguf.tensor_types import TENSOR_TYPES
from engine.gguf.writer import StreamedTensor

BLOCK = 32
NIBBLE_BYTES = BLOCK // 2


def mxfp4_tensor(
    name: str, blocks: SourceTensor, scales: SourceTensor, first: int = 0, step: int = 1
) -> StreamedTensor:
    """blocks: uint8[n_experts, rows, columns / 32, 16]; scales: uint8[n_experts, rows, columns / 32].

    first, step: which rows of each expert are taken.  Raises `ModelFileError` for other shapes and types.
    """
    if (blocks.dtype, scales.dtype) != ("U8", "U8") or blocks.shape != (*scales.shape, NIBBLE_BYTES):
        raise ModelFileError(f"{blocks.file.name}: {blocks.name} and its scales do not fit each other.")
    if len(scales.shape) != 3 or 0 in scales.shape:
        raise ModelFileError(f"{scales.file.name}: the tensor {scales.name} has the shape {scales.shape}.")
    n_experts, n_rows, n_blocks = scales.shape
    shape = (n_experts, len(range(first, n_rows, step)), n_blocks * BLOCK)

    def chunks() -> Iterator[NDArray[np.uint8]]:
        for expert in range(n_experts):
            own = blocks.read(expert, expert + 1)[0, first::step]
            own_scales = scales.read(expert, expert + 1)[0, first::step]
            yield np.concatenate([own_scales[..., None], paired_at_distance(own)], axis=-1).reshape(-1)

    return StreamedTensor(name, TENSOR_TYPES["MXFP4"], shape, chunks)


def paired_at_distance(neighbours: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """uint8[..., 16] with numbers 2i and 2i + 1 in byte i -> the same with numbers i and i + 16."""
    numbers = np.stack([neighbours & 15, neighbours >> 4], axis=-1).reshape(*neighbours.shape[:-1], BLOCK)
    low, high = numbers[..., :NIBBLE_BYTES], numbers[..., NIBBLE_BYTES:]
    paired: NDArray[np.uint8] = low | (high << 4)
    return paired
