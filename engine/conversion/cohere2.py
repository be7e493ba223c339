"""Command R7B, Command A and their kin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.conversion import command_r
from engine.conversion.common import DECODER_NAMES, sliding_layers, untied
from engine.conversion.config import Config
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights
from engine.errors import UnsupportedModelError

ARCHITECTURE = "cohere2"

PERIOD = 4
"""Every fourth layer sees everything: llama.cpp knows no other pattern of this architecture."""


def metadata(config: Config) -> dict[str, object]:
    kinds = sliding_layers(config)
    usual = [(index + 1) % PERIOD != 0 for index in range(len(kinds))]
    if kinds != usual or (not kinds and config.count("sliding_window_pattern", default=PERIOD) != PERIOD):
        raise UnsupportedModelError(
            f"{config.file_name}: another than every fourth layer sees everything, which is not supported."
        )
    return {
        **command_r.metadata(config),
        "attention.sliding_window": config.count("sliding_window"),
    }


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    """The architecture has no biases; some checkpoints have them, all of them zero."""
    for name in weights.tensors:
        if name.endswith(".bias") and np.any(weights.take(name).read()):
            raise UnsupportedModelError(f"This variant uses {name}, which is not supported.")
    return untied(config, (t for t in weights.renamed(DECODER_NAMES) if not t.name.endswith(".bias")))
