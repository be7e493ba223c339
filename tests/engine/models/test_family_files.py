"""Model files of every family: tensors that are missing or of another shape are named, the estimate of memory
is what loading takes, and weights that stay in the file give the same logits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from engine.conversion import convert_checkpoint
from engine.errors import ModelFileError, SettingsError
from engine.gguf.reader import GGUFFile
from engine.graph.operations import BatchShape
from engine.inspection import outline
from engine.models.description import ModelDescription, describe
from engine.models.registry import plan_layers
from engine.requests import LoadSettings
from engine.tensor import Tensor
from tests.helpers.family_fixtures import FOLDER, NAMES, load_without_vocabulary, truth_of
from tests.helpers.truth import read_logits, relative_l2

BATCH = BatchShape(3, 1)


@dataclass(frozen=True)
class FamilyFile:
    path: Path
    description: ModelDescription
    tensors: dict[str, Tensor]


@pytest.fixture(scope="module", params=NAMES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FamilyFile]:
    path = tmp_path_factory.mktemp("converted") / f"{request.param}.gguf"
    convert_checkpoint(FOLDER / request.param, path, "f32", vocabulary=False)
    with GGUFFile.open(path) as file:
        tensors = dict(file.tensors)
        yield FamilyFile(path, describe(file.metadata, tensors["token_embd.weight"].shape[0]), tensors)


def test_every_tensor_of_another_shape_is_named(family: FamilyFile) -> None:
    plan = plan_layers(family.description, family.tensors, BATCH)
    for name in plan.weights:
        tensor = family.tensors[name]
        for axis in range(len(tensor.shape)):
            shape = list(tensor.shape)
            shape[axis] += 1
            changed = {**family.tensors, name: replace(tensor, shape=tuple(shape))}
            with pytest.raises(ModelFileError, match=re.escape(name)):
                plan_layers(family.description, changed, BATCH)
        changed = {**family.tensors, name: replace(tensor, shape=(*tensor.shape, 1))}
        with pytest.raises(ModelFileError, match=re.escape(name)):
            plan_layers(family.description, changed, BATCH)


def test_the_estimate_of_weights_is_what_loading_takes(family: FamilyFile) -> None:
    for repack in (True, False):
        settings = LoadSettings(context_size=64, repack=repack)
        with closing(load_without_vocabulary(family.path, settings)) as model:
            assert model.memory.weights == model.weights.nbytes
            assert (model.memory.mapped > 0) == (not repack)


def test_weights_in_the_file_give_the_same_logits(family: FamilyFile) -> None:
    truth = truth_of(family.path.stem)
    settings = LoadSettings(context_size=truth.context_size, kv="f32", repack=False)
    with (
        closing(load_without_vocabulary(family.path, settings)) as model,
        closing(model.new_context()) as context,
    ):
        ours = read_logits(model, context, truth.ids, 17)
    assert relative_l2(ours, truth.logits).max() <= 1e-4


MAY_BE_MISSING: dict[str, str] = {
    "phi2": r"output\.weight",
    "stablelm": r"output\.weight",
    "stablelm-parallel": r"output\.weight|.*attn_[qk]_norm\.weight",
    "starcoder2": "",
    "gpt2": "",
    "gptneox": r"output\.weight",
    "falcon": "",
    "falcon-new": "",
    "command-r": "",
    "command-r-qk-norm": r".*attn_[qk]_norm\.weight",
    "cohere2": "",
}
"""What some models of a family do not have: tied outputs, and parts that tell one size from another."""


@pytest.mark.parametrize("name", MAY_BE_MISSING)
def test_every_tensor_that_is_missing_is_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    convert_checkpoint(FOLDER / name, path, "f32", vocabulary=False)
    with GGUFFile.open(path) as file:
        description = describe(file.metadata, file.tensors["token_embd.weight"].shape[0])
        for lost in file.tensors:
            tensors = {other: tensor for other, tensor in file.tensors.items() if other != lost}
            if re.fullmatch(MAY_BE_MISSING[name], lost):
                plan_layers(description, tensors, BATCH)
                continue
            # Without fused weights a file is taken for one with three.
            named = lost.replace("attn_qkv.weight", "attn_q.weight")
            with pytest.raises(ModelFileError, match=re.escape(named)):
                plan_layers(description, tensors, BATCH)


def test_a_context_beyond_the_learned_positions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gpt2.gguf"
    convert_checkpoint(FOLDER / "gpt2", path, "f32", vocabulary=False)
    with GGUFFile.open(path) as file:
        assert outline(file, LoadSettings(context_size=128)).context_size == 128
        assert outline(file, LoadSettings()).context_size == 128
        with pytest.raises(SettingsError, match="129 tokens is not possible") as caught:
            outline(file, LoadSettings(context_size=129))
    assert "at most 128" in caught.value.advice


def test_the_last_learned_position_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "gpt2.gguf"
    convert_checkpoint(FOLDER / "gpt2", path, "f32", vocabulary=False)
    ids = [int(token) for token in np.random.default_rng(0).integers(3, 67, 128)]
    with (
        closing(load_without_vocabulary(path, LoadSettings(context_size=128, kv="f32"))) as model,
        closing(model.new_context()) as context,
        closing(model.new_context()) as other,
    ):
        at_once = read_logits(model, context, ids, 128)
        one_by_one = read_logits(model, other, ids, 1)
    assert relative_l2(one_by_one, at_once).max() <= 1e-5
