"""The families as graphs: shapes, refusals, and splitting by layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.tensor_types import TENSOR_TYPES
from engine.graph.operations import BatchShape
from engine.models.description import ModelDescription
from engine.models.registry import cache_spec, family_of, plan_layers
from engine.models.rope_description import RopeDescription
from engine.tensor import Tensor

LLAMA = ModelDescription(
    architecture="llama",
    name="tiny",
    n_layers=4,
    width=32,
    feed_forward=64,
    n_heads=4,
    n_kv_heads=2,
    head_size=8,
    n_vocabulary=50,
    context_length=128,
    norm_epsilon=1e-5,
    attention_scale=8**-0.5,
    rope=RopeDescription(n_dims=8),
    sliding_rope=RopeDescription(n_dims=8),
)
GEMMA3 = replace(LLAMA, architecture="gemma3", sliding_window=16, sliding_layers=(True, False) * 2)
BATCH = BatchShape(5, 2)


def tensors_for(model: ModelDescription) -> dict[str, Tensor]:
    q, kv = model.n_heads * model.head_size, model.n_kv_heads * model.head_size
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (model.n_vocabulary, model.width),
        "output_norm.weight": (model.width,),
    }
    for index in range(model.n_layers):
        for name, shape in {
            "attn_norm": (model.width,),
            "attn_q": (q, model.width),
            "attn_k": (kv, model.width),
            "attn_v": (kv, model.width),
            "attn_output": (model.width, q),
            "attn_q_norm": (model.head_size,),
            "attn_k_norm": (model.head_size,),
            "post_attention_norm": (model.width,),
            "ffn_norm": (model.width,),
            "ffn_gate": (model.feed_forward, model.width),
            "ffn_up": (model.feed_forward, model.width),
            "ffn_down": (model.width, model.feed_forward),
            "post_ffw_norm": (model.width,),
        }.items():
            shapes[f"blk.{index}.{name}.weight"] = shape
    kind = TENSOR_TYPES["F32"]
    return {
        name: Tensor.contiguous(name, kind, shape, np.zeros(4 * int(np.prod(shape)), np.uint8))
        for name, shape in shapes.items()
    }


@pytest.mark.parametrize("model", [LLAMA, GEMMA3], ids=lambda model: model.architecture)
def test_plan_ends_with_logits_of_the_wanted_tokens(model: ModelDescription) -> None:
    plan = plan_layers(model, tensors_for(model), BATCH)
    assert plan.result.shape == (2, model.n_vocabulary)
    assert "token_embd.weight" in plan.weights
    assert sum(step.node.operation == "attention" for step in plan.steps) == model.n_layers


@pytest.mark.parametrize("model", [LLAMA, GEMMA3], ids=lambda model: model.architecture)
def test_arena_is_far_smaller_than_all_results_together(model: ModelDescription) -> None:
    plan = plan_layers(model, tensors_for(model), BATCH)
    together = sum(step.node.nbytes for step in plan.steps)
    assert plan.arena_bytes < together / 5


@pytest.mark.parametrize("model", [LLAMA, GEMMA3], ids=lambda model: model.architecture)
def test_layers_split_into_two_plans_that_use_every_weight_once(model: ModelDescription) -> None:
    tensors = tensors_for(model)
    whole = plan_layers(model, tensors, BATCH)
    first = plan_layers(model, tensors, BATCH, range(0, 2))
    second = plan_layers(model, tensors, BATCH, range(2, 4))
    assert first.result.shape == (5, model.width)
    assert second.result.shape == whole.result.shape
    layers = [name for name in first.weights + second.weights if name.startswith("blk.")]
    assert sorted(layers) == sorted(name for name in whole.weights if name.startswith("blk."))


def test_every_layer_norm_of_gemma_is_used() -> None:
    tensors = tensors_for(GEMMA3)
    assert set(plan_layers(GEMMA3, tensors, BATCH).weights) == set(tensors)


def test_gemma_sees_everything_in_every_pattern_th_layer_only() -> None:
    windows = [layer.window for layer in cache_spec(GEMMA3, 128, 16).layers]
    assert windows == [16, 0, 16, 0]


def test_an_unknown_family_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedModelError, match="nosuch"):
        family_of("nosuch")


def test_a_missing_tensor_is_named() -> None:
    tensors = tensors_for(LLAMA)
    del tensors["blk.3.ffn_up.weight"]
    with pytest.raises(ModelFileError, match=r"blk\.3\.ffn_up\.weight"):
        plan_layers(LLAMA, tensors, BATCH)


@pytest.mark.parametrize("name", ["blk.1.attn_k.weight", "blk.0.attn_norm.weight", "token_embd.weight"])
def test_a_tensor_of_another_shape_is_named(name: str) -> None:
    tensors = tensors_for(LLAMA)
    shape = tuple(length + 1 for length in tensors[name].shape)
    tensors[name] = replace(tensors[name], shape=shape)
    with pytest.raises(ModelFileError, match=name.replace(".", r"\.")):
        plan_layers(LLAMA, tensors, BATCH)


def test_a_bias_beside_a_weight_is_added() -> None:
    tensors = tensors_for(LLAMA)
    bias = Tensor.contiguous("b", TENSOR_TYPES["F32"], (32,), np.zeros(128, np.uint8))
    tensors["blk.0.attn_output.bias"] = bias
    assert "blk.0.attn_output.bias" in plan_layers(LLAMA, tensors, BATCH).weights
