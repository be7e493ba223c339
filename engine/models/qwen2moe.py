"""The qwen2moe family: Qwen1.5-MoE and Qwen2-57B-A14B.

The qwen2 family with experts, whose weights are not divided by their sum, and a shared expert, whose result
is multiplied with a gate of its own, one number for each token.  Source: Yang et al., "Qwen2 Technical
Report" (2024).
"""

from __future__ import annotations

from engine.graph.expert_operations import gate_tokens
from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.expert_parts import expert_feed_forward, shared_expert
from engine.models.llama import begin as begin
from engine.models.llama import end as end
from engine.models.parts import attended, query_key_value, rotated


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    h = graph.rms_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    q = rotated(graph, model, q, "attn_q", index, "halves")
    k = rotated(graph, model, k, "attn_k", index, "halves")
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")

    h = graph.rms_norm(x, f"{block}ffn_norm.weight", model.norm_epsilon)
    chosen = expert_feed_forward(graph, model, h, block)
    shared = gate_tokens(graph, h, shared_expert(graph, model, h, block), f"{block}ffn_gate_inp_shexp.weight")
    h = graph.add(chosen, shared, f"{block}both kinds of experts")
    return graph.add(h, x, f"{block}after feed-forward")
