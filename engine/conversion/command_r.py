"""Command R, Command R+ and Aya 23.  Checkpoints turn neighbouring numbers of a head, as model files do."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import DECODER_NAMES, decoder_metadata, require_activation, untied
from engine.conversion.config import Config
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights

ARCHITECTURE = "command-r"

NAMES = {
    **DECODER_NAMES,
    "model.layers.{}.self_attn.q_norm": "blk.{}.attn_q_norm",
    "model.layers.{}.self_attn.k_norm": "blk.{}.attn_k_norm",
}

LOGIT_SCALE = 0.0625


def metadata(config: Config) -> dict[str, object]:
    """Command R was trained on longer texts than ``max_position_embeddings`` says."""
    require_activation(config, "silu")
    metadata = decoder_metadata(config)
    if config.has("model_max_length"):
        metadata["context_length"] = config.count("model_max_length")
    return metadata | {
        "logit_scale": config.number("logit_scale", default=LOGIT_SCALE),
        "rope.scaling.type": metadata.get("rope.scaling.type", "none"),
    }


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return untied(config, weights.renamed(NAMES))
