"""GGUF bytes put together by hand, right or wrong, for what the writer refuses to write."""

from __future__ import annotations

import struct
from collections.abc import Sequence

UINT8, INT8, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 0, 1, 4, 5, 6, 7, 8, 9, 10
F32, Q8_0, I8 = 0, 8, 24


def uint32(value: int) -> bytes:
    return struct.pack("<I", value)


def uint64(value: int) -> bytes:
    return struct.pack("<Q", value)


def string(text: bytes, length: int | None = None) -> bytes:
    """A length, which may be a lie, and the bytes."""
    return uint64(len(text) if length is None else length) + text


def entry(key: bytes, type: int, value: bytes) -> bytes:
    return string(key) + uint32(type) + value


def array(element_type: int, count: int, items: bytes = b"") -> bytes:
    return uint32(element_type) + uint64(count) + items


def tensor(
    name: bytes, lengths: Sequence[int], type: int = F32, offset: int = 0, n_dims: int | None = None
) -> bytes:
    """A line of the tensor table; lengths in the order of the file, fastest first."""
    dims = b"".join(uint64(length) for length in lengths)
    return (
        string(name)
        + uint32(len(lengths) if n_dims is None else n_dims)
        + dims
        + uint32(type)
        + uint64(offset)
    )


def gguf(
    entries: Sequence[bytes] = (),
    tensors: Sequence[bytes] = (),
    data: bytes = b"",
    *,
    version: int = 3,
    n_entries: int | None = None,
    n_tensors: int | None = None,
    alignment: int = 32,
) -> bytes:
    """A whole file; the counts in the header may be lies."""
    header = b"GGUF" + uint32(version)
    header += uint64(len(tensors) if n_tensors is None else n_tensors)
    header += uint64(len(entries) if n_entries is None else n_entries)
    body = header + b"".join(entries) + b"".join(tensors)
    return body + b"\0" * (-len(body) % alignment) + data
