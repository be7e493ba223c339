"""How a model turns positions into rotations, read from GGUF metadata: base, size, scaling for long texts.

Sources: Su et al., "RoFormer" (2021); Peng et al., "YaRN: Efficient Context Window Extension of Large
Language Models" (2023), sections 3.2 and 3.4; Ding et al., "LongRoPE" (2024).  Keys and defaults are those of
the public GGUF specification and of llama.cpp's loader.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, cast

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.metadata import Metadata

ScalingKind = Literal["none", "linear", "yarn", "longrope"]
SCALING_KINDS = ("none", "linear", "yarn", "longrope")

MIN_FACTOR = 1e-3
MAX_LENGTH = 1e6
"""Of rotated vectors, relative to what they were; far above every model."""
MAX_CONTEXT = (1 << 31) - 1

WHOLE_RAMP = frozenset({"gpt-oss"})
"""Architectures whose YaRN ramp keeps its exact borders; the others round them outwards to whole pairs."""

SLIDING_BASES = {"gemma3": 10_000.0}
"""Bases of sliding layers that the files of an architecture need not name."""

PLAIN_SLIDING = frozenset({"gemma3", "olmo2"})
"""Architectures that scale only in layers that see everything; sliding layers turn by plain positions."""


@dataclass(frozen=True, slots=True)
class RopeDescription:
    """n_dims numbers of each head are turned, by position * scale / base^(2i / n_dims) in pair i.

    scale:            1 / factor of linear scaling and of YaRN, else 1.
    attention_factor: rotated vectors become so many times as long.
    original_context: tokens the model was trained for before its context was made longer.
    ramp:             pairs below its start keep their frequency (YaRN), those above its end get it times
                      scale, those between a mixture; None: all get it times scale.
    long:             whether the context in use is longer than the original one.
    enabled:          false where a model uses no rotations at all (granite's switch).
    """

    n_dims: int
    base: float = 10_000.0
    kind: ScalingKind = "none"
    scale: float = 1.0
    attention_factor: float = 1.0
    original_context: int = MAX_CONTEXT
    ramp: tuple[float, float] | None = None
    long: bool = False
    enabled: bool = True

    def for_context(self, context_size: int) -> RopeDescription:
        """LongRoPE has two sets of factors, for contexts up to the original one and beyond it."""
        return replace(self, long=context_size > self.original_context)


def describe_rope(
    metadata: Metadata, architecture: str, head_size: int, context_length: int
) -> RopeDescription:
    """Raises `ModelFileError` naming the key, `UnsupportedModelError` for a kind of scaling we lack."""
    prefix = f"{architecture}.rope."
    n_dims = metadata.get_int(prefix + "dimension_count", head_size, minimum=1, maximum=head_size)
    if n_dims % 2:
        raise ModelFileError(
            f"{metadata.file_name}: {prefix}dimension_count is {n_dims}; an even number is needed."
        )
    base = metadata.get_float(prefix + "freq_base", 10_000.0, minimum=1.0)
    kind = metadata.get_string(prefix + "scaling.type", "linear") or "none"
    if kind not in SCALING_KINDS:
        raise UnsupportedModelError(
            f"{prefix}scaling.type is {kind!r}; supported are {', '.join(SCALING_KINDS)}."
        )
    factor = _factor(metadata, prefix) if kind in ("linear", "yarn") else 1.0
    original = metadata.get_int(
        prefix + "scaling.original_context_length", context_length, minimum=1, maximum=MAX_CONTEXT
    )
    return RopeDescription(
        n_dims=n_dims,
        base=base,
        kind=cast(ScalingKind, "none" if kind == "linear" and factor == 1.0 else kind),
        scale=1 / factor,
        attention_factor=_attention_factor(metadata, architecture, kind, factor),
        original_context=original,
        ramp=_ramp(metadata, architecture, n_dims, base, original) if kind == "yarn" else None,
        enabled=metadata.get_bool(prefix + "scaling.finetuned", True),
    )


def describe_sliding_rope(metadata: Metadata, architecture: str, rope: RopeDescription) -> RopeDescription:
    """Of layers with a sliding window, where ``rope`` is of the others."""
    base = metadata.get_float(
        f"{architecture}.rope.freq_base_swa", SLIDING_BASES.get(architecture, rope.base), minimum=1.0
    )
    if architecture in PLAIN_SLIDING:
        return RopeDescription(rope.n_dims, base)
    return replace(rope, base=base)


def _factor(metadata: Metadata, prefix: str) -> float:
    """How many times longer the context was made; files before 2024 have another key for it."""
    key = prefix + "scaling.factor"
    old_key = prefix + "scale_linear"
    if key not in metadata and old_key in metadata:
        key = old_key
    factor = metadata.get_float(key, 1.0, minimum=0.0)
    # llama.cpp's converter once wrote 0 for "no scaling".
    return max(factor, MIN_FACTOR) if factor else 1.0


def _attention_factor(metadata: Metadata, architecture: str, kind: str, factor: float) -> float:
    prefix = f"{architecture}.rope.scaling."
    given = metadata.get_float(prefix + "attn_factor", 1.0, minimum=0.0, maximum=MAX_LENGTH) or 1.0
    if kind != "yarn":
        return given
    whole_of_yarn = metadata.get_float(prefix + "yarn_attn_factor", 0.0, maximum=MAX_LENGTH)
    if whole_of_yarn > 0:
        return given * whole_of_yarn
    whole = metadata.get_float(prefix + "yarn_log_multiplier", 0.0, minimum=0.0)
    return given * yarn_length(factor) / (yarn_length(factor, whole) if whole else 1.0)


def yarn_length(factor: float, weight: float = 1.0) -> float:
    """sqrt(1 / t) of the YaRN paper, section 3.4: 0.1 ln(factor) + 1, the logarithm times weight."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1.0 else 1.0


def _ramp(
    metadata: Metadata, architecture: str, n_dims: int, base: float, original: int
) -> tuple[float, float]:
    """The pairs that turn beta_fast and beta_slow times within the original context: the YaRN paper, 3.2."""
    prefix = f"{architecture}.rope.scaling."
    fast = metadata.get_float(prefix + "yarn_beta_fast", 32.0, minimum=1e-6)
    slow = metadata.get_float(prefix + "yarn_beta_slow", 1.0, minimum=1e-6)
    if base == 1.0:
        raise ModelFileError(
            f"{metadata.file_name}: {architecture}.rope.freq_base is 1, with which YaRN is not defined."
        )

    def pair(turns: float) -> float:
        return n_dims * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    start, end = pair(fast), pair(slow)
    if architecture not in WHOLE_RAMP:
        start, end = math.floor(start), math.ceil(end)
    return max(start, 0.0), min(end, n_dims - 1.0)
