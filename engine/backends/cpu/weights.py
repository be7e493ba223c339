"""Weights of the cpu backend: matrices re-laid for the kernels, vectors as float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.backends.interface import Progress
from engine.errors import OutOfMemoryError
from engine.kernels.packing import PackedWeight, pack_weight, packed_nbytes
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


def packed_bytes(tensor: Tensor) -> int:
    """Bytes a tensor will take once packed: rows are filled up to whole groups."""
    if len(tensor.shape) == 1:
        return 4 * tensor.shape[0]
    return packed_nbytes(tensor.type, *tensor.shape)


def pack_weights(tensors: Mapping[str, Tensor], threads: int, progress: Progress) -> PackedWeights:
    """Re-lays every tensor; progress after each may raise `Cancelled`.  Raises `OutOfMemoryError`."""
    packed = PackedWeights()
    total = sum(tensor.nbytes for tensor in tensors.values()) or 1
    done = 0
    progress(0.0)
    # One buffer for all matrices: one for each would leave holes between the packed ones.
    buffer = np.empty(max((t.nbytes for t in tensors.values() if len(t.shape) > 1), default=0), np.uint8)
    for name, tensor in tensors.items():
        try:
            if len(tensor.shape) == 1:
                packed.vectors[name] = dequantise(tensor.in_memory())
            else:
                packed.matrices[name] = pack_weight(tensor.in_memory(buffer), threads)
        except MemoryError as error:
            raise OutOfMemoryError(f"There is no memory left for the tensor {name}.") from error
        done += tensor.nbytes
        progress(done / total)
    return packed
