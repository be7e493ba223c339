"""Reads safetensors files: a header of names, types, shapes and places, then the numbers.

Format: the public description of safetensors (8 bytes of length, JSON, data).  A file is hostile until
checked: every length, offset and product is compared with the file's size in Python integers before anything
is allocated, and the data of the tensors must cover the rest of the file without gaps or overlaps, as the
format demands.  Data is read, never mapped: a file that shrinks meanwhile is an error and ends no process.
"""

from __future__ import annotations

import io
import json
import os
import stat
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError

MAX_HEADER_BYTES = 100_000_000
"""The format's own limit."""
MAX_DIMENSIONS = 8

ITEM_BYTES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "F8_E8M0": 1,
    "U16": 2,
    "I16": 2,
    "F16": 2,
    "BF16": 2,
    "U32": 4,
    "I32": 4,
    "F32": 4,
    "U64": 8,
    "I64": 8,
    "F64": 8,
}

DTYPES: dict[str, np.dtype[Any]] = {
    "U8": np.dtype("u1"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
"""What can be read; BF16 as its bits, since NumPy has no such number."""


@dataclass(frozen=True, slots=True, eq=False)
class SourceTensor:
    """dtype: a key of ITEM_BYTES; shape in NumPy order; start: byte in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: SafetensorsFile
    start: int

    @property
    def row_bytes(self) -> int:
        """Of one index of the first axis."""
        return prod(self.shape[1:]) * ITEM_BYTES[self.dtype]

    def read(self, first: int = 0, last: int | None = None) -> NDArray[Any]:
        """Rows first to last of the first axis, in the dtype of DTYPES; a scalar as it is.

        Raises `ModelFileError` for a type that has no such numbers, and for a file that cannot be read.
        """
        if self.dtype not in DTYPES:
            raise ModelFileError(
                f"{self.file.name}: the tensor {self.name} holds numbers of type {self.dtype}.",
                "Choose a checkpoint in F32, F16 or BF16.",
            )
        shape = self.shape
        if shape:
            last = shape[0] if last is None else last
            shape = (last - first, *shape[1:])
        numbers = np.empty(shape, DTYPES[self.dtype])
        self.file.read(self.start + first * self.row_bytes, numbers.reshape(-1).view(np.uint8))
        return numbers


class SafetensorsFile:
    """An open file; ``tensors`` by name, in the order of their data."""

    def __init__(self, path: Path) -> None:
        """Raises `ModelFileError` for what is no sound file of this format."""
        self.name = path.name
        self._file, self._size = _open(path)
        try:
            self.tensors = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        self._file.close()

    def read(self, start: int, out: NDArray[np.uint8]) -> None:
        """Fills uint8[bytes] from byte start on.  Raises `ModelFileError`."""
        rest = out.data
        try:
            self._file.seek(start)
            while rest.nbytes:
                count = self._file.readinto(rest)
                if not count:
                    raise ModelFileError(f"{self.name} has become shorter while it was being read.")
                rest = rest[count:]
        except (OSError, ValueError) as error:
            raise ModelFileError(f"{self.name} can no longer be read: {error}.") from error

    def _read_header(self) -> dict[str, SourceTensor]:
        if self._size < 8:
            raise ModelFileError(f"{self.name} is too short for a safetensors file: {self._size} bytes.")
        raw = np.empty(8, np.uint8)
        self.read(0, raw)
        length = int.from_bytes(raw.tobytes(), "little")
        if length > min(MAX_HEADER_BYTES, self._size - 8):
            raise ModelFileError(
                f"{self.name} is no safetensors file, or it is cut short: its header would take {length:,} "
                f"bytes of {self._size:,}."
            )
        raw = np.empty(length, np.uint8)
        self.read(8, raw)
        entries = self._parse(raw.tobytes())
        entries.pop("__metadata__", None)
        tensors = [self._tensor(name, entry, 8 + length) for name, entry in entries.items()]
        tensors.sort(key=lambda tensor: (tensor.start, tensor.row_bytes))
        end = 8 + length
        for tensor in tensors:
            if tensor.start != end:
                raise ModelFileError(
                    f"{self.name}: the data of {tensor.name} begins at byte {tensor.start - 8 - length}, "
                    f"not at {end - 8 - length}: tensors overlap or leave a gap."
                )
            end += prod(tensor.shape) * ITEM_BYTES[tensor.dtype]
        if end != self._size:
            raise ModelFileError(
                f"{self.name}: the data of its tensors ends at byte {end:,}, the file at {self._size:,}."
            )
        return {tensor.name: tensor for tensor in tensors}

    def _parse(self, raw: bytes) -> dict[str, Any]:
        def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            result = dict(pairs)
            if len(result) != len(pairs):
                raise ValueError("a name occurs twice")
            return result

        try:
            # Only an object at the very start: the format forbids anything before it.
            if raw[:1] != b"{":
                raise ValueError("it does not begin with {")
            header = json.loads(raw.decode("utf-8"), object_pairs_hook=unique)
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"{self.name}: its header is damaged ({error}).") from error
        if not isinstance(header, dict):
            raise ModelFileError(f"{self.name}: its header is no JSON object.")
        return header

    def _tensor(self, name: str, entry: object, data_start: int) -> SourceTensor:
        def damaged(what: str) -> ModelFileError:
            return ModelFileError(f"{self.name}: the tensor {name[:100]!r} has {what}.")

        if not isinstance(entry, dict):
            raise damaged("no description")
        dtype: object = entry.get("dtype")
        shape: object = entry.get("shape")
        offsets: object = entry.get("data_offsets")
        if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
            raise damaged(f"the unknown type {dtype!r}")
        if not _counts(shape) or len(shape) > MAX_DIMENSIONS:
            raise damaged(f"the shape {str(shape)[:100]}")
        if not _counts(offsets) or len(offsets) != 2:
            raise damaged(f"the offsets {str(offsets)[:100]}")
        start, end = offsets
        if not start <= end <= self._size - data_start:
            raise damaged(f"data from byte {start} to {end}, of {self._size - data_start}")
        if end - start != prod(shape) * ITEM_BYTES[dtype]:
            raise damaged(f"{end - start} bytes of data for {dtype}{shape}")
        return SourceTensor(name, dtype, tuple(shape), self, data_start + start)


def _counts(value: object) -> TypeGuard[list[int]]:
    """A list of integers that are not negative."""
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _open(path: Path) -> tuple[io.FileIO, int]:
    try:
        # Non-blocking: opening a pipe would otherwise wait for a writer.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        file = io.FileIO(os.open(path, flags))
    except OSError as error:
        raise ModelFileError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        file.close()
        raise ModelFileError(f"{path.name} is no ordinary file.")
    return file, status.st_size
