"""The mistral3 family: Ministral 3 and its kin.

The llama family; beyond the context it was first trained for, queries grow with the logarithm of their
position.  Source: Mistral AI's published implementation in `transformers` (ministral3), after Meta's Llama 4.
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
    q = rotated(graph, model, q, "attn_q", index, "interleaved")
    k = rotated(graph, model, k, "attn_k", index, "interleaved")
    if model.temperature_scale:
        q = graph.grow_with_position(q, model.temperature_scale, model.temperature_length)
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")

    h = graph.rms_norm(x, f"{block}ffn_norm.weight", model.norm_epsilon)
    return graph.add(feed_forward(graph, model, h, block, "silu"), x, f"{block}after feed-forward")
