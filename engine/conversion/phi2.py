"""Phi-1, Phi-1.5 and Phi-2."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import DECODER_NAMES, decoder_metadata, require_activation
from engine.conversion.config import Config
from engine.conversion.rope import rope_settings
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights

ARCHITECTURE = "phi2"

NAMES = {
    **DECODER_NAMES,
    "model.final_layernorm": "output_norm",
    "model.layers.{}.self_attn.dense": "blk.{}.attn_output",
    "model.layers.{}.mlp.fc1": "blk.{}.ffn_up",
    "model.layers.{}.mlp.fc2": "blk.{}.ffn_down",
}


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "gelu_new", "gelu_fast", "gelu_pytorch_tanh")
    return decoder_metadata(config, rope_settings(config, share=0.5))


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return weights.renamed(NAMES)
