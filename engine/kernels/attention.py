"""Attention over the KV cache of one layer, and putting keys and values into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.checks import check_array, check_output, check_separate, check_threads, require
from engine.kernels.loader import load_kernel, token_tile

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

TILE = 64
"""Positions of a tile: keys hold them side by side, so a capacity is a multiple of it."""

_LANES = 32
"""Rows of a panel that lie side by side, as in `source/panel.py`."""

_ROWS_OF_A_BLOCK = 84
"""Rows (query, query head) that share a decoded tile: a multiple of both token tiles, and still in cache."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerKV:
    """Cache of one layer, a ring: position p is at slot p % capacity.  Float16 bits.

    keys: uint16[sequences, kv_heads, capacity / 64, head_size, 64];
    values: uint16[sequences, kv_heads, capacity, head_size].
    """

    keys: NDArray[np.uint16]
    values: NDArray[np.uint16]

    @classmethod
    def allocate(cls, sequences: int, kv_heads: int, capacity: int, head_size: int) -> LayerKV:
        """capacity is rounded up to whole tiles."""
        tiles = -(-capacity // TILE)
        return cls(
            np.zeros((sequences, kv_heads, tiles, head_size, TILE), np.uint16),
            np.zeros((sequences, kv_heads, tiles * TILE, head_size), np.uint16),
        )

    @property
    def capacity(self) -> int:
        return int(self.values.shape[2])

    @property
    def nbytes(self) -> int:
        return int(self.keys.nbytes + self.values.nbytes)


def check_cache(cache: LayerKV) -> None:
    """The two arrays fit each other.  Raises ValueError or TypeError."""
    check_array("values", cache.values, np.uint16, (None, None, None, None))
    sequences, heads, capacity, head_size = cache.values.shape
    require(capacity > 0 and capacity % TILE == 0, f"a capacity of {capacity} is no multiple of {TILE}")
    shape = (sequences, heads, capacity // TILE, head_size, TILE)
    check_array("keys", cache.keys, np.uint16, shape)


@dataclass(frozen=True, slots=True, eq=False)
class AttentionScratch:
    """Memory of one caller, reused by layers of one head shape; the kernel's docstring tells the shapes."""

    arrays: tuple[NDArray[Any], ...]
    block_size: int
    tile: int
    group: int
    head_size: int
    threads: int

    @classmethod
    def allocate(
        cls, max_tokens: int, n_heads: int, kv_heads: int, head_size: int, threads: int
    ) -> AttentionScratch:
        check_threads(threads)
        require(n_heads % kv_heads == 0, f"{n_heads} heads do not share {kv_heads} KV heads evenly")
        group = n_heads // kv_heads
        tile = token_tile() if max_tokens > 1 else 6
        block_size = max(1, min(max_tokens, _ROWS_OF_A_BLOCK // group))
        row_tiles = -(-block_size * group // tile)
        head_blocks, parts = -(-head_size // TILE), -(-head_size // _LANES)
        bits = np.zeros((threads, TILE), np.int32)
        arrays = (
            np.zeros((threads, head_blocks, 2, TILE * _LANES), np.float32),
            np.zeros((threads, parts, TILE * _LANES), np.float32),
            np.zeros((threads, row_tiles, head_blocks, TILE * tile), np.float32),
            np.zeros((threads, 2, tile * _LANES), np.float32),
            np.zeros((threads, TILE * tile), np.float32),
            np.zeros((threads, row_tiles, parts, tile * _LANES), np.float32),
            np.zeros((threads, 3, max(TILE, row_tiles * tile)), np.float32),
            bits,
            bits.view(np.float32),
        )
        return cls(arrays, block_size, tile, group, head_size, threads)

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays[:-1])


def bind_attention(
    q: Floats,
    out: Floats,
    positions: Ints,
    sequences: Ints,
    cache: LayerKV,
    scratch: AttentionScratch,
    window: int,
    scale: float,
    cap: float = 0.0,
) -> Callable[[], None]:
    """q, out: float32[n, heads, head_size] or [n, heads * head_size], not the same array; positions and
    sequences: int32[n], read at each call, whose values the caller checks with `check_batch`.

    A query at position p sees max(0, p - window + 1) to p, or 0 to p where window is 0; the cache must hold
    them.  cap: soft cap of the scores, 0 for none.  Raises ValueError or TypeError.
    """
    check_cache(cache)
    _, kv_heads, _, head_size = cache.values.shape
    n = q.shape[0]
    width = kv_heads * scratch.group * head_size
    shape = (n, width) if q.ndim == 2 else (n, kv_heads * scratch.group, head_size)
    check_array("q", q, np.float32, shape)
    check_output("out", out, np.float32, shape)
    check_separate("q", q, "out", out)
    check_array("positions", positions, np.int32, (n,))
    check_array("sequences", sequences, np.int32, (n,))
    require(n > 0, "q holds no tokens")
    require(head_size == scratch.head_size, "scratch was made for another head size")
    require(window >= 0 and cap >= 0.0, "window and cap must not be negative")
    return partial(
        load_kernel("attention"),
        q.reshape(n, width),
        out.reshape(n, width),
        positions,
        sequences,
        cache.keys,
        cache.values,
        *scratch.arrays,
        scratch.block_size,
        window,
        np.float32(scale),
        np.float32(cap),
        scratch.tile,
        scratch.threads,
    )


def bind_store_kv(
    k: Floats, v: Floats, positions: Ints, sequences: Ints, cache: LayerKV
) -> Callable[[], None]:
    """k, v: float32[n, kv_heads, head_size] or [n, kv_heads * head_size], put at slot position % capacity."""
    check_cache(cache)
    check_output("keys", cache.keys, np.uint16, cache.keys.shape)
    check_output("values", cache.values, np.uint16, cache.values.shape)
    _, kv_heads, _, head_size = cache.values.shape
    n = k.shape[0]
    shape = (n, kv_heads * head_size) if k.ndim == 2 else (n, kv_heads, head_size)
    check_array("k", k, np.float32, shape)
    check_array("v", v, np.float32, shape)
    check_array("positions", positions, np.int32, (n,))
    check_array("sequences", sequences, np.int32, (n,))
    as_bits = [array.reshape(n, kv_heads, head_size).view(np.int32) for array in (k, v)]
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
