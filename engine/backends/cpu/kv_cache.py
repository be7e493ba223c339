"""The KV cache of the cpu backend: per layer a ring over positions, in 16 or 8 bits, allocated once.

Position p of a sequence lies in slot p % capacity.  Keys are stored in tiles of 64 positions with the
positions as the fast axis, so that the scores of a tile vectorise without sums across a vector; values are
stored position by position.

    keys:   [n_sequences, n_kv_heads, capacity / 64, head_size, 64]
    values: [n_sequences, n_kv_heads, capacity, head_size]

of bits of half-precision numbers, or of 8-bit numbers with scales (`engine.kernels.layer_kv`).
A layer that sees everything has room for the whole context.  A sliding-window layer has room for its window
and one batch, since a batch is stored before its first query looks back.
"""

from __future__ import annotations

from engine.backends.interface import CacheSpec, LayerCache
from engine.errors import OutOfMemoryError
from engine.kernels.layer_kv import TILE, LayerKV


def capacity_of(layer: LayerCache, spec: CacheSpec) -> int:
    """Slots of a layer's ring, a multiple of 64."""
    needed = spec.context_size
    if layer.window:
        needed = min(needed, layer.window + spec.max_batch)
    return -(-needed // TILE) * TILE


def _shape_of(layer: LayerCache, spec: CacheSpec) -> tuple[int, int, int, int]:
    """Sequences, KV heads, capacity and head size."""
    return spec.n_sequences, layer.n_kv_heads, capacity_of(layer, spec), layer.head_size


def cache_bytes(spec: CacheSpec) -> int:
    """Bytes of keys and values of all layers and sequences, without allocating them."""
    return sum(LayerKV.bytes_of(*_shape_of(layer, spec), spec.kv) for layer in spec.layers)


class KVCache:
    """The stores of all layers, and how much of each sequence is usable."""

    def __init__(self, spec: CacheSpec) -> None:
        self.spec = spec
        try:
            self.layers = {
                layer.layer: LayerKV.allocate(*_shape_of(layer, spec), spec.kv) for layer in spec.layers
            }
        except (MemoryError, ValueError) as error:
            raise OutOfMemoryError(
                f"A KV cache of {cache_bytes(spec):,} bytes for {spec.context_size:,} tokens does not fit."
            ) from error
        self.lengths = [0] * spec.n_sequences
        self._written = [0] * spec.n_sequences

    def _allocate(self, layer: LayerCache) -> LayerKV:
        capacity = capacity_of(layer, self.spec)
        return LayerKV.allocate(self.spec.n_sequences, layer.n_kv_heads, capacity, layer.head_size)

    @property
    def nbytes(self) -> int:
        return sum(store.nbytes for store in self.layers.values())

    def expect(self, sequence: int, length: int) -> None:
        """A batch up to length begins.  Even one that is stopped takes ring slots of older positions: not of
        those that the next query sees, since a ring has room for a window and a batch; a cut must know."""
        self._written[sequence] = max(self._written[sequence], length)

    def advance(self, sequence: int, length: int) -> None:
        """Positions below length are now stored."""
        self.lengths[sequence] = length

    def truncate(self, sequence: int, length: int) -> int:
        """Forgets positions >= length; see `Context.truncate`.

        The next query, at position ``length``, looks back to length - window + 1; that slot must not have
        been overwritten by the position one capacity later.
        """
        length = max(0, min(length, self.lengths[sequence]))
        for layer in self.spec.layers:
            oldest = max(0, length - layer.window + 1) if layer.window else 0
            if oldest + capacity_of(layer, self.spec) < self._written[sequence]:
                length = 0
                break
        self.lengths[sequence] = length
        if length == 0:
            self._written[sequence] = 0
        return length
