"""The gpt-oss family.

Beside the llama family: RoPE on halves, made longer by YaRN; a window of 128 positions in every other layer;
a sink for each head, a learned score that takes its share of the softmax and stands for no value; biases
everywhere; and experts with a clamped gate, whose weights are divided by their sum.  Source: OpenAI,
"gpt-oss-120b & gpt-oss-20b Model Card" (2025), and the published reference code.
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.expert_parts import expert_feed_forward
from engine.models.llama import begin as begin
from engine.models.llama import end as end
from engine.models.parts import attended, query_key_value, rotated


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    h = graph.rms_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    q = rotated(graph, model, q, "attn_q", index, "halves")
    k = rotated(graph, model, k, "attn_k", index, "halves")
    a = attended(graph, model, q, k, v, index, sinks=f"{block}attn_sinks.weight")
    x = graph.add(a, x, f"{block}after attention")

    h = graph.rms_norm(x, f"{block}post_attention_norm.weight", model.norm_epsilon)
    h = expert_feed_forward(graph, model, h, block, "clamped_swiglu")
    return graph.add(h, x, f"{block}after feed-forward")
