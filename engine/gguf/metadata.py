"""The metadata of a model file: keys with typed values, and getters that check type and range.

A value of the wrong type, out of its range or missing raises `ModelFileError` naming file, key and value.
Strings are kept as the bytes of the file and decoded when asked for: vocabularies may hold tokens that are
no UTF-8 (`get_byte_strings`), while a template or a name must be UTF-8 (`get_string`, `get_strings`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError


class ValueType(IntEnum):
    """Numbers of the value types in the file (public GGUF specification)."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


NUMBER_DTYPES: dict[ValueType, np.dtype[Any]] = {
    ValueType.UINT8: np.dtype("u1"),
    ValueType.INT8: np.dtype("i1"),
    ValueType.UINT16: np.dtype("<u2"),
    ValueType.INT16: np.dtype("<i2"),
    ValueType.UINT32: np.dtype("<u4"),
    ValueType.INT32: np.dtype("<i4"),
    ValueType.FLOAT32: np.dtype("<f4"),
    ValueType.BOOL: np.dtype("?"),
    ValueType.UINT64: np.dtype("<u8"),
    ValueType.INT64: np.dtype("<i8"),
    ValueType.FLOAT64: np.dtype("<f8"),
}
"""How each kind of number lies in the file: little-endian."""

FLOAT_TYPES = frozenset({ValueType.FLOAT32, ValueType.FLOAT64})
_INT64_MAX = 2**63 - 1
INTEGER_TYPES = frozenset(NUMBER_DTYPES) - FLOAT_TYPES - {ValueType.BOOL}


@dataclass(frozen=True, slots=True, eq=False)
class MetadataValue:
    """One value as it stands in the file.

    type:         its type.
    value:        int, float, bool or bytes; for an array, an ndarray of numbers or a list of bytes.
    element_type: the type of an array's elements, None for anything else.
    """

    type: ValueType
    value: Any
    element_type: ValueType | None = None

    @property
    def type_name(self) -> str:
        """The type in words, as used in messages."""
        if self.element_type is None:
            return self.type.name.lower()
        return f"array of {self.element_type.name.lower()}"


class Metadata:
    """Keys in the order of the file. ``file_name`` is what messages call the file.

    A getter without a default requires the key.  ``minimum`` and ``maximum`` are inclusive.
    """

    def __init__(self, values: Mapping[str, MetadataValue], file_name: str) -> None:
        self.values = dict(values)
        self.file_name = file_name

    def __contains__(self, key: object) -> bool:
        return key in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def get_int(
        self, key: str, default: int | None = None, *, minimum: int | None = None, maximum: int | None = None
    ) -> int:
        """An integer of any width.  The default is returned as it is, unchecked."""
        if default is not None and key not in self:
            return default
        entry = self._require(key)
        if entry.type not in INTEGER_TYPES:
            raise self._wrong_type(key, entry, "an integer")
        value = int(entry.value)
        self._check_range(key, value, minimum, maximum)
        return value

    def get_float(
        self,
        key: str,
        default: float | None = None,
        *,
        minimum: float | None = None,
        maximum: float | None = None,
    ) -> float:
        """A finite floating-point number."""
        if default is not None and key not in self:
            return default
        entry = self._require(key)
        if entry.type not in FLOAT_TYPES:
            raise self._wrong_type(key, entry, "a floating-point number")
        value = float(entry.value)
        if not math.isfinite(value):
            raise ModelFileError(f"{self.file_name}: {key} is {value}, which is no finite number.")
        self._check_range(key, value, minimum, maximum)
        return value

    def get_bool(self, key: str, default: bool | None = None) -> bool:
        if default is not None and key not in self:
            return default
        entry = self._require(key)
        if entry.type is not ValueType.BOOL:
            raise self._wrong_type(key, entry, "true or false")
        return bool(entry.value)

    def get_string(self, key: str, default: str | None = None) -> str:
        """A string, which must be UTF-8."""
        if default is not None and key not in self:
            return default
        entry = self._require(key)
        if entry.type is not ValueType.STRING:
            raise self._wrong_type(key, entry, "a string")
        return self._decode(key, entry.value)

    def get_byte_strings(self, key: str) -> list[bytes]:
        """An array of strings as the bytes of the file, whether UTF-8 or not."""
        entry = self._require(key)
        if entry.element_type is not ValueType.STRING:
            raise self._wrong_type(key, entry, "an array of strings")
        return list(entry.value)

    def get_strings(self, key: str) -> list[str]:
        """An array of strings, each of which must be UTF-8."""
        items = self.get_byte_strings(key)
        try:
            return [item.decode() for item in items]
        except UnicodeDecodeError:
            return [self._decode(f"{key}[{index}]", item) for index, item in enumerate(items)]

    def get_ints(
        self, key: str, *, minimum: int | None = None, maximum: int | None = None
    ) -> NDArray[np.int64]:
        """An array of integers of any width: int64[n]."""
        entry = self._require(key)
        if entry.element_type not in INTEGER_TYPES:
            raise self._wrong_type(key, entry, "an array of integers")
        items: NDArray[Any] = entry.value
        if items.size:
            # As Python integers: a uint64 may not fit int64.
            limit = _INT64_MAX if maximum is None else min(maximum, _INT64_MAX)
            self._check_range(key, int(items.min()), minimum, None)
            self._check_range(key, int(items.max()), None, limit)
        return items.astype(np.int64)

    def get_floats(self, key: str) -> NDArray[np.float32]:
        """An array of floating-point numbers: float32[n].  They may be infinite or NaN."""
        entry = self._require(key)
        if entry.element_type not in FLOAT_TYPES:
            raise self._wrong_type(key, entry, "an array of floating-point numbers")
        with np.errstate(over="ignore"):
            items: NDArray[np.float32] = entry.value.astype(np.float32)
        return items

    def get_bools(self, key: str) -> NDArray[np.bool_]:
        """An array of truth values: bool[n]."""
        entry = self._require(key)
        if entry.element_type is not ValueType.BOOL:
            raise self._wrong_type(key, entry, "an array of true or false")
        items: NDArray[np.bool_] = entry.value.copy()
        return items

    def get_int_per_layer(
        self,
        key: str,
        n_layers: int,
        default: int | None = None,
        *,
        minimum: int | None = None,
        maximum: int | None = None,
    ) -> list[int]:
        """n_layers integers: from an array of that length, or one integer that holds for every layer."""
        if key not in self or self.values[key].type is not ValueType.ARRAY:
            return [self.get_int(key, default, minimum=minimum, maximum=maximum)] * n_layers
        items = self.get_ints(key, minimum=minimum, maximum=maximum)
        if items.size != n_layers:
            raise ModelFileError(f"{self.file_name}: {key} has {items.size} entries for {n_layers} layers.")
        return [int(item) for item in items]

    def length(self, key: str) -> int:
        """The number of elements of an array."""
        entry = self._require(key)
        if entry.type is not ValueType.ARRAY:
            raise self._wrong_type(key, entry, "an array")
        return len(entry.value)

    def _require(self, key: str) -> MetadataValue:
        try:
            return self.values[key]
        except KeyError:
            raise ModelFileError(f"{self.file_name}: the metadata lacks {key}.") from None

    def _wrong_type(self, key: str, entry: MetadataValue, wanted: str) -> ModelFileError:
        return ModelFileError(f"{self.file_name}: {key} is of type {entry.type_name}, not {wanted}.")

    def _check_range(self, key: str, value: float, minimum: float | None, maximum: float | None) -> None:
        if minimum is not None and value < minimum:
            raise ModelFileError(f"{self.file_name}: {key} is {value}; the least possible is {minimum}.")
        if maximum is not None and value > maximum:
            raise ModelFileError(f"{self.file_name}: {key} is {value}; the most possible is {maximum}.")

    def _decode(self, key: str, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise ModelFileError(
                f"{self.file_name}: {key} is no UTF-8 text (at byte {error.start})."
            ) from error
