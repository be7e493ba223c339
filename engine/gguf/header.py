"""The header of one GGUF file: metadata and tensor table, read and checked.

The file is hostile until checked: every count, length and offset is compared with the size of the file, in
Python integers, before it is used, so that a damaged file costs neither time nor memory.  Tensor data is
never read here; tensors are views of the map (see `engine.gguf.mapped_file` for what that may cost).

Layout, from the public GGUF specification (version 2 and 3, little-endian):
    "GGUF", uint32 version, uint64 number of tensors, uint64 number of keys,
    each key: string, uint32 type, value; each tensor: string, uint32 number of dimensions, uint64 each of
    them (fastest first), uint32 type, uint64 offset; then the data, aligned.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.cursor import ALLOWANCE, Cursor
from engine.gguf.layout import (
    MAX_DIMENSIONS,
    MAX_KEY_BYTES,
    MAX_KEYS,
    MAX_NAME_BYTES,
    MAX_TENSORS,
    aligned,
    alignment_of,
    is_name,
)
from engine.gguf.mapped_file import MappedFile, Span
from engine.gguf.metadata import Metadata, MetadataValue, ValueType
from engine.gguf.recognise import check_magic, check_version
from engine.gguf.tensor_types import TYPES_BY_NUMBER
from engine.tensor import Tensor

LEAST_KEY_BYTES = 13
"""A key of no bytes, its type and a value of one byte."""
LEAST_TENSOR_BYTES = 24
"""A name of no bytes, no dimensions, type and offset."""


class OneFile:
    """One mapped file with its metadata; `read_tensors` comes later, so that parts are told apart before it.

    path, size (bytes), version, alignment (bytes), metadata; allowance: bytes of memory left for the metadata
    of further files.
    """

    def __init__(self, path: Path, allowance: int = ALLOWANCE) -> None:
        """Raises ModelFileError, or UnsupportedModelError for a newer version."""
        self.path = path
        self._mapped = MappedFile.open(path)
        self.size = self._mapped.size
        try:
            self._cursor = Cursor(self._mapped.map, path.name, allowance)
            self._read_start()
        except BaseException:
            self.close()
            raise

    @property
    def allowance(self) -> int:
        return self._cursor.allowance

    def close(self) -> None:
        """Lets go of file and map.  The data of tensors taken before stays readable: their map lives on."""
        self._mapped.close()

    def require_whole(self) -> None:
        """Raises ModelFileError where the file has become shorter since it was opened."""
        self._mapped.require_whole()

    def read_tensors(self) -> dict[str, Tensor]:
        """The tensors in the order of the file.  Called once.

        Raises ModelFileError, or UnsupportedModelError for an unknown tensor type.
        """
        return _read_tensors(self._cursor, self._n_tensors, self.alignment, self._mapped)

    def _read_start(self) -> None:
        name, cursor = self.path.name, self._cursor
        check_magic(self._mapped.map[:512], name)
        cursor.position = 4
        self.version = cursor.uint32("the version")
        check_version(self.version, name)
        self._n_tensors = cursor.uint64("the number of tensors")
        n_keys = cursor.uint64("the number of metadata keys")
        _check_count(cursor, n_keys, "metadata keys", LEAST_KEY_BYTES, MAX_KEYS)
        _check_count(cursor, self._n_tensors, "tensors", LEAST_TENSOR_BYTES, MAX_TENSORS)
        self.metadata = _read_metadata(cursor, n_keys)
        self.alignment = alignment_of(self.metadata)


def _check_count(cursor: Cursor, count: int, what: str, least_bytes: int, limit: int) -> None:
    if count * least_bytes > cursor.left or count > limit:
        raise ModelFileError(
            f"{cursor.file_name}: the header counts {count} {what}, but {cursor.left} bytes are left for "
            f"them, and more than {limit} are not possible."
        )


def _read_metadata(cursor: Cursor, n_keys: int) -> Metadata:
    values: dict[str, MetadataValue] = {}
    for index in range(n_keys):
        key = _read_name(cursor, f"metadata key {index}", MAX_KEY_BYTES)
        if key in values:
            raise ModelFileError(f"{cursor.file_name}: the metadata key {key} stands twice.")
        values[key] = _read_value(cursor, key)
    return Metadata(values, cursor.file_name)


def _read_name(cursor: Cursor, field: str, limit: int) -> str:
    raw = cursor.string(field, limit)
    try:
        name = raw.decode()
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{cursor.file_name}: {field} is no UTF-8 text: {raw[:64]!r}.") from error
    if not is_name(name):
        raise ModelFileError(f"{cursor.file_name}: {field} is empty or unprintable: {raw[:64]!r}.")
    return name


def _read_type(cursor: Cursor, field: str) -> ValueType:
    number = cursor.uint32(f"the type of {field}")
    try:
        return ValueType(number)
    except ValueError:
        raise ModelFileError(f"{cursor.file_name}: {field} is of the unknown type {number}.") from None


def _read_value(cursor: Cursor, key: str) -> MetadataValue:
    type = _read_type(cursor, key)
    if type is ValueType.STRING:
        return MetadataValue(type, cursor.string(key))
    if type is not ValueType.ARRAY:
        return MetadataValue(type, cursor.number(type, key))
    element_type = _read_type(cursor, f"the elements of {key}")
    count = cursor.uint64(f"the length of {key}")
    if element_type is ValueType.ARRAY:
        raise ModelFileError(f"{cursor.file_name}: {key} is an array of arrays, which no model needs.")
    if element_type is ValueType.STRING:
        return MetadataValue(type, cursor.strings(count, key), element_type)
    return MetadataValue(type, cursor.numbers(element_type, count, key), element_type)


def _read_tensors(cursor: Cursor, n_tensors: int, alignment: int, mapped: MappedFile) -> dict[str, Tensor]:
    entries = [_read_tensor_entry(cursor, index) for index in range(n_tensors)]
    data_start = aligned(cursor.position, alignment)
    everything = np.frombuffer(cursor.data, np.uint8)
    tensors: dict[str, Tensor] = {}
    spans: list[tuple[int, int, str]] = []
    for name, shape, type_number, offset in entries:
        if name in tensors:
            raise ModelFileError(f"{cursor.file_name}: the tensor {name} stands twice.")
        type = TYPES_BY_NUMBER[type_number]
        n_bytes = type.block_bytes
        for length in shape[:-1]:
            n_bytes *= length
        n_bytes *= shape[-1] // type.block_size
        if offset % alignment:
            raise ModelFileError(
                f"{cursor.file_name}: the offset {offset} of tensor {name} is no multiple of {alignment}."
            )
        start = data_start + offset
        if start + n_bytes > cursor.size:
            raise ModelFileError(
                f"{cursor.file_name} is cut short or damaged: data of tensor {name} ends at "
                f"{start + n_bytes}, file has {cursor.size}."
            )
        spans.append((start, start + n_bytes, name))
        tensor = Tensor.contiguous(name, type, shape, everything[start : start + n_bytes])
        tensors[name] = replace(tensor, source=Span(mapped, start))
    spans.sort()
    for (_, end, name), (start, _, next_name) in itertools.pairwise(spans):
        if start < end:
            raise ModelFileError(f"{cursor.file_name}: the tensors {name} and {next_name} overlap.")
    return tensors


def _read_tensor_entry(cursor: Cursor, index: int) -> tuple[str, tuple[int, ...], int, int]:
    """Name, shape in NumPy order, type number, offset from the start of the data."""
    name = _read_name(cursor, f"the name of tensor {index}", MAX_NAME_BYTES)
    n_dimensions = cursor.uint32(f"the number of dimensions of tensor {name}")
    if not 1 <= n_dimensions <= MAX_DIMENSIONS:
        raise ModelFileError(
            f"{cursor.file_name}: tensor {name} has {n_dimensions} dimensions; "
            f"1 to {MAX_DIMENSIONS} are possible."
        )
    lengths = [cursor.uint64(f"dimension {axis} of tensor {name}") for axis in range(n_dimensions)]
    type_number = cursor.uint32(f"the type of tensor {name}")
    offset = cursor.uint64(f"the offset of tensor {name}")
    for axis, length in enumerate(lengths):
        if not 0 < length < 2**63:
            raise ModelFileError(f"{cursor.file_name}: dimension {axis} of tensor {name} is {length}.")
    if type_number not in TYPES_BY_NUMBER:
        raise UnsupportedModelError(
            f"{cursor.file_name}: tensor {name} is of type {type_number}, which this engine does not know."
        )
    block_size = TYPES_BY_NUMBER[type_number].block_size
    if lengths[0] % block_size:
        raise ModelFileError(
            f"{cursor.file_name}: rows of {lengths[0]} of tensor {name} are no whole blocks of {block_size} "
            f"({TYPES_BY_NUMBER[type_number].name})."
        )
    return name, tuple(reversed(lengths)), type_number, offset
