"""Converters of phi2, stablelm, starcoder2, gpt2, gptneox, falcon, command-r, cohere2: older checkpoints of
a family become the same model file as the newest, and variants that the graphs cannot compute are refused.

That a converted model computes what it should is shown by tests/engine/models/test_family_truth.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.conversion import convert_checkpoint
from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.reader import GGUFFile
from tests.helpers.checkpoints import Arrays, changed_checkpoint


def converted(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Metadata without the name, and the bytes of every tensor with its type and shape before them."""
    path = folder.with_suffix(".gguf")
    convert_checkpoint(folder, path, "f32", vocabulary=False)
    with GGUFFile.open(path) as file:
        values = {key: value.value for key, value in file.metadata.values.items() if key != "general.name"}
        tensors = {
            name: f"{tensor.type.name} {tensor.shape}".encode() + tensor.in_memory().data.tobytes()
            for name, tensor in file.tensors.items()
        }
    return values, tensors


def renamed(old: str, new: str, **added: np.ndarray[Any, Any]) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {name.replace(old, new): array for name, array in arrays.items()} | added


def with_copy(new: str, of: str) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {**arrays, new: arrays[of]}


MASK = np.zeros((4, 4), np.float32)

SAME_MODELS: dict[str, tuple[str, dict[str, Any], Callable[[Arrays], Arrays]]] = {
    "gpt2 of 2019": (
        "gpt2",
        {"n_positions": None, "n_ctx": 128, "tie_word_embeddings": None, "n_inner": None},
        renamed("transformer.", "", **{"h.0.attn.bias": MASK, "h.1.attn.masked_bias": MASK[0]}),
    ),
    "gpt2 with its output twice": ("gpt2", {}, with_copy("lm_head.weight", "transformer.wte.weight")),
    "gptneox with masks": (
        "gptneox",
        {"use_parallel_residual": None, "attention_bias": None},
        lambda arrays: {
            **arrays,
            "gpt_neox.layers.0.attention.bias": MASK,
            "gpt_neox.layers.0.attention.masked_bias": MASK[0],
            "gpt_neox.layers.1.attention.rotary_emb.inv_freq": MASK[0],
        },
    ),
    "falcon of RWForCausalLM": (
        "falcon",
        {
            "architectures": ["RWForCausalLM"],
            "model_type": "RefinedWebModel",
            "num_attention_heads": None,
            "n_head": 5,
            "num_hidden_layers": None,
            "n_layer": 3,
            "num_kv_heads": None,
            "new_decoder_architecture": None,
            "ffn_hidden_size": None,
            "max_position_embeddings": None,
            "activation": None,
            "tie_word_embeddings": None,
        },
        with_copy("lm_head.weight", "transformer.word_embeddings.weight"),
    ),
    "falcon 40B of RWForCausalLM": (
        "falcon-new",
        {
            "architectures": ["RWForCausalLM"],
            "num_kv_heads": None,
            "n_head_kv": 2,
            "new_decoder_architecture": None,
            "num_ln_in_parallel_attn": None,
        },
        lambda arrays: arrays,
    ),
    "stablelm of StableLMEpochForCausalLM": (
        "stablelm",
        {
            "architectures": ["StableLMEpochForCausalLM"],
            "partial_rotary_factor": None,
            "rope_pct": 0.25,
            "layer_norm_eps": None,
            "norm_eps": 1e-5,
        },
        lambda arrays: arrays,
    ),
    "cohere2 with biases of zero": (
        "cohere2",
        {"layer_types": None, "sliding_window_pattern": 4, "rotary_pct": 1.0},
        lambda arrays: {**arrays, "model.layers.1.input_layernorm.bias": np.zeros(36, np.float32)},
    ),
    "command-r without what is usual": (
        "command-r",
        {"tie_word_embeddings": None, "hidden_act": None},
        with_copy("lm_head.weight", "model.embed_tokens.weight"),
    ),
}


@pytest.mark.parametrize("case", SAME_MODELS)
def test_older_checkpoints_become_the_same_file(case: str, tmp_path: Path) -> None:
    fixture, config, tensors = SAME_MODELS[case]
    old = changed_checkpoint(fixture, tmp_path / "old", config, tensors)
    # The first releases of Falcon do not tell how long texts may be.
    told = {"max_position_embeddings": 2048} if config.get("max_position_embeddings", 0) is None else {}
    wanted = changed_checkpoint(fixture, tmp_path / "new", told)
    assert converted(old) == converted(wanted)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("falcon", {"alibi": True}, "ALiBi"),
    ("falcon", {"parallel_attn": False}, "parallel_attn is false"),
    ("falcon", {"activation": "relu"}, "'relu'"),
    ("gptneox", {"hidden_act": "gelu_fast"}, "'gelu_fast'"),
    ("gptneox", {"attention_bias": False}, "attention_bias is false"),
    ("gpt2", {"activation_function": "relu"}, "'relu'"),
    ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights is false"),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is true"),
    ("gpt2", {"add_cross_attention": True}, "add_cross_attention is true"),
    ("phi2", {"hidden_act": "gelu"}, "'gelu'"),
    ("starcoder2", {"hidden_act": "silu"}, "'silu'"),
    ("starcoder2", {"use_bias": False}, "use_bias is false"),
    ("stablelm", {"hidden_act": "gelu"}, "'gelu'"),
    ("command-r", {"hidden_act": "gelu"}, "'gelu'"),
    ("command-r", {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "'dynamic'"),
    ("cohere2", {"layer_types": None, "sliding_window_pattern": 3}, "every fourth layer"),
    ("cohere2", {"layer_types": ["full_attention"] * 5}, "every fourth layer"),
]


@pytest.mark.parametrize(("fixture", "config", "message"), REFUSED)
def test_variants_that_are_refused(
    fixture: str, config: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = changed_checkpoint(fixture, tmp_path / "model", config)
    with pytest.raises(UnsupportedModelError, match=message):
        convert_checkpoint(folder, tmp_path / "model.gguf", "f32", vocabulary=False)
    assert not (tmp_path / "model.gguf").exists()


LEFT_OVER: list[tuple[str, str]] = [
    ("phi2", "model.layers.0.self_attn.q_layernorm.weight"),
    ("cohere2", "model.layers.1.self_attn.q_norm.weight"),
    ("cohere2", "model.layers.1.input_layernorm.bias"),
    ("command-r", "model.layers.1.input_layernorm.scale"),
    ("falcon", "transformer.h.1.post_attention_layernorm.weight"),
]


@pytest.mark.parametrize(("fixture", "name"), LEFT_OVER)
def test_tensors_that_would_be_ignored(fixture: str, name: str, tmp_path: Path) -> None:
    folder = changed_checkpoint(
        fixture, tmp_path / "model", {}, lambda arrays: {**arrays, name: np.ones(8, np.float32)}
    )
    with pytest.raises(UnsupportedModelError, match=name.replace(".", r"\.")):
        convert_checkpoint(folder, tmp_path / "model.gguf", "f32", vocabulary=False)


BIASED = [
    ("phi2", "model.layers.1.mlp.fc1.bias", "blk.1.ffn_up.bias"),
    ("phi2", "lm_head.bias", "output.bias"),
    ("gpt2", "transformer.h.2.attn.c_attn.bias", "blk.2.attn_qkv.bias"),
    ("gpt2", "transformer.ln_f.bias", "output_norm.bias"),
    ("gptneox", "gpt_neox.layers.0.post_attention_layernorm.bias", "blk.0.ffn_norm.bias"),
    ("starcoder2", "model.layers.1.self_attn.k_proj.bias", "blk.1.attn_k.bias"),
    ("falcon-new", "transformer.h.1.ln_attn.bias", "blk.1.attn_norm_2.bias"),
    ("stablelm", "model.layers.1.post_attention_layernorm.bias", "blk.1.ffn_norm.bias"),
]


@pytest.mark.parametrize(("fixture", "lost", "named"), BIASED)
def test_biases_that_are_missing_are_named(fixture: str, lost: str, named: str, tmp_path: Path) -> None:
    def without(arrays: Arrays) -> Arrays:
        assert lost in arrays
        return {name: array for name, array in arrays.items() if name != lost}

    folder = changed_checkpoint(fixture, tmp_path / "model", {}, without)
    with pytest.raises(ModelFileError, match=named.replace(".", r"\.")):
        convert_checkpoint(folder, tmp_path / "model.gguf", "f32", vocabulary=False)


def test_heads_of_which_one_norm_is_missing(tmp_path: Path) -> None:
    lost = "model.layers.1.self_attn.q_layernorm.norms.2.weight"
    folder = changed_checkpoint(
        "stablelm-parallel",
        tmp_path / "model",
        {},
        lambda arrays: {name: array for name, array in arrays.items() if name != lost},
    )
    with pytest.raises(ModelFileError, match=r"blk\.1\.attn_q_norm\.weight"):
        convert_checkpoint(folder, tmp_path / "model.gguf", "f32", vocabulary=False)


def test_command_r_tells_how_long_texts_it_was_trained_with(tmp_path: Path) -> None:
    folder = changed_checkpoint("command-r", tmp_path / "model", {"model_max_length": 131_072})
    values, _ = converted(folder)
    assert values["command-r.context_length"] == 131_072
    assert values["command-r.rope.scaling.type"] == b"none"
    assert values["command-r.logit_scale"] == pytest.approx(0.4)
