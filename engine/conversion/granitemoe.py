"""Granite with experts: gate and up are one matrix for each expert, gate first."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion import granite, llama
from engine.conversion.common import DECODER_NAMES
from engine.conversion.config import Config
from engine.conversion.experts import expert_metadata, take_shaped
from engine.conversion.tensors import Arrangement, ConvertedTensor, rows
from engine.conversion.weights import Weights
from engine.gguf.writer import StreamedTensor

ARCHITECTURE = "granitemoe"

NAMES = {
    **DECODER_NAMES,
    "model.layers.{}.block_sparse_moe.router.layer": "blk.{}.ffn_gate_inp",
    "model.layers.{}.block_sparse_moe.output_linear": "blk.{}.ffn_down_exps",
    "model.layers.{}.shared_mlp.output_linear": "blk.{}.ffn_down_shexp",
}


def metadata(config: Config) -> dict[str, object]:
    metadata = granite.metadata(config) | expert_metadata(config, "intermediate_size")
    if shared := config.count("shared_intermediate_size", default=0, minimum=0):
        metadata["expert_shared_feed_forward_length"] = shared
    return metadata


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor | StreamedTensor]:
    yield from llama.interleaved_tensors(config, weights, NAMES)
    size = config.count("intermediate_size")
    for index in range(config.count("num_hidden_layers")):
        fused = f"model.layers.{index}.block_sparse_moe.input_linear.weight"
        source = take_shaped(weights, fused, None, 2 * size, None)
        gate, up = rows_of_experts(0, size), rows_of_experts(size, 2 * size)
        yield ConvertedTensor(f"blk.{index}.ffn_gate_exps.weight", (source,), gate)
        yield ConvertedTensor(f"blk.{index}.ffn_up_exps.weight", (source,), up)
        shared = f"model.layers.{index}.shared_mlp.input_linear.weight"
        if shared in weights:
            half = config.count("shared_intermediate_size")
            source = take_shaped(weights, shared, 2 * half, None)
            yield ConvertedTensor(f"blk.{index}.ffn_gate_shexp.weight", (source,), rows(0, half))
            yield ConvertedTensor(f"blk.{index}.ffn_up_shexp.weight", (source,), rows(half, 2 * half))


def rows_of_experts(start: int, stop: int) -> Arrangement:
    """Some rows of each matrix of [n_experts, rows, columns]."""
    return Arrangement(lambda array: array[:, start:stop], lambda shape: (shape[0], stop - start, *shape[2:]))
