"""Granite: llama with four multipliers."""

from __future__ import annotations

from engine.conversion import llama
from engine.conversion.common import decoder_metadata, require_activation
from engine.conversion.config import Config

ARCHITECTURE = "granite"

MULTIPLIERS = {
    "attention.scale": "attention_multiplier",
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
}


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "silu", "swish")
    return decoder_metadata(config) | multipliers(config)


def multipliers(config: Config) -> dict[str, object]:
    """1 where a configuration lacks one, as `transformers` takes it."""
    return {key: config.number(name, default=1.0) for key, name in MULTIPLIERS.items()}


tensors = llama.tensors
