"""Working memory of kernels, allocated once per context and shared by all of its plans."""

from __future__ import annotations

from collections.abc import Iterable

from engine.backends.cpu.expert_scratch import ExpertScratch, ExpertShape, expert_shapes
from engine.backends.interface import CacheSpec
from engine.graph.plan import Plan
from engine.kernels.attention import SPLIT_TOKENS, AttentionScratch
from engine.kernels.layer_kv import TILE
from engine.kernels.linear_scratch import LinearScratch
from engine.kernels.mapped import MappedWeight, Window

HeadShape = tuple[int, int, int]
"""n_heads, n_kv_heads, head_size."""


class Scratch:
    """linear serves every product of the context, window those with weights in a file's map;
    attention has pieces for one token, for a few, and for prompts; experts one for each shape of layers."""

    def __init__(
        self, max_columns: int, spec: CacheSpec, threads: int, mapped: Iterable[MappedWeight] = ()
    ) -> None:
        self._max_batch = spec.max_batch
        self._context_size = -(-spec.context_size // TILE) * TILE
        self._threads = threads
        self.linear = LinearScratch.allocate(spec.max_batch, max_columns, threads)
        self.window = Window(mapped, spec.max_batch, threads)
        self._attention: dict[tuple[int, HeadShape], AttentionScratch] = {}
        self._experts: dict[ExpertShape, ExpertScratch] = {}

    def attention(self, n_tokens: int, shape: HeadShape) -> AttentionScratch:
        """For n_tokens queries, as `attention_sizes` tells."""
        size = next(size for size in attention_sizes(self._max_batch) if n_tokens <= size)
        if (size, shape) not in self._attention:
            made = AttentionScratch.allocate(size, self._context_size, *shape, self._threads)
            self._attention[size, shape] = made
        return self._attention[size, shape]

    def experts(self, shape: ExpertShape) -> ExpertScratch:
        if shape not in self._experts:
            self._experts[shape] = ExpertScratch(self._max_batch, shape)
        return self._experts[shape]

    def clear(self) -> None:
        """Gives the memory back; nothing can be bound afterwards."""
        self.linear = LinearScratch.allocate(1, 1, 1)
        self.window = Window((), 1, 1)
        self._attention.clear()
        self._experts.clear()

    @property
    def nbytes(self) -> int:
        products = self.linear.nbytes + self.window.nbytes
        experts = sum(scratch.nbytes for scratch in self._experts.values())
        return products + experts + sum(scratch.nbytes for scratch in self._attention.values())


def attention_sizes(max_batch: int) -> tuple[int, ...]:
    """Batch sizes that attention has scratch for, ascending: one token, as many as split the context, all."""
    return tuple(sorted({1, min(SPLIT_TOKENS, max_batch), max_batch}))


def head_shapes(plan: Plan) -> Iterable[HeadShape]:
    """The different shapes of heads in a plan."""
    return {
        (step.node.shape[1], int(step.node.attributes["n_kv_heads"]), step.node.shape[2])
        for step in plan.steps
        if step.node.operation == "attention"
    }


def scratch_bytes(
    plan: Plan, max_columns: int, spec: CacheSpec, threads: int, mapped: Iterable[MappedWeight] = ()
) -> int:
    """Bytes that the scratch of a context comes to.  It is made and dropped again: a few untouched MB."""
    scratch = Scratch(max_columns, spec, threads, mapped)
    for shape in head_shapes(plan):
        for size in attention_sizes(spec.max_batch):
            scratch.attention(size, shape)
    for experts in expert_shapes(plan):
        scratch.experts(experts)
    return scratch.nbytes
