"""Every family with a tensor missing or of another shape: planning names it, before anything is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.conversion import convert_checkpoint
from engine.errors import ModelFileError
from engine.gguf.reader import GGUFFile
from engine.graph.operations import BatchShape
from engine.inspection import ModelOutline, outline
from engine.models.registry import plan_layers
from engine.quantisation.quantise import make_tensor
from engine.requests import LoadSettings
from engine.tensor import Tensor
from tests.helpers.family_fixtures import FOLDER, NAMES
from tests.helpers.tiny_model import write_tiny_model

OPTIONAL = re.compile(r".*\.bias|output\.weight|rope_.*")
"""What a model may have or not: without it another result is right."""
OPTIONAL_OF = {
    "command-r": "attn_[qk]_norm",
    "granitemoe": "ffn_gate_shexp",
    "stablelm": "attn_[qk]_norm|ffn_norm",
}
"""By architecture, where models of one family differ."""


@pytest.fixture(scope="module", params=NAMES)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelOutline]:
    path: Path = tmp_path_factory.mktemp("family") / "m.gguf"
    convert_checkpoint(FOLDER / request.param, path, "f32", vocabulary=False)
    with GGUFFile.open(path) as file:
        yield outline(file, LoadSettings(context_size=128))


def plan(model: ModelOutline, tensors: dict[str, Tensor]) -> None:
    plan_layers(model.description, tensors, BatchShape(2, 1))


def of_first_layer(model: ModelOutline) -> list[str]:
    """What is used of layer 0 and of no layer."""
    return [name for name in model.plan.weights if not re.match(r"blk\.[1-9]", name)]


def test_a_missing_tensor_is_named(model: ModelOutline) -> None:
    optional = OPTIONAL_OF.get(model.description.architecture)
    for name in of_first_layer(model):
        if OPTIONAL.fullmatch(name) or (optional and re.search(rf"\.({optional})\.", name)):
            continue
        with pytest.raises(ModelFileError) as caught:
            plan(model, {key: tensor for key, tensor in model.tensors.items() if key != name})
        # Without q, k and v in one tensor, three of them are looked for.
        assert name in caught.value.title or name.replace("attn_qkv", "attn_q") in caught.value.title


def test_a_tensor_of_another_shape_is_named(model: ModelOutline) -> None:
    for name in of_first_layer(model):
        tensor = model.tensors[name]
        shape = tuple(length + 1 for length in tensor.shape)
        with pytest.raises(ModelFileError) as caught:
            plan(model, {**model.tensors, name: replace(tensor, shape=shape)})
        assert name in caught.value.title


def test_every_tensor_is_used(model: ModelOutline) -> None:
    """A tensor that is converted and not used is a part of the model that is forgotten."""
    unused = set(model.tensors) - set(model.plan.weights)
    assert unused <= {"rope_factors_long.weight", "rope_factors_short.weight"}


@pytest.mark.parametrize("lost", ["attn_q", "attn_k", "attn_v"])
@pytest.mark.parametrize("name", ["qwen2", "llama-biases", "qwen2moe"])
def test_a_bias_without_the_other_two_is_missed_by_name(name: str, lost: str, tmp_path: Path) -> None:
    convert_checkpoint(FOLDER / name, tmp_path / "m.gguf", "f32", vocabulary=False)
    with GGUFFile.open(tmp_path / "m.gguf") as file:
        model = outline(file, LoadSettings(context_size=128))
    tensors = {key: tensor for key, tensor in model.tensors.items() if key != f"blk.1.{lost}.bias"}
    assert len(tensors) == len(model.tensors) - 1
    with pytest.raises(ModelFileError, match=rf"blk\.1\.{lost}\.bias"):
        plan(model, tensors)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("blk.0.attn_q.scale", True),
        ("output_norm.bias", True),
        ("rope_factors_long.weight", False),
        ("blk.1.attn_rot_embd.weight", False),
        ("blk.2.nextn.eh_proj.weight", False),  # of a layer that guesses ahead, beyond the last
        ("blk.2.attn_norm.weight", True),  # a layer more than the file counts
    ],
)
def test_tensors_that_nothing_uses_are_told(name: str, told: bool, tmp_path: Path) -> None:
    extra = make_tensor(name, np.ones(32, np.float32))
    path = write_tiny_model(tmp_path / "m.gguf", n_layers=2, extra_tensors={name: extra})
    with GGUFFile.open(path) as file:
        notices = outline(file, LoadSettings()).notices
    assert any(name in notice for notice in notices) == told


def test_all_tensors_of_a_layer_that_guesses_ahead_are_spare(tmp_path: Path) -> None:
    names = ("blk.2.attn_norm.weight", "blk.2.nextn.eh_proj.weight")
    extra = {name: make_tensor(name, np.ones(32, np.float32)) for name in names}
    path = write_tiny_model(tmp_path / "m.gguf", n_layers=2, extra_tensors=extra)
    with GGUFFile.open(path) as file:
        assert outline(file, LoadSettings()).notices == ()
