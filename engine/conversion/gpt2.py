"""GPT-2, DistilGPT2 and their kin.  Rows of a matrix are inputs in checkpoints, outputs in model files."""

from __future__ import annotations

from collections.abc import Iterator

from engine.conversion.common import decoder_metadata, require_activation, require_flag, untied
from engine.conversion.config import Config
from engine.conversion.tensors import TRANSPOSED, ConvertedTensor
from engine.conversion.weights import Weights

ARCHITECTURE = "gpt2"

BODY = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_f": "output_norm",
    "h.{}.ln_1": "blk.{}.attn_norm",
    "h.{}.attn.c_attn": "blk.{}.attn_qkv",
    "h.{}.attn.c_proj": "blk.{}.attn_output",
    "h.{}.ln_2": "blk.{}.ffn_norm",
    "h.{}.mlp.c_fc": "blk.{}.ffn_up",
    "h.{}.mlp.c_proj": "blk.{}.ffn_down",
}
NAMES = {**BODY, **{f"transformer.{old}": new for old, new in BODY.items()}, "lm_head": "output"}
"""The first checkpoints have no ``transformer.`` before their names."""

MASKS = (".attn.bias", ".attn.masked_bias")


def metadata(config: Config) -> dict[str, object]:
    require_activation(config, "gelu_new", "gelu_fast", "gelu_pytorch_tanh", key="activation_function")
    require_flag(config, "scale_attn_weights", True)
    require_flag(config, "scale_attn_by_inverse_layer_idx", False)
    require_flag(config, "add_cross_attention", False)
    width = config.count("n_embd")
    sizes = decoder_metadata(
        config.with_defaults(
            {
                "num_hidden_layers": config.count("n_layer"),
                "max_position_embeddings": config.count("n_positions", "n_ctx"),
                "hidden_size": width,
                "intermediate_size": config.count("n_inner", default=4 * width),
            }
        )
    )
    return {key: value for key, value in sizes.items() if not key.startswith("rope.")}


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor]:
    weights.leave_out(*MASKS)
    matrices = ("attn_qkv", "attn_output", "ffn_up", "ffn_down")
    return untied(config, weights.renamed(NAMES, arrange=dict.fromkeys(matrices, TRANSPOSED)))
