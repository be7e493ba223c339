"""The hyper-parameters of a model, read from GGUF metadata and checked once.

Keys are ``<architecture>.<name>`` as in the public GGUF specification.  Every value that later becomes a
size, a divisor or a loop bound is checked here, so that the families and the planner may trust it.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.metadata import Metadata

MAX_LAYERS = 512
MAX_WIDTH = 1 << 20
MAX_CONTEXT = (1 << 31) - 1
MIN_ROPE_FACTOR = 1e-3


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """Counts are plain numbers; context_length is what the model was trained for, in tokens.

    rope_scale multiplies positions (1 / factor of linear scaling).  sliding_window is 0 where a family has
    none; sliding_pattern p means that layers p - 1, 2p - 1, … see everything.  Soft caps are 0 where there
    are none.
    """

    architecture: str
    name: str
    n_layers: int
    width: int
    feed_forward: int
    n_heads: int
    n_kv_heads: int
    head_size: int
    n_vocabulary: int
    context_length: int
    norm_epsilon: float
    rope_base: float
    rope_dims: int
    rope_scale: float
    sliding_window: int
    sliding_pattern: int
    final_soft_cap: float


def describe(metadata: Metadata, n_vocabulary: int) -> ModelDescription:
    """Reads and checks. n_vocabulary: rows of the embedding.

    Raises `ModelFileError` naming the key, `UnsupportedModelError` for a kind of position scaling we lack.
    """
    architecture = metadata.get_string("general.architecture")
    prefix = f"{architecture}."

    def count(key: str, default: int | None = None, *, minimum: int = 1, maximum: int = MAX_WIDTH) -> int:
        return metadata.get_int(prefix + key, default, minimum=minimum, maximum=maximum)

    def number(key: str, default: float | None = None, *, minimum: float = 0.0) -> float:
        return metadata.get_float(prefix + key, default, minimum=minimum)

    width = count("embedding_length")
    n_heads = count("attention.head_count")
    n_kv_heads = count("attention.head_count_kv", n_heads)
    if n_heads % n_kv_heads:
        raise ModelFileError(
            f"{prefix}attention.head_count_kv is {n_kv_heads}, which does not divide the {n_heads} heads."
        )
    if prefix + "attention.key_length" not in metadata and width % n_heads:
        raise ModelFileError(
            f"{prefix}attention.head_count is {n_heads}, which does not divide the width of {width}."
        )
    head_size = count("attention.key_length", width // n_heads)
    value_size = count("attention.value_length", head_size)
    if value_size != head_size:
        raise UnsupportedModelError(
            f"Keys of {head_size} and values of {value_size} numbers are not supported together."
        )
    rope_dims = count("rope.dimension_count", head_size, maximum=head_size)
    if rope_dims % 2:
        raise ModelFileError(f"{prefix}rope.dimension_count is {rope_dims}; an even number is needed.")
    return ModelDescription(
        architecture=architecture,
        name=metadata.get_string("general.name", "") or architecture,
        n_layers=count("block_count", maximum=MAX_LAYERS),
        width=width,
        feed_forward=count("feed_forward_length"),
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_size=head_size,
        n_vocabulary=n_vocabulary,
        context_length=count("context_length", maximum=MAX_CONTEXT),
        norm_epsilon=number("attention.layer_norm_rms_epsilon"),
        rope_base=number("rope.freq_base", 10_000.0, minimum=1.0),
        rope_dims=rope_dims,
        rope_scale=_rope_scale(metadata, prefix),
        sliding_window=count("attention.sliding_window", 0, minimum=0, maximum=MAX_CONTEXT),
        sliding_pattern=_sliding_pattern(metadata, prefix),
        final_soft_cap=number("final_logit_softcapping", 0.0),
    )


def _rope_scale(metadata: Metadata, prefix: str) -> float:
    kind = metadata.get_string(prefix + "rope.scaling.type", "none")
    if kind in ("none", ""):
        return 1.0
    if kind != "linear":
        raise UnsupportedModelError(f"Position scaling of the kind {kind!r} is not supported.")
    return 1.0 / metadata.get_float(prefix + "rope.scaling.factor", 1.0, minimum=MIN_ROPE_FACTOR)


def _sliding_pattern(metadata: Metadata, prefix: str) -> int:
    """Gemma 3 repeats five sliding layers and a global one; the key, where present, may say otherwise."""
    key = prefix + "attention.sliding_window_pattern"
    return metadata.get_int(key, 6, minimum=1, maximum=MAX_LAYERS)
