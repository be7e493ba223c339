"""Hyper-parameters of all families from metadata: defaults of older files, patterns, and damaged values."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import CauserieError, ModelFileError, UnsupportedModelError
from engine.gguf.metadata import Metadata, MetadataValue, ValueType
from engine.gguf.values import infer_value, number
from engine.models.description import ModelDescription, describe


def described(architecture: str, n_layers: int = 8, **changes: Any) -> ModelDescription:
    """Of a small model; a change is a key without the architecture, dots as __, None for a missing one."""
    values: dict[str, Any] = {
        "block_count": n_layers,
        "context_length": 512,
        "embedding_length": 96,
        "feed_forward_length": 128,
        "attention.head_count": 6,
        "attention.head_count_kv": 2,
        "attention.layer_norm_rms_epsilon": 1e-5,
    }
    values |= {key.replace("__", "."): value for key, value in changes.items()}
    entries = {"general.architecture": infer_value(architecture)}
    for key, value in values.items():
        if value is not None:
            entry = value if isinstance(value, MetadataValue) else infer_value(value)
            entries[f"{architecture}.{key}"] = entry
    return describe(Metadata(entries, "m.gguf"), 100)


def test_sizes_follow_from_each_other_where_a_file_does_not_say() -> None:
    model = described("llama")
    assert (model.head_size, model.rope.n_dims, model.n_kv_heads) == (16, 16, 2)
    assert model.attention_scale == pytest.approx(0.25)
    assert described("llama", attention__head_count_kv=None).n_kv_heads == 6


def test_heads_may_be_larger_than_their_share_of_the_width() -> None:
    model = described("qwen3", attention__key_length=40, attention__value_length=40)
    assert model.head_size == model.rope.n_dims == 40


def test_values_of_another_size_than_keys_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedModelError, match=r"deepseek2\.attention\.key_length is 24"):
        described("deepseek2", attention__key_length=24, attention__value_length=16)


@pytest.mark.parametrize("key", ["attention.head_count", "attention.head_count_kv", "feed_forward_length"])
def test_a_count_for_each_layer(key: str) -> None:
    name = key.replace(".", "__")
    assert described("llama", 3, **{name: [6, 6, 6]}) is not None
    with pytest.raises(UnsupportedModelError, match=rf"llama\.{key} .*6 to 12"):
        described("llama", 3, **{name: [6, 12, 6]})
    with pytest.raises(ModelFileError, match=rf"llama\.{key} has 2 entries for 3 layers"):
        described("llama", 3, **{name: [6, 6]})


def test_layer_norms_have_an_epsilon_of_their_own() -> None:
    model = described("gptneox", attention__layer_norm_epsilon=1e-3, attention__layer_norm_rms_epsilon=None)
    assert model.norm_epsilon == pytest.approx(1e-3)
    with pytest.raises(ModelFileError, match=r"gptneox\.attention\.layer_norm_epsilon"):
        described("gptneox")


def windows(model: ModelDescription) -> list[int]:
    return [model.window(layer) for layer in range(model.n_layers)]


def test_first_files_of_gemma2_say_nothing_of_windows_and_caps() -> None:
    model = described("gemma2", 4)
    assert windows(model) == [4096, 0, 4096, 0]
    assert (model.attention_soft_cap, model.final_soft_cap) == (50, 30)
    model = described("gemma2", 4, attention__sliding_window=7, attn_logit_softcapping=20.0)
    assert windows(model) == [7, 0, 7, 0]
    assert model.attention_soft_cap == 20


@pytest.mark.parametrize(
    ("architecture", "seen"),
    [
        ("gemma3", [9, 9, 9, 9, 9, 0, 9, 9]),
        ("cohere2", [9, 9, 9, 0, 9, 9, 9, 0]),
        ("exaone4", [9, 9, 9, 0, 9, 9, 9, 0]),
        ("olmo2", [9, 9, 9, 0, 9, 9, 9, 0]),
        ("gpt-oss", [9, 0, 9, 0, 9, 0, 9, 0]),
        ("llama", [9] * 8),
        ("phi3", [9] * 8),
    ],
)
def test_which_layers_slide(architecture: str, seen: list[int]) -> None:
    epsilon = "attention__layer_norm_epsilon" if architecture == "cohere2" else "block_count"
    model = described(
        architecture,
        attention__sliding_window=9,
        **{epsilon: 1e-5 if "epsilon" in epsilon else 8},
    )
    assert windows(model) == seen


@pytest.mark.parametrize(
    "pattern", [[True, False, False], [1, 0, 0], MetadataValue(ValueType.UINT32, 1)], ids=repr
)
def test_a_pattern_in_the_file_counts(pattern: Any) -> None:
    model = described("gemma3", 3, attention__sliding_window=9, attention__sliding_window_pattern=pattern)
    assert windows(model) == ([9, 0, 0] if isinstance(pattern, list) else [0, 0, 0])


def test_a_window_of_0_is_none() -> None:
    assert windows(described("phi3", 2, attention__sliding_window=0)) == [0, 0]


def test_the_first_files_of_exaone4_32b_have_windows_all_the_same() -> None:
    assert windows(described("exaone4", 64))[:4] == [4096, 4096, 4096, 0]
    assert windows(described("exaone4", 30)) == [0] * 30


@pytest.mark.parametrize(("architecture", "n_layers"), [("gemma2", 46), ("gemma3", 62)])
def test_27b_models_scale_queries_by_their_share_of_the_width(architecture: str, n_layers: int) -> None:
    sizes = {"attention__key_length": 32, "attention__value_length": 32}
    assert described(architecture, n_layers, **sizes).attention_scale == pytest.approx((96 / 6) ** -0.5)
    assert described(architecture, n_layers - 1, **sizes).attention_scale == pytest.approx(32**-0.5)


def test_multipliers_are_1_where_a_file_has_none_or_0() -> None:
    model = described("granite", residual_scale=0.0, embedding_scale=12.0, attention__scale=0.5)
    assert (model.residual_scale, model.embedding_scale, model.logit_scale) == (1, 12, 1)
    assert model.attention_scale == 0.5


def test_counts_of_experts() -> None:
    model = described("qwen2moe", expert_count=60, expert_used_count=4, expert_feed_forward_length=24)
    assert (model.experts.n, model.experts.n_used, model.experts.feed_forward) == (60, 4, 24)
    assert described("llama").experts.n == 0


DAMAGED: list[tuple[str, str, Any]] = [
    ("qwen2", "attention.sliding_window", -1),
    ("gemma2", "attention.sliding_window_pattern", [True]),
    ("gemma2", "attention.sliding_window_pattern", [2] * 8),
    ("gemma2", "attention.sliding_window_pattern", "LLLG"),
    ("gemma2", "attention.sliding_window_pattern", 513),
    ("gemma2", "attn_logit_softcapping", -1.0),
    ("gemma2", "attn_logit_softcapping", float("nan")),
    ("gemma2", "final_logit_softcapping", 1e9),
    ("granite", "logit_scale", float("inf")),
    ("granite", "attention.scale", -0.5),
    ("granite", "residual_scale", "1"),
    ("llama", "expert_count", 1025),
    ("llama", "expert_used_count", 0),
    ("llama", "expert_used_count", 9),
    ("llama", "expert_used_count", None),
    ("qwen3", "attention.key_length", number(ValueType.UINT32, 1 << 31)),
    ("mistral3", "attention.temperature_length", 0),
    ("mistral3", "attention.temperature_scale", float("nan")),
    ("bert", "attention.causal", False),
    ("mpt", "attention.max_alibi_bias", 8.0),
    ("olmo", "attention.clamp_kqv", 8.0),
    ("llama", "rope.scaling.factor", float("nan")),
    ("llama", "rope.scaling.factor", -2.0),
    ("llama", "rope.scaling.type", "ntk"),
    ("llama", "rope.scaling.type", 1),
    ("llama", "rope.scaling.original_context_length", 0),
    ("gemma3", "rope.freq_base_swa", 0.0),
]


@pytest.mark.parametrize(("architecture", "key", "value"), DAMAGED, ids=lambda part: repr(part)[:50])
def test_damaged_values_are_told_by_their_key(architecture: str, key: str, value: Any) -> None:
    changes: dict[str, Any] = {"expert_count": 8} if key.startswith("expert_used") else {}
    if key.endswith("_pattern"):
        changes["attention__sliding_window"] = 9
    with pytest.raises((ModelFileError, UnsupportedModelError)) as caught:
        described(architecture, **changes, **{key.replace(".", "__"): value})
    assert isinstance(caught.value, CauserieError) and f"{architecture}.{key}" in caught.value.title
