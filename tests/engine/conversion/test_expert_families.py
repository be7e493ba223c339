"""Converters of mixtral, qwen2moe, qwen3moe, granitemoe, olmoe and gpt-oss: variants, damage, and MXFP4.

That a converted model computes what it should is shown by tests/engine/models/test_family_truth.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.conversion import convert_checkpoint
from engine.conversion.mxfp4 import paired_at_distance
from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.reader import GGUFFile
from engine.quantisation.dequantise import dequantise
from tests.engine.conversion.test_layer_norm_families import converted
from tests.helpers.checkpoints import Arrays, changed_checkpoint

YARN = {
    "rope_type": "yarn",
    "factor": 8.0,
    "original_max_position_embeddings": 16,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
}

SAME_MODELS: list[tuple[str, dict[str, Any]]] = [
    ("mixtral", {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    ("mixtral", {"sliding_window": None, "architectures": None}),
    ("qwen2moe", {"layer_types": None, "sliding_window": 4096, "mlp_only_layers": None}),
    ("qwen3moe", {"decoder_sparse_step": None, "num_local_experts": 6, "num_experts": None}),
    ("olmoe", {"hidden_act": None, "architectures": None}),
    ("granitemoe", {"architectures": ["GraniteMoeSharedForCausalLM"]}),
    ("granitemoe", {"architectures": ["GraniteMoeSharedForCausalLM"], "shared_intermediate_size": 0}),
    ("gpt-oss", {"layer_types": None, "swiglu_alpha": None, "swiglu_limit": None}),
    (
        "gpt-oss",
        {
            "rope_scaling": None,
            "rope_theta": None,
            "rope_parameters": {**YARN, "truncate": False, "rope_theta": 150000.0},
        },
    ),
]


@pytest.mark.parametrize(("fixture", "config"), SAME_MODELS)
def test_the_same_in_other_words(fixture: str, config: dict[str, Any], tmp_path: Path) -> None:
    other = changed_checkpoint(fixture, tmp_path / "other", config)
    np.testing.assert_equal(converted(other), converted(changed_checkpoint(fixture, tmp_path / "fixture")))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("qwen2moe", {"decoder_sparse_step": 2}, "some of the layers"),
    ("qwen3moe", {"mlp_only_layers": [0]}, "some of the layers"),
    ("qwen3moe", {"use_sliding_window": True, "sliding_window": 9}, "sliding windows"),
    ("qwen2moe", {"hidden_act": "gelu"}, "'gelu'"),
    ("olmoe", {"clip_qkv": 8.0}, "clip_qkv"),
    ("gpt-oss", {"swiglu_limit": 5.0}, "swiglu_limit"),
    ("gpt-oss", {"swiglu_alpha": 1.0}, "swiglu_alpha"),
    ("gpt-oss", {"rope_scaling": {**YARN, "truncate": True}}, "truncated"),
    ("gpt-oss", {"rope_scaling": YARN}, "truncated"),
    ("mixtral", {"quantization_config": {"quant_method": "mxfp4"}}, "already quantised"),
    ("gpt-oss", {"quantization_config": {"quant_method": "gptq"}}, "already quantised"),
    ("llama", {"architectures": ["BertModel"], "model_type": "bert"}, "is an encoder"),
    ("llama", {"architectures": ["NomicBertModel"], "model_type": "nomic_bert"}, "is an encoder"),
    ("llama", {"architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta"}, "is an encoder"),
]


@pytest.mark.parametrize(("fixture", "config", "message"), REFUSED)
def test_variants_that_are_refused(
    fixture: str, config: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = changed_checkpoint(fixture, tmp_path / "model", config)
    with pytest.raises(UnsupportedModelError, match=message):
        convert_checkpoint(folder, tmp_path / "model.gguf", "f32", vocabulary=False)
    assert not (tmp_path / "model.gguf").exists()


def without(name: str) -> Any:
    return lambda arrays: {key: array for key, array in arrays.items() if key != name}


def reshaped(name: str, *shape: int) -> Any:
    return lambda arrays: {**arrays, name: np.ones(shape, np.float32)}


MIXTRAL_EXPERT = "model.layers.1.block_sparse_moe.experts.2.w3.weight"
GRANITE_FUSED = "model.layers.0.block_sparse_moe.input_linear.weight"
OSS_FUSED = "model.layers.2.mlp.experts.gate_up_proj"

DAMAGED: list[tuple[str, Any, str]] = [
    ("mixtral", without(MIXTRAL_EXPERT), "lacks expert 2"),
    ("mixtral", reshaped(MIXTRAL_EXPERT, 44, 31), "differ in shape"),
    ("qwen2moe", without("model.layers.0.mlp.shared_expert_gate.weight"), "ffn_gate_inp_shexp"),
    ("qwen3moe", without("model.layers.1.mlp.gate.weight"), "ffn_gate_inp"),
    ("granitemoe", without(GRANITE_FUSED), "input_linear"),
    ("granitemoe", reshaped(GRANITE_FUSED, 6, 41, 32), "input_linear"),
    ("granitemoe", reshaped(GRANITE_FUSED, 40, 32), "input_linear"),
    ("gpt-oss", without(OSS_FUSED), "gate_up_proj"),
    ("gpt-oss", reshaped(OSS_FUSED, 4, 40), "gate_up_proj"),
    ("gpt-oss", reshaped(f"{OSS_FUSED}_bias", 160), "gate_up_proj_bias"),
    ("gpt-oss", without("model.layers.3.self_attn.sinks"), "attn_sinks"),
    ("gpt-oss", reshaped("model.layers.3.self_attn.sinks", 5), "attn_sinks"),
]


@pytest.mark.parametrize(("fixture", "tensors", "message"), DAMAGED)
def test_damage_is_named(fixture: str, tensors: Any, message: str, tmp_path: Path) -> None:
    folder = changed_checkpoint(fixture, tmp_path / "model", {}, tensors)
    with pytest.raises(ModelFileError, match=message):
        convert_checkpoint(folder, tmp_path / "model.gguf", "f32", vocabulary=False)
    assert not (tmp_path / "model.gguf").exists()


@pytest.mark.parametrize(("fixture", "counts"), [("mixtral", (4, 5)), ("qwen3moe", (6, 0))])
def test_more_experts_used_than_there_are(fixture: str, counts: tuple[int, int], tmp_path: Path) -> None:
    config = {"num_experts_per_tok": counts[1]}
    folder = changed_checkpoint(fixture, tmp_path / "model", config)
    with pytest.raises(ModelFileError, match="num_experts_per_tok"):
        convert_checkpoint(folder, tmp_path / "model.gguf", "f32", vocabulary=False)


def test_weights_that_are_not_divided_by_their_sum_are_marked(tmp_path: Path) -> None:
    values, _ = converted(changed_checkpoint("qwen3moe", tmp_path / "model", {"norm_topk_prob": False}))
    assert values["qwen3moe.expert_weights_norm"] is False


def test_another_order_of_windows_is_written(tmp_path: Path) -> None:
    kinds = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    values, _ = converted(changed_checkpoint("gpt-oss", tmp_path / "model", {"layer_types": kinds}))
    assert list(values["gpt-oss.attention.sliding_window_pattern"]) == [False, True, True, False]


# ---- MXFP4

FLOAT4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
"""E2M1 of the OCP Microscaling Formats specification 1.0."""
INNER = 64


def in_mxfp4(arrays: Arrays) -> Arrays:
    """The experts' matrices of the gpt-oss fixture made of random codes, for experts of 64."""
    rng = np.random.default_rng(5)
    result = dict(arrays)
    for name in arrays:
        experts, _, kind = name.rpartition(".")
        rows, columns = (2 * INNER, 32) if "gate_up" in kind else (32, INNER)
        if kind in ("gate_up_proj", "down_proj"):
            del result[name]
            shape = (4, rows, columns // 32)
            result[f"{experts}.{kind}_blocks"] = rng.integers(0, 256, (*shape, 16), np.uint8)
            result[f"{experts}.{kind}_scales"] = rng.integers(120, 125, shape, np.uint8)
        elif kind == "gate_up_proj_bias":
            result[name] = rng.standard_normal((4, rows)).astype(np.float32)
    return result


def decoded(blocks: NDArray[np.uint8], scales: NDArray[np.uint8]) -> NDArray[np.float64]:
    """[..., columns]: two neighbours in each byte, the earlier one in its low half."""
    pairs = np.stack([blocks & 15, blocks >> 4], axis=-1)
    values = np.array(FLOAT4)[pairs] * 2.0 ** (scales.astype(np.float64)[..., None, None] - 127)
    return values.reshape(*blocks.shape[:2], -1)


def quantised_checkpoint(folder: Path, tensors: Any = in_mxfp4) -> Path:
    config = {"intermediate_size": INNER, "quantization_config": {"quant_method": "mxfp4"}}
    return changed_checkpoint("gpt-oss", folder, config, tensors)


def test_mxfp4_keeps_every_number(tmp_path: Path) -> None:
    made: Arrays = {}

    def remembered(arrays: Arrays) -> Arrays:
        made.update(in_mxfp4(arrays))
        return made

    path = tmp_path / "model.gguf"
    convert_checkpoint(quantised_checkpoint(tmp_path / "model", remembered), path, "f32", vocabulary=False)
    with GGUFFile.open(path) as file:
        for layer in range(4):
            source, target = f"model.layers.{layer}.mlp.experts.", f"blk.{layer}.ffn_"
            fused, down = (
                decoded(made[f"{source}{kind}_blocks"], made[f"{source}{kind}_scales"])
                for kind in ("gate_up_proj", "down_proj")
            )
            wanted = {"gate": fused[:, 0::2], "up": fused[:, 1::2], "down": down}
            for kind, numbers in wanted.items():
                tensor = file.tensors[f"{target}{kind}_exps.weight"]
                assert tensor.type.name == "MXFP4"
                np.testing.assert_array_equal(dequantise(tensor), numbers)
            bias = made[f"{source}gate_up_proj_bias"]
            up_bias = dequantise(file.tensors[f"{target}up_exps.bias"])
            np.testing.assert_array_equal(up_bias, bias[:, 1::2])


def test_numbers_are_paired_at_a_distance_of_16() -> None:
    """Numbers 0 to 15 and again: byte i holds number i and number i + 16, which are equal."""
    neighbours = np.arange(16, dtype=np.uint8) % 8 * 0x22 + 0x10
    assert paired_at_distance(neighbours).tolist() == [number * 0x11 for number in range(16)]


@pytest.mark.parametrize("kind", ["gate_up_proj_scales", "down_proj_scales", "down_proj_blocks"])
def test_mxfp4_with_parts_that_do_not_fit(kind: str, tmp_path: Path) -> None:
    name = f"model.layers.1.mlp.experts.{kind}"

    def damaged(arrays: Arrays) -> Arrays:
        made = in_mxfp4(arrays)
        return {**made, name: made[name][:, :-1]}

    with pytest.raises(ModelFileError, match="do not fit"):
        convert_checkpoint(
            quantised_checkpoint(tmp_path / "model", damaged),
            tmp_path / "model.gguf",
            "f32",
            vocabulary=False,
        )
