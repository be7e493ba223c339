"""Gemma 3 (its text part).  Checkpoints store the weights of norms less 1, the model file as they are."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import (
    DECODER_NAMES,
    decoder_metadata,
    head_size,
    require_activation,
    sliding_layers,
)
from engine.conversion.config import Config
from engine.conversion.rope import rope_settings
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights
from engine.errors import UnsupportedModelError

ARCHITECTURE = "gemma3"

NAMES = {
    **DECODER_NAMES,
    "model.layers.{}.self_attn.q_norm": "blk.{}.attn_q_norm",
    "model.layers.{}.self_attn.k_norm": "blk.{}.attn_k_norm",
    "model.layers.{}.post_attention_layernorm": "blk.{}.post_attention_norm",
    "model.layers.{}.pre_feedforward_layernorm": "blk.{}.ffn_norm",
    "model.layers.{}.post_feedforward_layernorm": "blk.{}.post_ffw_norm",
}
NORMS = (
    "output_norm",
    "attn_norm",
    "ffn_norm",
    "attn_q_norm",
    "attn_k_norm",
    "post_attention_norm",
    "post_ffw_norm",
)

DEFAULTS = {
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "max_position_embeddings": 131_072,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-6,
    "vocab_size": 262_208,
}
"""Those of `transformers`, which the configurations of models with pictures rely on."""

BASE, SLIDING_BASE = 1_000_000.0, 10_000.0
PATTERN = 6
LAYERS_OF_27B = 62


def metadata(config: Config) -> dict[str, object]:
    """Raises `UnsupportedModelError` for what the architecture has no key for."""
    config = config.with_defaults(DEFAULTS)
    require_activation(config, "gelu_pytorch_tanh", key="hidden_activation")
    metadata = decoder_metadata(config, rope_settings(config, base=BASE))
    sliding = rope_settings(config, "sliding_attention", base=SLIDING_BASE)
    old_base = config.number("rope_local_base_freq", default=SLIDING_BASE)
    metadata |= {
        "attention.sliding_window": config.count("sliding_window"),
        "rope.freq_base_swa": sliding.base if config.has("rope_parameters") else old_base,
    }
    _require_pattern(config)
    require_query_scale(config, LAYERS_OF_27B)
    if config.has("attn_logit_softcapping") or config.flag("use_bidirectional_attention", default=False):
        raise UnsupportedModelError(f"{config.file_name}: this variant of Gemma 3 is not supported.")
    if config.has("final_logit_softcapping"):
        metadata["final_logit_softcapping"] = config.number("final_logit_softcapping")
    return metadata


def _require_pattern(config: Config) -> None:
    """Every sixth layer sees everything: the architecture knows no other pattern."""
    kinds = sliding_layers(config)
    usual = [(index + 1) % PATTERN != 0 for index in range(len(kinds))]
    pattern = config.count("sliding_window_pattern", "_sliding_window_pattern", default=PATTERN)
    if kinds != usual or (not kinds and pattern != PATTERN):
        raise UnsupportedModelError(
            f"{config.file_name}: another than every sixth layer sees everything, which is not supported."
        )


def require_query_scale(config: Config, layers_of_27b: int) -> None:
    """Queries are scaled by the head size, in the 27B model by the width of a head's share of the model."""
    wanted = head_size(config)
    if config.count("num_hidden_layers") == layers_of_27b:
        wanted = config.count("hidden_size") // config.count("num_attention_heads")
    given = config.number("query_pre_attn_scalar", default=256.0)
    if given != wanted:
        raise UnsupportedModelError(
            f"{config.file_name}: query_pre_attn_scalar is {given:g}, where this architecture has {wanted}."
        )


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return weights.renamed(NAMES, plus=dict.fromkeys(NORMS, 1.0))
