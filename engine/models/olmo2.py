"""The olmo2 family: OLMo 2, and OLMo 3 with sliding windows in three layers of four.

Norms stand after each half of a layer and none before; q and k are normed over their full width, all heads
together; RoPE on halves.  Source: Team OLMo, "2 OLMo 2 Furious" (2025).
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.llama import begin as begin
from engine.models.llama import end as end
from engine.models.parts import attended, feed_forward, query_key_value, rotated


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    epsilon = model.norm_epsilon
    q, k, v = query_key_value(graph, model, x, block)
    q = normed_over_all_heads(graph, q, f"{block}attn_q_norm.weight", epsilon)
    k = normed_over_all_heads(graph, k, f"{block}attn_k_norm.weight", epsilon)
    q = rotated(graph, model, q, "attn_q", index, "halves")
    k = rotated(graph, model, k, "attn_k", index, "halves")
    a = attended(graph, model, q, k, v, index)
    a = graph.rms_norm(a, f"{block}post_attention_norm.weight", epsilon)
    x = graph.add(a, x, f"{block}after attention")

    h = feed_forward(graph, model, x, block, "silu")
    h = graph.rms_norm(h, f"{block}post_ffw_norm.weight", epsilon)
    return graph.add(h, x, f"{block}after feed-forward")


def normed_over_all_heads(graph: Graph, x: Node, weight: str, epsilon: float) -> Node:
    """x: float32[n, heads, head_size]; the weight is float32[heads * head_size]."""
    n, n_heads, size = x.shape
    flat = graph.rms_norm(graph.view(x, n, n_heads * size), weight, epsilon)
    return graph.view(flat, n, n_heads, size)
