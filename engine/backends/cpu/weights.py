"""Weights of the cpu backend: matrices re-laid for the kernels, vectors as float32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.backends.cpu.arena import Arena, aligned
from engine.backends.cpu.huge_pages import avoid_huge_pages
from engine.backends.interface import Progress
from engine.errors import OutOfMemoryError
from engine.kernels.mapped import MappedWeight
from engine.kernels.packing import PackedWeight, Packer, packed_nbytes
from engine.quantisation.dequantise import dequantise
from engine.tensor import FileSource, Tensor

Matrix = PackedWeight | MappedWeight


@dataclass(slots=True)
class WeightSet:
    """matrices by name (2-D tensors), vectors by name (norms, biases, rope factors), as float32.

    arena: holds the packed matrices.  sources: of the matrices that stay in a file's map.
    """

    matrices: dict[str, Matrix] = field(default_factory=dict)
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    arena: Arena = field(default_factory=lambda: Arena(0))
    sources: list[FileSource] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        return sum(matrix.nbytes for matrix in self.matrices.values()) + sum(
            vector.nbytes for vector in self.vectors.values()
        )

    @property
    def max_columns(self) -> int:
        """Of the widest matrix, which decides how much scratch a product needs."""
        return max((matrix.cols for matrix in self.matrices.values()), default=1)

    @property
    def mapped(self) -> list[MappedWeight]:
        return [matrix for matrix in self.matrices.values() if isinstance(matrix, MappedWeight)]

    def require_whole(self) -> None:
        """Raises `ModelFileError` where a file was cut short whose map is still needed."""
        for source in self.sources:
            source.require_whole()


def is_matrix(tensor: Tensor) -> bool:
    """Whether it is multiplied with.  Norms of heads have two axes too, but are used as they are."""
    return len(tensor.shape) > 1 and not tensor.name.endswith("_norm.weight")


def packed_bytes(tensor: Tensor) -> int:
    """Bytes a tensor will take once packed: rows are filled up to whole groups."""
    return packed_nbytes(tensor.type, *tensor.shape) if is_matrix(tensor) else 4 * tensor.n_elements


def pack_weights(tensors: Mapping[str, Tensor], threads: int, progress: Progress) -> WeightSet:
    """Re-lays every tensor; progress after each may raise `Cancelled`.  Raises `OutOfMemoryError`."""
    weights = WeightSet()
    try:
        weights.arena = Arena(
            sum(aligned(packed_bytes(tensor)) for tensor in tensors.values() if is_matrix(tensor))
        )
        avoid_huge_pages(weights.arena.memory)
        packer = Packer(threads)
        for name, tensor in _with_progress(tensors, progress):
            if is_matrix(tensor):
                weights.matrices[name] = packer.pack(tensor, weights.arena.take(packed_bytes(tensor)))
            else:
                weights.vectors[name] = dequantise(tensor.in_memory())
    except MemoryError as error:
        raise OutOfMemoryError("There is no memory left for the weights.") from error
    return weights


def map_weights(tensors: Mapping[str, Tensor], progress: Progress) -> WeightSet:
    """Leaves every matrix where the file holds it; otherwise as `pack_weights`."""
    weights = WeightSet()
    for name, tensor in _with_progress(tensors, progress):
        if is_matrix(tensor):
            weights.matrices[name] = MappedWeight(tensor)
        else:
            weights.vectors[name] = dequantise(tensor.in_memory())
    # Asked before every run: one for each file is enough.
    sources = {tensor.source.file: tensor.source for tensor in tensors.values() if tensor.source is not None}
    weights.sources = list(sources.values())
    return weights


def _with_progress(tensors: Mapping[str, Tensor], progress: Progress) -> Iterator[tuple[str, Tensor]]:
    """The tensors one by one, telling the share of their bytes that is done."""
    total = sum(tensor.nbytes for tensor in tensors.values()) or 1
    done = 0
    progress(0.0)
    for name, tensor in tensors.items():
        yield name, tensor
        done += tensor.nbytes
        progress(done / total)
