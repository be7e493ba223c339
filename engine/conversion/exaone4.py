"""EXAONE 4: norms after each half of a layer and on the heads of q and k.

The factors of its positions, made as Llama 3's, become a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import (
    WINDOW,
    decoder_metadata,
    head_size,
    require_activation,
    sliding_layers,
    window_metadata,
)
from engine.conversion.config import Config
from engine.conversion.olmo2 import NAMES
from engine.conversion.rope import ROPE_FACTORS, llama3_factors, rope_settings
from engine.conversion.tensors import ConvertedTensor, constant
from engine.conversion.weights import Weights
from engine.gguf.writer import StreamedTensor

ARCHITECTURE = "exaone4"


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "silu", "swish")
    config = config.with_defaults(WINDOW, keep_null=True)
    return decoder_metadata(config) | window_metadata(config, sliding_layers(config) or _pattern(config))


def _pattern(config: Config) -> list[bool]:
    """From ``LLLG`` (local, local, local, global) or a period, as releases before version 5 write it."""
    n_layers = config.count("num_hidden_layers")
    given = config.get("sliding_window_pattern")
    if isinstance(given, str) and given:
        return [given[layer % len(given)] == "L" for layer in range(n_layers)]
    period = config.count("sliding_window_pattern", default=4, minimum=0)
    return [period > 0 and (layer + 1) % period != 0 for layer in range(n_layers)]


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor | StreamedTensor]:
    rope = rope_settings(config)
    if rope.kind == "llama3":
        yield constant(ROPE_FACTORS, llama3_factors(rope, head_size(config)))
    yield from weights.renamed(NAMES)
