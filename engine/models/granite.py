"""The granite family.

The llama family with four multipliers: of embeddings, of attention scores, of what each half of a layer adds,
and a divisor of the logits.  Source: Granite Team, IBM, "Granite 3.0 Language Models" (2024).
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.parts import attended, feed_forward, output_logits, query_key_value, rotated


def begin(graph: Graph, model: ModelDescription) -> Node:
    return graph.embed(
        graph.tokens(), "token_embd.weight", model.n_vocabulary, model.width, model.embedding_scale
    )


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    x = attention_half(graph, model, x, index)
    h = graph.rms_norm(x, f"{block}ffn_norm.weight", model.norm_epsilon)
    h = graph.scale(feed_forward(graph, model, h, block, "silu"), model.residual_scale)
    return graph.add(h, x, f"{block}after feed-forward")


def attention_half(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    h = graph.rms_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    if model.rope.enabled:
        q = rotated(graph, model, q, "attn_q", index, "interleaved")
        k = rotated(graph, model, k, "attn_k", index, "interleaved")
    a = graph.scale(attended(graph, model, q, k, v, index), model.residual_scale)
    return graph.add(a, x, f"{block}after attention")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    return graph.scale(output_logits(graph, model, x), 1 / model.logit_scale)
