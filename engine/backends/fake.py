"""A backend that computes nothing: for tests, and for looking at the window without a model.

Its logits are a hash of the tokens that really lie in its KV cache, seen through each layer's window, so a
wrong position, a stale ring slot or a prefix reused by mistake changes them.  It keeps the same rules as a
real backend: the same checks, the same ring for sliding windows, the same errors.

`FakeBehaviour` makes it slow, small, lost, or lets it recite a script.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.backends.batches import check_tokens, lengths_after
from engine.backends.interface import (
    Backend,
    Batch,
    CacheSpec,
    Capabilities,
    Context,
    LayerCache,
    LoadedWeights,
    MemoryEstimate,
    Probe,
    Progress,
    ShouldStop,
)
from engine.errors import Cancelled, DeviceLostError, OutOfMemoryError
from engine.gguf.tensor_types import SUPPORTED_TYPES
from engine.graph.operations import OPERATIONS
from engine.graph.plan import Plan
from engine.tensor import Tensor

EMPTY = -1
"""Position of a ring slot that holds nothing."""

BYTES_PER_SLOT = 8
"""An int32 token and an int32 position."""


@dataclass(slots=True)
class FakeBehaviour:
    """What the fake does; may be changed at any time, also while it works.

    memory_bytes: what weights and KV cache may take together; None: no limit.
    lost: every call that computes raises `DeviceLostError`.
    seconds_per_token, seconds_per_load: how slow it is.
    script: where the cached tokens end with a beginning of the script (or nothing of it), its next token is
    by far the likeliest; after its last token the hashed logits speak again.
    invalid_after: from this many cached tokens on, every logit is NaN.
    """

    memory_bytes: int | None = None
    lost: bool = False
    seconds_per_token: float = 0.0
    seconds_per_load: float = 0.0
    script: Sequence[int] = ()
    invalid_after: int | None = None


class _Ring:
    """The tokens one layer can still see, one ring of slots per sequence."""

    def __init__(self, layer: LayerCache, spec: CacheSpec) -> None:
        self.window = layer.window
        self.n_slots = ring_slots(layer, spec)
        self.tokens = np.zeros((spec.n_sequences, self.n_slots), np.int32)
        self.positions = np.full((spec.n_sequences, self.n_slots), EMPTY, np.int32)

    def store(self, sequence: int, position: int, token: int) -> None:
        slot = position % self.n_slots
        self.tokens[sequence, slot] = token
        self.positions[sequence, slot] = position

    def visible_hash(self, sequence: int, position: int) -> int:
        """A hash of the (position, token) pairs that a query at this position sees."""
        first = max(0, position - self.window + 1) if self.window else 0
        slots = np.arange(first, position + 1) % self.n_slots
        pairs = self.positions[sequence, slots].astype(np.uint64) << np.uint64(32)
        pairs |= self.tokens[sequence, slots].astype(np.uint64)
        return int(np.bitwise_xor.reduce(_mixed(pairs)))


def ring_slots(layer: LayerCache, spec: CacheSpec) -> int:
    """Slots of a layer: its window and a batch beside it, or the whole context."""
    return min(spec.context_size, layer.window + spec.max_batch) if layer.window else spec.context_size


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): spreads every bit of uint64 over all bits."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


class FakeContext(Context):
    """Rings of tokens in place of keys and values."""

    def __init__(self, spec: CacheSpec, behaviour: FakeBehaviour) -> None:
        self._spec = spec
        self._behaviour = behaviour
        self._rings = [_Ring(layer, spec) for layer in spec.layers]
        self._history: list[list[int]] = [[] for _ in range(spec.n_sequences)]
        self._reached = [0] * spec.n_sequences
        self._closed = False

    @property
    def nbytes(self) -> int:
        """Bytes of all rings, 0 once closed."""
        return sum(ring.tokens.nbytes + ring.positions.nbytes for ring in self._rings)

    def run(self, plan: Plan, batch: Batch, should_stop: ShouldStop | None = None) -> NDArray[np.float32]:
        self._check(plan, batch)
        if self._behaviour.lost:
            raise DeviceLostError("The fake device went away.")
        wanted = set(batch.outputs.tolist())
        rows = []
        # All keys and values are stored before any query looks, as a real batch does.
        for token, position, sequence in self._triples(batch):
            if should_stop is not None and should_stop():
                raise Cancelled("The batch was cancelled.")
            if self._behaviour.seconds_per_token:
                time.sleep(self._behaviour.seconds_per_token)
            for ring in self._rings:
                ring.store(sequence, position, token)
            self._reached[sequence] = max(self._reached[sequence], position + 1)
        for token, _, sequence in self._triples(batch):
            self._history[sequence].append(token)
        for index, (_, position, sequence) in enumerate(self._triples(batch)):
            if index in wanted:
                rows.append(self._logits(plan.n_vocabulary, sequence, position))
        return np.array(rows, np.float32).reshape(len(rows), plan.n_vocabulary)

    @staticmethod
    def _triples(batch: Batch) -> list[tuple[int, int, int]]:
        lists = (batch.tokens.tolist(), batch.positions.tolist(), batch.sequences.tolist())
        return list(zip(*lists, strict=True))

    def _check(self, plan: Plan, batch: Batch) -> None:
        if self._closed:
            raise ValueError("the context is closed")
        lengths_after(plan, batch, self._spec, [len(history) for history in self._history])
        check_tokens(plan, batch, plan.n_vocabulary)

    def _logits(self, n_vocabulary: int, sequence: int, position: int) -> NDArray[np.float32]:
        invalid_after = self._behaviour.invalid_after
        if invalid_after is not None and position + 1 >= invalid_after:
            return np.full(n_vocabulary, np.nan, np.float32)
        seed = [ring.visible_hash(sequence, position) for ring in self._rings]
        random = np.random.Generator(np.random.PCG64(seed))
        logits = random.standard_normal(n_vocabulary, dtype=np.float32) * np.float32(2)
        scripted = self._next_of_script(self._history[sequence][: position + 1])
        if scripted is not None:
            logits[scripted] += np.float32(100)
        return logits

    def _next_of_script(self, tokens: list[int]) -> int | None:
        script = list(self._behaviour.script)
        for length in range(min(len(script), len(tokens)), 0, -1):
            if tokens[-length:] == script[:length]:
                return script[length] if length < len(script) else None
        return script[0] if script else None

    def truncate(self, sequence: int, length: int) -> int:
        if not 0 <= sequence < self._spec.n_sequences or length < 0:
            raise ValueError(f"sequence {sequence} cannot be cut to {length} tokens")
        history = self._history[sequence]
        length = min(length, len(history))
        reached = self._reached[sequence]
        for ring in self._rings:
            # The next query sees back to here; an older slot was overwritten if the ring has come round.
            needed = max(0, length - ring.window + 1) if ring.window else 0
            if needed < length and reached - ring.n_slots > needed:
                length = 0
                break
        del history[length:]
        if length == 0:
            self._reached[sequence] = 0
        return length

    def close(self) -> None:
        self._closed = True
        self._rings.clear()


class FakeWeights(LoadedWeights):
    """Counts the weights and forgets them."""

    def __init__(self, nbytes: int, behaviour: FakeBehaviour) -> None:
        self.nbytes = nbytes
        self._behaviour = behaviour
        self._closed = False

    def new_context(self, spec: CacheSpec) -> Context:
        if self._closed:
            raise ValueError("these weights were closed")
        _check_memory(self._behaviour, self.nbytes + _cache_bytes(spec))
        return FakeContext(spec, self._behaviour)

    def close(self) -> None:
        self._closed = True
        self.nbytes = 0


class FakeBackend(Backend):
    """Always available.  behaviour is shared with everything made by this backend."""

    name = "fake"

    def __init__(
        self, threads: int | None = None, repack: bool = True, behaviour: FakeBehaviour | None = None
    ) -> None:
        super().__init__(threads, repack)
        self.behaviour = behaviour or FakeBehaviour()

    @classmethod
    def probe(cls) -> Probe:
        return Probe(available=True, reason="", device="nothing at all", memory_free=0)

    def capabilities(self) -> Capabilities:
        return Capabilities(frozenset(SUPPORTED_TYPES), frozenset(OPERATIONS))

    def estimate_memory(self, weights: Mapping[str, Tensor], spec: CacheSpec, plan: Plan) -> MemoryEstimate:
        """Weights are counted as if they were copied; there is no arena, since nothing is computed."""
        return MemoryEstimate(_weight_bytes(weights), _cache_bytes(spec), arena=0)

    def load_weights(self, weights: Mapping[str, Tensor], progress: Progress) -> LoadedWeights:
        self.require_types(weights)
        nbytes = _weight_bytes(weights)
        _check_memory(self.behaviour, nbytes)
        if self.behaviour.lost:
            raise DeviceLostError("The fake device went away.")
        progress(0.0)
        for count in range(1, len(weights) + 1):
            time.sleep(self.behaviour.seconds_per_load / len(weights))
            progress(count / len(weights))
        return FakeWeights(nbytes, self.behaviour)

    def close(self) -> None:
        """Nothing to free."""


def _weight_bytes(weights: Mapping[str, Tensor]) -> int:
    return sum(tensor.nbytes for tensor in weights.values())


def _cache_bytes(spec: CacheSpec) -> int:
    slots = sum(ring_slots(layer, spec) for layer in spec.layers)
    return slots * spec.n_sequences * BYTES_PER_SLOT


def _check_memory(behaviour: FakeBehaviour, needed: int) -> None:
    if behaviour.memory_bytes is not None and needed > behaviour.memory_bytes:
        raise OutOfMemoryError(
            f"The model needs {needed} bytes of memory, and {behaviour.memory_bytes} are free."
        )
