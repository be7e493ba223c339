"""The qwen2 family: Qwen 1.5 to 2.5 and models made from them.

The llama family with RoPE on halves and biases on q, k and v.  Source: Yang et al., "Qwen2 Technical Report"
(2024).
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.llama import begin as begin
from engine.models.llama import end as end
from engine.models.parts import attended, feed_forward, query_key_value, rotated


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    h = graph.rms_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    q = rotated(graph, model, q, "attn_q", index, "halves")
    k = rotated(graph, model, k, "attn_k", index, "halves")
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")

    h = graph.rms_norm(x, f"{block}ffn_norm.weight", model.norm_epsilon)
    return graph.add(feed_forward(graph, model, h, block, "silu"), x, f"{block}after feed-forward")
