"""StableLM 3B, StableLM 2 1.6B and 12B.  The norms of each head, of the 12B, are stacked."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import DECODER_NAMES, decoder_metadata, require_activation
from engine.conversion.config import Config
from engine.conversion.rope import rope_settings
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights

ARCHITECTURE = "stablelm"

NAMES = {
    **DECODER_NAMES,
    "model.layers.{}.self_attn.q_layernorm.norms.{}": "blk.{}.attn_q_norm",
    "model.layers.{}.self_attn.k_layernorm.norms.{}": "blk.{}.attn_k_norm",
}


def metadata(config: Config) -> dict[str, object]:
    """Keys of the first releases, before the family came to `transformers`, are known too."""
    require_activation(config, "silu")
    rope = rope_settings(config, share=config.number("rope_pct", default=0.25))
    return {
        **decoder_metadata(config, rope),
        "attention.layer_norm_epsilon": config.number("layer_norm_eps", "norm_eps", default=1e-5),
        "use_parallel_residual": config.flag("use_parallel_residual", default=False),
    }


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    return weights.renamed(NAMES)
