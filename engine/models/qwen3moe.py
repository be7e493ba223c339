"""The qwen3moe family: Qwen3-30B-A3B and its kin.

The qwen3 family with experts, whose weights are divided by their sum, and none that is shared.  Source: Yang
et al., "Qwen3 Technical Report" (2025).
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.expert_parts import expert_feed_forward
from engine.models.llama import begin as begin
from engine.models.llama import end as end
from engine.models.parts import attended, query_key_value, rotated


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    epsilon = model.norm_epsilon
    h = graph.rms_norm(x, f"{block}attn_norm.weight", epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    q = graph.rms_norm(q, f"{block}attn_q_norm.weight", epsilon)
    k = graph.rms_norm(k, f"{block}attn_k_norm.weight", epsilon)
    q = rotated(graph, model, q, "attn_q", index, "halves")
    k = rotated(graph, model, k, "attn_k", index, "halves")
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")

    h = graph.rms_norm(x, f"{block}ffn_norm.weight", epsilon)
    return graph.add(expert_feed_forward(graph, model, h, block), x, f"{block}after feed-forward")
