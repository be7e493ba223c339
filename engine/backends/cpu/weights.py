"""Weights of the cpu backend: matrices re-laid for the kernels, vectors as float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.backends.interface import Progress
from engine.errors import OutOfMemoryError
from engine.kernels.packing import ROWS, PackedWeight, pack_weight
from engine.quantisation.dequantise import dequantise
from engine.tensor import Tensor


@dataclass(slots=True)
class PackedWeights:
    """matrices by name (2-D tensors), vectors by name (1-D tensors: norms, biases, rope factors)."""

    matrices: dict[str, PackedWeight] = field(default_factory=dict)
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum(matrix.data.nbytes for matrix in self.matrices.values()) + sum(
            vector.nbytes for vector in self.vectors.values()
        )


def packed_bytes(tensor: Tensor) -> int:
    """Bytes a tensor will take once packed: rows are filled up to whole groups."""
    if len(tensor.shape) == 1:
        return 4 * tensor.shape[0]
    rows, columns = tensor.shape
    return -(-rows // ROWS) * ROWS * (columns // tensor.type.block_size) * tensor.type.block_bytes


def pack_weights(tensors: Mapping[str, Tensor], threads: int, progress: Progress) -> PackedWeights:
    """Re-lays every tensor; progress after each may raise `Cancelled`.  Raises `OutOfMemoryError`."""
    packed = PackedWeights()
    total = sum(tensor.nbytes for tensor in tensors.values()) or 1
    done = 0
    progress(0.0)
    for name, tensor in tensors.items():
        try:
            if len(tensor.shape) == 1:
                packed.vectors[name] = dequantise(tensor)
            else:
                packed.matrices[name] = pack_weight(tensor, threads)
        except MemoryError as error:
            raise OutOfMemoryError(f"There is no memory left for the tensor {name}.") from error
        done += tensor.nbytes
        progress(done / total)
    return packed


def embedding_rows(matrix: PackedWeight, tokens: NDArray[np.int32]) -> NDArray[np.float32]:
    """float32[n, columns]: rows of a packed matrix, picked out of their groups."""
    groups, lanes = np.divmod(tokens, ROWS)
    rows = np.ascontiguousarray(matrix.data.reshape(matrix.data.shape[0], -1, ROWS)[groups, :, lanes])
    picked = Tensor.contiguous("embedding", matrix.type, (len(tokens), matrix.columns), rows.view(np.uint8).ravel())
    return dequantise(picked)
