"""Position settings of a configuration as metadata of a model file.

Releases of `transformers` before version 5 write ``rope_theta`` and ``rope_scaling``, later ones
``rope_parameters``, with an object for each kind of layer where they differ.  Formulas: Peng et al., "YaRN"
(2023); the Llama 3.1 release for its factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.conversion.config import Config
from engine.errors import ModelFileError, UnsupportedModelError

KINDS = ("default", "linear", "yarn", "llama3", "longrope")
ROPE_FACTORS = "rope_freqs.weight"


BASES = {
    "cohere": 500_000.0,
    "gpt_oss": 150_000.0,
    "mixtral": 1_000_000.0,
    "olmo3": 500_000.0,
    "smollm3": 2_000_000.0,
}
"""Of a configuration that names none, by ``model_type``, as `transformers` takes it; 10,000 elsewhere."""


@dataclass(frozen=True, slots=True)
class RopeSettings:
    """kind: one of KINDS.  base: of the wavelengths.  values: the settings of that kind.

    share: of a head's numbers that are turned.
    """

    kind: str
    base: float
    values: Config
    share: float


def rope_settings(
    config: Config, layers: str = "full_attention", *, base: float | None = None, share: float = 1.0
) -> RopeSettings:
    """Of layers of that kind, where a configuration tells kinds apart.

    base and share: the family's defaults (None: by BASES).  Raises `UnsupportedModelError` for a kind of
    scaling we lack, `ModelFileError` for a wrong value.
    """
    if base is None:
        base = BASES.get(config.text("model_type", default=""), 10_000.0)
    new = config.part("rope_parameters")
    if new is not None:
        values = new.part(layers) or new
        base = values.number("rope_theta", default=config.number("rope_theta", default=base))
    else:
        values = config.part("rope_scaling") or Config({}, config.file_name)
        base = config.number("rope_theta", "rotary_emb_base", default=base)
    share = values.number(
        "partial_rotary_factor", default=config.number("partial_rotary_factor", "rotary_pct", default=share)
    )
    if not 0 < share <= 1:
        raise ModelFileError(f"{config.file_name}: partial_rotary_factor is {share:g}, no share of a head.")
    kind = values.text("rope_type", "type", default="default")
    kind = {"su": "longrope"}.get(kind, kind)
    if kind not in KINDS:
        raise UnsupportedModelError(f"{config.file_name}: positions scaled by {kind!r} are not supported.")
    return RopeSettings(kind, base, values, share)


def rope_metadata(rope: RopeSettings) -> dict[str, object]:
    """Keys without the architecture before them."""
    metadata: dict[str, object] = {"rope.freq_base": rope.base}
    if rope.kind in ("linear", "yarn"):
        metadata["rope.scaling.type"] = rope.kind
        metadata["rope.scaling.factor"] = rope.values.number("factor")
    if rope.kind == "yarn":
        metadata |= _yarn_metadata(rope.values)
    if rope.kind == "longrope":
        metadata["rope.scaling.type"] = "longrope"
    return metadata


def _yarn_metadata(values: Config) -> dict[str, object]:
    metadata: dict[str, object] = {
        "rope.scaling.original_context_length": values.count("original_max_position_embeddings")
    }
    for key in ("beta_fast", "beta_slow"):
        if values.has(key):
            metadata[f"rope.scaling.yarn_{key}"] = values.number(key)
    factor = values.number("factor")
    usual = yarn_length(factor)
    length = values.number("attention_factor", default=_length_of_scales(values, factor) or usual)
    if not math.isclose(length, usual, rel_tol=1e-6):
        # Readers lengthen rotated vectors by themselves; what is written comes on top.
        metadata["rope.scaling.attn_factor"] = length / usual
    return metadata


def _length_of_scales(values: Config, factor: float) -> float:
    scale, scale_all = (values.number(key, default=0.0) for key in ("mscale", "mscale_all_dim"))
    return yarn_length(factor, scale) / yarn_length(factor, scale_all) if scale and scale_all else 0.0


def yarn_length(factor: float, weight: float = 1.0) -> float:
    """sqrt(1 / t) of the YaRN paper, section 3.4."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1.0 else 1.0


def llama3_factors(rope: RopeSettings, n_dims: int) -> NDArray[np.float32]:
    """float32[n_dims / 2]: what the frequency of each pair is divided by.

    Pairs that turn often within the original context are left alone, slow ones are stretched by the whole
    factor, and those between by a mixture.
    """
    values = rope.values
    factor = values.number("factor")
    low, high = values.number("low_freq_factor"), values.number("high_freq_factor")
    turns = values.count("original_max_position_embeddings") / (
        2 * np.pi * rope.base ** (np.arange(0, n_dims, 2) / n_dims)
    )
    mixture = np.clip((turns - low) / (high - low), 0.0, 1.0) if high > low else (turns > low) * 1.0
    return np.asarray(1 / ((1 - mixture) / factor + mixture), np.float32)
