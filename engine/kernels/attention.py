"""Attention over the KV cache of one layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.checks import check_array, check_output, check_separate, check_threads, require
from engine.kernels.layer_kv import TILE, Floats, Ints, LayerKV, check_cache
from engine.kernels.loader import load_kernel, token_tile

_BLOCK_BYTES = 160 * 1024
"""Queries of one piece of work that share a decoded tile: they and their outputs should stay in the cache."""

SPLIT_TOKENS = 8
"""Up to so many tokens the context is split among threads, beyond them the queries are."""

_CHUNK_TILES = 4
"""Tiles of a chunk of a split context."""


def _kernel_arrays(cache: LayerKV) -> tuple[NDArray[Any], ...]:
    """What `attention` takes: numbers of all kinds, where the other kinds have no sequences, and scales."""
    sequences, heads, tiles, head_size, _ = cache.keys.shape
    keys, values = cache.keys.reshape(sequences, heads, tiles, head_size * TILE), cache.values
    if cache.kind == "f16":
        keys, values = keys.view(np.int16), values.view(np.int16)
    numbers: list[NDArray[Any]] = []
    for dtype in (np.int16, np.int8, np.float32):
        for own in (keys, values):
            numbers.append(own if own.dtype == dtype else np.empty((0, *own.shape[1:]), dtype))
    return (*numbers, cache.key_scales, cache.value_scales)


@dataclass(frozen=True, slots=True, eq=False)
class AttentionScratch:
    """Memory of one caller, reused by layers of one head shape; the kernel's docstring tells the shapes."""

    arrays: tuple[NDArray[Any], ...]
    block_size: int
    chunk_tiles: int
    max_tokens: int
    capacity: int
    widest: int
    group: int
    head_size: int
    threads: int

    @classmethod
    def allocate(
        cls, max_tokens: int, capacity: int, n_heads: int, kv_heads: int, head_size: int, threads: int
    ) -> AttentionScratch:
        """For batches of up to max_tokens and caches of up to capacity positions.

        Up to `SPLIT_TOKENS`, the context is split.
        """
        check_threads(threads)
        require(n_heads % kv_heads == 0, f"{n_heads} heads do not share {kv_heads} KV heads evenly")
        group = n_heads // kv_heads
        widest = token_tile()
        split = max_tokens <= SPLIT_TOKENS
        rows_of_a_block = max(1, _BLOCK_BYTES // (8 * head_size) // widest * widest)
        block_size = max_tokens if split else max(1, min(max_tokens, rows_of_a_block // group))
        row_tiles = -(-block_size * group // widest)
        blocks = -(-head_size // TILE)
        # A chunk begun and one ended, beside whole ones.
        n_chunks = -(-capacity // (TILE * _CHUNK_TILES)) + 1 if split else 0
        key_panels = np.zeros((threads, blocks, TILE * TILE), np.float32)
        value_panels = np.zeros_like(key_panels)
        bits = np.zeros((threads, TILE), np.int32)
        arrays = (
            key_panels,
            value_panels,
            key_panels.view(np.int32),
            value_panels.view(np.int32),
            np.zeros((threads, row_tiles, blocks, widest * TILE), np.float32),
            np.zeros((threads, widest * TILE), np.float32),
            np.zeros((threads, widest * TILE), np.float32),
            np.zeros((threads, row_tiles, blocks, widest * TILE), np.float32),
            np.zeros((threads, row_tiles * widest), np.float32),
            np.zeros((threads, row_tiles * widest * 16), np.float32),
            np.zeros((threads, TILE), np.float32),
            bits,
            bits.view(np.float32),
            np.zeros((n_chunks, max_tokens * n_heads if split else 0, head_size), np.float32),
            np.zeros((2, n_chunks, max_tokens * n_heads if split else 0), np.float32),
        )
        chunk_tiles = _CHUNK_TILES if split else 0
        return cls(arrays, block_size, chunk_tiles, max_tokens, capacity, widest, group, head_size, threads)

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays if array.base is None)


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
    sinks: Floats | None = None,
) -> Callable[[], None]:
    """q, out: float32[n, heads, head_size] or [n, heads * head_size], not the same array; positions and
    sequences: int32[n], read at each call, whose values the caller checks with `check_batch`.

    A query at position p sees max(0, p - window + 1) to p, or 0 to p where window is 0; the cache must hold
    them.  cap: soft cap of the scores, 0 for none.  sinks: float32[heads], a further score of each head that
    stands for no value.  Raises ValueError or TypeError.
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
    require(n <= scratch.max_tokens, f"{n} tokens; the scratch was made for {scratch.max_tokens}")
    require(cache.capacity <= scratch.capacity, "scratch was made for smaller caches")
    sinks = np.empty(0, np.float32) if sinks is None else sinks
    check_array("sinks", sinks, np.float32, (kv_heads * scratch.group if sinks.size else 0,))
    require(window >= 0 and cap >= 0.0, "window and cap must not be negative")
    return partial(
        load_kernel("attention"),
        q.reshape(n, width),
        out.reshape(n, width),
        positions,
        sequences,
        *_kernel_arrays(cache),
        *scratch.arrays,
        sinks,
        scratch.block_size,
        scratch.chunk_tiles,
        window,
        np.float32(scale),
        np.float32(cap),
        scratch.widest,
        scratch.threads,
    )
