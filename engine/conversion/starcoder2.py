"""StarCoder2.  A sliding window is written where there is one; llama.cpp lets every layer see all."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import DECODER_NAMES, decoder_metadata, require_activation, require_flag, untied
from engine.conversion.config import Config
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights

ARCHITECTURE = "starcoder2"

NAMES = {
    **DECODER_NAMES,
    "model.layers.{}.mlp.c_fc": "blk.{}.ffn_up",
    "model.layers.{}.mlp.c_proj": "blk.{}.ffn_down",
}


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "gelu_pytorch_tanh", "gelu_new", "gelu_fast")
    require_flag(config, "use_bias", True)
    metadata = decoder_metadata(config)
    if config.has("sliding_window"):
        metadata["attention.sliding_window"] = config.count("sliding_window")
    return metadata


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return untied(config, weights.renamed(NAMES))
