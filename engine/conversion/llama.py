"""Llama 1 to 3.x and its kin: TinyLlama, SmolLM, Yi, DeepSeek-distill.

The architecture turns neighbouring numbers of a head, its checkpoints the halves: rows of q and k are
reordered.  The factors of Llama 3's positions become a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import (
    DECODER_NAMES,
    decoder_metadata,
    head_count,
    head_size,
    kv_head_count,
    require_activation,
)
from engine.conversion.config import Config
from engine.conversion.rope import ROPE_FACTORS, llama3_factors, rope_settings
from engine.conversion.tensors import ConvertedTensor, constant, interleaved
from engine.conversion.weights import Names, Weights
from engine.gguf.writer import StreamedTensor

ARCHITECTURE = "llama"


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "silu", "swish")
    return decoder_metadata(config)


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor | StreamedTensor]:
    return interleaved_tensors(config, weights, DECODER_NAMES)


def interleaved_tensors(
    config: Config, weights: Weights, names: Names
) -> Iterator[ConvertedTensor | StreamedTensor]:
    """Of any architecture whose rotations are interleaved as llama's are."""
    rope = rope_settings(config)
    if rope.kind == "llama3":
        yield constant(ROPE_FACTORS, llama3_factors(rope, head_size(config)))
    arrange = {"attn_q": interleaved(head_count(config)), "attn_k": interleaved(kv_head_count(config))}
    yield from weights.renamed(names, arrange=arrange)
