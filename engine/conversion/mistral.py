"""Mistral and Ministral: llama with a sliding window, of every layer or of those that are listed."""

from __future__ import annotations

from engine.conversion import llama
from engine.conversion.common import decoder_metadata, require_activation, sliding_layers
from engine.conversion.config import Config

ARCHITECTURE = "llama"


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "silu", "swish")
    metadata = decoder_metadata(config)
    kinds = sliding_layers(config)
    if config.has("sliding_window") and (not kinds or any(kinds)):
        metadata["attention.sliding_window"] = config.count("sliding_window")
        if not all(kinds):
            metadata["attention.sliding_window_pattern"] = kinds
    return metadata


tensors = llama.tensors
