"""Ministral 3 and later models of Mistral: llama with YaRN and queries that grow with their position."""

from __future__ import annotations

from engine.conversion import llama
from engine.conversion.common import decoder_metadata, require_activation, require_rope_settings
from engine.conversion.config import Config
from engine.conversion.rope import rope_settings
from engine.errors import UnsupportedModelError

ARCHITECTURE = "mistral3"


def metadata(config: Config) -> dict[str, object]:
    """Raises `UnsupportedModelError` for windows, which these models do not have."""
    require_activation(config, "silu", "swish")
    if config.has("sliding_window"):
        raise UnsupportedModelError(f"{config.file_name}: a sliding window is not supported for this family.")
    require_rope_settings(config)
    metadata = decoder_metadata(config)
    values = rope_settings(config).values
    if values.has("mscale_all_dim"):
        # Says that rotated vectors keep their length; the architecture knows it.
        metadata["rope.scaling.yarn_log_multiplier"] = values.number("mscale_all_dim")
        metadata.pop("rope.scaling.attn_factor", None)
    if values.has("llama_4_scaling_beta"):
        metadata["attention.temperature_scale"] = values.number("llama_4_scaling_beta")
    return metadata


tensors = llama.tensors
