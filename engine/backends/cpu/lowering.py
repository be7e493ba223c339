"""From a node to the kernel call that computes it: one small function per operation.

To add an operation: a function here and its line in LOWERINGS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.backends.cpu.experts import lower_choose, lower_experts, lower_gate_tokens, lower_weigh
from engine.backends.cpu.program import Call, Program
from engine.graph.operations import Node
from engine.graph.plan import is_view
from engine.kernels.activation import (
    bind_add,
    bind_gelu,
    bind_gelu_erf,
    bind_gelu_multiply,
    bind_scale,
    bind_silu_multiply,
    bind_soft_cap,
)
from engine.kernels.attention import bind_attention
from engine.kernels.layer_kv import bind_store_kv
from engine.kernels.linear import bind_linear
from engine.kernels.mapped import MappedWeight, bind_mapped_linear, mapped_rows
from engine.kernels.normalise import bind_layer_norm, bind_rms_norm
from engine.kernels.packing import unpack_rows
from engine.kernels.rotary import bind_rope

if TYPE_CHECKING:
    from engine.backends.cpu.context import CpuContext
    from engine.backends.cpu.weights import Matrix

Floats = NDArray[np.float32]


def lower(context: CpuContext, program: Program, node: Node) -> Call | None:
    """The call of a node, or None where nothing has to run."""
    if 0 in node.shape:
        return None
    return LOWERINGS[node.operation](context, program, node)


def _nothing(context: CpuContext, program: Program, node: Node) -> None:
    return None


def _rows(array: Floats) -> Floats:
    """[..., width] as [rows, width]."""
    return array.reshape(-1, array.shape[-1])


def _flat_heads(array: Floats) -> Floats:
    """[n, heads, head_size] as [n, heads * head_size]."""
    return array.reshape(array.shape[0], -1)


def _embed(context: CpuContext, program: Program, node: Node) -> Call:
    matrix = context.weights.matrices[node.weights[0]]
    scale = np.float32(node.attributes["scale"])
    return partial(_copy_rows, matrix, program.array(node.inputs[0]), scale, program.array(node))


def _embed_positions(context: CpuContext, program: Program, node: Node) -> Call:
    matrix = context.weights.matrices[node.weights[0]]
    return partial(_copy_rows, matrix, program.positions, np.float32(1), program.array(node))


def _copy_rows(matrix: Matrix, tokens: NDArray[np.int32], scale: np.float32, out: Floats) -> None:
    rows = mapped_rows(matrix, tokens) if isinstance(matrix, MappedWeight) else unpack_rows(matrix, tokens)
    np.multiply(rows, scale, out=out)


def _rms_norm(context: CpuContext, program: Program, node: Node) -> Call:
    weight = context.weights.vectors[node.weights[0]]
    x, out = _rows(program.array(node.inputs[0])), _rows(program.array(node))
    return bind_rms_norm(x, weight, out, float(node.attributes["epsilon"]), context.threads)


def _layer_norm(context: CpuContext, program: Program, node: Node) -> Call:
    weight, *bias = (context.weights.vectors[name] for name in node.weights)
    x, out = _rows(program.array(node.inputs[0])), _rows(program.array(node))
    epsilon = float(node.attributes["epsilon"])
    return bind_layer_norm(x, weight, bias[0] if bias else None, out, epsilon, context.threads)


def _linear(context: CpuContext, program: Program, node: Node) -> Call:
    matrix = context.weights.matrices[node.weights[0]]
    x, out = program.array(node.inputs[0]), program.array(node)
    scratch, source = context.scratch, node.inputs[0]
    if isinstance(matrix, MappedWeight):
        return bind_mapped_linear(matrix, x, out, scratch.window, scratch.linear, context.threads, source)
    return bind_linear(matrix, x, out, scratch.linear, context.threads, source)


def _add_bias(context: CpuContext, program: Program, node: Node) -> Call:
    bias, x = context.weights.vectors[node.weights[0]], program.array(node.inputs[0])
    return partial(np.add, x, bias, out=program.array(node))


def _rope(context: CpuContext, program: Program, node: Node) -> Call:
    x, out = program.array(node.inputs[0]), program.array(node)
    cos, sin = context.rope_table(node)
    interleaved = node.attributes["mode"] == "interleaved"
    return bind_rope(
        _flat_heads(x),
        _flat_heads(out),
        program.positions,
        cos,
        sin,
        x.shape[-1],
        interleaved,
        context.threads,
    )


def _grow_with_position(context: CpuContext, program: Program, node: Node) -> Call:
    x, out = program.array(node.inputs[0]), program.array(node)
    scale, length = float(node.attributes["scale"]), float(node.attributes["length"])
    factors = np.empty(len(x), np.float64)

    def call() -> None:
        np.floor_divide(program.positions, length, out=factors)
        np.log1p(factors, out=factors)
        np.multiply(factors, scale, out=factors)
        np.add(factors, 1.0, out=factors)
        np.multiply(x, factors[:, None, None].astype(np.float32), out=out)

    return call


def _store_kv(context: CpuContext, program: Program, node: Node) -> Call:
    k, v = (program.array(source) for source in node.inputs)
    store = context.cache.layers[int(node.attributes["layer"])]
    return bind_store_kv(k, v, program.positions, program.sequences, store)


def _attention(context: CpuContext, program: Program, node: Node) -> Call:
    at = node.attributes
    q, out = program.array(node.inputs[0]), program.array(node)
    n, n_heads, head_size = node.shape
    scratch = context.scratch.attention(n, (n_heads, int(at["n_kv_heads"]), head_size))
    return bind_attention(
        q,
        out,
        program.positions,
        program.sequences,
        context.cache.layers[int(at["layer"])],
        scratch,
        int(at["window"]),
        float(at["scale"]),
        float(at["soft_cap"]),
        context.weights.vectors[node.weights[0]] if node.weights else None,
    )


def _gate(context: CpuContext, program: Program, node: Node) -> Call:
    gate, up = (program.array(source) for source in node.inputs)
    bind = bind_silu_multiply if node.attributes["activation"] == "silu" else bind_gelu_multiply
    return bind(gate, up, program.array(node), context.threads)


def _activate(context: CpuContext, program: Program, node: Node) -> Call:
    bind = bind_gelu if node.attributes["activation"] == "gelu" else bind_gelu_erf
    return bind(program.array(node.inputs[0]), program.array(node), context.threads)


def _scale(context: CpuContext, program: Program, node: Node) -> Call:
    return bind_scale(program.array(node.inputs[0]), program.array(node), float(node.attributes["factor"]))


def _columns(context: CpuContext, program: Program, node: Node) -> Call | None:
    if is_view(node):
        return None
    start, out = int(node.attributes["start"]), program.array(node)
    part = program.array(node.inputs[0])[:, start : start + node.shape[1]]
    return partial(np.copyto, out, part)


def _add(context: CpuContext, program: Program, node: Node) -> Call:
    a, b = (program.array(source) for source in node.inputs)
    return bind_add(a, b, program.array(node))


def _soft_cap(context: CpuContext, program: Program, node: Node) -> Call:
    x = program.array(node.inputs[0])
    return bind_soft_cap(x, program.array(node), float(node.attributes["cap"]), context.threads)


def _select(context: CpuContext, program: Program, node: Node) -> Call:
    x = program.array(node.inputs[0])
    return partial(np.take, x, program.outputs, axis=0, out=program.array(node), mode="clip")


LOWERINGS: Mapping[str, Callable[[CpuContext, Program, Node], Call | None]] = {
    "tokens": _nothing,
    "hidden": _nothing,
    "view": _nothing,
    "columns": _columns,
    "embed": _embed,
    "embed_positions": _embed_positions,
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "linear": _linear,
    "add_bias": _add_bias,
    "rope": _rope,
    "grow_with_position": _grow_with_position,
    "store_kv": _store_kv,
    "attention": _attention,
    "gate": _gate,
    "choose_experts": lower_choose,
    "weigh_experts": lower_weigh,
    "experts": lower_experts,
    "gate_tokens": lower_gate_tokens,
    "activate": _activate,
    "add": _add,
    "scale": _scale,
    "soft_cap": _soft_cap,
    "select": _select,
}
