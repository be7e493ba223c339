"""The phi3 family: Phi-3, Phi-3.5 and Phi-4 with their mini models.

The llama family with RoPE on halves (on a part of each head in Phi-4-mini), LongRoPE factors, one weight for
q, k and v, and one for gate and up.  Source: Abdin et al., "Phi-3 Technical Report" (2024).
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
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
    both = graph.linear(h, f"{block}ffn_up.weight", 2 * model.feed_forward)
    gate = graph.columns(both, 0, model.feed_forward)
    up = graph.columns(both, model.feed_forward, 2 * model.feed_forward)
    h = graph.linear(graph.gate(gate, up, "silu"), f"{block}ffn_down.weight", model.width)
    return graph.add(h, x, f"{block}after feed-forward")
