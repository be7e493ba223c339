"""The gemma2 family.

Beside the gemma family: norms after each half of a layer too, every other layer with a sliding window, and
soft caps on attention scores and logits.  Source: Gemma Team, "Gemma 2: Improving Open Language Models at a
Practical Size" (2024).
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.gemma import begin as begin
from engine.models.parts import attended, feed_forward, output_logits, query_key_value, rotated


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    epsilon = model.norm_epsilon
    h = graph.rms_norm(x, f"{block}attn_norm.weight", epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    q = rotated(graph, model, q, "attn_q", index, "halves")
    k = rotated(graph, model, k, "attn_k", index, "halves")
    a = attended(graph, model, q, k, v, index)
    a = graph.rms_norm(a, f"{block}post_attention_norm.weight", epsilon)
    x = graph.add(a, x, f"{block}after attention")

    h = graph.rms_norm(x, f"{block}ffn_norm.weight", epsilon)
    h = feed_forward(graph, model, h, block, "gelu")
    h = graph.rms_norm(h, f"{block}post_ffw_norm.weight", epsilon)
    return graph.add(h, x, f"{block}after feed-forward")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    return output_logits(graph, model, x)
