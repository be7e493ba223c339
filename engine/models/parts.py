"""Pieces that several families share."""

from __future__ import annotations

from typing import Literal

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription

ROPE_FACTORS = "rope_freqs.weight"
"""Divide the frequencies of all pairs (Llama 3's long contexts); most files have none."""
LONG_FACTORS = ("rope_factors_short.weight", "rope_factors_long.weight")
"""The same of LongRoPE, for short and for long contexts."""


def heads(graph: Graph, model: ModelDescription, x: Node, weight: str, n_heads: int) -> Node:
    """[n, width] -> [n, n_heads, head_size]."""
    y = graph.linear(x, weight, n_heads * model.head_size)
    return graph.view(y, graph.batch.n_tokens, n_heads, model.head_size)


def rotated(
    graph: Graph,
    model: ModelDescription,
    x: Node,
    name: str,
    layer: int,
    mode: Literal["interleaved", "halves"],
) -> Node:
    """Heads [n, n_heads, head_size] turned by their positions, as the description says for the layer."""
    rope = model.rope_of(layer)
    factors = LONG_FACTORS[rope.long] if rope.kind == "longrope" else ROPE_FACTORS
    return graph.rope(
        x,
        f"blk.{layer}.{name} rope",
        mode=mode,
        base=rope.base,
        n_dims=rope.n_dims,
        scale=rope.scale,
        length=rope.attention_factor,
        ramp=rope.ramp,
        factors=factors if graph.has(factors) else None,
    )


def feed_forward(
    graph: Graph, model: ModelDescription, x: Node, block: str, activation: Literal["silu", "gelu"]
) -> Node:
    """down(activation(gate x) * up x)."""
    gate = graph.linear(x, f"{block}ffn_gate.weight", model.feed_forward)
    up = graph.linear(x, f"{block}ffn_up.weight", model.feed_forward)
    return graph.linear(graph.gate(gate, up, activation), f"{block}ffn_down.weight", model.width)


def output_logits(graph: Graph, model: ModelDescription, x: Node) -> Node:
    """The last norm and the output projection, for the tokens whose logits are wanted.

    A file without ``output.weight`` uses the embedding for it (tied weights).
    """
    x = graph.select(x)
    x = graph.rms_norm(x, "output_norm.weight", model.norm_epsilon)
    output = "output.weight" if graph.has("output.weight") else "token_embd.weight"
    logits = graph.linear(x, output, model.n_vocabulary)
    return graph.soft_cap(logits, model.final_soft_cap) if model.final_soft_cap else logits
