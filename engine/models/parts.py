"""Pieces that several families share."""

from __future__ import annotations

from typing import Literal

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription


def heads(graph: Graph, model: ModelDescription, x: Node, weight: str, n_heads: int) -> Node:
    """[n, width] -> [n, n_heads, head_size]."""
    y = graph.linear(x, weight, n_heads * model.head_size)
    return graph.view(y, graph.batch.n_tokens, n_heads, model.head_size)


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
