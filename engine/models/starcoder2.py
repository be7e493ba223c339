"""The starcoder2 family: StarCoder2, and Granite code models converted to it.

The llama family's order of things, with layer norms, biases everywhere and GELU in its tanh form without a
gate; some files have a sliding window in every layer.  Source: Lozhkov et al., "StarCoder 2 and The Stack v2"
(2024), and `Starcoder2ForCausalLM` of transformers.
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.parts import (
    NORMS,
    PROJECTIONS,
    attended,
    output_logits,
    plain_feed_forward,
    query_key_value,
    require_biases,
    rotated,
)


def begin(graph: Graph, model: ModelDescription) -> Node:
    return graph.embed(graph.tokens(), "token_embd.weight", model.n_vocabulary, model.width)


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    require_biases(graph, block, *NORMS, *PROJECTIONS)
    h = graph.layer_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    q = rotated(graph, model, q, "attn_q", index, "halves")
    k = rotated(graph, model, k, "attn_k", index, "halves")
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")
    h = graph.layer_norm(x, f"{block}ffn_norm.weight", model.norm_epsilon)
    h = plain_feed_forward(graph, model, h, block, "gelu")
    return graph.add(h, x, f"{block}after feed-forward")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    require_biases(graph, "", "output_norm")
    return output_logits(graph, model, x, "layer_norm")
