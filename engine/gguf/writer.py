"""Writes GGUF files: `write_gguf` a model in one file, `write_gguf_parts` a model in parts.

Data is streamed: of a tensor that lies in a file, or that is made when its turn comes (`StreamedTensor`),
only some megabytes are in memory at once.  Everything goes to temporary files beside the targets, which
replace them only when all is written: a failure leaves no half-written model and what was there before.

The layout is the common one, so that a copy of a file equals it to the byte: keys and tensors in their order,
each tensor's data padded to the alignment, no padding where there are no tensors (as PyPI `gguf` does it).
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelWriteError
from engine.gguf.layout import (
    MAX_DIMENSIONS,
    MAX_KEY_BYTES,
    MAX_NAME_BYTES,
    PART_COUNT_KEY,
    PART_KEY,
    SPLIT_KEYS,
    TENSOR_COUNT_KEY,
    aligned,
    alignment_of,
    is_name,
)
from engine.gguf.metadata import Metadata, MetadataValue, ValueType
from engine.gguf.parts import part_path
from engine.gguf.recognise import MAGIC
from engine.gguf.tensor_types import QuantType
from engine.gguf.values import infer_value, number, pack_string, pack_value
from engine.tensor import Tensor

CHUNK_BYTES = 4 << 20
"""Of a tensor that is copied, about so much is in memory at once."""

Chunk = bytes | memoryview | NDArray[Any]
Progress = Callable[[float], None]
Values = Mapping[str, MetadataValue]


@dataclass(frozen=True, slots=True)
class StreamedTensor:
    """A tensor whose data is made when it is written.

    shape: in NumPy order (slowest axis first), 1 to 4 axes; rows are whole blocks of the type.
    chunks: called once, when it is this tensor's turn; gives the data in order, in pieces of any size,
    together ``nbytes`` bytes.  Arrays of any dtype count with the bytes they have in memory.
    """

    name: str
    type: QuantType
    shape: tuple[int, ...]
    chunks: Callable[[], Iterable[Chunk]]

    @property
    def nbytes(self) -> int:
        count = 1
        for length in self.shape:
            count *= length
        return count // self.type.block_size * self.type.block_bytes


def write_gguf(
    path: str | os.PathLike[str],
    metadata: Metadata | Mapping[str, object],
    tensors: Iterable[Tensor | StreamedTensor] = (),
    *,
    version: int = 3,
    on_progress: Progress = lambda share: None,
) -> None:
    """Writes a model file, replacing one that is there.

    metadata: values as `infer_value` takes them; ``general.alignment`` is followed.  A `Metadata` is written
    with the types it was read with.
    tensors: of any strides, in the order wanted; names must differ.
    on_progress: called with the share of the data written, 0 to 1; what it raises ends the writing.

    Raises `ModelWriteError` where the file cannot be written, ValueError or TypeError for what no file can
    hold, and what reading or making a tensor's data raises.
    """
    values = _values_of(metadata)
    streamed = _streamed(tensors)
    _write_files([_File(Path(path), values, streamed)], version, on_progress)


def write_gguf_parts(
    path: str | os.PathLike[str],
    metadata: Metadata | Mapping[str, object],
    tensors: Iterable[Tensor | StreamedTensor],
    max_bytes: int,
    *,
    version: int = 3,
    on_progress: Progress = lambda share: None,
) -> list[Path]:
    """Writes a model in parts ``name-00001-of-0000N.gguf`` beside path, and returns their paths.

    max_bytes: of data in a part; a larger tensor has a part of its own.  What fits one file is written to
    path.  All metadata stands in the first part; the others hold their number only.  For the rest see
    `write_gguf`.
    """
    values = {key: value for key, value in _values_of(metadata).items() if key not in SPLIT_KEYS}
    streamed = _streamed(tensors)
    groups = _groups(streamed, max_bytes, alignment_of(Metadata(values, Path(path).name)))
    if len(groups) < 2:
        files = [_File(Path(path), values, streamed)]
    else:
        # The alignment is each file's own matter; everything else is said once.
        shared = {key: value for key, value in values.items() if key == "general.alignment"}
        files = [
            _File(
                part_path(Path(path), index, len(groups)),
                (values if index == 0 else shared) | _split_values(index, len(groups), len(streamed)),
                group,
            )
            for index, group in enumerate(groups)
        ]
    _write_files(files, version, on_progress)
    return [file.path for file in files]


def gguf_bytes(
    metadata: Metadata | Mapping[str, object], tensors: Iterable[Tensor | StreamedTensor] = ()
) -> int:
    """The size of the file that `write_gguf` writes, without making any data.

    Raises ValueError or TypeError for what no file can hold.
    """
    values, streamed = _values_of(metadata), _streamed(tensors)
    alignment = alignment_of(Metadata(values, "the file"))
    size = len(_header(values, streamed, alignment, version=3))
    if streamed:
        size = aligned(size, alignment)
    return size + sum(aligned(tensor.nbytes, alignment) for tensor in streamed)


@dataclass(frozen=True, slots=True)
class _File:
    """One file to write."""

    path: Path
    values: Values
    tensors: Sequence[StreamedTensor]


def _values_of(metadata: Metadata | Mapping[str, object]) -> dict[str, MetadataValue]:
    items = metadata.values if isinstance(metadata, Metadata) else metadata
    for key in items:
        if not is_name(key) or len(key.encode()) > MAX_KEY_BYTES:
            raise ValueError(f"no key of a file: {key[:80]!r}")
    return {key: infer_value(value) for key, value in items.items()}


def _streamed(tensors: Iterable[Tensor | StreamedTensor]) -> list[StreamedTensor]:
    """The tensors as data to come.  Raises ValueError for what the reader would refuse."""
    streamed = [tensor if isinstance(tensor, StreamedTensor) else _from_tensor(tensor) for tensor in tensors]
    if len({tensor.name for tensor in streamed}) != len(streamed):
        raise ValueError("two tensors of one name")
    for tensor in streamed:
        if not is_name(tensor.name) or len(tensor.name.encode()) > MAX_NAME_BYTES:
            raise ValueError(f"no name of a tensor: {tensor.name[:80]!r}")
        if not 1 <= len(tensor.shape) <= MAX_DIMENSIONS or min(tensor.shape) < 1:
            raise ValueError(f"no shape of a tensor: {tensor.shape} of {tensor.name}")
        if tensor.shape[-1] % tensor.type.block_size:
            raise ValueError(
                f"rows of {tensor.shape[-1]} of {tensor.name} are no blocks of {tensor.type.name}"
            )
    return streamed


def _from_tensor(tensor: Tensor) -> StreamedTensor:
    return StreamedTensor(tensor.name, tensor.type, tensor.shape, lambda: _rows(tensor))


def _rows(tensor: Tensor) -> Iterator[NDArray[np.uint8]]:
    """The tensor's bytes, some rows of the first axis at a time."""
    n_rows = tensor.shape[0]
    whole = tensor.type.block_size if len(tensor.shape) == 1 else 1
    step = aligned(max(1, CHUNK_BYTES * n_rows // tensor.nbytes), whole)
    for start in range(0, n_rows, step):
        stop = min(start + step, n_rows)
        rows = np.empty(tensor.sliced(0, start, stop).nbytes, np.uint8)
        tensor.read_rows(start, stop, rows)
        yield rows


def _groups(tensors: list[StreamedTensor], max_bytes: int, alignment: int) -> list[list[StreamedTensor]]:
    groups: list[list[StreamedTensor]] = []
    room = 0
    for tensor in tensors:
        size = aligned(tensor.nbytes, alignment)
        if not groups or size > room:
            groups.append([])
            room = max_bytes
        groups[-1].append(tensor)
        room -= size
    return groups


def _split_values(index: int, n_parts: int, n_tensors: int) -> dict[str, MetadataValue]:
    """The types are those that llama.cpp's own tool writes."""
    return {
        PART_KEY: number(ValueType.UINT16, index),
        PART_COUNT_KEY: number(ValueType.UINT16, n_parts),
        TENSOR_COUNT_KEY: number(ValueType.INT32, n_tensors),
    }


def _write_files(files: Sequence[_File], version: int, on_progress: Progress) -> None:
    """Writes them all under temporary names, then gives each its own; on failure none."""
    total = sum(tensor.nbytes for file in files for tensor in file.tensors) or 1
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        on_progress(done / total)

    temporaries: list[str] = []
    replaced: list[Path] = []
    try:
        for file in files:
            descriptor, temporary = tempfile.mkstemp(
                prefix=f".{file.path.name[:60]}.", suffix=".part", dir=file.path.parent
            )
            temporaries.append(temporary)
            with os.fdopen(descriptor, "wb") as target:
                _write_file(target, file, version, advance)
            os.chmod(temporary, 0o644)
        for file, temporary in zip(files, temporaries, strict=True):
            os.replace(temporary, file.path)
            replaced.append(file.path)
    except BaseException as error:
        for left in (*map(Path, temporaries), *replaced):
            with contextlib.suppress(OSError):
                left.unlink()
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise ModelWriteError(f"{files[0].path.name} could not be written: {reason}.") from error
        raise


def _write_file(target: BinaryIO, file: _File, version: int, advance: Callable[[int], None]) -> None:
    alignment = alignment_of(Metadata(file.values, file.path.name))
    target.write(_header(file.values, file.tensors, alignment, version))
    for tensor in file.tensors:
        _pad(target, alignment)
        count = 0
        for chunk in tensor.chunks():
            raw = np.ascontiguousarray(chunk).data if isinstance(chunk, np.ndarray) else memoryview(chunk)
            target.write(raw)
            count += raw.nbytes
            advance(raw.nbytes)
        if count != tensor.nbytes:
            raise ValueError(f"{tensor.name}: {count} bytes were given, {tensor.nbytes} are needed")
    if file.tensors:
        _pad(target, alignment)
    target.flush()
    os.fsync(target.fileno())


def _header(values: Values, tensors: Sequence[StreamedTensor], alignment: int, version: int) -> bytes:
    parts = [MAGIC, struct.pack("<IQQ", version, len(tensors), len(values))]
    for key, value in values.items():
        parts += [pack_string(key.encode()), struct.pack("<I", value.type), pack_value(value)]
    offset = 0
    for tensor in tensors:
        parts.append(pack_string(tensor.name.encode()))
        lengths = tuple(reversed(tensor.shape))
        parts.append(struct.pack(f"<I{len(lengths)}QIQ", len(lengths), *lengths, tensor.type.number, offset))
        offset += aligned(tensor.nbytes, alignment)
    return b"".join(parts)


def _pad(target: BinaryIO, alignment: int) -> None:
    target.write(b"\0" * (-target.tell() % alignment))
