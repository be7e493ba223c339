"""Qwen 3: beside Qwen 2, norms on the heads of q and k."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion import qwen2
from engine.conversion.common import DECODER_NAMES
from engine.conversion.config import Config
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights

ARCHITECTURE = "qwen3"

NAMES = {
    **DECODER_NAMES,
    "model.layers.{}.self_attn.q_norm": "blk.{}.attn_q_norm",
    "model.layers.{}.self_attn.k_norm": "blk.{}.attn_k_norm",
}

DEFAULTS = {"head_dim": 128}
"""That of `transformers`."""


def metadata(config: Config) -> dict[str, object]:
    return qwen2.metadata(config.with_defaults(DEFAULTS))


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return weights.renamed(NAMES)
