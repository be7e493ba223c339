"""Scaling of positions from metadata: kinds, their old keys, YaRN's ramp and length, LongRoPE's contexts."""

from __future__ import annotations

import math

import pytest

from engine.errors import ModelFileError
from engine.models.rope_description import RopeDescription
from tests.engine.models.test_description import described

YARN = {
    "rope__scaling__type": "yarn",
    "rope__scaling__factor": 4.0,
    "rope__scaling__original_context_length": 32768,
}


def test_without_keys_nothing_is_scaled() -> None:
    rope = described("llama").rope
    assert (rope.kind, rope.scale, rope.attention_factor, rope.ramp) == ("none", 1, 1, None)
    assert (rope.base, rope.original_context) == (10_000, 512)


@pytest.mark.parametrize("key", ["rope__scaling__factor", "rope__scale_linear"])
def test_a_factor_without_a_kind_is_linear(key: str) -> None:
    """Files before 2024 have the second key."""
    rope = described("llama", **{key: 4.0}).rope
    assert (rope.kind, rope.scale) == ("linear", 0.25)


def test_a_factor_of_0_means_none() -> None:
    assert described("llama", rope__scaling__factor=0.0).rope.scale == 1
    assert described("llama", rope__scaling__type="none", rope__scaling__factor=4.0).rope.scale == 1


def test_the_ramp_of_qwen_2_5_with_yarn() -> None:
    """Worked out by hand: heads of 128, base 1,000,000, 32,768 tokens.  Pair p turns
    32768 / (2 pi 10^(3p / 32)) times: 32 turns at p = 32 lg(32768 / (64 pi)) / 3 = 23.59, one at
    32 lg(32768 / (2 pi)) / 3 = 39.65."""
    sizes = {"attention__key_length": 128, "attention__value_length": 128}
    rope = described("qwen2", rope__freq_base=1e6, **sizes, **YARN).rope
    assert rope.ramp == (23, 40)
    assert rope.scale == 0.25
    assert rope.attention_factor == pytest.approx(1 + 0.1 * math.log(4))


def test_the_ramp_of_gpt_oss_is_not_rounded() -> None:
    sizes = {"attention__key_length": 64, "attention__value_length": 64}
    yarn = {**YARN, "rope__scaling__factor": 32.0, "rope__scaling__original_context_length": 4096}
    rope = described("gpt-oss", rope__freq_base=150_000.0, **sizes, **yarn).rope
    assert rope.ramp == (pytest.approx(8.0928, abs=1e-3), pytest.approx(17.398, abs=1e-3))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"yarn_log_multiplier": 1.0}, 1.0),
        ({"yarn_log_multiplier": 0.5}, (1 + 0.1 * math.log(4)) / (1 + 0.05 * math.log(4))),
        ({"attn_factor": 2.0}, 2 * (1 + 0.1 * math.log(4))),
        ({"yarn_attn_factor": 1.25}, 1.25),
    ],
)
def test_how_long_yarn_makes_vectors(keys: dict[str, float], expected: float) -> None:
    given = {f"rope__scaling__{key}": value for key, value in keys.items()}
    assert described("mistral3", **YARN, **given).rope.attention_factor == pytest.approx(expected)


def test_yarn_with_a_base_of_1_is_refused() -> None:
    with pytest.raises(ModelFileError, match=r"llama\.rope\.freq_base"):
        described("llama", rope__freq_base=1.0, **YARN)


def test_a_context_beyond_the_original_one_is_long() -> None:
    model = described("phi3", rope__scaling__original_context_length=64, rope__scaling__attn_factor=1.19)
    assert [model.for_context(size).rope.long for size in (64, 65)] == [False, True]
    assert model.rope.attention_factor == pytest.approx(1.19)


@pytest.mark.parametrize(("architecture", "base"), [("gemma3", 10_000.0), ("olmo2", 500_000.0)])
def test_sliding_layers_that_are_not_scaled(architecture: str, base: float) -> None:
    model = described(architecture, rope__freq_base=500_000.0, attention__sliding_window=9, **YARN)
    assert model.rope_of(0) == RopeDescription(16, base)
    assert next(model.rope_of(layer) for layer in range(8) if not model.slides(layer)).kind == "yarn"


def test_sliding_layers_that_are_scaled_too() -> None:
    model = described("gpt-oss", attention__sliding_window=9, rope__freq_base_swa=5000.0, **YARN)
    assert model.rope_of(0).kind == "yarn"
    assert (model.rope_of(0).base, model.rope_of(1).base) == (5000, 10_000)


def test_only_granite_asks_whether_positions_turn_anything() -> None:
    assert not described("granite", rope__scaling__finetuned=False).rope.enabled
    assert described("granite").rope.enabled
