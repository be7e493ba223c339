"""Converters of qwen2, qwen3, gemma, gemma2, phi3, granite, olmo2, smollm3, exaone4: checkpoints that say the
same in other words become the same model file, and variants that the graphs cannot compute are refused.

That a converted model computes what it should is shown by tests/engine/models/test_family_truth.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.conversion import convert_checkpoint
from engine.errors import ModelFileError, UnsupportedModelError
from tests.engine.conversion.test_layer_norm_families import converted
from tests.helpers.checkpoints import changed_checkpoint

LONG, SHORT = [1.2, 2.1, 3.0, 3.9], [1.0, 1.07, 1.14, 1.21]

SAME_MODELS: list[tuple[str, dict[str, Any]]] = [
    # A window that is named and not used.
    ("qwen2", {"sliding_window": 4096, "use_sliding_window": False, "layer_types": None}),
    ("qwen3", {"sliding_window": 4096, "use_sliding_window": None, "max_window_layers": 0}),
    (
        "qwen2-rope-yarn",
        {
            "rope_scaling": None,
            "rope_theta": None,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 10000.0,
                "factor": 4.0,
                "original_max_position_embeddings": 32,
            },
        },
    ),
    # The first releases say gelu and mean its form with tanh.
    ("gemma", {"hidden_act": "gelu", "tie_word_embeddings": None, "use_bidirectional_attention": None}),
    ("gemma2", {"hidden_activation": None, "layer_types": None, "use_bidirectional_attention": None}),
    ("phi3-longrope-long", {"rope_scaling": {"type": "su", "long_factor": LONG, "short_factor": SHORT}}),
    (
        "phi3-longrope-long",
        {
            "rope_scaling": None,
            "rope_theta": None,
            "original_max_position_embeddings": None,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "long_factor": LONG,
                "short_factor": SHORT,
                "factor": 4.0,
                "original_max_position_embeddings": 32,
            },
        },
    ),
    ("granite", {"attention_bias": None, "mlp_bias": None}),
    ("olmo2", {"rope_theta": None, "hidden_act": None}),
    ("smollm3", {"no_rope_layers": None, "layer_types": None}),
    ("smollm3", {"no_rope_layer_interval": None, "use_sliding_window": None}),
    ("exaone4", {"layer_types": None, "sliding_window_pattern": "LLLG"}),
    ("exaone4", {"layer_types": None, "sliding_window_pattern": 4}),
    ("exaone4-global", {"layer_types": None, "sliding_window_pattern": None}),
]


@pytest.mark.parametrize(("fixture", "config"), SAME_MODELS)
def test_the_same_in_other_words(fixture: str, config: dict[str, Any], tmp_path: Path) -> None:
    other = changed_checkpoint(fixture, tmp_path / "other", config)
    np.testing.assert_equal(converted(other), converted(changed_checkpoint(fixture, tmp_path / "fixture")))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("gemma", {"use_bidirectional_attention": True}, "both directions"),
    ("gemma", {"hidden_act": "silu"}, "'silu'"),
    ("gemma2", {"use_bidirectional_attention": True}, "both directions"),
    ("gemma2", {"query_pre_attn_scalar": 16}, "query_pre_attn_scalar is 16"),
    ("gemma2", {"hidden_activation": "gelu"}, "'gelu'"),
    ("smollm3", {"no_rope_layers": [1, 0, 1, 0, 1]}, "every fourth"),
    ("smollm3", {"no_rope_layers": None, "no_rope_layer_interval": 3}, "every fourth"),
    ("smollm3", {"use_sliding_window": True, "sliding_window": 9}, "sliding window"),
    (
        "qwen2",
        {
            "use_sliding_window": True,
            "sliding_window": 9,
            "layer_types": ["full_attention", "linear_attention"],
        },
        "'linear_attention'",
    ),
    ("olmo2", {"hidden_act": "gelu"}, "'gelu'"),
    ("granite", {"hidden_act": "gelu"}, "'gelu'"),
    ("exaone4", {"hidden_act": "gelu"}, "'gelu'"),
    ("phi3", {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "'dynamic'"),
    (
        "qwen2",
        {
            "rope_scaling": {
                "type": "yarn",
                "factor": 2.0,
                "original_max_position_embeddings": 64,
                "truncate": False,
            }
        },
        "truncate is false",
    ),
]


@pytest.mark.parametrize(("fixture", "config", "message"), REFUSED)
def test_variants_that_are_refused(
    fixture: str, config: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = changed_checkpoint(fixture, tmp_path / "model", config)
    with pytest.raises(UnsupportedModelError, match=message):
        convert_checkpoint(folder, tmp_path / "model.gguf", "f32", vocabulary=False)
    assert not (tmp_path / "model.gguf").exists()


@pytest.mark.parametrize(
    "factors", [LONG[:3], [*LONG, 5.0], [1.0, 2.0, 3.0, 0.0], [1.0, 2.0, "3", 4.0], None]
)
def test_longrope_with_factors_that_do_not_fit(factors: list[Any] | None, tmp_path: Path) -> None:
    rope = {"type": "longrope", "long_factor": factors, "short_factor": SHORT}
    folder = changed_checkpoint("phi3-longrope-long", tmp_path / "model", {"rope_scaling": rope})
    with pytest.raises(ModelFileError, match="long_factor is to hold 4 numbers"):
        convert_checkpoint(folder, tmp_path / "model.gguf", "f32", vocabulary=False)


LEFT_OVER = [
    ("qwen2", "model.layers.0.self_attn.q_norm.weight"),
    ("gemma", "model.layers.1.post_feedforward_layernorm.weight"),
    ("phi3", "model.layers.0.self_attn.rotary.weight"),
    ("granite", "model.layers.0.block_sparse_moe.router.layer.weight"),
]


@pytest.mark.parametrize(("fixture", "name"), LEFT_OVER)
def test_tensors_that_would_be_ignored(fixture: str, name: str, tmp_path: Path) -> None:
    folder = changed_checkpoint(
        fixture, tmp_path / "model", {}, lambda arrays: {**arrays, name: np.ones(8, np.float32)}
    )
    with pytest.raises(UnsupportedModelError, match=name.replace(".", r"\.")):
        convert_checkpoint(folder, tmp_path / "model.gguf", "f32", vocabulary=False)


def test_upper_layers_of_qwen_may_slide(tmp_path: Path) -> None:
    config = {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1, "layer_types": None}
    values, _ = converted(changed_checkpoint("qwen2", tmp_path / "model", config))
    assert values["qwen2.attention.sliding_window"] == 9
    assert values["qwen2.attention.sliding_window_pattern"].tolist() == [False, True]


def test_gemma_2_without_caps(tmp_path: Path) -> None:
    """``null`` is no cap, a missing key the usual one."""
    config = (tmp_path / "model" / "config.json", '"final_logit_softcapping": 6.0')
    folder = changed_checkpoint("gemma2", tmp_path / "model", {"attn_logit_softcapping": None})
    text = config[0].read_text(encoding="utf-8")
    assert config[1] in text
    config[0].write_text(text.replace(config[1], '"final_logit_softcapping": null'), encoding="utf-8")
    values, _ = converted(folder)
    assert values["gemma2.attn_logit_softcapping"] == 50
    assert values["gemma2.final_logit_softcapping"] == 0


def test_multipliers_of_granite_are_1_where_they_are_missing(tmp_path: Path) -> None:
    names = ("attention_multiplier", "embedding_multiplier", "logits_scaling", "residual_multiplier")
    values, _ = converted(changed_checkpoint("granite", tmp_path / "model", dict.fromkeys(names)))
    keys = ("attention.scale", "embedding_scale", "logit_scale", "residual_scale")
    assert [values[f"granite.{key}"] for key in keys] == [1, 1, 1, 1]
