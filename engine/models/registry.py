"""Finds the family of an architecture and builds plans and cache layouts with it.

To add a family: one module beside this one with `begin`, `layer` and `end`, and a line in FAMILIES.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

from engine.backends.interface import CacheSpec, LayerCache
from engine.graph.operations import BatchShape, Graph, Node
from engine.graph.plan import Plan, make_plan
from engine.models import (
    cohere2,
    command_r,
    exaone4,
    falcon,
    gemma,
    gemma2,
    gemma3,
    gpt2,
    gpt_oss,
    gptneox,
    granite,
    granitemoe,
    llama,
    mistral3,
    olmo2,
    olmoe,
    phi2,
    phi3,
    qwen2,
    qwen2moe,
    qwen3,
    qwen3moe,
    smollm3,
    stablelm,
    starcoder2,
)
from engine.models.description import ModelDescription
from engine.models.no_writers import refusal_of_kind
from engine.models.unsupported import refusal
from engine.requests import KVKind
from engine.tensor import Tensor


class Family(Protocol):
    """What a family module offers; none of it computes anything."""

    def begin(self, graph: Graph, model: ModelDescription) -> Node: ...
    def layer(self, graph: Graph, model: ModelDescription, x: Node, index: int) -> Node: ...
    def end(self, graph: Graph, model: ModelDescription, x: Node) -> Node: ...


FAMILIES: Mapping[str, Family] = {
    "cohere2": cast(Family, cohere2),
    "command-r": cast(Family, command_r),
    "exaone4": cast(Family, exaone4),
    "falcon": cast(Family, falcon),
    "gemma": cast(Family, gemma),
    "gemma2": cast(Family, gemma2),
    "gemma3": cast(Family, gemma3),
    "gpt-oss": cast(Family, gpt_oss),
    "gpt2": cast(Family, gpt2),
    "gptneox": cast(Family, gptneox),
    "granite": cast(Family, granite),
    "granitemoe": cast(Family, granitemoe),
    "llama": cast(Family, llama),
    "mistral3": cast(Family, mistral3),
    "olmo2": cast(Family, olmo2),
    "olmoe": cast(Family, olmoe),
    "phi2": cast(Family, phi2),
    "phi3": cast(Family, phi3),
    "qwen2": cast(Family, qwen2),
    "qwen2moe": cast(Family, qwen2moe),
    "qwen3": cast(Family, qwen3),
    "qwen3moe": cast(Family, qwen3moe),
    "smollm3": cast(Family, smollm3),
    "stablelm": cast(Family, stablelm),
    "starcoder2": cast(Family, starcoder2),
}


def family_of(architecture: str) -> Family:
    """Raises `UnsupportedModelError` naming the architecture, and what kind of model it is or the nearest
    families there are."""
    family = FAMILIES.get(architecture)
    if family is None:
        raise refusal_of_kind(architecture) or refusal(architecture, FAMILIES)
    return family


def plan_layers(
    model: ModelDescription,
    tensors: Mapping[str, Tensor],
    batch: BatchShape,
    layers: range | None = None,
) -> Plan:
    """The plan of the whole model, or of some consecutive layers of it.

    A part that does not begin with layer 0 takes hidden states in; one that does not end with the last layer
    gives them out: so two backends can share a model.
    """
    family = family_of(model.architecture)
    layers = range(model.n_layers) if layers is None else layers
    graph = Graph(tensors, batch)
    x = family.begin(graph, model) if layers.start == 0 else graph.hidden(model.width)
    for index in layers:
        x = family.layer(graph, model, x, index)
    if layers.stop == model.n_layers:
        x = family.end(graph, model, x)
    return make_plan(x, batch)


def cache_spec(
    model: ModelDescription,
    context_size: int,
    max_batch: int,
    n_sequences: int = 1,
    layers: range | None = None,
    kv: KVKind = "f16",
) -> CacheSpec:
    """The KV cache that the layers need."""
    return CacheSpec(
        layers=tuple(
            LayerCache(index, model.n_kv_heads, model.head_size, model.window(index))
            for index in (range(model.n_layers) if layers is None else layers)
        ),
        context_size=context_size,
        max_batch=max_batch,
        n_sequences=n_sequences,
        kv=kv,
    )
