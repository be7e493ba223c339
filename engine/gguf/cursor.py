"""Reading forward through a mapped file without ever looking past its end or filling the memory.

Lengths and counts come from the file, so each is a Python integer (which cannot wrap) and is compared with
the bytes that are left before anything is read or allocated.  What is copied out of the file is charged to
an allowance, so that a huge file of tiny strings is refused too.
"""

from __future__ import annotations

import struct
from mmap import mmap
from typing import NoReturn

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
STRING_OVERHEAD = 56
"""Bytes that Python takes for a string in a list, beside its content."""
COPIES = 2
"""A long value is in memory twice while it is read: the pages of the map, and what is copied out of them."""
ALLOWANCE = 60 << 20
"""Bytes for all metadata together: a vocabulary of 260,000 tokens with twice as many merges takes 46 MiB."""


class Cursor:
    """A position in the map. ``file_name`` is what messages call the file.

    allowance: bytes of memory that what is copied out may still take.
    """

    def __init__(self, data: mmap | bytes, file_name: str, allowance: int = ALLOWANCE) -> None:
        self.data = data
        self.size = len(data)
        self.file_name = file_name
        self.position = 0
        self.allowance = allowance

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

    def charge(self, count: int, field: str) -> None:
        """Takes count bytes off the allowance.  Raises ModelFileError where it is used up."""
        if count > self.allowance:
            raise ModelFileError(
                f"{self.file_name}: {field} would take {count} bytes of memory; "
                f"all metadata together may take {ALLOWANCE}."
            )
        self.allowance -= count

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
        self.charge(COPIES * count * dtype.itemsize, field)
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
        self.charge(COPIES * length, field)
        start = self.position
        self.position = start + length
        return self.data[start : self.position]

    def strings(self, count: int, field: str) -> list[bytes]:
        """Count strings.  Written out flat, since vocabularies have hundreds of thousands."""
        self.require(count * LEAST_STRING_BYTES, field)
        self.charge(count * STRING_OVERHEAD, field)
        first = self.position
        data, position, size = self.data, first, self.size
        # Content may be as long as the allowance: beyond, the loop ends early.
        end = min(size, first + count * LEAST_STRING_BYTES + self.allowance)
        read_length = _UINT64.unpack_from
        items: list[bytes] = []
        for index in range(count):
            start = position + LEAST_STRING_BYTES
            if start > size:
                raise ModelFileError(f"{self.file_name}: the file ends inside {field}[{index}].")
            position = start + read_length(data, position)[0]
            if position > end:
                self._explain_string(f"{field}[{index}]", start, position)
            items.append(data[start:position])
        self.position = position
        self.charge(position - first - count * LEAST_STRING_BYTES, field)
        return items

    def _explain_string(self, field: str, start: int, stop: int) -> NoReturn:
        if stop > self.size:
            raise ModelFileError(
                f"{self.file_name}: {field} is {stop - start} bytes long, "
                f"but only {self.size - start} are left."
            )
        raise ModelFileError(
            f"{self.file_name}: the strings up to {field} take more than the {ALLOWANCE} bytes of memory "
            "that all metadata together may take."
        )
