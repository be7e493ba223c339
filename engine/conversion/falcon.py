"""Falcon 7B, 11B, 40B and 180B, also under the names of their first releases (``RWForCausalLM``)."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import decoder_metadata, head_count, require_activation, require_flag, untied
from engine.conversion.config import Config
from engine.conversion.fused import ungrouped
from engine.conversion.tensors import ConvertedTensor
from engine.conversion.weights import Weights
from engine.errors import UnsupportedModelError

ARCHITECTURE = "falcon"

NAMES = {
    "transformer.word_embeddings": "token_embd",
    "transformer.ln_f": "output_norm",
    "lm_head": "output",
    "transformer.h.{}.input_layernorm": "blk.{}.attn_norm",
    "transformer.h.{}.ln_mlp": "blk.{}.attn_norm",
    "transformer.h.{}.ln_attn": "blk.{}.attn_norm_2",
    "transformer.h.{}.self_attention.query_key_value": "blk.{}.attn_qkv",
    "transformer.h.{}.self_attention.dense": "blk.{}.attn_output",
    "transformer.h.{}.mlp.dense_h_to_4h": "blk.{}.ffn_up",
    "transformer.h.{}.mlp.dense_4h_to_h": "blk.{}.ffn_down",
}

CONTEXT = 2048
"""What the first releases were trained with; their configurations do not say so."""
DATA_LAYOUT = "jploski"
"""What llama.cpp calls fused weights with all queries first."""


def metadata(config: Config) -> dict[str, object]:
    """Raises `UnsupportedModelError` for models with ALiBi, and for those whose halves of a layer follow each
    other (both are Falcon RW)."""
    require_activation(config, "gelu", key="activation")
    if config.flag("alibi", default=False):
        raise UnsupportedModelError(
            f"{config.file_name}: alibi is true; Falcon models with ALiBi are not supported."
        )
    if not _is_new(config):
        require_flag(config, "parallel_attn", True)
    width = config.count("hidden_size")
    defaults = {
        "num_hidden_layers": config.count("num_hidden_layers", "n_layer"),
        "num_key_value_heads": _kv_head_count(config),
        "intermediate_size": config.count("ffn_hidden_size", default=4 * width),
        "max_position_embeddings": CONTEXT,
    }
    return {**decoder_metadata(config.with_defaults(defaults)), "tensor_data_layout": DATA_LAYOUT}


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    arrange = {"attn_qkv": ungrouped(head_count(config), _kv_head_count(config))}
    return untied(config, weights.renamed(NAMES, arrange=arrange))


def _is_new(config: Config) -> bool:
    return config.flag("new_decoder_architecture", default=False)


def _kv_head_count(config: Config) -> int:
    """Older configurations of `transformers` write a ``num_kv_heads`` that the older architecture ignores."""
    n_heads = head_count(config)
    if _is_new(config) or config.has("n_head_kv"):
        return config.count("num_kv_heads", "n_head_kv", default=n_heads)
    return 1 if config.flag("multi_query", default=True) else n_heads
