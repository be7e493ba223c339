"""The falcon family: Falcon 7B, 11B, 40B and 180B.

Attention and feed-forward read the same layer norm, or one each where there is an ``attn_norm_2`` for
attention, and are added together to what came in.  Fused q, k and v (7B: one key and value for all heads), no
biases but those of norms, GELU in its exact form, without a gate.  Source: Almazrouei et al., "The Falcon
Series of Open Language Models" (2023), and `FalconForCausalLM` of transformers; llama.cpp takes the tanh
form.
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.parts import (
    NORMS,
    attended,
    has_norm,
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
    require_biases(graph, block, *NORMS)
    h = graph.layer_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    read = h
    if has_norm(graph, f"{block}attn_norm_2"):
        read = graph.layer_norm(x, f"{block}attn_norm_2.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, read, block)
    q = rotated(graph, model, q, "attn_q", index, "halves")
    k = rotated(graph, model, k, "attn_k", index, "halves")
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")
    h = plain_feed_forward(graph, model, h, block, "gelu_erf")
    return graph.add(h, x, f"{block}after feed-forward")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    require_biases(graph, "", "output_norm")
    return output_logits(graph, model, x, "layer_norm")
