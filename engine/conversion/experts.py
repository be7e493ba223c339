"""What the families with experts share."""

from __future__ import annotations

from engine.conversion.common import DECODER_NAMES
from engine.conversion.config import Config
from engine.conversion.safetensors import SourceTensor
from engine.conversion.weights import Weights
from engine.errors import ModelFileError, UnsupportedModelError

EXPERT_NAMES = {
    **DECODER_NAMES,
    "model.layers.{}.mlp.gate": "blk.{}.ffn_gate_inp",
    "model.layers.{}.mlp.experts.{}.gate_proj": "blk.{}.ffn_gate_exps",
    "model.layers.{}.mlp.experts.{}.up_proj": "blk.{}.ffn_up_exps",
    "model.layers.{}.mlp.experts.{}.down_proj": "blk.{}.ffn_down_exps",
}
"""Of Qwen's and OLMo's models: one tensor for each expert, which are stacked."""


def expert_metadata(config: Config, size_key: str = "moe_intermediate_size") -> dict[str, object]:
    """Counts, sizes, and whether the weights of the chosen experts are divided by their sum.

    size_key: what the configuration calls the size of an expert.  Raises `ModelFileError`.
    """
    n_experts = config.count("num_local_experts", "num_experts")
    metadata: dict[str, object] = {
        "expert_count": n_experts,
        "expert_used_count": config.count("num_experts_per_tok", maximum=n_experts),
        "expert_feed_forward_length": config.count(size_key),
    }
    if config.has("norm_topk_prob"):
        metadata["expert_weights_norm"] = config.flag("norm_topk_prob")
    return metadata


def take_shaped(weights: Weights, name: str, *shape: int | None) -> SourceTensor:
    """A tensor of that shape (None: any length).  Raises `ModelFileError` where there is none."""
    source = weights.take(name)
    fits = len(source.shape) == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, source.shape, strict=True)
    )
    if not fits:
        wanted = " x ".join("any" if length is None else str(length) for length in shape)
        raise ModelFileError(
            f"{source.file.name}: the tensor {name} has the shape {source.shape}, where {wanted} is needed."
        )
    return source


def require_experts_everywhere(config: Config) -> None:
    """Raises `UnsupportedModelError` where some layers have no experts."""
    step = config.count("decoder_sparse_step", default=1)
    if step != 1 or config.items("mlp_only_layers"):
        raise UnsupportedModelError(
            f"{config.file_name}: only some of the layers have experts, which is not supported."
        )


def require_no_window(config: Config) -> None:
    """Raises `UnsupportedModelError` where layers see a window only: the architecture has no key for it."""
    if config.flag("use_sliding_window", default=False):
        raise UnsupportedModelError(f"{config.file_name}: sliding windows are not supported for this family.")
