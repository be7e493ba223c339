"""Qwen3-MoE: experts, and norms on the heads of q and k."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import decoder_metadata, require_activation
from engine.conversion.config import Config
from engine.conversion.experts import (
    EXPERT_NAMES,
    expert_metadata,
    require_experts_everywhere,
    require_no_window,
)
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights

ARCHITECTURE = "qwen3moe"

NAMES = {
    **EXPERT_NAMES,
    "model.layers.{}.self_attn.q_norm": "blk.{}.attn_q_norm",
    "model.layers.{}.self_attn.k_norm": "blk.{}.attn_k_norm",
}


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "silu")
    require_experts_everywhere(config)
    require_no_window(config)
    config = config.with_defaults({"norm_topk_prob": False})  # readers take true where it is missing
    return decoder_metadata(config) | expert_metadata(config)


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return weights.renamed(NAMES)
