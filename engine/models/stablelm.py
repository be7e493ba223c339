"""The stablelm family: StableLM 3B, StableLM 2 1.6B and 12B.

The llama family with layer norms and a part of each head rotated.  The 12B has a layer norm for each head of
q and k, and no ``ffn_norm``: its feed-forward reads what attention reads, and both are added together to what
came in.  Source: Bellagente et al., "Stable LM 2 1.6B Technical Report" (2024), and `StableLmForCausalLM` of
transformers.
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.parts import (
    NORMS,
    attended,
    feed_forward,
    has_norm,
    output_logits,
    query_key_value,
    require_biases,
    rotated,
)


def begin(graph: Graph, model: ModelDescription) -> Node:
    return graph.embed(graph.tokens(), "token_embd.weight", model.n_vocabulary, model.width)


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    require_biases(graph, block, *NORMS)

    def prepared(y: Node, name: str) -> Node:
        norm = f"{block}{name}_norm.weight"
        y = graph.layer_norm(y, norm, model.norm_epsilon) if graph.has(norm) else y
        return rotated(graph, model, y, name, index, "halves")

    h = graph.layer_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    q, k = prepared(q, "attn_q"), prepared(k, "attn_k")
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")
    if has_norm(graph, f"{block}ffn_norm"):
        h = graph.layer_norm(x, f"{block}ffn_norm.weight", model.norm_epsilon)
    h = feed_forward(graph, model, h, block, "silu")
    return graph.add(h, x, f"{block}after feed-forward")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    require_biases(graph, "", "output_norm")
    return output_logits(graph, model, x, "layer_norm")
