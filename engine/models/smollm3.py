"""The smollm3 family.

The llama family without positions in every fourth layer.  Source: Bakouch et al., "SmolLM3: smol,
multilingual, long-context reasoner" (2025); Yang et al., "Rope to Nope and Back Again" (2025).
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.llama import begin as begin
from engine.models.llama import end as end
from engine.models.parts import attended, feed_forward, query_key_value, rotated

LAYERS_PER_UNROTATED = 4
"""GGUF has no key for it."""


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    h = graph.rms_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    if (index + 1) % LAYERS_PER_UNROTATED:
        q = rotated(graph, model, q, "attn_q", index, "interleaved")
        k = rotated(graph, model, k, "attn_k", index, "interleaved")
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")

    h = graph.rms_norm(x, f"{block}ffn_norm.weight", model.norm_epsilon)
    return graph.add(feed_forward(graph, model, h, block, "silu"), x, f"{block}after feed-forward")
