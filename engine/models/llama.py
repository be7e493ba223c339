"""The llama family: Llama 1 to 3, TinyLlama, SmolLM, Mistral and their kin.

Pre-norm transformer with RMS norms, grouped-query attention, RoPE on interleaved pairs (the GGUF conversion
orders the rows of q and k for that) and a SiLU-gated feed-forward.  Source: Touvron et al., "LLaMA" (2023).
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.parts import feed_forward, heads, output_logits, rotated


def begin(graph: Graph, model: ModelDescription) -> Node:
    return graph.embed(graph.tokens(), "token_embd.weight", model.n_vocabulary, model.width)


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    h = graph.rms_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q = heads(graph, model, h, f"{block}attn_q.weight", model.n_heads)
    q = rotated(graph, model, q, "attn_q", index, "interleaved")
    k = heads(graph, model, h, f"{block}attn_k.weight", model.n_kv_heads)
    k = rotated(graph, model, k, "attn_k", index, "interleaved")
    v = heads(graph, model, h, f"{block}attn_v.weight", model.n_kv_heads)
    a = graph.attention(q, k, v, layer=index, scale=model.attention_scale, window=model.window(index))
    a = graph.view(a, graph.batch.n_tokens, model.n_heads * model.head_size)
    a = graph.linear(a, f"{block}attn_output.weight", model.width)
    x = graph.add(a, x, f"{block}after attention")

    h = graph.rms_norm(x, f"{block}ffn_norm.weight", model.norm_epsilon)
    h = feed_forward(graph, model, h, block, "silu")
    return graph.add(h, x, f"{block}after feed-forward")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    return output_logits(graph, model, x)
