"""SmolLM3: llama without positions in every fourth layer, for which GGUF has no key."""

from __future__ import annotations

from engine.conversion import llama
from engine.conversion.common import decoder_metadata, require_activation
from engine.conversion.config import Config
from engine.errors import UnsupportedModelError
from engine.models.smollm3 import LAYERS_PER_UNROTATED

ARCHITECTURE = "smollm3"


def metadata(config: Config) -> dict[str, object]:
    """Raises `UnsupportedModelError` for what the architecture has no key for."""
    require_activation(config, "silu", "swish")
    if config.flag("use_sliding_window", default=False):
        raise UnsupportedModelError(f"{config.file_name}: a sliding window is not supported for this family.")
    interval = config.count("no_rope_layer_interval", default=LAYERS_PER_UNROTATED)
    n_layers = config.count("num_hidden_layers")
    usual = [int((layer + 1) % LAYERS_PER_UNROTATED != 0) for layer in range(n_layers)]
    rotated = config.items("no_rope_layers")
    if rotated != usual if rotated else interval != LAYERS_PER_UNROTATED:
        raise UnsupportedModelError(
            f"{config.file_name}: other layers than every fourth turn nothing, which is not supported."
        )
    return decoder_metadata(config)


tensors = llama.tensors
