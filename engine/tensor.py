"""A tensor of a model file: shape, byte strides, quantisation type and a view of the map.

Shapes are in NumPy order (slowest axis first), the reverse of the file's.  ``strides`` are bytes from one
element to the next along each axis, and for a quantised type bytes from one *block* to the next along the
last axis.  Views never copy: they share ``data``.

Touching a map of a file that somebody cuts short meanwhile ends the process (SIGBUS).  Whoever reads all of
a tensor, as loading does, takes it `in_memory` or copies it by `read_rows`: a short read is an error like any
other.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.gguf.tensor_types import QuantType


class FileSource(Protocol):
    """Where the data of a tensor lies in a file that is mapped.  file: the same for all tensors in it."""

    @property
    def file(self) -> Hashable: ...

    def read(self, offset: int, out: NDArray[np.uint8]) -> None:
        """Fills out, uint8[bytes], with data from byte offset on, without the map.

        Raises `ModelFileError` for a short read.
        """

    def require_whole(self) -> None:
        """Raises `ModelFileError` where the file is shorter now than when it was mapped."""


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """name; quant type; shape and byte strides; data: uint8[bytes], read-only; offset of element 0.

    source: where data lies in a file; None where it is memory.
    """

    name: str
    type: QuantType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    data: NDArray[np.uint8]
    offset: int = 0
    source: FileSource | None = None

    def in_memory(self) -> Tensor:
        """The same tensor, its bytes in memory, not in a map.  Raises `ModelFileError` for a short read."""
        if self.source is None:
            return self
        data = np.empty(self.data.size, np.uint8)
        self.source.read(0, data)
        return replace(self, data=data, source=None)

    def read_rows(self, start: int, stop: int, out: NDArray[np.uint8]) -> None:
        """Copies rows start to stop (of the first axis), without gaps, to out, uint8[their bytes].

        Of a tensor in a file only these are read.  Raises `ModelFileError` for a short read.
        """
        rows = self.sliced(0, start, stop)
        if out.shape != (rows.nbytes,):
            raise ValueError(f"{self.name}: {rows.nbytes} bytes do not fit {out.shape}")
        if self.source is not None and rows.is_contiguous:
            self.source.read(rows.offset, out)
        else:
            source = rows.in_memory().as_bytes()
            np.copyto(out.reshape(source.shape), source)

    @classmethod
    def contiguous(
        cls, name: str, type: QuantType, shape: tuple[int, ...], data: NDArray[np.uint8]
    ) -> Tensor:
        """A tensor whose rows follow each other without gaps.

        Raises ValueError where a row is no whole number of blocks or data has another size.
        """
        if shape and shape[-1] % type.block_size:
            raise ValueError(f"{name}: rows of {shape[-1]} are no whole blocks of {type.block_size}")
        step = type.block_bytes
        strides = []
        for axis in reversed(range(len(shape))):
            strides.append(step)
            step *= shape[axis] // type.block_size if axis == len(shape) - 1 else shape[axis]
        if data.dtype != np.uint8 or data.ndim != 1 or data.size != step:
            raise ValueError(f"{name}: {data.size} bytes given, {step} needed")
        return cls(name, type, shape, tuple(reversed(strides)), data)

    @property
    def n_elements(self) -> int:
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def nbytes(self) -> int:
        """Bytes of the elements themselves, whatever the strides."""
        return self.n_elements // self.type.block_size * self.type.block_bytes

    @property
    def is_contiguous(self) -> bool:
        step = self.type.block_bytes
        for axis in reversed(range(len(self.shape))):
            if self.shape[axis] > 1 and self.strides[axis] != step:
                return False
            step *= self.shape[axis] // (self.type.block_size if axis == len(self.shape) - 1 else 1)
        return True

    def transposed(self, *axes: int) -> Tensor:
        """The axes in another order.  A quantised type keeps its last axis: blocks lie along it."""
        if sorted(axes) != list(range(len(self.shape))):
            raise ValueError(f"{axes} is no order of {len(self.shape)} axes")
        if self.type.block_size > 1 and axes[-1] != len(self.shape) - 1:
            raise ValueError(f"{self.name}: blocks of {self.type.name} lie along the last axis")
        return replace(
            self,
            shape=tuple(self.shape[axis] for axis in axes),
            strides=tuple(self.strides[axis] for axis in axes),
        )

    def sliced(self, axis: int, start: int, stop: int) -> Tensor:
        """Elements start to stop along an axis; along the last axis of a quantised type, whole blocks."""
        if not 0 <= start <= stop <= self.shape[axis]:
            raise ValueError(f"{start}:{stop} lies outside axis {axis} of {self.shape}")
        block = self.type.block_size if axis in (-1, len(self.shape) - 1) else 1
        if start % block or stop % block:
            raise ValueError(f"{self.name}: {start}:{stop} cuts a block of {block}")
        shape = list(self.shape)
        shape[axis] = stop - start
        offset = self.offset + start // block * self.strides[axis]
        return replace(self, shape=tuple(shape), offset=offset)

    def part(self, index: int) -> Tensor:
        """One element of the first axis: of experts' matrices, that of one expert.  Raises ValueError."""
        if len(self.shape) < 2 or not 0 <= index < self.shape[0]:
            raise ValueError(f"{self.name}: {self.shape} has no part {index}")
        offset = self.offset + index * self.strides[0]
        return replace(self, shape=self.shape[1:], strides=self.strides[1:], offset=offset)

    def as_bytes(self) -> NDArray[np.uint8]:
        """uint8[..., blocks, block_bytes], a strided view without a copy.

        Raises ValueError where shape, strides and offset lead outside data.
        """
        *outer, last = self.shape
        shape = (*outer, last // self.type.block_size, self.type.block_bytes)
        # as_strided checks nothing and would read foreign memory.
        reach = self.offset + sum((n - 1) * s for n, s in zip(shape, (*self.strides, 1), strict=True)) + 1
        if min(self.offset, *self.strides) < 0 or (0 not in shape and reach > self.data.size):
            raise ValueError(f"{self.name}: {self.shape} at {self.offset} leads outside its data")
        return np.lib.stride_tricks.as_strided(
            self.data[self.offset :], shape, (*self.strides, 1), writeable=False
        )
