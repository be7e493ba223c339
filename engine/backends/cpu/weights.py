"""Weights of the cpu backend: matrices re-laid for the kernels, vectors as float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.backends.cpu.arena import Arena, aligned
from engine.backends.interface import Progress
from engine.errors import OutOfMemoryError
from engine.kernels.packing import PackedWeight, Packer, packed_nbytes
from engine.quantisation.dequantise import dequantise
from engine.tensor import Tensor


@dataclass(slots=True)
class PackedWeights:
    """matrices by name (2-D tensors), vectors by name (1-D tensors: norms, biases, rope factors)."""

    matrices: dict[str, PackedWeight] = field(default_factory=dict)
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum(matrix.nbytes for matrix in self.matrices.values()) + sum(
            vector.nbytes for vector in self.vectors.values()
        )

    @property
    def max_columns(self) -> int:
        """Of the widest matrix, which decides how much scratch a product needs."""
        return max((matrix.cols for matrix in self.matrices.values()), default=1)


def _is_matrix(tensor: Tensor) -> bool:
    return len(tensor.shape) > 1


def packed_bytes(tensor: Tensor) -> int:
    """Bytes a tensor will take once packed: rows are filled up to whole groups."""
    return packed_nbytes(tensor.type, *tensor.shape) if _is_matrix(tensor) else 4 * tensor.shape[0]


def pack_weights(tensors: Mapping[str, Tensor], threads: int, progress: Progress) -> PackedWeights:
    """Re-lays every tensor; progress after each may raise `Cancelled`.  Raises `OutOfMemoryError`."""
    packed = PackedWeights()
    total = sum(tensor.nbytes for tensor in tensors.values()) or 1
    done = 0
    progress(0.0)
    try:
        arena = Arena(sum(aligned(packed_bytes(tensor)) for tensor in tensors.values() if _is_matrix(tensor)))
        packer = Packer(threads)
        for name, tensor in tensors.items():
            if _is_matrix(tensor):
                packed.matrices[name] = packer.pack(tensor, arena.take(packed_bytes(tensor)))
            else:
                packed.vectors[name] = dequantise(tensor.in_memory())
            done += tensor.nbytes
            progress(done / total)
    except MemoryError as error:
        raise OutOfMemoryError("There is no memory left for the weights.") from error
    return packed
