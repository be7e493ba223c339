"""Gemma 2.  Checkpoints store the weights of norms less 1, the model file as they are."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import decoder_metadata, require_activation, sliding_layers, window_metadata
from engine.conversion.config import Config
from engine.conversion.gemma import require_one_direction
from engine.conversion.gemma3 import NAMES, NORMS, require_query_scale
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights

ARCHITECTURE = "gemma2"

DEFAULTS = {
    "attn_logit_softcapping": 50.0,
    "final_logit_softcapping": 30.0,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "query_pre_attn_scalar": 256.0,
    "sliding_window": 4096,
}
"""Those of `transformers`."""

LAYERS_OF_27B = 46


def metadata(config: Config) -> dict[str, object]:
    """Raises `UnsupportedModelError` for what the architecture has no key for."""
    without_caps = [
        name for name in ("attn_logit_softcapping", "final_logit_softcapping") if _is_null(config, name)
    ]
    config = config.with_defaults(DEFAULTS)
    require_activation(config, "gelu_pytorch_tanh", key="hidden_activation")
    require_one_direction(config)
    require_query_scale(config, LAYERS_OF_27B)
    # Even layers slide; the architecture assumes it where a file does not say.
    usual = [layer % 2 == 0 for layer in range(config.count("num_hidden_layers"))]
    metadata = decoder_metadata(config) | window_metadata(config, sliding_layers(config) or usual)
    if metadata.get("attention.sliding_window_pattern") == usual:
        del metadata["attention.sliding_window_pattern"]
    for name in ("attn_logit_softcapping", "final_logit_softcapping"):
        metadata[name] = 0.0 if name in without_caps else config.number(name)
    return metadata


def _is_null(config: Config, name: str) -> bool:
    return name in config.values and not config.has(name)


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return weights.renamed(NAMES, plus=dict.fromkeys(NORMS, 1.0))
