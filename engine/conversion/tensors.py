"""One tensor of a model file, made of tensors of a checkpoint, written some megabytes at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.conversion.safetensors import SourceTensor
from engine.errors import ModelFileError
from engine.gguf.tensor_types import TENSOR_TYPES, QuantType
from engine.gguf.writer import StreamedTensor
from engine.quantisation.quantise import quantise

CHUNK_NUMBERS = 1 << 20
"""Numbers converted at once."""

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Another order of a tensor's numbers.

    apply: gives the array in that order, whatever its dtype is; it computes nothing with the numbers.
    shape: of the result, from the shape before.
    """

    apply: Callable[[NDArray[Any]], NDArray[Any]]
    shape: Callable[[Shape], Shape] = lambda shape: shape


FLAT = Arrangement(lambda array: array.reshape(-1), lambda shape: (prod(shape),))
TRANSPOSED = Arrangement(lambda array: array.T, lambda shape: tuple(reversed(shape)))


def rows(start: int, stop: int) -> Arrangement:
    """Only those of the first axis: a part of a matrix that a checkpoint has fused."""
    return Arrangement(lambda array: array[start:stop], lambda shape: (stop - start, *shape[1:]))


def interleaved(n_heads: int) -> Arrangement:
    """Rows of a projection to heads, from halves to pairs.

    Checkpoints turn number i of a head together with number i + size / 2; architectures of GGUF with
    interleaved rotations, such as llama, turn neighbours.
    """

    def apply(array: NDArray[Any]) -> NDArray[Any]:
        split = array.reshape(n_heads, 2, array.shape[0] // n_heads // 2, *array.shape[1:])
        return split.swapaxes(1, 2).reshape(array.shape)

    return Arrangement(apply)


@dataclass(frozen=True, slots=True)
class ConvertedTensor:
    """name in the model file; what it is made of.

    sources: one; or, where it is stacked, any number of one shape along a new first axis (experts).
    arrange: applied to each source; None: as it is.
    plus:    added to every number (norms whose weights a checkpoint stores less 1).
    """

    name: str
    sources: tuple[SourceTensor, ...]
    arrange: Arrangement | None = None
    plus: float = 0.0
    stacked: bool = False

    @property
    def shape(self) -> Shape:
        shape = self.sources[0].shape
        if self.arrange:
            try:
                shape = self.arrange.shape(shape)
            except (ValueError, IndexError) as error:
                raise _misshapen(self.sources[0]) from error
        return (len(self.sources), *shape) if self.stacked else shape

    def stream(self, type: QuantType) -> StreamedTensor:
        """In F32, F16 or BF16.

        Raises `ModelFileError` where sources that are stacked differ in shape, and while it is read where a
        number does not fit the type or a file is damaged.
        """
        if any(source.shape != self.sources[0].shape for source in self.sources):
            raise ModelFileError(f"The parts of {self.name} differ in shape.")
        return StreamedTensor(self.name, type, self.shape, lambda: self._chunks(type))

    def _chunks(self, type: QuantType) -> Iterator[NDArray[np.uint8]]:
        for source in self.sources:
            for numbers in _parts(source, self.arrange):
                yield self._encode(numbers, source, type)

    def _encode(self, numbers: NDArray[Any], source: SourceTensor, type: QuantType) -> NDArray[np.uint8]:
        if source.dtype == type.name and not self.plus:
            return np.ascontiguousarray(numbers).reshape(-1).view(np.uint8)
        wide = widened(numbers, source.dtype)
        if self.plus:
            wide = wide + np.float32(self.plus)
        try:
            return quantise(np.ascontiguousarray(wide).reshape(-1), type.name)
        except ModelFileError as error:
            raise ModelFileError(
                f"{source.file.name}: a number of {source.name} does not fit {type.name}.",
                "Convert with `--type bf16` or `--type f32`.",
            ) from error


def constant(name: str, array: NDArray[np.float32]) -> StreamedTensor:
    """A tensor that the checkpoint only implies."""
    data = np.ascontiguousarray(array, "<f4")
    return StreamedTensor(name, TENSOR_TYPES["F32"], data.shape, lambda: [data])


def widened(numbers: NDArray[Any], dtype: str) -> NDArray[np.float32]:
    """Numbers as `SourceTensor.read` gives them, as float32."""
    if dtype == "BF16":
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(over="ignore"):
        wide: NDArray[np.float32] = numbers.astype(np.float32)
    return wide


def _arranged(source: SourceTensor, arrange: Arrangement) -> NDArray[Any]:
    """The whole tensor in its new order, of the shape that was announced.  Raises `ModelFileError`."""
    try:
        whole = arrange.apply(source.read())
        if whole.shape == arrange.shape(source.shape):
            return whole
    except (ValueError, IndexError):  # an array of another shape than the family's
        pass
    raise _misshapen(source)


def _misshapen(source: SourceTensor) -> ModelFileError:
    return ModelFileError(f"{source.file.name}: the tensor {source.name} has the shape {source.shape}.")


def _parts(source: SourceTensor, arrange: Arrangement | None) -> Iterator[NDArray[Any]]:
    """The numbers in their order, some rows at a time; one that is rearranged is read as a whole."""
    if not source.shape or 0 in source.shape:
        raise _misshapen(source)
    whole = _arranged(source, arrange) if arrange else None
    shape = source.shape if whole is None else whole.shape
    step = max(1, CHUNK_NUMBERS // max(1, prod(shape[1:])))
    for start in range(0, shape[0], step):
        stop = min(start + step, shape[0])
        yield source.read(start, stop) if whole is None else whole[start:stop]
