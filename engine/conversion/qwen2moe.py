"""Qwen1.5-MoE and Qwen2-MoE: experts and a shared one, whose gate is a matrix of one row in a checkpoint."""

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
from engine.conversion.tensors import FLAT, ConvertedTensor
from engine.conversion.weights import Weights

ARCHITECTURE = "qwen2moe"

NAMES = {
    **EXPERT_NAMES,
    "model.layers.{}.mlp.shared_expert_gate": "blk.{}.ffn_gate_inp_shexp",
    "model.layers.{}.mlp.shared_expert.gate_proj": "blk.{}.ffn_gate_shexp",
    "model.layers.{}.mlp.shared_expert.up_proj": "blk.{}.ffn_up_shexp",
    "model.layers.{}.mlp.shared_expert.down_proj": "blk.{}.ffn_down_shexp",
}


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "silu")
    require_experts_everywhere(config)
    require_no_window(config)
    return {
        **decoder_metadata(config),
        **expert_metadata(config),
        "expert_shared_feed_forward_length": config.count("shared_expert_intermediate_size"),
    }


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return weights.renamed(NAMES, arrange={"ffn_gate_inp_shexp": FLAT})
