"""Keys that a configuration leaves out: what `transformers` 5.24 takes for them goes into the model file
where its readers would take something else, or the checkpoint is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.conversion import convert_checkpoint
from engine.errors import ModelFileError
from engine.gguf.reader import GGUFFile
from engine.models.description import ModelDescription, describe
from tests.helpers.checkpoints import changed_checkpoint

NO_ROPE = {"rope_theta": None, "rope_scaling": None, "rope_parameters": None}


def description_without(fixture: str, removed: dict[str, Any], folder: Path) -> ModelDescription:
    checkpoint = changed_checkpoint(fixture, folder / "checkpoint", removed)
    convert_checkpoint(checkpoint, folder / "model.gguf", "f32", vocabulary=False)
    with GGUFFile.open(folder / "model.gguf") as file:
        return describe(file.metadata, 67)


@pytest.mark.parametrize(
    ("fixture", "base"),
    [
        ("cohere2", 10_000),
        ("command-r", 500_000),
        ("falcon", 10_000),
        ("gemma3", 1_000_000),
        ("granite", 10_000),
        ("llama", 10_000),
        ("mistral", 10_000),
        ("mixtral", 1_000_000),
        ("olmo2", 10_000),
        ("olmo3", 500_000),
        ("phi2", 10_000),
        ("qwen2", 10_000),
        ("qwen3moe", 10_000),
        ("smollm3", 2_000_000),
        ("starcoder2", 10_000),
    ],
)
def test_base_of_rotations(fixture: str, base: int, tmp_path: Path) -> None:
    assert description_without(fixture, NO_ROPE, tmp_path).rope.base == base


def test_base_beside_a_scaling(tmp_path: Path) -> None:
    assert description_without("gpt-oss", {"rope_theta": None}, tmp_path).rope.base == 150_000


@pytest.mark.parametrize(
    ("fixture", "window"),
    [
        ("exaone4", 4096),
        ("gemma2", 4096),
        ("ministral", 4096),
        ("mistral", 4096),
        ("mixtral", 0),
        ("olmo2", 0),
        ("olmo3", 4096),
        ("phi3", 0),
        ("qwen2", 0),
        ("starcoder2", 0),
    ],
)
def test_window(fixture: str, window: int, tmp_path: Path) -> None:
    """A window of null, on the other hand, is none: the fixtures mistral and exaone4-global have that."""
    assert description_without(fixture, {"sliding_window": None}, tmp_path).sliding_window == window


@pytest.mark.parametrize("fixture", ["olmoe", "qwen2moe", "qwen3moe"])
def test_weights_of_experts(fixture: str, tmp_path: Path) -> None:
    assert not description_without(fixture, {"norm_topk_prob": None}, tmp_path).experts.weights_norm


@pytest.mark.parametrize("fixture", ["gpt-oss", "ministral3"])
def test_scaling_that_is_never_none(fixture: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="lacks rope_parameters"):
        description_without(fixture, NO_ROPE, tmp_path)
