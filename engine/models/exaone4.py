"""The exaone4 family.

Norms stand after each half of a layer and none before; the heads of q and k are normed; RoPE on halves.  A
model with sliding windows has them in three layers of four, and the layers that see everything turn nothing.
Source: LG AI Research, "EXAONE 4.0: Unified Large Language Models" (2025).
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
    q = graph.rms_norm(q, f"{block}attn_q_norm.weight", epsilon)
    k = graph.rms_norm(k, f"{block}attn_k_norm.weight", epsilon)
    if model.slides(index) or not model.sliding_window:
        q = rotated(graph, model, q, "attn_q", index, "halves")
        k = rotated(graph, model, k, "attn_k", index, "halves")
    a = attended(graph, model, q, k, v, index)
    a = graph.rms_norm(a, f"{block}post_attention_norm.weight", epsilon)
    x = graph.add(a, x, f"{block}after attention")

    h = feed_forward(graph, model, x, block, "silu")
    h = graph.rms_norm(h, f"{block}post_ffw_norm.weight", epsilon)
    return graph.add(h, x, f"{block}after feed-forward")
