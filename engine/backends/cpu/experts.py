"""Experts on the cpu backend.

Of one token only the chosen experts run, whose calls are all bound once.  The tokens of a prompt are grouped
by expert, so that each expert's weights are read once for all of its tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from engine.backends.cpu.expert_scratch import ExpertScratch, ExpertShape
from engine.backends.cpu.program import Call, Program
from engine.graph.expert_operations import ExpertTensors
from engine.graph.operations import Node
from engine.kernels.activation import bind_clamped_swiglu, bind_silu_multiply
from engine.kernels.experts import (
    bind_add_weighted_rows,
    bind_choose_experts,
    bind_weigh_experts,
    gate_tokens,
)
from engine.kernels.linear import linear_product
from engine.kernels.mapped import mapped_product
from engine.kernels.packing import PackedWeight

if TYPE_CHECKING:
    from engine.backends.cpu.context import CpuContext
    from engine.backends.cpu.weights import Matrix

Floats = NDArray[np.float32]
Multiply = Callable[["Matrix"], object]

ACTIVATIONS = {"silu": bind_silu_multiply, "clamped_swiglu": bind_clamped_swiglu}


def lower_choose(context: CpuContext, program: Program, node: Node) -> Call:
    return bind_choose_experts(program.array(node.inputs[0]), program.array(node), context.threads)


def lower_weigh(context: CpuContext, program: Program, node: Node) -> Call:
    scores, chosen = (program.array(source) for source in node.inputs)
    at = node.attributes
    return bind_weigh_experts(
        scores,
        chosen,
        program.array(node),
        sigmoid=at["gating"] == "sigmoid",
        normalised=bool(at["normalised"]),
        scale=float(at["scale"]),
        threads=context.threads,
    )


def lower_gate_tokens(context: CpuContext, program: Program, node: Node) -> Call:
    y, x = (program.array(source) for source in node.inputs)
    weight = context.weights.vectors[node.weights[0]].reshape(-1)
    return partial(gate_tokens, x, weight, y, program.array(node))


def lower_experts(context: CpuContext, program: Program, node: Node) -> Call:
    layer = ExpertLayer.of(context, node)
    x, chosen, weights = (program.array(source) for source in node.inputs)
    out = program.array(node)
    # whoever is bound after this finds other activations in the scratch memory than before
    context.scratch.linear.forget()
    if len(x) == 1:
        return OneToken(context, layer, x, chosen, weights, out).run
    return ManyTokens(context, program, layer, x, chosen, weights, out).run


@dataclass(frozen=True, slots=True)
class ExpertLayer:
    """Matrices, one for each expert, and biases float32[n_experts, out] of an experts node."""

    gate: tuple[Matrix, ...]
    up: tuple[Matrix, ...]
    down: tuple[Matrix, ...]
    biases: tuple[Floats, ...]
    activation: str
    scratch: ExpertScratch

    @classmethod
    def of(cls, context: CpuContext, node: Node) -> ExpertLayer:
        names, weights = ExpertTensors.of(node), context.weights
        feed_forward = int(node.attributes["feed_forward"])
        shape = ExpertShape(node.shape[1], feed_forward, node.inputs[1].shape[1])
        return cls(
            gate=weights.experts_of(names.gate),
            up=weights.experts_of(names.up),
            down=weights.experts_of(names.down),
            biases=tuple(weights.vectors[name] for name in names.biases),
            activation=str(node.attributes["activation"]),
            scratch=context.scratch.experts(shape),
        )

    @property
    def form(self) -> tuple[object, ...]:
        """What two layers have in common whose products differ in nothing but the weights."""
        firsts = (self.gate[0], self.up[0], self.down[0])
        return self.activation, *((type(first), first.type, first.rows, first.cols) for first in firsts)

    def bind_activation(self, n: int, threads: int) -> Call:
        """Of the first n rows of the scratch memory, into its gate."""
        gate, up = self.scratch.gate[:n], self.scratch.up[:n]
        return ACTIVATIONS[self.activation](gate, up, gate, threads)

    def add_biases(self, kinds: slice, expert: int, *results: Floats) -> None:
        """Of an expert to its results of these kinds, where the layer has biases."""
        for bias, result in zip(self.biases[kinds], results, strict=False):
            np.add(result, bias[expert], out=result)


GATE_AND_UP, DOWN = slice(0, 2), slice(2, 3)


def product_of(context: CpuContext, like: Matrix, x: Floats, y: Floats, source: object) -> Multiply:
    """y = x W^T for any W of the type and shape of ``like``; for source see `linear_product`."""
    linear, threads = context.scratch.linear, context.threads
    if isinstance(like, PackedWeight):
        product = linear_product(like, x, y, linear, threads, source)

        def multiply(matrix: PackedWeight) -> None:
            product(matrix.words)

        return cast(Multiply, multiply)

    return cast(Multiply, mapped_product(like, x, y, context.scratch.window, linear, threads, source))


class OneToken:
    """Each of the chosen experts has a row of the scratch memory: one activation and one sum serve all."""

    def __init__(
        self,
        context: CpuContext,
        layer: ExpertLayer,
        x: Floats,
        chosen: NDArray[np.int32],
        weights: Floats,
        out: Floats,
    ) -> None:
        scratch, n_used = layer.scratch, chosen.shape[1]
        rows = [slice(slot, slot + 1) for slot in range(n_used)]
        source = object()
        self.layer, self.chosen, self.out = layer, chosen[0], out
        self.gate_and_up = [
            (
                product_of(context, layer.gate[0], x, scratch.gate[row], source),
                product_of(context, layer.up[0], x, scratch.up[row], source),
            )
            for row in rows
        ]
        self.activate = layer.bind_activation(n_used, context.threads)
        self.down = [
            product_of(context, layer.down[0], scratch.gate[row], scratch.down[row], object()) for row in rows
        ]
        tokens = np.zeros(n_used, np.int32)
        self.add = bind_add_weighted_rows(scratch.down[:n_used], tokens, weights[0], out, context.threads)

    def run(self) -> None:
        layer, scratch = self.layer, self.layer.scratch
        experts = self.chosen.tolist()
        for slot, (expert, (gate, up)) in enumerate(zip(experts, self.gate_and_up, strict=True)):
            gate(layer.gate[expert])
            up(layer.up[expert])
            if layer.biases:
                layer.add_biases(GATE_AND_UP, expert, scratch.gate[slot], scratch.up[slot])
        self.activate()
        for slot, (expert, down) in enumerate(zip(experts, self.down, strict=True)):
            down(layer.down[expert])
            if layer.biases:
                layer.add_biases(DOWN, expert, scratch.down[slot])
        self.out[:] = 0
        self.add()


class Pass:
    """Some tokens through an expert, for any expert of layers of one form: from scratch.x to scratch.down."""

    def __init__(self, context: CpuContext, layer: ExpertLayer, n: int) -> None:
        scratch, source = layer.scratch, object()
        self.x, self.gate, self.up = scratch.x[:n], scratch.gate[:n], scratch.up[:n]
        self.down, self.tokens, self.weights = scratch.down[:n], scratch.tokens[:n], scratch.weights[:n]
        self.multiply_gate = product_of(context, layer.gate[0], self.x, self.gate, source)
        self.multiply_up = product_of(context, layer.up[0], self.x, self.up, source)
        self.activate = layer.bind_activation(n, context.threads)
        self.multiply_down = product_of(context, layer.down[0], self.gate, self.down, object())


class ManyTokens:
    """Expert by expert, in the order of their numbers."""

    def __init__(
        self,
        context: CpuContext,
        program: Program,
        layer: ExpertLayer,
        x: Floats,
        chosen: NDArray[np.int32],
        weights: Floats,
        out: Floats,
    ) -> None:
        self.context, self.program, self.layer = context, program, layer
        self.x, self.chosen, self.weights, self.out = x, chosen, weights, out
        self.form = layer.form

    def run(self) -> None:
        """Asks between two products whether to stop.  Raises `Cancelled`."""
        layer, threads, stop = self.layer, self.context.threads, self.program.stop_if_asked
        self.out[:] = 0
        for expert, places in self.groups():
            n = len(places)
            pass_ = layer.scratch.keep((self.form, n), partial(Pass, self.context, layer, n))
            np.floor_divide(places, self.chosen.shape[1], out=pass_.tokens, casting="same_kind")
            np.take(self.weights.reshape(-1), places, out=pass_.weights, mode="clip")
            np.take(self.x, pass_.tokens, axis=0, out=pass_.x, mode="clip")
            pass_.multiply_gate(layer.gate[expert])
            stop()
            pass_.multiply_up(layer.up[expert])
            stop()
            layer.add_biases(GATE_AND_UP, expert, pass_.gate, pass_.up)
            pass_.activate()
            pass_.multiply_down(layer.down[expert])
            layer.add_biases(DOWN, expert, pass_.down)
            bind_add_weighted_rows(pass_.down, pass_.tokens, pass_.weights, self.out, threads)()
            stop()

    def groups(self) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Each expert that any token has chosen, with the places in `chosen` where it stands."""
        chosen = self.chosen.reshape(-1)
        order = np.argsort(chosen, kind="stable")
        ends = np.cumsum(np.bincount(chosen, minlength=len(self.layer.gate))).tolist()
        first = 0
        for expert, end in enumerate(ends):
            if end > first:
                yield expert, order[first:end]
            first = end
