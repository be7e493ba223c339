"""The olmoe family.

The llama family with experts, whose weights are not divided by their sum, RoPE on halves, and norms of q and
k over their full width, all heads together.  Source: Muennighoff et al., "OLMoE: Open Mixture-of-Experts
Language Models" (2024).
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.expert_parts import expert_feed_forward
from engine.models.llama import begin as begin
from engine.models.llama import end as end
from engine.models.olmo2 import normed_over_all_heads
from engine.models.parts import attended, query_key_value, rotated


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    epsilon = model.norm_epsilon
    h = graph.rms_norm(x, f"{block}attn_norm.weight", epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    q = normed_over_all_heads(graph, q, f"{block}attn_q_norm.weight", epsilon)
    k = normed_over_all_heads(graph, k, f"{block}attn_k_norm.weight", epsilon)
    q = rotated(graph, model, q, "attn_q", index, "halves")
    k = rotated(graph, model, k, "attn_k", index, "halves")
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")

    h = graph.rms_norm(x, f"{block}ffn_norm.weight", epsilon)
    return graph.add(expert_feed_forward(graph, model, h, block), x, f"{block}after feed-forward")
