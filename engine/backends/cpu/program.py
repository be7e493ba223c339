"""A plan bound to a context: a list of calls without arguments.

Every step is lowered once (`engine.backends.cpu.lowering`), where the kernels' wrappers check the shapes.
A batch is copied into the arrays that the calls were bound to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.backends.interface import Batch, ShouldStop
from engine.errors import Cancelled
from engine.graph.operations import Node
from engine.graph.plan import NO_BYTES, Plan

Call = Callable[[], object]
Lower = Callable[["Program", Node], Call | None]
"""Gives the call of a node, or None where nothing has to run (views, inputs, empty results)."""


class Program:
    """A bound plan. result: float32[n_outputs, vocabulary] in the arena, overwritten by the next run."""

    def __init__(self, plan: Plan, arena: NDArray[np.uint8], lower: Lower) -> None:
        self.tokens = np.zeros(plan.n_tokens, np.int32)
        self.positions = np.zeros(plan.n_tokens, np.int32)
        self.sequences = np.zeros(plan.n_tokens, np.int32)
        self.outputs = np.zeros(plan.n_outputs, np.int32)
        self._arena = arena
        self._arrays: dict[Node, NDArray[Any]] = {}
        self.hidden: NDArray[np.float32] | None = None
        self._calls: list[Call] = []
        self._should_stop: ShouldStop | None = None
        for step in plan.steps:
            self._arrays[step.node] = self._array_of(step.node, step.offset)
        for step in plan.steps:
            call = lower(self, step.node)
            if call is not None:
                self._calls.append(call)
        self.result: NDArray[np.float32] = self._arrays[plan.result]

    def _array_of(self, node: Node, offset: int) -> NDArray[Any]:
        if node.operation == "tokens":
            return self.tokens
        if node.operation == "hidden":
            self.hidden = np.zeros(node.shape, np.float32)
            return self.hidden
        if node.operation == "view":
            return self._arrays[node.inputs[0]].reshape(node.shape)
        if offset == NO_BYTES:
            return np.zeros(node.shape, np.float32)
        return self._arena[offset : offset + node.nbytes].view(node.dtype).reshape(node.shape)

    def array(self, node: Node) -> NDArray[Any]:
        """Where a node's result lies."""
        return self._arrays[node]

    def run(self, batch: Batch, should_stop: ShouldStop | None = None) -> None:
        """should_stop is asked before each call, and by calls that take long.  Raises `Cancelled`."""
        self._should_stop = should_stop
        self.tokens[:] = batch.tokens
        self.positions[:] = batch.positions
        self.sequences[:] = batch.sequences
        self.outputs[:] = batch.outputs
        if self.hidden is not None:
            if batch.hidden is None:
                raise ValueError("this plan begins with hidden states, and the batch has none")
            self.hidden[:] = batch.hidden
        for call in self._calls:
            self.stop_if_asked()
            call()

    def stop_if_asked(self) -> None:
        """Raises `Cancelled` where the batch is no longer wanted."""
        if self._should_stop is not None and self._should_stop():
            raise Cancelled("The batch was cancelled.")
