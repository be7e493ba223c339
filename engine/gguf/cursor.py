"""Reading forward through a mapped file without ever looking past its end.

Lengths and counts come from the file, so each is a Python integer (which cannot wrap) and is compared with
the bytes that are left before anything is read or allocated.
"""

from __future__ import annotations

import struct
from mmap import mmap

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.gguf.metadata import NUMBER_DTYPES, ValueType

_UINT32 = struct.Struct("<I")
_UINT64 = struct.Struct("<Q")
_FORMATS = {
    ValueType.UINT8: "<B", ValueType.INT8: "<b", ValueType.UINT16: "<H", ValueType.INT16: "<h",
    ValueType.UINT32: "<I", ValueType.INT32: "<i", ValueType.FLOAT32: "<f", ValueType.BOOL: "<?",
    ValueType.UINT64: "<Q", ValueType.INT64: "<q", ValueType.FLOAT64: "<d",
}  # fmt: skip
_NUMBERS = {type: struct.Struct(format) for type, format in _FORMATS.items()}

LEAST_STRING_BYTES = 8
"""An empty string is its length alone."""


class Cursor:
    """A position in the map. ``file_name`` is what messages call the file."""

    def __init__(self, data: mmap | bytes, file_name: str) -> None:
        self.data = data
        self.size = len(data)
        self.file_name = file_name
        self.position = 0

    @property
    def left(self) -> int:
        """Bytes from here to the end of the file."""
        return self.size - self.position

    def require(self, count: int, field: str) -> None:
        """Raises ModelFileError where fewer than count bytes are left for the field."""
        if count > self.left:
            raise ModelFileError(
                f"{self.file_name}: {field} needs {count} bytes at byte {self.position}, "
                f"but only {self.left} are left."
            )

    def uint32(self, field: str) -> int:
        self.require(4, field)
        (value,) = _UINT32.unpack_from(self.data, self.position)
        self.position += 4
        return int(value)

    def uint64(self, field: str) -> int:
        self.require(8, field)
        (value,) = _UINT64.unpack_from(self.data, self.position)
        self.position += 8
        return int(value)

    def number(self, type: ValueType, field: str) -> int | float | bool:
        """One number of the type; a truth value must be 0 or 1."""
        layout = _NUMBERS[type]
        self.require(layout.size, field)
        if type is ValueType.BOOL and self.data[self.position] > 1:
            raise ModelFileError(
                f"{self.file_name}: {field} is {self.data[self.position]}, neither true (1) nor false (0)."
            )
        value: int | float | bool = layout.unpack_from(self.data, self.position)[0]
        self.position += layout.size
        return value

    def numbers(self, type: ValueType, count: int, field: str) -> NDArray[np.generic]:
        """An array of numbers: a copy, dtype as in the file, so that it outlives the map."""
        dtype = NUMBER_DTYPES[type]
        self.require(count * dtype.itemsize, field)
        raw = self.data[self.position : self.position + count * dtype.itemsize]
        if type is ValueType.BOOL and raw.strip(b"\0\1"):
            raise ModelFileError(f"{self.file_name}: {field} holds a byte that is neither 0 nor 1.")
        self.position += len(raw)
        return np.frombuffer(raw, dtype)

    def string(self, field: str, limit: int | None = None) -> bytes:
        """A length and that many bytes; at most limit of them where given."""
        length = self.uint64(f"the length of {field}")
        if limit is not None and length > limit:
            raise ModelFileError(
                f"{self.file_name}: {field} is {length} bytes long; at most {limit} are possible."
            )
        self.require(length, field)
        start = self.position
        self.position = start + length
        return self.data[start : self.position]

    def strings(self, count: int, field: str) -> list[bytes]:
        """Count strings.  Written out flat, since vocabularies have hundreds of thousands."""
        self.require(count * LEAST_STRING_BYTES, field)
        data, position, size = self.data, self.position, self.size
        read_length = _UINT64.unpack_from
        items: list[bytes] = []
        for index in range(count):
            start = position + LEAST_STRING_BYTES
            if start > size:
                raise ModelFileError(f"{self.file_name}: the file ends inside {field}[{index}].")
            position = start + read_length(data, position)[0]
            if position > size:
                raise ModelFileError(
                    f"{self.file_name}: {field}[{index}] is {position - start} bytes long, "
                    f"but only {size - start} are left."
                )
            items.append(data[start:position])
        self.position = position
        return items
