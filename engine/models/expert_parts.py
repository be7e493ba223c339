"""Feed-forward parts of families with experts."""

from __future__ import annotations

from engine.graph.expert_operations import Activation, choose_experts, experts, weigh_experts
from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription


def expert_feed_forward(
    graph: Graph, model: ModelDescription, x: Node, block: str, activation: Activation = "silu"
) -> Node:
    """A router scores the experts; the best of each token compute, weighted by their scores' softmax."""
    scores = graph.linear(x, f"{block}ffn_gate_inp.weight", model.experts.n)
    chosen = choose_experts(graph, scores, model.experts.n_used)
    weights = weigh_experts(
        scores,
        chosen,
        gating=model.experts.gating,
        normalised=model.experts.weights_norm,
        scale=model.experts.weights_scale,
    )
    return experts(
        graph,
        x,
        chosen,
        weights,
        block,
        n_experts=model.experts.n,
        feed_forward=model.experts.feed_forward,
        activation=activation,
    )


def shared_expert(graph: Graph, model: ModelDescription, x: Node, block: str) -> Node:
    """The expert that every token uses."""
    size = model.experts.shared_feed_forward or None
    gate = graph.linear(x, f"{block}ffn_gate_shexp.weight", size)
    up = graph.linear(x, f"{block}ffn_up_shexp.weight", size)
    return graph.linear(graph.gate(gate, up, "silu"), f"{block}ffn_down_shexp.weight", model.width)
