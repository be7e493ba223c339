"""One tensor in another type, made some megabytes at a time while it is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.gguf.tensor_types import QuantType
from engine.gguf.writer import StreamedTensor
from engine.quantisation.choosing_types import NUMBER_TYPES, ChosenType
from engine.quantisation.damage import damaged_scale, has_damaged_scale
from engine.quantisation.quantise import quantise
from engine.quantisation.registry import FORMATS
from engine.quantisation.unpacking import Bytes, Floats
from engine.tensor import Tensor

CHUNK_NUMBERS = 1 << 20
"""Weights that are in memory at once, if a row has no more."""


def quantised_stream(choice: ChosenType, threads: int) -> StreamedTensor:
    """The tensor as the writer takes it; a copy to the byte where its type stays.

    While it is read it raises `ModelFileError` naming the tensor, and the index where there is one: for
    weights that are NaN or infinite, for damaged scales, for weights that the new type cannot hold.
    """
    tensor = choice.tensor
    return StreamedTensor(
        tensor.name, choice.type, tensor.shape, lambda: _chunks(tensor, choice.type, threads)
    )


def _chunks(tensor: Tensor, type: QuantType, threads: int) -> Iterator[Bytes]:
    rows = _as_rows(tensor)
    step = max(1, CHUNK_NUMBERS // rows.shape[1])
    for start in range(0, rows.shape[0], step):
        stop = min(start + step, rows.shape[0])
        raw = np.empty(rows.sliced(0, start, stop).nbytes, np.uint8)
        rows.read_rows(start, stop, raw)
        blocks = raw.reshape(-1, tensor.type.block_bytes)
        first = start * rows.shape[1]
        if type == tensor.type:
            _require_sound(tensor, blocks, first)
            yield raw
        else:
            weights = _decoded(tensor, blocks, first)
            yield _quantised(tensor, weights.reshape(stop - start, -1), type, threads, first)


def _as_rows(tensor: Tensor) -> Tensor:
    """The same as a matrix: of experts, one would be too much for memory already."""
    row = tensor.shape[-1]
    row_bytes = row // tensor.type.block_size * tensor.type.block_bytes
    if not tensor.is_contiguous:
        raise ValueError(f"{tensor.name}: rows are not one behind the other")
    return replace(tensor, shape=(prod(tensor.shape[:-1]), row), strides=(row_bytes, tensor.type.block_bytes))


def _require_sound(tensor: Tensor, blocks: Bytes, first: int) -> None:
    """Looks at what is copied, too: a model with a weight that is no number writes nonsense."""
    if tensor.type.name in NUMBER_TYPES:
        _decoded(tensor, blocks, first)
    elif has_damaged_scale(tensor.type.name, blocks):
        raise damaged_scale(tensor.name)


def _decoded(tensor: Tensor, blocks: Bytes, first: int) -> Floats:
    """float32[weights] of some blocks, all finite.  first: how many weights stand before them."""
    with np.errstate(all="ignore"):  # damaged scales are infinite or no numbers, and so are their products
        weights = FORMATS[tensor.type.name].decode(blocks).reshape(-1)
    finite = np.isfinite(weights)
    if not finite.all():
        at = int(finite.argmin())
        raise ModelFileError(f"{_place(tensor, first + at)} is {weights[at]}, which is no weight.")
    return weights


def _quantised(tensor: Tensor, weights: Floats, type: QuantType, threads: int, first: int) -> Bytes:
    try:
        quantised = quantise(weights, type.name, threads)
    except ModelFileError as error:
        raise _too_large(tensor, weights, type, first) from error
    if type.block_size == 1 and not _all_finite(
        FORMATS[type.name].decode(quantised.reshape(-1, type.block_bytes))
    ):
        raise _too_large(tensor, weights, type, first)
    return quantised


def _all_finite(numbers: NDArray[np.float32]) -> bool:
    return bool(np.isfinite(numbers).all())


def _too_large(tensor: Tensor, weights: Floats, type: QuantType, first: int) -> ModelFileError:
    at = int(np.abs(weights).argmax())
    return ModelFileError(
        f"{_place(tensor, first + at)} is {weights.flat[at]:g}, too large for {type.name}.",
        "Choose F32, or BF16 which holds all but the very largest numbers.",
    )


def _place(tensor: Tensor, index: int) -> str:
    """Which weight it is, in the order of the tensor's axes, slowest first."""
    place = ", ".join(str(int(axis)) for axis in np.unravel_index(index, tensor.shape))
    return f"The weight ({place}) of {tensor.name}"
