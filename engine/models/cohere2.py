"""The cohere2 family: Command R7B, Command A and their kin.

As command-r, but three layers of four have a sliding window and rotations, and the fourth sees everything and
rotates nothing.  Source: Team Cohere, "Command A: An Enterprise-Ready Large Language Model" (2025), and
`Cohere2ForCausalLM` of transformers.
"""

from __future__ import annotations

from engine.errors import ModelFileError
from engine.graph.operations import Graph, Node
from engine.models import command_r
from engine.models.description import ModelDescription
from engine.models.parts import attended, feed_forward, query_key_value, rotated


def begin(graph: Graph, model: ModelDescription) -> Node:
    return command_r.begin(graph, model)


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    if not model.sliding_window:
        raise ModelFileError("The model file lacks the key cohere2.attention.sliding_window.")
    block = f"blk.{index}."
    h = graph.layer_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    if model.slides(index):
        q = rotated(graph, model, q, "attn_q", index, "interleaved")
        k = rotated(graph, model, k, "attn_k", index, "interleaved")
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")
    h = feed_forward(graph, model, h, block, "silu")
    return graph.add(h, x, f"{block}after feed-forward")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    return command_r.end(graph, model, x)
