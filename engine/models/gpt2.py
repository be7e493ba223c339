"""The gpt2 family: GPT-2, DistilGPT2 and their kin.

Learned embeddings of positions are added at the begin, and nothing is rotated; layer norms, fused q, k and v,
biases everywhere, GELU in its tanh form without a gate.  Positions beyond the trained context do not exist.
Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019).
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
)


def begin(graph: Graph, model: ModelDescription) -> Node:
    x = graph.embed(graph.tokens(), "token_embd.weight", model.n_vocabulary, model.width)
    positions = graph.embed_positions("position_embd.weight", model.context_length, model.width)
    return graph.add(x, positions, "tokens and positions")


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    require_biases(graph, block, *NORMS, *PROJECTIONS)
    h = graph.layer_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")
    h = graph.layer_norm(x, f"{block}ffn_norm.weight", model.norm_epsilon)
    h = plain_feed_forward(graph, model, h, block, "gelu")
    return graph.add(h, x, f"{block}after feed-forward")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    require_biases(graph, "", "output_norm")
    return output_logits(graph, model, x, "layer_norm")
