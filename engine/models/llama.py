"""The llama family: Llama 1 to 3, TinyLlama, SmolLM, Yi, DeepSeek's distillates, Mistral, Mixtral and kin.

Pre-norm transformer with RMS norms, grouped-query attention, RoPE on interleaved pairs (the GGUF conversion
orders the rows of q and k for that) and a SiLU-gated feed-forward; biases where a file has them.  Source:
Touvron et al., "LLaMA" (2023).  Mixtral has experts, whose weights are divided by their sum: Jiang et al.,
"Mixtral of Experts" (2024).
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.expert_parts import expert_feed_forward
from engine.models.parts import attended, feed_forward, output_logits, query_key_value, rotated


def begin(graph: Graph, model: ModelDescription) -> Node:
    return graph.embed(graph.tokens(), "token_embd.weight", model.n_vocabulary, model.width)


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    h = graph.rms_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    q = rotated(graph, model, q, "attn_q", index, "interleaved")
    k = rotated(graph, model, k, "attn_k", index, "interleaved")
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")

    h = graph.rms_norm(x, f"{block}ffn_norm.weight", model.norm_epsilon)
    if model.experts.n:
        h = expert_feed_forward(graph, model, h, block)
    else:
        h = feed_forward(graph, model, h, block, "silu")
    return graph.add(h, x, f"{block}after feed-forward")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    return output_logits(graph, model, x)
