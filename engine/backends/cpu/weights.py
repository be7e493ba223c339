"""Weights of the cpu backend: matrices re-laid for the kernels, vectors as float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import prod

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

NO_MATRICES = ("_norm.weight", "_inp_shexp.weight", ".bias")
"""Ends of names of tensors that are used as they are, whatever their shape."""


@dataclass(slots=True)
class WeightSet:
    """matrices by name (2-D tensors), experts by name (3-D tensors, one matrix for each), vectors by name
    (norms, biases, rope factors), as float32.

    arena: holds the packed matrices.  sources: of the matrices that stay in a file's map.
    """

    matrices: dict[str, Matrix] = field(default_factory=dict)
    experts: dict[str, tuple[Matrix, ...]] = field(default_factory=dict)
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    arena: Arena = field(default_factory=lambda: Arena(0))
    sources: list[FileSource] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        return sum(matrix.nbytes for matrix in self.every_matrix()) + sum(
            vector.nbytes for vector in self.vectors.values()
        )

    @property
    def max_columns(self) -> int:
        """Of the widest matrix, which decides how much scratch a product needs."""
        return max((matrix.cols for matrix in self.every_matrix()), default=1)

    @property
    def mapped(self) -> list[MappedWeight]:
        return [matrix for matrix in self.every_matrix() if isinstance(matrix, MappedWeight)]

    def every_matrix(self) -> Iterator[Matrix]:
        return chain(self.matrices.values(), *self.experts.values())

    def experts_of(self, names: tuple[str, ...]) -> tuple[Matrix, ...]:
        """One matrix for each expert, of the tensor that holds them all or of one for each."""
        if names[0] in self.experts:
            return self.experts[names[0]]
        return tuple(self.matrices[name] for name in names)

    def require_whole(self) -> None:
        """Raises `ModelFileError` where a file was cut short whose map is still needed."""
        for source in self.sources:
            source.require_whole()


def is_matrix(tensor: Tensor) -> bool:
    """Whether it is multiplied with as a matrix.  Others may have two axes too: norms of heads, biases of
    experts, gates of shared experts."""
    return len(tensor.shape) > 1 and not tensor.name.endswith(NO_MATRICES)


def matrices_of(tensor: Tensor) -> list[Tensor]:
    """The matrix that a tensor is, or those of the experts it holds; none of a vector."""
    if not is_matrix(tensor):
        return []
    return [tensor] if len(tensor.shape) == 2 else [tensor.part(index) for index in range(tensor.shape[0])]


def packed_bytes(tensor: Tensor) -> int:
    """Bytes a tensor will take once packed: rows, of each expert, are filled up to whole groups."""
    if not is_matrix(tensor):
        return 4 * tensor.n_elements
    *experts, rows, columns = tensor.shape
    return prod(experts) * packed_nbytes(tensor.type, rows, columns)


def pack_weights(tensors: Mapping[str, Tensor], threads: int, progress: Progress) -> WeightSet:
    """Re-lays every tensor; progress after each may raise `Cancelled`.  Raises `OutOfMemoryError`."""
    weights = WeightSet()
    try:
        weights.arena = Arena(
            sum(aligned(packed_bytes(tensor)) for tensor in tensors.values() if is_matrix(tensor))
        )
        avoid_huge_pages(weights.arena.memory)
        packer = Packer(threads)

        def pack(matrix: Tensor) -> Matrix:
            return packer.pack(matrix, weights.arena.take(packed_bytes(matrix)))

        for name, tensor in _with_progress(tensors, progress):
            _take(weights, name, tensor, pack)
    except MemoryError as error:
        raise OutOfMemoryError("There is no memory left for the weights.") from error
    return weights


def map_weights(tensors: Mapping[str, Tensor], progress: Progress) -> WeightSet:
    """Leaves every matrix where the file holds it; otherwise as `pack_weights`."""
    weights = WeightSet()
    for name, tensor in _with_progress(tensors, progress):
        _take(weights, name, tensor, MappedWeight)
    # Asked before every run: one for each file is enough.
    sources = {tensor.source.file: tensor.source for tensor in tensors.values() if tensor.source is not None}
    weights.sources = list(sources.values())
    return weights


def _take(weights: WeightSet, name: str, tensor: Tensor, make: Callable[[Tensor], Matrix]) -> None:
    """Puts a tensor where it belongs."""
    if not is_matrix(tensor):
        weights.vectors[name] = dequantise(tensor.in_memory())
    elif len(tensor.shape) == 2:
        weights.matrices[name] = make(tensor)
    else:
        weights.experts[name] = tuple(make(matrix) for matrix in matrices_of(tensor))


def _with_progress(tensors: Mapping[str, Tensor], progress: Progress) -> Iterator[tuple[str, Tensor]]:
    """The tensors one by one, telling the share of their bytes that is done."""
    total = sum(tensor.nbytes for tensor in tensors.values()) or 1
    done = 0
    progress(0.0)
    for name, tensor in tensors.items():
        yield name, tensor
        done += tensor.nbytes
        progress(done / total)
