"""The gemma3 family (text part).

Beside the llama family: scaled embeddings, norms before and after each half of a layer, norms on the heads of
q and k, a GELU gate, and five sliding-window layers to one that sees everything, with two RoPE bases.  The
GGUF conversion has already added 1 to the norm weights.  Source: "Gemma 3 Technical Report" (2025).
"""

from __future__ import annotations

import math

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.parts import feed_forward, heads, output_logits, rotated

LAYERS_OF_27B = 62
"""The 27B model alone scales its queries by width / heads instead of the head size."""


def begin(graph: Graph, model: ModelDescription) -> Node:
    scale = math.sqrt(model.width)
    return graph.embed(graph.tokens(), "token_embd.weight", model.n_vocabulary, model.width, scale)


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    epsilon = model.norm_epsilon

    def normed_and_rotated(weight: str, n_heads: int) -> Node:
        y = heads(graph, model, h, f"{block}{weight}.weight", n_heads)
        y = graph.rms_norm(y, f"{block}{weight}_norm.weight", epsilon)
        return rotated(graph, model, y, weight, index, "halves")

    h = graph.rms_norm(x, f"{block}attn_norm.weight", epsilon)
    q = normed_and_rotated("attn_q", model.n_heads)
    k = normed_and_rotated("attn_k", model.n_kv_heads)
    v = heads(graph, model, h, f"{block}attn_v.weight", model.n_kv_heads)
    query_size = model.width / model.n_heads if model.n_layers == LAYERS_OF_27B else model.head_size
    a = graph.attention(q, k, v, layer=index, scale=1 / math.sqrt(query_size), window=model.window(index))
    a = graph.view(a, graph.batch.n_tokens, model.n_heads * model.head_size)
    a = graph.linear(a, f"{block}attn_output.weight", model.width)
    a = graph.rms_norm(a, f"{block}post_attention_norm.weight", epsilon)
    x = graph.add(a, x, f"{block}after attention")

    h = graph.rms_norm(x, f"{block}ffn_norm.weight", epsilon)
    h = feed_forward(graph, model, h, block, "gelu")
    h = graph.rms_norm(h, f"{block}post_ffw_norm.weight", epsilon)
    return graph.add(h, x, f"{block}after feed-forward")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    return output_logits(graph, model, x)
