"""From Python values to metadata values, and from these to the bytes of a file."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.gguf.metadata import NUMBER_DTYPES, MetadataValue, ValueType


def infer_value(value: object) -> MetadataValue:
    """The file's form of a Python value.

    bool, str and bytes as they are; an int becomes uint32, or where it does not fit int32, uint64 or int64;
    a float becomes float32; an ndarray keeps its dtype; a sequence of strings, bools, ints (int32) or floats
    (float32) becomes an array.  Any other type: give a `MetadataValue`, or use `number`.

    Raises TypeError or ValueError for what no file can hold.
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


def number(type: ValueType, value: int | float | bool) -> MetadataValue:
    """A number of exactly that type.  Raises ValueError where the type cannot hold it."""
    if type not in NUMBER_DTYPES:
        raise ValueError(f"{type.name} is no type of a number")
    dtype = NUMBER_DTYPES[type]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not isinstance(value, int) or not limits.min <= value <= limits.max:
            raise ValueError(f"{value} is no {type.name}")
    return MetadataValue(type, value)


def pack_string(raw: bytes) -> bytes:
    """A string as it stands in the file: its length as uint64, and its bytes."""
    return struct.pack("<Q", len(raw)) + raw


def pack_value(value: MetadataValue) -> bytes:
    """The bytes of a value, without its type."""
    if value.element_type is None:
        if value.type is ValueType.STRING:
            return pack_string(value.value)
        return np.array(value.value, NUMBER_DTYPES[value.type]).tobytes()
    start = struct.pack("<IQ", value.element_type, len(value.value))
    if value.element_type is ValueType.STRING:
        return start + b"".join(pack_string(item) for item in value.value)
    return start + np.asarray(value.value, NUMBER_DTYPES[value.element_type]).tobytes()


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
