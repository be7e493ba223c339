"""The hyper-parameters of a model, read from GGUF metadata and checked once.

Keys are ``<architecture>.<name>`` as in the public GGUF specification; defaults for keys that older files
lack are llama.cpp's.  Every value that later becomes a size, a divisor or a loop bound is checked here, so
that the families and the planner may trust it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.metadata import Metadata, ValueType
from engine.graph.expert_operations import Gating
from engine.models.rope_description import MAX_CONTEXT, RopeDescription, describe_rope, describe_sliding_rope

MAX_LAYERS = 512
MAX_WIDTH = 1 << 20
MAX_EXPERTS = 1024
MAX_SCALE = 1e6

LAYER_NORM_ARCHITECTURES = frozenset(
    {"command-r", "cohere2", "falcon", "gpt2", "gptneox", "phi2", "stablelm", "starcoder2"}
)
"""Architectures with norms that subtract the mean: their epsilon has a key of its own."""

NORMALISED_EXPERTS = frozenset({"gpt-oss", "granitemoe", "llama", "qwen3moe"})
"""Architectures whose experts' weights are divided by their sum, where a file does not say otherwise."""

SOFTMAX, SOFTMAX_OF_CHOSEN = 1, 3
GATINGS: Mapping[int, Gating] = {0: "softmax", SOFTMAX: "softmax", 2: "sigmoid", SOFTMAX_OF_CHOSEN: "softmax"}
"""By llama.cpp's numbers.  A softmax of the chosen alone is that of all, divided by the sum of the chosen."""

SLIDING_PERIODS = {"cohere2": 4, "exaone4": 4, "gemma2": 2, "gemma3": 6, "gpt-oss": 2, "olmo2": 4}
"""Every p-th layer sees everything, where a file does not say otherwise.  Elsewhere every layer slides."""

SLIDING_WINDOWS = {"gemma2": 4096}

WHOLE_WIDTH = {"gemma2": 46, "gemma3": 62}
"""Layers of the 27B models, which alone scale queries by width / heads in place of the size of a head."""

SOFT_CAPS = {"gemma2": (50.0, 30.0)}
"""Of attention scores and of logits, for files older than the keys."""

LAYERS_OF_EXAONE4_32B = 64
"""The 32B model alone has sliding windows; its first files do not say so."""


@dataclass(frozen=True, slots=True)
class ExpertDescription:
    """n of them in a layer, of which a token uses n_used; feed_forward is the size of one.

    shared_feed_forward: size of the experts that every token uses, together; 0: none.
    gating:              what makes weights of a router's scores.
    weights_norm:        whether the weights of the chosen are divided by their sum.
    """

    n: int = 0
    n_used: int = 0
    feed_forward: int = 0
    shared_feed_forward: int = 0
    gating: Gating = "softmax"
    weights_norm: bool = False
    weights_scale: float = 1.0


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """Counts are plain numbers; context_length is what the model was trained for, in tokens.

    norm_epsilon:      of RMS norms, or of layer norms where the architecture has those.
    sliding_window:    positions that a query of a sliding layer sees; 0: no layer slides.
    sliding_layers:    one truth value per layer; empty: every layer slides if sliding_window is not 0.
    attention_scale:   scores are multiplied by it; usually 1 / sqrt(head_size).
    temperature_scale: where not 0, queries at position p are multiplied by
                       1 + temperature_scale ln(1 + floor(p / temperature_length)).
    logit_scale:       as in the file; some architectures multiply logits by it, granite divides.
    Soft caps are 0 where there are none, counts of experts where a model has none.
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
    attention_scale: float
    rope: RopeDescription
    sliding_rope: RopeDescription
    sliding_window: int = 0
    sliding_layers: tuple[bool, ...] = ()
    attention_soft_cap: float = 0.0
    temperature_scale: float = 0.0
    temperature_length: int = MAX_CONTEXT
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    final_soft_cap: float = 0.0
    parallel_residual: bool = True
    experts: ExpertDescription = ExpertDescription()

    def slides(self, layer: int) -> bool:
        """Whether queries of the layer see only the last sliding_window positions."""
        return self.sliding_window > 0 and (not self.sliding_layers or self.sliding_layers[layer])

    def window(self, layer: int) -> int:
        """How many positions a query of the layer sees; 0: all."""
        return self.sliding_window if self.slides(layer) else 0

    def rope_of(self, layer: int) -> RopeDescription:
        return self.sliding_rope if self.slides(layer) else self.rope

    def for_context(self, context_size: int) -> ModelDescription:
        """The same model with rotations for contexts of that many tokens."""
        return replace(
            self,
            rope=self.rope.for_context(context_size),
            sliding_rope=self.sliding_rope.for_context(context_size),
        )


def describe(metadata: Metadata, n_vocabulary: int) -> ModelDescription:
    """Reads and checks. n_vocabulary: rows of the embedding.

    Raises `ModelFileError` naming the key, `UnsupportedModelError` for what no backend of ours can compute.
    """
    architecture = metadata.get_string("general.architecture")
    keys = _Keys(metadata, architecture)
    n_layers = keys.count("block_count", maximum=MAX_LAYERS)
    width = keys.count("embedding_length")
    n_heads = keys.count_of_layers("attention.head_count", n_layers)
    n_kv_heads = keys.count_of_layers("attention.head_count_kv", n_layers, n_heads)
    if n_heads % n_kv_heads:
        raise ModelFileError(
            f"{metadata.file_name}: {architecture}.attention.head_count_kv is {n_kv_heads}, "
            f"which does not divide the {n_heads} heads."
        )
    head_size = _head_size(keys, width, n_heads)
    context_length = keys.count("context_length", maximum=MAX_CONTEXT)
    rope = describe_rope(metadata, architecture, head_size, context_length)
    _refuse_what_is_lacking(keys)
    experts = _experts(keys)
    layer_norm = architecture in LAYER_NORM_ARCHITECTURES
    attention_cap, final_cap = SOFT_CAPS.get(architecture, (0.0, 0.0))
    sliding_window = _sliding_window(keys, architecture, n_layers)
    return ModelDescription(
        architecture=architecture,
        name=metadata.get_string("general.name", "") or architecture,
        n_layers=n_layers,
        width=width,
        feed_forward=keys.count_of_layers(
            "feed_forward_length", n_layers, experts.feed_forward if experts.feed_forward else None
        ),
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_size=head_size,
        n_vocabulary=n_vocabulary,
        context_length=context_length,
        norm_epsilon=keys.number(
            "attention.layer_norm_epsilon" if layer_norm else "attention.layer_norm_rms_epsilon"
        ),
        rope=rope,
        sliding_rope=describe_sliding_rope(metadata, architecture, rope),
        sliding_window=sliding_window,
        sliding_layers=_sliding_layers(keys, architecture, n_layers) if sliding_window else (),
        attention_scale=keys.number("attention.scale", 0.0)
        or 1 / math.sqrt(width / n_heads if WHOLE_WIDTH.get(architecture) == n_layers else head_size),
        attention_soft_cap=keys.number("attn_logit_softcapping", attention_cap),
        temperature_scale=keys.number("attention.temperature_scale", 0.0),
        temperature_length=keys.count(
            "attention.temperature_length", rope.original_context, maximum=MAX_CONTEXT
        ),
        embedding_scale=keys.multiplier("embedding_scale"),
        residual_scale=keys.multiplier("residual_scale"),
        logit_scale=keys.multiplier("logit_scale"),
        final_soft_cap=keys.number("final_logit_softcapping", final_cap),
        parallel_residual=keys.flag("use_parallel_residual", True),
        experts=experts,
    )


class _Keys:
    """Getters for the keys of one architecture."""

    def __init__(self, metadata: Metadata, architecture: str) -> None:
        self.metadata = metadata
        self.architecture = architecture
        self.prefix = f"{architecture}."

    def has(self, key: str) -> bool:
        return self.prefix + key in self.metadata

    def count(
        self, key: str, default: int | None = None, *, minimum: int = 1, maximum: int = MAX_WIDTH
    ) -> int:
        return self.metadata.get_int(self.prefix + key, default, minimum=minimum, maximum=maximum)

    def count_of_layers(self, key: str, n_layers: int, default: int | None = None) -> int:
        """A count that a file may give for each layer.  Raises `UnsupportedModelError` where they differ."""
        name = self.prefix + key
        counts = set(self.metadata.get_int_per_layer(name, n_layers, default, minimum=1, maximum=MAX_WIDTH))
        if len(counts) > 1:
            raise UnsupportedModelError(
                f"{name} is not the same for every layer ({min(counts)} to {max(counts)}), "
                "which is not supported."
            )
        return counts.pop()

    def number(self, key: str, default: float | None = None) -> float:
        return self.metadata.get_float(self.prefix + key, default, minimum=0.0, maximum=MAX_SCALE)

    def multiplier(self, key: str) -> float:
        """A factor; 0 and a missing key mean none."""
        return self.number(key, 1.0) or 1.0

    def flag(self, key: str, default: bool) -> bool:
        return self.metadata.get_bool(self.prefix + key, default)


def _head_size(keys: _Keys, width: int, n_heads: int) -> int:
    if not keys.has("attention.key_length") and width % n_heads:
        raise ModelFileError(
            f"{keys.metadata.file_name}: {keys.prefix}attention.head_count is {n_heads}, "
            f"which does not divide the width of {width}."
        )
    head_size = keys.count("attention.key_length", width // n_heads)
    value_size = keys.count("attention.value_length", head_size)
    if value_size != head_size:
        raise UnsupportedModelError(
            f"{keys.prefix}attention.key_length is {head_size} and value_length {value_size}; "
            "heads of two sizes are not supported."
        )
    return head_size


def _refuse_what_is_lacking(keys: _Keys) -> None:
    """Raises `UnsupportedModelError` for hyper-parameters that would change every result."""
    if not keys.flag("attention.causal", True):
        raise UnsupportedModelError(
            f"{keys.prefix}attention.causal is false: this model reads whole texts, it does not write any."
        )
    for key in ("attention.max_alibi_bias", "attention.clamp_kqv"):
        if keys.number(key, 0.0):
            raise UnsupportedModelError(f"{keys.prefix}{key} is not 0, which is not supported.")


def _experts(keys: _Keys) -> ExpertDescription:
    n = keys.count("expert_count", 0, minimum=0, maximum=MAX_EXPERTS)
    if n == 0:
        return ExpertDescription()
    gating = keys.count("expert_gating_func", SOFTMAX, minimum=0, maximum=255)
    if gating not in GATINGS or keys.count("expert_group_count", 1, minimum=0) > 1:
        raise UnsupportedModelError("Experts are chosen in a way that is not supported for this family.")
    return ExpertDescription(
        n=n,
        n_used=keys.count("expert_used_count", maximum=n),
        feed_forward=keys.count("expert_feed_forward_length", 0, minimum=0),
        shared_feed_forward=keys.count("expert_shared_feed_forward_length", 0, minimum=0),
        gating=GATINGS[gating],
        weights_norm=gating == SOFTMAX_OF_CHOSEN
        or keys.flag("expert_weights_norm", keys.architecture in NORMALISED_EXPERTS),
        weights_scale=keys.multiplier("expert_weights_scale"),
    )


def _sliding_window(keys: _Keys, architecture: str, n_layers: int) -> int:
    default = SLIDING_WINDOWS.get(architecture, 0)
    if architecture == "exaone4" and n_layers == LAYERS_OF_EXAONE4_32B:
        default = 4096
    return keys.count("attention.sliding_window", default, minimum=0, maximum=MAX_CONTEXT)


def _sliding_layers(keys: _Keys, architecture: str, n_layers: int) -> tuple[bool, ...]:
    """From a truth value for each layer, or a period p: layers p - 1, 2p - 1, … see everything (0: none)."""
    key = keys.prefix + "attention.sliding_window_pattern"
    metadata = keys.metadata
    if key in metadata and metadata.values[key].type is ValueType.ARRAY:
        if metadata.values[key].element_type is ValueType.BOOL:
            layers = [bool(item) for item in metadata.get_bools(key)]
        else:
            layers = [bool(item) for item in metadata.get_ints(key, minimum=0, maximum=1)]
        if len(layers) != n_layers:
            raise ModelFileError(
                f"{metadata.file_name}: {key} has {len(layers)} entries for {n_layers} layers."
            )
        return tuple(layers)
    period = metadata.get_int(key, SLIDING_PERIODS.get(architecture, 0), minimum=0, maximum=MAX_LAYERS)
    return tuple(period == 0 or (layer + 1) % period != 0 for layer in range(n_layers))
