"""Qwen 1.5 to 2.5 and models made from them: names as llama's, nothing reordered.

Their configurations name a window that they do not use, unless ``use_sliding_window`` is true.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import (
    DECODER_NAMES,
    decoder_metadata,
    require_activation,
    sliding_layers,
    window_metadata,
)
from engine.conversion.config import Config
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights

ARCHITECTURE = "qwen2"

FIRST_SLIDING = 28
"""Layers from ``max_window_layers`` on have the window; the default is that of `transformers`."""


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "silu", "swish")
    metadata = decoder_metadata(config)
    if config.flag("use_sliding_window", default=False):
        first = config.count("max_window_layers", default=FIRST_SLIDING, minimum=0)
        kinds = [layer >= first for layer in range(config.count("num_hidden_layers"))]
        metadata |= window_metadata(config, sliding_layers(config) or kinds)
    return metadata


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return weights.renamed(DECODER_NAMES)
