"""gpt-oss: experts in MXFP4 or plain numbers, whose gate and up lie row by row in turn; attention sinks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from engine.conversion.common import DECODER_NAMES, decoder_metadata, require_rope_settings, sliding_layers
from engine.conversion.config import Config
from engine.conversion.experts import expert_metadata, take_shaped
from engine.conversion.mxfp4 import mxfp4_tensor
from engine.conversion.rope import rope_settings
from engine.conversion.tensors import Arrangement, ConvertedTensor
from engine.conversion.weights import Weights
from engine.errors import UnsupportedModelError
from engine.gguf.writer import StreamedTensor

ARCHITECTURE = "gpt-oss"

NAMES = {
    **DECODER_NAMES,
    "model.layers.{}.post_attention_layernorm": "blk.{}.post_attention_norm",
    "model.layers.{}.self_attn.sinks": "blk.{}.attn_sinks.weight",
    "model.layers.{}.mlp.router": "blk.{}.ffn_gate_inp",
    "model.layers.{}.mlp.experts.down_proj_bias": "blk.{}.ffn_down_exps.bias",
}

ALPHA, LIMIT = 1.702, 7.0
"""Of the experts' gate: the architecture has no keys for them."""


def metadata(config: Config) -> dict[str, object]:
    """Raises `UnsupportedModelError` for what the architecture has no key for."""
    for key, wanted in (("swiglu_alpha", ALPHA), ("swiglu_limit", LIMIT)):
        if config.number(key, default=wanted) != wanted:
            raise UnsupportedModelError(f"{config.file_name}: {key} is not {wanted}, which is not supported.")
    require_rope_settings(config)
    rope = rope_settings(config)
    if rope.kind == "yarn" and rope.values.flag("truncate", default=True):
        raise UnsupportedModelError(
            f"{config.file_name}: YaRN with a truncated ramp is not supported for this family."
        )
    metadata = {
        **decoder_metadata(config, rope),
        **expert_metadata(config, "intermediate_size"),
        "attention.sliding_window": config.count("sliding_window"),
    }
    kinds = sliding_layers(config)
    if any(slides != (index % 2 == 0) for index, slides in enumerate(kinds)):
        metadata["attention.sliding_window_pattern"] = kinds
    return metadata


def tensors(config: Config, weights: Weights) -> Iterator[ConvertedTensor | StreamedTensor]:
    yield from weights.renamed(NAMES)
    for index in range(config.count("num_hidden_layers")):
        source, target = f"model.layers.{index}.mlp.experts.", f"blk.{index}.ffn_"
        fused, down = f"{source}gate_up_proj", f"{source}down_proj"
        if f"{down}_blocks" in weights:
            blocks, scales = weights.take(f"{fused}_blocks"), weights.take(f"{fused}_scales")
            yield mxfp4_tensor(f"{target}gate_exps.weight", blocks, scales, 0, 2)
            yield mxfp4_tensor(f"{target}up_exps.weight", blocks, scales, 1, 2)
            blocks, scales = weights.take(f"{down}_blocks"), weights.take(f"{down}_scales")
            yield mxfp4_tensor(f"{target}down_exps.weight", blocks, scales)
        else:
            plain = take_shaped(weights, fused, None, None, None)
            yield ConvertedTensor(f"{target}gate_exps.weight", (plain,), transposed_experts(0, 2))
            yield ConvertedTensor(f"{target}up_exps.weight", (plain,), transposed_experts(1, 2))
            plain = take_shaped(weights, down, None, None, None)
            yield ConvertedTensor(f"{target}down_exps.weight", (plain,), transposed_experts(0, 1))
        bias = take_shaped(weights, f"{fused}_bias", None, None)
        yield ConvertedTensor(f"{target}gate_exps.bias", (bias,), every_second(0))
        yield ConvertedTensor(f"{target}up_exps.bias", (bias,), every_second(1))


def transposed_experts(first: int, step: int) -> Arrangement:
    """[n_experts, in, out] -> [n_experts, out, in], of out every step-th."""

    def apply(array: NDArray[Any]) -> NDArray[Any]:
        return array[:, :, first::step].swapaxes(1, 2)

    return Arrangement(apply, lambda shape: (shape[0], len(range(first, shape[2], step)), shape[1]))


def every_second(first: int) -> Arrangement:
    """Of [n_experts, out]."""
    return Arrangement(
        lambda array: array[:, first::2], lambda shape: (shape[0], len(range(first, shape[1], 2)))
    )
