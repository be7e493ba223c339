"""The gemma family.

Beside the llama family: embeddings times sqrt(width), heads whose sizes need not add up to the width, RoPE on
halves, and a GELU gate.  The GGUF conversion has already added 1 to the norm weights.  Source: Gemma Team,
"Gemma: Open Models Based on Gemini Research and Technology" (2024).
"""

from __future__ import annotations

import math

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.parts import attended, feed_forward, output_logits, query_key_value, rotated


def begin(graph: Graph, model: ModelDescription) -> Node:
    scale = math.sqrt(model.width)
    return graph.embed(graph.tokens(), "token_embd.weight", model.n_vocabulary, model.width, scale)


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    h = graph.rms_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    q = rotated(graph, model, q, "attn_q", index, "halves")
    k = rotated(graph, model, k, "attn_k", index, "halves")
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")

    h = graph.rms_norm(x, f"{block}ffn_norm.weight", model.norm_epsilon)
    return graph.add(feed_forward(graph, model, h, block, "gelu"), x, f"{block}after feed-forward")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    return output_logits(graph, model, x)
