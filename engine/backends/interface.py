"""What a compute backend must do: the small plugin interface.

A backend is found by the entry-point group ``causerie.backends`` (name -> a `Backend` class).  The
life of its objects, each made by the one before and closed by whoever asked for it:

    Backend  --load_weights-->  LoadedWeights  --new_context-->  Context  --run(plan, batch)--> logits

`Backend` and `LoadedWeights` hold no state of a request, so one of each serves any number of
contexts.  A `Context` holds the KV cache of ``n_sequences`` sequences and the scratch memory of one
caller; it is used by one thread at a time.  Two backends can share a model by whole layers: each
loads the weights of its layers and runs a plan whose graph begins or ends with hidden states.

Errors: `OutOfMemoryError`, `DeviceLostError`, `UnsupportedByBackendError`, and nothing foreign.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import UnsupportedByBackendError
from engine.graph.plan import Plan
from engine.requests import KVKind
from engine.tensor import Tensor

Progress = Callable[[float], None]
"""Called with the share done, 0 to 1; may raise `Cancelled` to stop the work."""

ShouldStop = Callable[[], bool]
"""Whether the work is no longer wanted."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether the backend can work on this machine, and why not."""

    available: bool
    reason: str
    device: str
    memory_free: int
    """Bytes; 0 where unknown."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """quant_types and operations by name, as in `engine.gguf.tensor_types` and `engine.graph.operations`."""

    quant_types: frozenset[str]
    operations: frozenset[str]


@dataclass(frozen=True, slots=True)
class LayerCache:
    """The KV cache of one layer. window: positions seen by a query, 0 for all of the context."""

    layer: int
    n_kv_heads: int
    head_size: int
    window: int


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """The KV cache of a context: one entry per layer that this backend runs.

    context_size: positions per sequence.  max_batch: most tokens of one `run`, so that the ring of a
    sliding-window layer can hold its window and the batch.  kv: how numbers are kept; a backend may keep
    them more exactly.
    """

    layers: tuple[LayerCache, ...]
    context_size: int
    max_batch: int
    n_sequences: int = 1
    kv: KVKind = "f16"


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes on the device.

    mapped: weights that stay in the file's map.  They are no part of the total: the system keeps as much of
    them in memory as it has room for.
    program: what this process takes beside (`engine.inspection.program_bytes`).
    """

    weights: int
    kv_cache: int
    arena: int
    mapped: int = 0
    program: int = 0

    @property
    def total(self) -> int:
        return self.weights + self.kv_cache + self.arena

    @property
    def peak(self) -> int:
        """The most memory that the process has resident, once the context is full: what the system calls its
        peak resident set, or working set.  Weights that are mapped come on top, as far as there is room."""
        return self.total + self.program


@dataclass(frozen=True, slots=True)
class Batch:
    """The tokens of one run.

    tokens:    int32[n], ids (or hidden, float32[n, width], where the graph begins with hidden states)
    positions: int32[n], the position of each token in its sequence
    sequences: int32[n], which sequence of the context each token belongs to
    outputs:   int32[m], ascending indices of the tokens whose logits are wanted
    """

    tokens: NDArray[np.int32]
    positions: NDArray[np.int32]
    sequences: NDArray[np.int32]
    outputs: NDArray[np.int32]
    hidden: NDArray[np.float32] | None = None


class Context(ABC):
    """KV cache and scratch memory of one caller."""

    @abstractmethod
    def run(self, plan: Plan, batch: Batch, should_stop: ShouldStop | None = None) -> NDArray[np.float32]:
        """Runs the plan, adds the batch's keys and values to the cache, and returns float32[m, vocabulary]
        logits (or float32[n, width] hidden states), valid until the next run.

        should_stop is asked again and again while it computes, in the same thread.  Where it says so,
        `Cancelled` is raised; then every sequence is as long as before, and can go on from there.

        Raises `Cancelled`, `DeviceLostError`; `ValueError` where the batch does not fit plan or cache.
        """

    @abstractmethod
    def truncate(self, sequence: int, length: int) -> int:
        """Forgets positions >= length of a sequence.  Returns the length that is really usable: length
        itself, or less (0 in the worst case) where a sliding window has overwritten what it would need."""

    @abstractmethod
    def close(self) -> None:
        """Frees everything.  May be called twice."""


class LoadedWeights(ABC):
    """Weights that live on the device."""

    nbytes: int

    @abstractmethod
    def new_context(self, spec: CacheSpec) -> Context:
        """Allocates the KV cache once.  Raises `OutOfMemoryError`."""

    def settle(self) -> None:
        """Waits for what loading left to be done beside the first tokens, if anything: for measurements."""
        return

    @abstractmethod
    def close(self) -> None:
        """Frees everything.  May be called twice."""


class Backend(ABC):
    """One way to compute.  Created with the number of threads to use (backends without threads ignore it).

    repack: False asks to leave the weights in the file's map, for people short of memory; a backend that must
    copy them ignores it.
    """

    name: str

    def __init__(self, threads: int | None = None, repack: bool = True) -> None:
        self.threads = threads
        self.repack = repack

    @classmethod
    @abstractmethod
    def probe(cls) -> Probe:
        """Whether it can work here.  Never raises."""

    @abstractmethod
    def capabilities(self) -> Capabilities: ...

    def require_types(self, weights: Mapping[str, Tensor]) -> None:
        """Raises `UnsupportedByBackendError` naming the first tensor of a type that this backend lacks."""
        able = self.capabilities().quant_types
        for name, tensor in weights.items():
            if tensor.type.name not in able:
                raise UnsupportedByBackendError(
                    f"The tensor {name} is of the type {tensor.type.name}, which the backend "
                    f"{self.name!r} cannot compute with.",
                    f"Choose a file of one of these types: {', '.join(sorted(able))}.",
                )

    def require_operations(self, plan: Plan) -> None:
        """Raises `UnsupportedByBackendError` naming the operations of the plan that this backend lacks."""
        missing = plan.operations - self.capabilities().operations
        if missing:
            raise UnsupportedByBackendError(
                f"The backend {self.name!r} lacks the operation {', '.join(sorted(missing))}."
            )

    @abstractmethod
    def estimate_memory(self, weights: Mapping[str, Tensor], spec: CacheSpec, plan: Plan) -> MemoryEstimate:
        """Bytes that loading and running will take; allocates nothing."""

    @abstractmethod
    def load_weights(self, weights: Mapping[str, Tensor], progress: Progress) -> LoadedWeights:
        """Takes the tensors to the device once, by `Tensor.in_memory` or `read_rows`; then the file may
        be closed.  Data of tensors that is not taken (see `repack`) keeps the map alive.

        Raises `OutOfMemoryError`, `UnsupportedByBackendError`, `Cancelled`."""

    @abstractmethod
    def close(self) -> None:
        """Frees the device.  May be called twice."""
