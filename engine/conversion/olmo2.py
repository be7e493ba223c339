"""OLMo 2, and OLMo 3 with sliding layers: norms after each half of a layer, and on q and k."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import (
    DECODER_NAMES,
    WINDOW,
    decoder_metadata,
    require_activation,
    sliding_layers,
    window_metadata,
)
from engine.conversion.config import Config
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights

ARCHITECTURE = "olmo2"

NAMES = {
    **DECODER_NAMES,
    "model.layers.{}.self_attn.q_norm": "blk.{}.attn_q_norm",
    "model.layers.{}.self_attn.k_norm": "blk.{}.attn_k_norm",
    "model.layers.{}.post_attention_layernorm": "blk.{}.post_attention_norm",
    "model.layers.{}.post_feedforward_layernorm": "blk.{}.post_ffw_norm",
}

PERIOD = 4
"""Of OLMo 3, where a configuration does not list its layers."""


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "silu", "swish")
    if config.text("model_type", default="") == "olmo3":
        config = config.with_defaults(WINDOW, keep_null=True)
    usual = [(layer + 1) % PERIOD != 0 for layer in range(config.count("num_hidden_layers"))]
    return decoder_metadata(config) | window_metadata(config, sliding_layers(config) or usual)


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return weights.renamed(NAMES)
