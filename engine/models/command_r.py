"""The command-r family: Command R, Command R+ and Aya 23.

Attention and a SiLU-gated feed-forward read the same layer norm, which has no bias, and are added together
to what came in.  Interleaved pairs are rotated; Command R+ has a layer norm for each head of q and k.  The
embedding is the output too, and logits are multiplied by ``logit_scale``.  Source: `CohereForCausalLM` of
transformers.
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.parts import attended, feed_forward, output_logits, query_key_value, rotated


def begin(graph: Graph, model: ModelDescription) -> Node:
    return graph.embed(graph.tokens(), "token_embd.weight", model.n_vocabulary, model.width)


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."

    def prepared(y: Node, name: str) -> Node:
        norm = f"{block}{name}_norm.weight"
        y = graph.layer_norm(y, norm, model.norm_epsilon) if graph.has(norm) else y
        return rotated(graph, model, y, name, index, "interleaved")

    h = graph.layer_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    q, k = prepared(q, "attn_q"), prepared(k, "attn_k")
    x = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")
    h = feed_forward(graph, model, h, block, "silu")
    return graph.add(h, x, f"{block}after feed-forward")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    logits = output_logits(graph, model, x, "layer_norm")
    return logits if model.logit_scale == 1.0 else graph.scale(logits, model.logit_scale)
