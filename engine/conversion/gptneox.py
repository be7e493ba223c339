"""GPT-NeoX, Pythia, Dolly and their kin."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import decoder_metadata, head_count, require_activation, require_flag
from engine.conversion.config import Config
from engine.conversion.fused import ungrouped
from engine.conversion.rope import rope_settings
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights

ARCHITECTURE = "gptneox"

NAMES = {
    "gpt_neox.embed_in": "token_embd",
    "gpt_neox.final_layer_norm": "output_norm",
    "embed_out": "output",
    "gpt_neox.layers.{}.input_layernorm": "blk.{}.attn_norm",
    "gpt_neox.layers.{}.attention.query_key_value": "blk.{}.attn_qkv",
    "gpt_neox.layers.{}.attention.dense": "blk.{}.attn_output",
    "gpt_neox.layers.{}.post_attention_layernorm": "blk.{}.ffn_norm",
    "gpt_neox.layers.{}.mlp.dense_h_to_4h": "blk.{}.ffn_up",
    "gpt_neox.layers.{}.mlp.dense_4h_to_h": "blk.{}.ffn_down",
}
MASKS = (".attention.bias", ".attention.masked_bias")


def metadata(config: Config) -> dict[str, object]:
    """The architecture has no key for the activation: only the exact form of GELU is taken."""
    require_activation(config, "gelu")
    require_flag(config, "attention_bias", True)
    return {
        **decoder_metadata(config, rope_settings(config, share=0.25)),
        "use_parallel_residual": config.flag("use_parallel_residual", default=True),
    }


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    weights.leave_out(*MASKS)
    n_heads = head_count(config)
    return weights.renamed(NAMES, arrange={"attn_qkv": ungrouped(n_heads, n_heads)})
