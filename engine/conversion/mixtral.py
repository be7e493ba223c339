"""Mixtral: llama with experts."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion import llama, mistral
from engine.conversion.common import DECODER_NAMES
from engine.conversion.config import Config
from engine.conversion.experts import expert_metadata
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights
from engine.gguf.writer import StreamedTensor

ARCHITECTURE = "llama"

NAMES = {
    **DECODER_NAMES,
    "model.layers.{}.block_sparse_moe.gate": "blk.{}.ffn_gate_inp",
    "model.layers.{}.block_sparse_moe.experts.{}.w1": "blk.{}.ffn_gate_exps",
    "model.layers.{}.block_sparse_moe.experts.{}.w3": "blk.{}.ffn_up_exps",
    "model.layers.{}.block_sparse_moe.experts.{}.w2": "blk.{}.ffn_down_exps",
}


def metadata(config: Config) -> dict[str, object]:
    without_window = config.with_defaults({"sliding_window": None}, keep_null=True)
    return mistral.metadata(without_window) | expert_metadata(config, "intermediate_size")


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor | StreamedTensor]:
    return llama.interleaved_tensors(config, weights, NAMES)
