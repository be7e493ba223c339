"""Working memory of layers with experts, shared by all of one shape."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeVar

import numpy as np

from engine.graph.plan import Plan

Bound = TypeVar("Bound")

BOUND_KEPT = 64
"""Numbers of tokens of an expert whose calls stay bound: most come again in the next layer or batch."""


class ExpertShape(NamedTuple):
    width: int
    feed_forward: int
    n_used: int


class ExpertScratch:
    """What some tokens of one expert, or the experts of one token, are computed in.

    x: float32[max_tokens, width]; gate and up: float32[rows, feed_forward]; down: float32[rows, width];
    tokens: int32[rows]; weights: float32[rows], with rows for max_tokens tokens or n_used experts.
    bound: calls that work in these arrays and serve every layer of the same form.
    """

    def __init__(self, max_tokens: int, shape: ExpertShape) -> None:
        rows = max(max_tokens, shape.n_used)
        self.x = np.zeros((max_tokens, shape.width), np.float32)
        self.gate = np.zeros((rows, shape.feed_forward), np.float32)
        self.up = np.zeros((rows, shape.feed_forward), np.float32)
        self.down = np.zeros((rows, shape.width), np.float32)
        self.tokens = np.zeros(rows, np.int32)
        self.weights = np.zeros(rows, np.float32)
        self.bound: OrderedDict[Hashable, object] = OrderedDict()

    def keep(self, key: Hashable, make: Callable[[], Bound]) -> Bound:
        """What make gave for the key, if it is among the last few used, or gives now."""
        if key not in self.bound:
            self.bound[key] = make()
            if len(self.bound) > BOUND_KEPT:
                self.bound.popitem(last=False)
        self.bound.move_to_end(key)
        return self.bound[key]  # type: ignore[return-value]

    @property
    def nbytes(self) -> int:
        arrays = (self.x, self.gate, self.up, self.down, self.tokens, self.weights)
        return sum(array.nbytes for array in arrays)


def expert_shapes(plan: Plan) -> Iterable[ExpertShape]:
    """The different shapes of layers with experts in a plan."""
    return {
        ExpertShape(node.shape[1], int(node.attributes["feed_forward"]), node.inputs[1].shape[1])
        for node in (step.node for step in plan.steps)
        if node.operation == "experts"
    }
