"""Phi-3, Phi-3.5 and Phi-4 with their mini models: q, k and v in one weight, gate and up in another.

Names and keys are those of llama.cpp's files.  The two sets of LongRoPE's factors become tensors; what they
lengthen vectors by becomes a key.  Formula: `transformers`, after Ding et al., "LongRoPE" (2024).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from engine.conversion.common import DECODER_NAMES, decoder_metadata, head_size, require_activation
from engine.conversion.config import Config
from engine.conversion.rope import RopeSettings, rope_settings
from engine.conversion.tensors import ConvertedTensor, constant
from engine.conversion.weights import Weights
from engine.errors import ModelFileError
from engine.gguf.writer import StreamedTensor

ARCHITECTURE = "phi3"

NAMES = {
    **DECODER_NAMES,
    "model.layers.{}.self_attn.qkv_proj": "blk.{}.attn_qkv",
    "model.layers.{}.mlp.gate_up_proj": "blk.{}.ffn_up",
}

ORIGINAL_CONTEXT = 4096
"""Default of `transformers`."""


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "silu", "swish")
    rope = rope_settings(config)
    metadata = decoder_metadata(config, rope)
    original = _original_context(config, rope)
    metadata |= {
        "rope.scaling.original_context_length": original,
        # Readers tell Phi-4 by a window of 0.
        "attention.sliding_window": config.count("sliding_window", default=0, minimum=0),
    }
    if rope.kind == "longrope":
        factor = rope.values.number("factor", default=config.count("max_position_embeddings") / original)
        usual = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1.0 else 1.0
        metadata["rope.scaling.attn_factor"] = rope.values.number("attention_factor", default=usual)
    return metadata


def _original_context(config: Config, rope: RopeSettings) -> int:
    name = "original_max_position_embeddings"
    return rope.values.count(name, default=config.count(name, default=ORIGINAL_CONTEXT, minimum=2), minimum=2)


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor | StreamedTensor]:
    rope = rope_settings(config)
    if rope.kind == "longrope":
        n_pairs = int(head_size(config) * rope.share) // 2
        for name in ("short", "long"):
            yield constant(f"rope_factors_{name}.weight", _factors(rope.values, f"{name}_factor", n_pairs))
    yield from weights.renamed(NAMES)


def _factors(values: Config, name: str, n_pairs: int) -> NDArray[np.float32]:
    """float32[n_pairs].  Raises `ModelFileError` for another count, and for what is no number above 0."""
    factors = values.items(name)
    sound = [type(factor) in (int, float) and 0 < factor < math.inf for factor in factors]
    if len(factors) != n_pairs or not all(sound):
        raise ModelFileError(f"{values.file_name}: {name} is to hold {n_pairs} numbers above 0.")
    return np.array(factors, np.float32)
