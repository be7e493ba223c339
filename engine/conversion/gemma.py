"""Gemma.  Checkpoints store the weights of norms less 1, the model file as they are."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import DECODER_NAMES, decoder_metadata, require_activation
from engine.conversion.config import Config
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights
from engine.errors import UnsupportedModelError

ARCHITECTURE = "gemma"

NORMS = ("output_norm", "attn_norm", "ffn_norm")

DEFAULTS = {"head_dim": 256}
"""That of `transformers`."""


def metadata(config: Config) -> dict[str, object]:
    """Raises `UnsupportedModelError` for a variant that reads texts in both directions."""
    # The first releases say gelu and mean its form with tanh.
    require_activation(config, "gelu_pytorch_tanh", "gelu")
    require_one_direction(config)
    return decoder_metadata(config.with_defaults(DEFAULTS))


def require_one_direction(config: Config) -> None:
    if config.flag("use_bidirectional_attention", default=False):
        raise UnsupportedModelError(
            f"{config.file_name}: this variant reads texts in both directions; it does not write any."
        )


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return weights.renamed(DECODER_NAMES, plus=dict.fromkeys(NORMS, 1.0))
