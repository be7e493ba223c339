"""The granitemoe family.

The granite family with experts, whose weights are divided by their sum; some models have a shared expert too.
Source: Granite Team, IBM, "Granite 3.0 Language Models" (2024).
"""

from __future__ import annotations

from engine.graph.operations import Graph, Node
from engine.models.description import ModelDescription
from engine.models.expert_parts import expert_feed_forward, shared_expert
from engine.models.granite import attention_half
from engine.models.granite import begin as begin
from engine.models.granite import end as end


def layer(graph: Graph, model: ModelDescription, x: Node, index: int) -> Node:
    block = f"blk.{index}."
    x = attention_half(graph, model, x, index)
    h = graph.rms_norm(x, f"{block}ffn_norm.weight", model.norm_epsilon)
    fed = expert_feed_forward(graph, model, h, block)
    if graph.has(f"{block}ffn_gate_shexp.weight"):
        fed = graph.add(fed, shared_expert(graph, model, h, block), f"{block}both kinds of experts")
    return graph.add(graph.scale(fed, model.residual_scale), x, f"{block}after feed-forward")
