"""Mistral and Ministral: llama with a sliding window, of every layer or of those that are listed."""

from __future__ import annotations

from engine.conversion import llama
from engine.conversion.common import (
    WINDOW,
    decoder_metadata,
    require_activation,
    sliding_layers,
    window_metadata,
)
from engine.conversion.config import Config

ARCHITECTURE = "llama"


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "silu", "swish")
    config = config.with_defaults(WINDOW, keep_null=True)
    return decoder_metadata(config) | window_metadata(config, sliding_layers(config))


tensors = llama.tensors
