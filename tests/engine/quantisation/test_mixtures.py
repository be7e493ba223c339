"""Types of mixtures beside those of llama.cpp, for models of many shapes (tools/make_mixture_fixtures.py)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.gguf.file_types import FILE_TYPES
from engine.quantisation.choosing_types import choose_types
from engine.quantisation.mixtures import FILE_TYPE_NUMBERS, MIXTURES, ModelShape, types_in_mixture
from engine.quantisation.quantise import QUANTISERS, make_tensor
from engine.tensor import Tensor

FIXTURE = Path(__file__).parents[2] / "fixtures/quantisers/mixtures.json"
MODELS = json.loads(FIXTURE.read_text(encoding="utf-8"))["models"]
SHAPE = ModelShape("llama", 24, 8, 8, 0, tied=False)


def title(model: dict) -> str:
    shape = model["shape"]
    return f"{shape['architecture']}-{shape['n_layers']}-{shape['n_kv_heads']}-{shape['n_experts']}"


def tensors_of(model: dict) -> dict[str, Tensor]:
    """The last layer first: the order in a file must not matter."""
    tensors = {}
    for pattern, n_axes in model["tensors"].items():
        data = np.zeros((*[2] * (n_axes - 1), 256), np.float32)
        layers = reversed(range(model["shape"]["n_layers"])) if pattern.startswith("blk.*.") else (0,)
        for layer in layers:
            name = pattern.replace("*", str(layer))
            tensors[name] = make_tensor(name, data)
    return tensors


@pytest.mark.parametrize("model", MODELS, ids=title)
def test_types_are_those_of_llama_cpp(model) -> None:
    tensors = tensors_of(model)
    shape = ModelShape(**model["shape"])
    assert set(model["types"]) == set(MIXTURES)
    for mixture, types in model["types"].items():
        expected = dict.fromkeys(tensors, "F32")
        for pattern, found in types.items():
            by_layer = found.split(" ")
            for layer in range(shape.n_layers if "*" in pattern else 1):
                expected[pattern.replace("*", str(layer))] = by_layer[layer % len(by_layer)]
        chosen = {choice.tensor.name: choice.type.name for choice in choose_types(tensors, mixture, shape)}
        assert chosen == expected, mixture


def test_some_layers_get_more_bits_in_the_fixture() -> None:
    """Or the comparison above would say little."""
    assert any(" " in found for model in MODELS for found in model["types"]["Q4_K_M"].values())
    assert {model["shape"]["architecture"] for model in MODELS} >= {"llama", "falcon", "gpt-oss", "phi2"}


def test_names_and_numbers() -> None:
    assert set(FILE_TYPE_NUMBERS) == set(MIXTURES)
    assert all(FILE_TYPES[FILE_TYPE_NUMBERS[name]] == name for name in MIXTURES)
    assert {mixture.base for mixture in MIXTURES.values()} == set(QUANTISERS)


def test_half_of_the_layers_by_hand() -> None:
    """24 layers: the first 3, the last 3, and 5, 8, 11, 14, 17, 20 between."""
    names = [f"blk.{layer}.ffn_down.weight" for layer in range(24)]
    types = types_in_mixture("Q4_K_M", SHAPE, names)
    larger = [layer for layer, name in enumerate(names) if types[name] == "Q6_K"]
    assert larger == [0, 1, 2, 5, 8, 11, 14, 17, 20, 21, 22, 23]
    assert set(types.values()) == {"Q4_K", "Q6_K"}


def test_layers_without_values_do_not_count() -> None:
    names = [f"blk.{layer}.attn_v.weight" for layer in (0, 10, 20, 22)]
    types = types_in_mixture("Q3_K_M", SHAPE, names)
    assert [types[name] for name in names] == ["Q5_K", "Q5_K", "Q4_K", "Q4_K"]


@pytest.mark.parametrize(
    "name", ["blk.x.ffn_down.weight", "blk.٣.ffn_down.weight", "blk.3", "blk..attn_v.weight", "x"]
)
def test_strange_names_get_the_base(name) -> None:
    assert types_in_mixture("Q3_K_L", SHAPE, [name]) == {name: "Q3_K"}


def test_unknown_mixtures() -> None:
    with pytest.raises(KeyError):
        types_in_mixture("Q4_K", SHAPE, [])
