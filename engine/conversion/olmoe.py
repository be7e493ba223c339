"""OLMoE: experts, and norms of q and k over their full width."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import decoder_metadata, require_activation
from engine.conversion.config import Config
from engine.conversion.experts import EXPERT_NAMES, expert_metadata
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights
from engine.errors import UnsupportedModelError

ARCHITECTURE = "olmoe"

NAMES = {
    **EXPERT_NAMES,
    "model.layers.{}.self_attn.q_norm": "blk.{}.attn_q_norm",
    "model.layers.{}.self_attn.k_norm": "blk.{}.attn_k_norm",
}


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "silu")
    if config.has("clip_qkv"):
        raise UnsupportedModelError(f"{config.file_name}: clip_qkv is not supported for this family.")
    return decoder_metadata(config) | expert_metadata(config, "intermediate_size")


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return weights.renamed(NAMES)
