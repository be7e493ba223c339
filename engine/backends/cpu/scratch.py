"""Working memory of kernels, allocated once per context and shared by all of its plans."""

from __future__ import annotations

from collections.abc import Iterable

from engine.backends.interface import CacheSpec
from engine.graph.plan import Plan
from engine.kernels.attention import AttentionScratch
from engine.kernels.linear import LinearScratch

HeadShape = tuple[int, int, int]
"""n_heads, n_kv_heads, head_size."""


class Scratch:
    """linear serves every product of the context; attention has one piece for writing, one for prompts."""

    def __init__(self, max_columns: int, spec: CacheSpec, threads: int) -> None:
        self._max_batch = spec.max_batch
        self._threads = threads
        self.linear = LinearScratch.allocate(spec.max_batch, max_columns, threads)
        self._attention: dict[tuple[int, HeadShape], AttentionScratch] = {}

    def attention(self, n_tokens: int, shape: HeadShape) -> AttentionScratch:
        """For n_tokens queries.  A single one has a layout of its own."""
        key = (1 if n_tokens == 1 else self._max_batch, shape)
        if key not in self._attention:
            self._attention[key] = AttentionScratch.allocate(key[0], *shape, self._threads)
        return self._attention[key]

    def clear(self) -> None:
        """Gives the memory back; nothing can be bound afterwards."""
        self.linear = LinearScratch.allocate(1, 1, 1)
        self._attention.clear()

    @property
    def nbytes(self) -> int:
        return self.linear.nbytes + sum(scratch.nbytes for scratch in self._attention.values())


def head_shapes(plan: Plan) -> Iterable[HeadShape]:
    """The different shapes of heads in a plan."""
    return {
        (step.node.shape[1], int(step.node.attributes["n_kv_heads"]), step.node.shape[2])
        for step in plan.steps
        if step.node.operation == "attention"
    }


def scratch_bytes(plan: Plan, max_columns: int, spec: CacheSpec, threads: int) -> int:
    """Bytes that the scratch of a context comes to.  It is made and dropped again: a few untouched MB."""
    scratch = Scratch(max_columns, spec, threads)
    for shape in head_shapes(plan):
        scratch.attention(1, shape)
        scratch.attention(spec.max_batch, shape)
    return scratch.nbytes
