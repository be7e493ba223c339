"""Folders of checkpoints: configurations, shards with their index, and what may be missing or wrong there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.conversion.checkpoint import INDEX, Checkpoint
from engine.conversion.config import Config
from engine.errors import ModelFileError
from tests.helpers.checkpoints import read_safetensors, write_safetensors
from tests.helpers.family_fixtures import FOLDER


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """The fixture `llama` in two files with an index."""
    arrays = list(read_safetensors(FOLDER / "llama").items())
    shutil.copy(FOLDER / "llama/config.json", tmp_path)
    weights = {}
    for number, part in enumerate((arrays[:9], arrays[9:]), 1):
        name = f"model-{number:05}-of-00002.safetensors"
        write_safetensors(tmp_path / name, dict(part))
        weights |= {tensor: name for tensor, _ in part}
    write_index(tmp_path, weights)
    return tmp_path


def write_index(folder: Path, weights: Any) -> None:
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weights}))


def names_in(folder: Path) -> set[str]:
    with Checkpoint.open(folder).open_weights() as tensors:
        return set(tensors)


def test_shards_are_one_checkpoint(sharded: Path) -> None:
    assert names_in(sharded) == names_in(FOLDER / "llama")


def test_shards_without_an_index(sharded: Path) -> None:
    (sharded / INDEX).unlink()
    assert names_in(sharded) == names_in(FOLDER / "llama")


def test_a_missing_shard_is_named(sharded: Path) -> None:
    (sharded / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(ModelFileError, match="1 of 2 files: model-00002-of-00002"):
        names_in(sharded)


def test_an_index_that_promises_too_much(sharded: Path) -> None:
    weights = json.loads((sharded / INDEX).read_text())["weight_map"]
    write_index(sharded, weights | {"model.more.weight": "model-00001-of-00002.safetensors"})
    with pytest.raises(ModelFileError, match=r"model\.more\.weight"):
        names_in(sharded)


def test_a_tensor_in_two_files(sharded: Path) -> None:
    shutil.copy(sharded / "model-00001-of-00002.safetensors", sharded / "model-00002-of-00002.safetensors")
    with pytest.raises(ModelFileError, match="both have"):
        names_in(sharded)


@pytest.mark.parametrize(
    "weights",
    [
        None,
        {},
        ["a"],
        {"a": "../other/model.safetensors"},
        {"a": "/etc/model.safetensors"},
        {"a": "sub/model.safetensors"},
        {"a": "model.bin"},
        {"a": 3},
        {"a": ["model.safetensors"]},
    ],
)
def test_indices_of_nonsense(sharded: Path, weights: Any) -> None:
    """An index names files beside it; none of these may be opened."""
    write_index(sharded, weights)
    with pytest.raises(ModelFileError):
        names_in(sharded)


def test_folders_that_are_none(tmp_path: Path) -> None:
    for folder in (tmp_path / "missing", tmp_path):
        with pytest.raises(ModelFileError):
            Checkpoint.open(folder)


def test_pickled_weights_are_told(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "llama/config.json", tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK")
    with pytest.raises(ModelFileError, match=r"pytorch_model\.bin, whose format can run any program"):
        names_in(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"', "{" * 100_000, '{"a": ' * 100_000], ids=range(6))
def test_configurations_that_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelFileError, match=r"config\.json"):
        Checkpoint.open(tmp_path)


class TestConfig:
    config = Config(
        {"n": 3, "zero": 0, "x": 0.5, "yes": True, "name": "a", "none": None, "list": [1], "part": {}}
    )

    def test_values(self) -> None:
        assert self.config.count("n") == 3
        assert self.config.count("none", "n") == 3
        assert self.config.number("n") == 3.0 and self.config.number("x") == 0.5
        assert self.config.flag("yes") is True and self.config.text("name") == "a"
        assert self.config.items("list") == [1] and self.config.items("missing") == []
        assert self.config.part("part") is not None and self.config.part("missing") is None

    def test_defaults(self) -> None:
        assert self.config.count("none", default=7) == 7
        assert self.config.with_defaults({"n": 1, "none": 2}).count("none") == 2
        assert self.config.with_defaults({"n": 1}).count("n") == 3

    @pytest.mark.parametrize(
        ("getter", "name"),
        [
            ("count", "x"),
            ("count", "yes"),
            ("count", "zero"),
            ("count", "none"),
            ("number", "name"),
            ("number", "yes"),
            ("flag", "n"),
            ("text", "n"),
            ("items", "name"),
            ("part", "list"),
        ],
    )
    def test_values_of_another_kind(self, getter: str, name: str) -> None:
        with pytest.raises(ModelFileError, match=name):
            getattr(self.config, getter)(name)

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400], ids=["nan", "inf", "long"])
    def test_numbers_that_are_none(self, value: float) -> None:
        with pytest.raises(ModelFileError):
            Config({"x": value}).number("x")
