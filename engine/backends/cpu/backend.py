"""The cpu backend: what it can do, what it needs, and its weights."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from engine.backends.cpu.context import CpuContext
from engine.backends.cpu.huge_pages import HugePages
from engine.backends.cpu.kv_cache import cache_bytes
from engine.backends.cpu.rope_table import rope_key, table_bytes
from engine.backends.cpu.scratch import scratch_bytes
from engine.backends.cpu.weights import (
    WeightSet,
    is_matrix,
    map_weights,
    matrices_of,
    pack_weights,
    packed_bytes,
)
from engine.backends.interface import (
    Backend,
    CacheSpec,
    Capabilities,
    LoadedWeights,
    MemoryEstimate,
    Probe,
    Progress,
)
from engine.errors import CauserieError, OutOfMemoryError
from engine.gguf.tensor_types import SUPPORTED_TYPES
from engine.graph.operations import OPERATIONS
from engine.graph.plan import Plan
from engine.kernels.loader import current_level, load_kernel
from engine.kernels.mapped import MappedWeight
from engine.memory import free_memory, readable_bytes, usable_cores
from engine.tensor import Tensor

log = logging.getLogger(__name__)


class CpuBackend(Backend):
    """Computes on this machine's processor, with one thread per physical core by default."""

    name = "cpu"

    def __init__(self, threads: int | None = None, repack: bool = True) -> None:
        super().__init__(threads or usable_cores(), repack)

    @classmethod
    def probe(cls) -> Probe:
        try:
            level = current_level()
            load_kernel("rms_norm")
        except CauserieError as error:
            return Probe(False, str(error), "", free_memory())
        except Exception as error:  # a probe never raises, whatever a broken installation does
            log.exception("the cpu backend could not be probed")
            return Probe(False, f"The kernels cannot be loaded: {error}.", "", free_memory())
        return Probe(True, "", f"CPU ({level}, {usable_cores()} cores)", free_memory())

    def capabilities(self) -> Capabilities:
        return Capabilities(frozenset(SUPPORTED_TYPES), frozenset(OPERATIONS))

    def estimate_memory(self, weights: Mapping[str, Tensor], spec: CacheSpec, plan: Plan) -> MemoryEstimate:
        ropes = {
            rope_key(step.node): int(step.node.attributes["n_dims"])
            for step in plan.steps
            if step.node.operation == "rope"
        }
        tables = sum(table_bytes(spec.context_size, n_dims) for n_dims in ropes.values())
        max_columns = max((tensor.shape[-1] for tensor in weights.values() if is_matrix(tensor)), default=1)
        matrices = [] if self.repack else [m for tensor in weights.values() for m in matrices_of(tensor)]
        mapped = [MappedWeight(matrix) for matrix in matrices]
        try:
            scratch = scratch_bytes(plan, max_columns, spec, self.threads or 1, mapped)
        except MemoryError as error:
            raise OutOfMemoryError(
                f"A context of {spec.context_size:,} tokens needs more memory than this computer has; "
                f"{readable_bytes(free_memory())} are free."
            ) from error
        return MemoryEstimate(
            weights=sum(packed_bytes(t) for t in weights.values() if self.repack or not is_matrix(t)),
            kv_cache=cache_bytes(spec),
            arena=plan.arena_bytes + tables + scratch,
            mapped=sum(weight.tensor.nbytes for weight in mapped),
        )

    def load_weights(self, weights: Mapping[str, Tensor], progress: Progress) -> LoadedWeights:
        self.require_types(weights)
        threads = self.threads or 1
        taken = pack_weights(weights, threads, progress) if self.repack else map_weights(weights, progress)
        return CpuWeights(taken, threads)

    def close(self) -> None:
        """Nothing to free: the weights and contexts hold all the memory."""


class CpuWeights(LoadedWeights):
    """Weights re-laid for the kernels, or in the file's map."""

    def __init__(self, weights: WeightSet, threads: int) -> None:
        self._weights: WeightSet | None = weights
        self._huge_pages = HugePages(weights.arena.memory)
        self._threads = threads
        self.nbytes = weights.nbytes

    def new_context(self, spec: CacheSpec) -> CpuContext:
        if self._weights is None:
            raise ValueError("these weights were closed")
        needed, free = cache_bytes(spec), free_memory()
        if needed > free:
            raise OutOfMemoryError(
                f"A context of {spec.context_size:,} tokens needs {readable_bytes(needed)} for its KV cache; "
                f"{readable_bytes(free)} are free."
            )
        return CpuContext(self._weights, spec, self._threads)

    def settle(self) -> None:
        self._huge_pages.wait()

    def close(self) -> None:
        self._huge_pages.stop()
        self._weights = None
