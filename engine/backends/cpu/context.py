"""A context of the cpu backend: KV cache, arena, and plans bound to them.

Binding a plan checks every shape once and leaves a list of calls without arguments, so that writing a token
costs a loop over that list.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.backends.batches import check_tokens, lengths_after
from engine.backends.cpu.arena import aligned_memory
from engine.backends.cpu.kv_cache import KVCache
from engine.backends.cpu.lowering import lower
from engine.backends.cpu.program import Program
from engine.backends.cpu.rope_table import rope_key, rope_table
from engine.backends.cpu.scratch import Scratch
from engine.backends.cpu.weights import WeightSet
from engine.backends.interface import Batch, CacheSpec, Context, ShouldStop
from engine.graph.operations import Node
from engine.graph.plan import Plan

PROGRAMS_KEPT = 16
"""Bound plans of different batch shapes: as many as a model keeps plans."""

RopeTable = tuple[NDArray[np.float32], NDArray[np.float32]]


class CpuContext(Context):
    """See `Context`; not for two threads at once."""

    def __init__(self, weights: WeightSet, spec: CacheSpec, threads: int) -> None:
        self.weights = weights
        self.threads = threads
        self.spec = spec
        self.cache = KVCache(spec)
        self._closed = False
        self._arena = np.empty(0, np.uint8)
        self.scratch = Scratch(weights.max_columns, spec, threads, weights.mapped)
        self._programs: OrderedDict[Plan, Program] = OrderedDict()
        self._rope_tables: dict[tuple[object, ...], RopeTable] = {}

    def run(self, plan: Plan, batch: Batch, should_stop: ShouldStop | None = None) -> NDArray[np.float32]:
        if self._closed:
            raise ValueError("this context was closed")
        self.weights.require_whole()
        lengths = lengths_after(plan, batch, self.spec, self.cache.lengths)
        self._check_tokens(plan, batch)
        program = self._programs.get(plan)
        if program is None:
            program = Program(plan, self._arena_of(plan.arena_bytes), partial(lower, self))
            self._programs[plan] = program
            if len(self._programs) > PROGRAMS_KEPT:
                self._programs.popitem(last=False)
        self._programs.move_to_end(plan)
        for sequence, length in lengths.items():
            self.cache.expect(sequence, length)
        program.run(batch, should_stop)
        for sequence, length in lengths.items():
            self.cache.advance(sequence, length)
        return program.result

    def _check_tokens(self, plan: Plan, batch: Batch) -> None:
        embed = next((step.node for step in plan.steps if step.node.operation == "embed"), None)
        if embed is not None:
            check_tokens(plan, batch, self.weights.matrices[embed.weights[0]].rows)

    def _arena_of(self, nbytes: int) -> NDArray[np.uint8]:
        """At least nbytes, 64-byte aligned.  Plans share it: only one runs at a time."""
        if self._arena.nbytes < nbytes:
            self._programs.clear()
            self._arena = aligned_memory(nbytes)
        return self._arena

    def rope_table(self, node: Node) -> RopeTable:
        """The table for a rope node, made once per kind of rotation."""
        key = rope_key(node)
        if key not in self._rope_tables:
            factors = self.weights.vectors[node.weights[0]] if node.weights else None
            self._rope_tables[key] = rope_table(self.spec.context_size, node, factors)
        return self._rope_tables[key]

    @property
    def nbytes(self) -> int:
        """Bytes held by now: KV cache, scratch, arena, rope tables; the first runs add to the last three."""
        tables = sum(table.nbytes for pair in self._rope_tables.values() for table in pair)
        return self.cache.nbytes + self.scratch.nbytes + self._arena.nbytes + tables

    def truncate(self, sequence: int, length: int) -> int:
        return self.cache.truncate(sequence, length)

    def close(self) -> None:
        self._closed = True
        self._programs.clear()
        self._rope_tables.clear()
        self.cache.layers.clear()
        self.scratch.clear()
        self._arena = np.empty(0, np.uint8)
