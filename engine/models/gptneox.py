"""The gptneox family: GPT-NeoX, Pythia, Dolly and their kin.

Attention and feed-forward read what came into the layer, each through a layer norm of its own, and are added
together to it; ``use_parallel_residual`` false puts one after the other.  Fused q, k and v, biases, a part of
each head rotated, GELU in its exact form, without a gate.  Source: Black et al., "GPT-NeoX-20B" (2022), and
`GPTNeoXForCausalLM` of transformers; llama.cpp takes the tanh form.
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.parts import (
    NORMS,
    PROJECTIONS,
    attended,
    output_logits,
    plain_feed_forward,
    query_key_value,
    require_biases,
    rotated,
)


def begin(graph: Graph, model: ModelDescription) -> Node:
    return graph.embed(graph.tokens(), "token_embd.weight", model.n_vocabulary, model.width)


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    require_biases(graph, block, *NORMS, *PROJECTIONS)
    h = graph.layer_norm(x, f"{block}attn_norm.weight", model.norm_epsilon)
    q, k, v = query_key_value(graph, model, h, block)
    q = rotated(graph, model, q, "attn_q", index, "halves")
    k = rotated(graph, model, k, "attn_k", index, "halves")
    after = graph.add(attended(graph, model, q, k, v, index), x, f"{block}after attention")
    read = x if model.parallel_residual else after
    h = graph.layer_norm(read, f"{block}ffn_norm.weight", model.norm_epsilon)
    h = plain_feed_forward(graph, model, h, block, "gelu_erf")
    return graph.add(h, after, f"{block}after feed-forward")


def end(graph: Graph, model: ModelDescription, x: Node) -> Node:
    require_biases(graph, "", "output_norm")
    return output_logits(graph, model, x, "layer_norm")
