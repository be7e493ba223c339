"""Writes GGUF files (version 3): for tests and tools.

Tensors are streamed one by one to a temporary file beside the target, which replaces the target only when
everything is written: a failure leaves no half-written model.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from engine.gguf.metadata import NUMBER_DTYPES, Metadata, MetadataValue, ValueType
from engine.gguf.recognise import MAGIC
from engine.tensor import Tensor

DEFAULT_ALIGNMENT = 32


def write_gguf(
    path: str | os.PathLike[str],
    metadata: Metadata | Mapping[str, object],
    tensors: Iterable[Tensor] = (),
    *,
    version: int = 3,
) -> None:
    """Writes a model file, replacing one that is there.

    metadata: values as `infer_value` takes them; ``general.alignment`` is followed.  A `Metadata` is
    written with the types it was read with.
    tensors: any strides; names must differ.  `engine.quantisation.quantise.make_tensor` makes one.

    Raises OSError where the file cannot be written, ValueError or TypeError for what no file can hold.
    """
    items = metadata.values if isinstance(metadata, Metadata) else metadata
    values = {key: infer_value(value) for key, value in items.items()}
    tensors = list(tensors)
    if len({tensor.name for tensor in tensors}) != len(tensors):
        raise ValueError("two tensors of one name")
    alignment = int(values["general.alignment"].value) if "general.alignment" in values else DEFAULT_ALIGNMENT
    target = Path(path)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_header(values, tensors, alignment, version))
            for tensor in tensors:
                _pad(file, alignment)
                _write_data(file, tensor)
            _pad(file, alignment)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def infer_value(value: object) -> MetadataValue:
    """The file's form of a Python value.

    bool, str and bytes as they are; an int becomes uint32, or where it does not fit int32, uint64 or int64;
    a float becomes float32; an ndarray keeps its dtype; a sequence of strings, bools, ints (int32) or floats
    (float32) becomes an array.  Any other type: give a `MetadataValue`.
    """
    if isinstance(value, MetadataValue):
        return value
    if isinstance(value, bool):
        return MetadataValue(ValueType.BOOL, value)
    if isinstance(value, int):
        return MetadataValue(_int_type(value), value)
    if isinstance(value, float):
        return MetadataValue(ValueType.FLOAT32, value)
    if isinstance(value, str | bytes):
        return MetadataValue(ValueType.STRING, _encode(value))
    if isinstance(value, np.ndarray):
        return _infer_array(value)
    if isinstance(value, Sequence):
        if value and isinstance(value[0], str | bytes):
            strings = [_encode(item) for item in value]
            return MetadataValue(ValueType.ARRAY, strings, ValueType.STRING)
        array = np.array(value)
        narrow = {"i": np.int32, "f": np.float32}.get(array.dtype.kind)
        if narrow is np.int32 and not np.array_equal(array, array.astype(np.int32)):
            raise ValueError("an integer that does not fit int32: give an ndarray of the type wanted")
        return _infer_array(array if narrow is None else array.astype(narrow))
    raise TypeError(f"no metadata type for {value!r}")


def _int_type(value: int) -> ValueType:
    for type in (ValueType.UINT32, ValueType.INT32, ValueType.UINT64, ValueType.INT64):
        limits = np.iinfo(NUMBER_DTYPES[type])
        if limits.min <= value <= limits.max:
            return type
    raise ValueError(f"{value} does not fit 64 bits")


def _infer_array(array: np.ndarray[Any, Any]) -> MetadataValue:
    for type, dtype in NUMBER_DTYPES.items():
        if array.ndim == 1 and array.dtype == dtype:
            return MetadataValue(ValueType.ARRAY, array, type)
    raise TypeError(f"no metadata type for an array of {array.dtype}, {array.ndim} dimensions")


def _encode(text: object) -> bytes:
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, bytes):
        return text
    raise TypeError(f"no string: {text!r}")


def _header(
    values: Mapping[str, MetadataValue], tensors: list[Tensor], alignment: int, version: int
) -> bytes:
    parts = [MAGIC, struct.pack("<IQQ", version, len(tensors), len(values))]
    for key, value in values.items():
        parts += [_pack_string(key.encode()), struct.pack("<I", value.type), _pack_value(value)]
    offset = 0
    for tensor in tensors:
        parts.append(_pack_string(tensor.name.encode()))
        lengths = tuple(reversed(tensor.shape))
        parts.append(struct.pack(f"<I{len(lengths)}QIQ", len(lengths), *lengths, tensor.type.number, offset))
        offset += -(-tensor.nbytes // alignment) * alignment
    return b"".join(parts)


def _pack_string(raw: bytes) -> bytes:
    return struct.pack("<Q", len(raw)) + raw


def _pack_value(value: MetadataValue) -> bytes:
    if value.element_type is None:
        if value.type is ValueType.STRING:
            return _pack_string(value.value)
        return np.array(value.value, NUMBER_DTYPES[value.type]).tobytes()
    start = struct.pack("<IQ", value.element_type, len(value.value))
    if value.element_type is ValueType.STRING:
        return start + b"".join(_pack_string(item) for item in value.value)
    return start + bytes(value.value.tobytes())


def _pad(file: BinaryIO, alignment: int) -> None:
    file.write(b"\0" * (-file.tell() % alignment))


def _write_data(file: BinaryIO, tensor: Tensor) -> None:
    if tensor.is_contiguous:
        file.write(tensor.data[tensor.offset : tensor.offset + tensor.nbytes].data)
    else:
        file.write(np.ascontiguousarray(tensor.as_bytes()).data)
