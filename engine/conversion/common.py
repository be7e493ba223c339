"""What most decoders share: names of their tensors and metadata from their configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.conversion.config import Config
from engine.conversion.rope import RopeSettings, rope_metadata, rope_settings
from engine.conversion.tensors import ConvertedTensor
from engine.errors import ModelFileError, UnsupportedModelError

DECODER_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers.{}.input_layernorm": "blk.{}.attn_norm",
    "model.layers.{}.self_attn.q_proj": "blk.{}.attn_q",
    "model.layers.{}.self_attn.k_proj": "blk.{}.attn_k",
    "model.layers.{}.self_attn.v_proj": "blk.{}.attn_v",
    "model.layers.{}.self_attn.o_proj": "blk.{}.attn_output",
    "model.layers.{}.post_attention_layernorm": "blk.{}.ffn_norm",
    "model.layers.{}.mlp.gate_proj": "blk.{}.ffn_gate",
    "model.layers.{}.mlp.up_proj": "blk.{}.ffn_up",
    "model.layers.{}.mlp.down_proj": "blk.{}.ffn_down",
}
"""Of models that are built like Llama.  A family adds its own or replaces some."""


def head_count(config: Config) -> int:
    return config.count("num_attention_heads", "n_head")


def kv_head_count(config: Config) -> int:
    return config.count("num_key_value_heads", default=head_count(config))


def head_size(config: Config) -> int:
    """Numbers of a head.  Raises `ModelFileError` where the heads do not divide the width."""
    if config.has("head_dim"):
        return config.count("head_dim")
    width, n_heads = config.count("hidden_size", "n_embd"), head_count(config)
    if width % n_heads:
        raise ModelFileError(f"{config.file_name}: {n_heads} heads do not divide the width of {width}.")
    return width // n_heads


def decoder_metadata(config: Config, rope: RopeSettings | None = None) -> dict[str, object]:
    """Sizes, epsilon and positions, keys without the architecture before them.

    rope: where the family's defaults differ from the usual ones.  Raises `ModelFileError`,
    `UnsupportedModelError`.
    """
    if rope is None:
        rope = rope_settings(config)
        _require_rounded_ramp(rope)
    size = head_size(config)
    metadata: dict[str, object] = {
        "block_count": config.count("num_hidden_layers"),
        "context_length": config.count("max_position_embeddings"),
        "embedding_length": config.count("hidden_size"),
        "feed_forward_length": config.count("intermediate_size"),
        "attention.head_count": head_count(config),
        "attention.head_count_kv": kv_head_count(config),
        "rope.dimension_count": int(size * rope.share),
        "vocab_size": config.count("vocab_size"),
        **rope_metadata(rope),
    }
    if config.has("head_dim"):
        metadata |= {"attention.key_length": size, "attention.value_length": size}
    if config.has("rms_norm_eps"):
        metadata["attention.layer_norm_rms_epsilon"] = config.number("rms_norm_eps")
    if config.has("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"):
        metadata["attention.layer_norm_epsilon"] = config.number(
            "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"
        )
    return metadata


def _require_rounded_ramp(rope: RopeSettings) -> None:
    """GGUF has no key for a YaRN ramp with exact borders, which one family has (gpt-oss)."""
    if rope.kind == "yarn" and not rope.values.flag("truncate", default=True):
        raise UnsupportedModelError(
            f"{rope.values.file_name}: truncate is false, which is not supported for this family."
        )


def require_activation(config: Config, *wanted: str, key: str = "hidden_act") -> None:
    """Raises `UnsupportedModelError` for another activation than the family's graph computes."""
    activation = config.text(key, default=wanted[0])
    if activation not in wanted:
        raise UnsupportedModelError(
            f"{config.file_name}: the activation {activation!r} is not supported for this family."
        )


def require_flag(config: Config, key: str, wanted: bool) -> None:
    """Raises `UnsupportedModelError` where it is the other; a missing key is as wanted."""
    if config.flag(key, default=wanted) != wanted:
        value = str(not wanted).lower()
        raise UnsupportedModelError(
            f"{config.file_name}: {key} is {value}, which is not supported for this family."
        )


def untied(config: Config, tensors: Iterable[ConvertedTensor]) -> Iterator[ConvertedTensor]:
    """Without the output where it is the embedding, as it is in this family where nothing is said."""
    tied = config.flag("tie_word_embeddings", default=True)
    return (tensor for tensor in tensors if not (tied and tensor.name == "output.weight"))


def sliding_layers(config: Config) -> list[bool]:
    """Which layers see only a window, where the configuration lists it; else an empty list."""
    kinds = config.items("layer_types")
    if not kinds:
        return []
    known = {"sliding_attention": True, "full_attention": False}
    n_layers = config.count("num_hidden_layers")
    if len(kinds) != n_layers:
        raise ModelFileError(
            f"{config.file_name}: layer_types has {len(kinds)} entries for {n_layers} layers."
        )
    if unknown := [kind for kind in kinds if not isinstance(kind, str) or kind not in known]:
        raise UnsupportedModelError(f"{config.file_name}: layers of type {unknown[0]!r} are not supported.")
    return [known[kind] for kind in kinds]


WINDOW = {"sliding_window": 4096}
"""That of `transformers`, in families whose layers slide where a configuration does not mention a window."""


def require_rope_settings(config: Config) -> None:
    """For families that scale positions even where a configuration does not say how: the values are those
    of one model.  Raises `ModelFileError`."""
    if not config.has("rope_parameters", "rope_scaling"):
        raise ModelFileError(f"{config.file_name} lacks rope_parameters or rope_scaling.")


def window_metadata(config: Config, kinds: list[bool]) -> dict[str, object]:
    """kinds: which layers see only a window; empty: all, where the configuration has one.

    Kinds that are told are written even if all are alike: a reader without them takes the architecture's
    usual pattern.
    """
    if not config.has("sliding_window"):
        return {}
    metadata: dict[str, object] = {"attention.sliding_window": config.count("sliding_window")}
    if kinds:
        metadata["attention.sliding_window_pattern"] = kinds
    return metadata
