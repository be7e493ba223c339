"""The KV cache of one layer, and putting keys and values into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.checks import check_array, check_output, require
from engine.kernels.loader import load_kernel
from engine.requests import KVKind

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

TILE = 64
"""Positions of a tile: keys hold them side by side, so a capacity is a multiple of it."""

_DTYPES: Mapping[KVKind, type[np.generic]] = {"f32": np.float32, "f16": np.uint16, "q8": np.int8}


def _layout(
    sequences: int, kv_heads: int, capacity: int, head_size: int, kind: KVKind
) -> Iterator[tuple[tuple[int, ...], type[np.generic]]]:
    """Shapes and dtypes of keys, values and their scales."""
    tiles, blocks = -(-capacity // TILE), -(-head_size // TILE)
    scaled = sequences if kind == "q8" else 0
    dtype = _DTYPES[kind]
    yield (sequences, kv_heads, tiles, head_size, TILE), dtype
    yield (sequences, kv_heads, tiles * TILE, head_size), dtype
    yield (scaled, kv_heads, tiles, blocks, TILE), np.float32
    yield (scaled, kv_heads, tiles * TILE, blocks), np.float32


@dataclass(frozen=True, slots=True, eq=False)
class LayerKV:
    """Cache of one layer, a ring: position p is at slot p % capacity.

    f16, bits of half-precision numbers: keys uint16[sequences, kv_heads, capacity / 64, head_size, 64],
    values uint16[sequences, kv_heads, capacity, head_size]; the scales have no sequences.
    f32: the same in float32.
    q8: keys and values int8 of the same shapes, to be multiplied with key_scales float32[sequences, kv_heads,
    capacity / 64, head_size / 64, 64] and value_scales float32[sequences, kv_heads, capacity,
    head_size / 64]: one for each position and 64 numbers of a head, rounded up.
    """

    keys: NDArray[Any]
    values: NDArray[Any]
    key_scales: Floats
    value_scales: Floats

    @classmethod
    def allocate(
        cls, sequences: int, kv_heads: int, capacity: int, head_size: int, kind: KVKind = "f16"
    ) -> LayerKV:
        """capacity is rounded up to whole tiles.  Raises MemoryError."""
        layout = _layout(sequences, kv_heads, capacity, head_size, kind)
        return cls(*(np.zeros(shape, dtype) for shape, dtype in layout))

    @staticmethod
    def bytes_of(sequences: int, kv_heads: int, capacity: int, head_size: int, kind: KVKind) -> int:
        """What `allocate` will take."""
        layout = _layout(sequences, kv_heads, capacity, head_size, kind)
        return sum(prod(shape) * np.dtype(dtype).itemsize for shape, dtype in layout)

    @property
    def kind(self) -> KVKind:
        kinds = (kind for kind, dtype in _DTYPES.items() if self.keys.dtype == dtype)
        return next(kinds, "f16")

    @property
    def capacity(self) -> int:
        return int(self.values.shape[2])

    @property
    def nbytes(self) -> int:
        arrays = (self.keys, self.values, self.key_scales, self.value_scales)
        return sum(int(array.nbytes) for array in arrays)


def check_cache(cache: LayerKV) -> None:
    """The arrays fit each other and may be written to.  Raises ValueError or TypeError."""
    check_output("values", cache.values, _DTYPES[cache.kind], (None,) * 4)
    sequences, heads, capacity, head_size = cache.values.shape
    require(capacity > 0 and capacity % TILE == 0, f"a capacity of {capacity} is no multiple of {TILE}")
    names = ("keys", "values", "key_scales", "value_scales")
    layout = _layout(sequences, heads, capacity, head_size, cache.kind)
    for name, (shape, dtype) in zip(names, layout, strict=True):
        check_output(name, getattr(cache, name), dtype, shape)


def bind_store_kv(
    k: Floats, v: Floats, positions: Ints, sequences: Ints, cache: LayerKV
) -> Callable[[], None]:
    """k, v: float32[n, kv_heads, head_size] or [n, kv_heads * head_size], put at slot position % capacity."""
    check_cache(cache)
    _, kv_heads, _, head_size = cache.values.shape
    n = k.shape[0]
    shape = (n, kv_heads * head_size) if k.ndim == 2 else (n, kv_heads, head_size)
    check_array("k", k, np.float32, shape)
    check_array("v", v, np.float32, shape)
    check_array("positions", positions, np.int32, (n,))
    check_array("sequences", sequences, np.int32, (n,))
    by_head = [array.reshape(n, kv_heads, head_size) for array in (k, v)]
    if cache.kind == "q8":
        scales = cache.key_scales, cache.value_scales
        kernel = load_kernel("store_kv_q8")
        return partial(kernel, *by_head, positions, sequences, cache.keys, cache.values, *scales)
    if cache.kind == "f32":
        kernel = load_kernel("store_kv_f32")
        return partial(kernel, *by_head, positions, sequences, cache.keys, cache.values)
    as_bits = [array.view(np.int32) for array in by_head]
    return partial(load_kernel("store_kv"), *as_bits, positions, sequences, cache.keys, cache.values)


def check_batch(positions: Ints, sequences: Ints, cache: LayerKV, window: int) -> None:
    """What bound calls rely on, once per batch: sequences exist, positions are no negative numbers, and what
    each query sees is still in the ring.  Raises ValueError."""
    n_sequences = cache.values.shape[0]
    if not positions.size:
        return
    require(int(positions.min()) >= 0, "a position is negative")
    low, high = int(sequences.min()), int(sequences.max())
    require(low >= 0 and high < n_sequences, f"sequences {low} to {high} lie outside 0 to {n_sequences - 1}")
    for sequence in np.unique(sequences):
        own = positions[sequences == sequence]
        newest, oldest_query = int(own.max()), int(own.min())
        first_seen = max(0, oldest_query - window + 1) if window else 0
        require(
            newest - first_seen < cache.capacity,
            f"positions {first_seen} to {newest} do not fit a ring of {cache.capacity}",
        )
